"""Pages from Jinja templates: HTML, of which every value is escaped, and Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

__all__ = ["render"]


def render(template: str, **values: Any) -> str:
    """Return a template of `fedlogit/results/pages/templates` with its values in place.

    Args:
        template: Name of the file.
        values: What it names; one that is missing is an error.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=template.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
