"""A paper at a scale on one page of HTML: its tables, figures, claims, and where each comes from."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from fedlogit.errors import DataError
from fedlogit.files import read_json
from fedlogit.results.artefact import Artefact
from fedlogit.results.collect import describe
from fedlogit.results.runs import read_run
from fedlogit.results.text import write_text

__all__ = ["caption", "provenance", "write_page"]

_TEMPLATE = "page.html"
_FACTS = (
    "code_version",
    "device",
    "precision",
    "dataset_note",
    "wall_seconds",
    "finished",
    "command",
    "torch",
)


def provenance(artefact: Artefact) -> pd.DataFrame:
    """Return where an artefact's runs come from, a row per run.

    Columns are `dir`, `digest`, `dataset`, `partition`, `method`, `seed`, `scale`, `rounds`,
    `diverged`, and the facts that the run recorded about code, machine, time and command.

    Raises:
        DataError: if a run is missing, incomplete, or not the one that was asked for.
    """
    rows = {}
    for ref in artefact.runs:
        run = read_run(ref.dir, ref.digest)
        facts: dict[str, Any] = read_json(ref.dir / "result.json")["provenance"]
        rows[ref.digest] = {
            "dir": ref.dir.as_posix(),
            "digest": ref.digest,
            "dataset": run.spec.dataset,
            "partition": run.spec.partition.name,
            "method": run.spec.method.name,
            "seed": run.spec.seed,
            "scale": run.spec.scale,
            "rounds": len(run.rounds),
            "diverged": run.diverged,
        } | {key: facts.get(key, "") for key in _FACTS}
    return pd.DataFrame(list(rows.values()))


def caption(artefact: Artefact, runs: pd.DataFrame) -> str:
    """Return what an artefact shows and where it comes from: scale, seeds, device, stand-ins."""
    return f"{artefact.caption} {_sentence(describe(runs))}".strip()


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
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template(_TEMPLATE).render(
        paper=first.paper,
        title=first.paper_title or first.paper,
        scale=first.scale,
        parts=parts,
        compared=_optional(summary / "compare.md"),
        claims=_optional(summary / "claims.md"),
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
        "caption": caption(artefact, runs),
        "body": body,
        "file": base.with_name(f"{base.name}.{'csv' if artefact.kind == 'table' else 'pdf'}"),
        "runs": runs,
        "rows": runs.to_dict("records"),
        "hours": _hours(runs),
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


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


def _optional(path: Path) -> Markup:
    """Return a Markdown file as HTML, or nothing if a paper has no table to compare."""
    return _html(_read(path)) if path.exists() else Markup("")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _html(text: str) -> Markup:
    """Return Markdown as HTML; raw HTML in it is shown as text."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(renderer.render(text))  # noqa: S704 - the renderer escapes
