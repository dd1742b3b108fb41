"""The files that say from which runs a table or figure is drawn, by name; imports nothing slow."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["other_plans"]


def other_plans(plan: Path) -> list[Path]:
    """Return the files with other content of the same artefact.

    Args:
        plan: A file that `PlanWriter.artefact_file` returns; it need not be there.
    """
    subject = plan.name.rsplit(".", 2)[0]
    of_subject = re.compile(rf"{re.escape(subject)}\.[0-9a-f]+\.json")
    files = plan.parent.glob("*.json")
    return [path for path in files if of_subject.fullmatch(path.name) and path.name != plan.name]
