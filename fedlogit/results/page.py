"""A paper at a scale on one page: tables, figures, claims, and where each comes from."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from fedlogit.errors import DataError
from fedlogit.results.artefact import Artefact
from fedlogit.results.formatting import write_text
from fedlogit.results.provenance import caption, provenance
from fedlogit.results.templating import render

__all__ = ["write_page"]

_TEMPLATE = "page.html"
_LOOK = {"reproduced": "good", "holds": "good", "not reproduced": "bad", "does not hold": "bad"}
_VERDICT = re.compile(
    r">(reproduced|partly reproduced|not reproduced|reduced scale|stand-in data|diverged|holds"
    r"|does not hold|undecided|not run)( \(n=1\))?</td>"
)


def write_page(artefacts: Sequence[Artefact], results: Path, out: Path) -> Path:
    """Write the page of a paper at a scale; it holds its pictures and needs no other file.

    Args:
        artefacts: The paper's tables and figures, all at one scale and drawn already.
        results: The folder with ``tables``, ``figures`` and ``summary``.
        out: Where to.

    Raises:
        DataError: if a table, a figure or a run is missing or damaged.
    """
    first = artefacts[0]
    parts = [_part(artefact, results) for artefact in artefacts]
    runs = pd.concat([part["runs"] for part in parts]).drop_duplicates("digest")
    summary = results / "summary" / first.paper / first.scale
    claims, _, evidence = _optional(summary / "claims.md").partition("### Evidence")
    text = render(
        _TEMPLATE,
        paper=first.paper,
        title=first.paper_title or first.paper,
        scale=first.scale,
        parts=parts,
        compared=_html(_optional(summary / "compare.md")),
        claims=_html(claims),
        evidence=_html(evidence),
        runs=len(runs),
        hours=_hours(runs),
        devices=", ".join(sorted(set(runs["device"]))),
        versions=", ".join(sorted(set(runs["code_version"]))),
    )
    return write_text(out, text)


def _part(artefact: Artefact, results: Path) -> dict[str, Any]:
    """Return what the template shows of one table or figure."""
    base = results / f"{artefact.kind}s" / artefact.paper / artefact.scale / artefact.id
    runs = provenance(artefact)
    body = _table(base) if artefact.kind == "table" else _picture(base, artefact.title)
    return {
        "id": artefact.id,
        "kind": artefact.kind,
        "title": artefact.title,
        "caption": caption(artefact),
        "body": body,
        "file": base.with_name(f"{base.name}.{'csv' if artefact.kind == 'table' else 'pdf'}"),
        "runs": runs,
        "rows": runs.to_dict("records"),
        "hours": _hours(runs),
    }


def _hours(runs: pd.DataFrame) -> str:
    """Return the time that runs took in all, in words."""
    seconds = float(runs["wall_seconds"].sum())
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def _table(base: Path) -> Markup:
    """Return a table's Markdown as HTML, without its title and caption."""
    lines = _read(base.with_name(f"{base.name}.md")).splitlines()
    return _html("\n".join(line for line in lines if line.startswith("|")))


def _picture(base: Path, title: str) -> Markup:
    """Return a figure as an image that is part of the page."""
    path = base.with_name(f"{base.name}.png")
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(title, data)


def _optional(path: Path) -> str:
    """Return the text of a file without its heading, or "" if a paper has no table to compare."""
    return _read(path).partition("\n")[2] if path.exists() else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _html(text: str) -> Markup:
    """Return Markdown as HTML, with verdicts as badges; raw HTML in it is shown as text."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(_VERDICT.sub(_badge, renderer.render(text)))  # noqa: S704 - the renderer escapes


def _badge(found: re.Match[str]) -> str:
    """Return the end of a table's cell whose text is a verdict."""
    return (
        f'><span class="badge {_LOOK.get(found[1], "open")}">{found[1]}{found[2] or ""}</span></td>'
    )
