"""A paper at a scale as HTML: tables, figures, claims; each number is a link to its runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from fedlogit.errors import DataError, reading
from fedlogit.files import read_text
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect, distinct_values
from fedlogit.results.formatting import markdown, write_text
from fedlogit.results.pages.captions import Place, alt_text, caption_html
from fedlogit.results.pages.commands import command
from fedlogit.results.pages.run_lists import run_anchor, runs_by_cell
from fedlogit.results.pages.summary_text import below_heading, claims_and_evidence
from fedlogit.results.pages.templating import render
from fedlogit.results.provenance import caption, provenance, training_seconds
from fedlogit.results.record.counts import OUTCOMES
from fedlogit.results.tables import (
    cell_of_run,
    linked_table,
    table_and_caption,
    table_caption,
)
from fedlogit.results.verdicts.compare import read_comparison
from fedlogit.results.verdicts.comparison_table import (
    RIGHT,
    comparison_table,
    labels_of_numbers,
    tables_in_percent,
)
from fedlogit.results.verdicts.counterparts import counterpart, tables_standing_for
from fedlogit.results.verdicts.number_rows import ComparedNumber, compared_numbers
from fedlogit.results.verdicts.rules import CLAIM_RESULTS, ClaimResult, Unjudged, Verdict
from fedlogit.runs.paths import ResultsLayout

__all__ = ["breakable", "embedded", "scrolled", "settings_below", "shell", "to_html", "write_page"]

_LOOK: dict[str, str] = {
    Verdict.REPRODUCED: "good",
    ClaimResult.HOLDS: "good",
    Verdict.NOT_REPRODUCED: "bad",
    ClaimResult.FAILS: "bad",
}
_OF_NUMBERS, _OF_CLAIMS = ("|".join(map(re.escape, words)) for words in (OUTCOMES, CLAIM_RESULTS))
# A claim's result may have a reason, what is missing, or what each data set says, after it.
_VERDICT = re.compile(
    rf">(?P<text>(?P<result>{_OF_CLAIMS})(?:(?:,| \()[^<]+)?|(?:{_OF_NUMBERS}))</td>"
)
_CELL_WITH_LONG_WORD = re.compile(r"(?<=>)[^<>]*[^<>\s]{17}[^<>]*(?=</(?:em></)?td>)")
_TABLE = re.compile("<table>.*?</table>", re.DOTALL)
_HEAD = re.compile("<th(?: [^>]*)?>")
_HEADING = re.compile(r'<h([234]) id="([^"]+)"[^>]*>(.*?)</h')


def write_page(artefacts: Sequence[Artefact], results: Path, out: Path) -> Path:
    """Write the page of a paper at a scale; it holds its pictures and needs no other file.

    Args:
        artefacts: The paper's tables and figures, all at one scale and drawn already. Those
            without runs are left out.
        results: The folder with ``tables``, ``figures`` and ``summary``.
        out: Where to.

    Raises:
        DataError: if a table, a figure or a run is missing or damaged, or none has runs.
    """
    first = artefacts[0]
    title = f"{first.paper_title or first.paper} ({first.scale})"
    return write_text(out, shell(title, Markup(""), [_chapter(artefacts, results)]))


def shell(title: str, opening: Markup, chapters: Sequence[Markup]) -> str:
    """Return chapters as one page with a table of contents.

    Args:
        title: Of the page.
        opening: What stands above the first chapter.
        chapters: Whose headings have ids.
    """
    contents = [
        {"level": int(level), "id": id_, "text": Markup(text)}  # noqa: S704 - escaped when made
        for chapter in (opening, *chapters)
        for level, id_, text in _HEADING.findall(chapter)
    ]
    return render("report.html", title=title, opening=opening, chapters=chapters, contents=contents)


def _chapter(artefacts: Sequence[Artefact], results: Path) -> Markup:
    """Return all that there is of a paper at a scale."""
    first = artefacts[0]
    name = f"{first.paper}-{first.scale}"
    shown = [artefact for artefact in artefacts if artefact.runs]
    places = {a.id: Place(f"{name}-{a.id}", a.title) for a in shown}
    parts = [_artefact_part(artefact, results, name, places) for artefact in shown]
    if not parts:
        raise DataError(f"no table or figure of {first.paper} at scale {first.scale} has runs")
    runs = pd.concat([part["runs"] for part in parts]).drop_duplicates("digest")
    summary = ResultsLayout(results).summary(first.paper, first.scale)
    claims, evidence = claims_and_evidence(summary / "claims.md")
    text = render(
        "chapter.html",
        name=name,
        paper=first.paper,
        label=first.label(first.paper),
        title=first.paper_title or first.paper,
        scale=first.scale,
        reduced=first.reduced,
        parts=parts,
        compared=_linked_comparison(summary, artefacts),
        claims=scrolled(to_html(claims)),
        evidence=to_html(evidence),
        numbers=_count_with_runs(summary / "compare.csv"),
        runs=[row | {"anchor": run_anchor(name, row["digest"])} for row in runs.to_dict("records")],
        hours=_hours(runs),
        devices=distinct_values(runs["device"], ", "),
        versions=sorted(set(runs["code_version"])),
    )
    return Markup(text)  # noqa: S704 - the template escapes


def _artefact_part(
    artefact: Artefact, results: Path, chapter: str, places: Mapping[str, Place]
) -> dict[str, Any]:
    """Return what the template shows of one table or figure.

    Args:
        artefact: The table or figure.
        results: The folder with ``tables`` and ``figures``.
        chapter: What the anchors of its chapter begin with.
        places: All tables and figures of the chapter.
    """
    name = places[artefact.id].anchor
    file = partial(
        ResultsLayout(results).artefact,
        *(artefact.kind, artefact.paper, artefact.scale, artefact.id),
    )
    runs = provenance(artefact)
    if artefact.kind == "table" and artefact.analysis:
        table, about = table_and_caption(read_text(file("md")))
        body, cells = scrolled(to_html(table)), _cells_by_axes(artefact)
    elif artefact.kind == "table":
        frame = collect(artefact, gaps=True)
        body = scrolled(to_html(linked_table(artefact, frame, f"{name}-")))
        cells, about = list(cell_of_run(artefact, frame)), table_caption(artefact, frame)
    else:
        about = caption(artefact)
        picture = embedded(file("png"), alt_text(artefact))
        body = Markup('<div class="scroll">{}</div>').format(picture)
        cells = _cells_by_axes(artefact)
    return {
        "name": name,
        "kind": artefact.kind,
        "title": artefact.title,
        "caption": caption_html(about, places),
        "body": body,
        "command": command(
            artefact.paper,
            artefact.scale,
            file("csv" if artefact.kind == "table" else "pdf"),
            drawn=False,
        ),
        "runs": runs,
        "cells": runs_by_cell(artefact, cells, chapter),
        "hours": _hours(runs),
    }


def _count_with_runs(path: Path) -> str:
    """Return how many of a comparison's published numbers have runs, in words."""
    rows = read_comparison(path) if path.exists() else pd.DataFrame()
    if rows.empty:
        return "none published"
    return f"{(rows['verdict'] != Unjudged.NOT_RUN).sum()} of {len(rows)}"


def _cells_by_axes(artefact: Artefact) -> list[int]:
    """Return the number of the cell of each run, where a cell is a place on all axes."""
    places = {cell: i for i, cell in enumerate(dict.fromkeys(ref.cell for ref in artefact.runs))}
    return [places[ref.cell] for ref in artefact.runs]


def _linked_comparison(summary: Path, artefacts: Sequence[Artefact]) -> Markup:
    """Return a comparison whose numbers of ours lead to the runs below the table they are of.

    Args:
        summary: The folder that `write_summary` wrote; "" is returned if it has no comparison.
        artefacts: The paper's tables, among others.
    """
    if not (summary / "compare.md").exists():
        return Markup("")
    text = below_heading(summary / "compare.md")
    rows = read_comparison(summary / "compare.csv")
    rows = rows[rows["verdict"] != Unjudged.NOT_RUN]
    percent = tables_in_percent(artefacts)
    table = settings_below(comparison_table(rows, labels_of_numbers(artefacts), percent=percent))
    if table.empty:
        return to_html(text)
    tables = {artefact.id: artefact for artefact in artefacts if artefact.kind == "table"}
    frames = {
        id_: [(a, collect(a, gaps=True)) for a in tables_standing_for(tables.values(), id_)]
        for id_ in rows["table"].unique()
    }
    table["Ours"] = [
        _number_as_link(number, row, frames[row["table"]])
        for number, row in zip(table["Ours"], compared_numbers(rows), strict=True)
    ]
    rest = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return scrolled(breakable(to_html(f"{markdown(table, right=RIGHT)}\n\n{rest}")), "compared")


def settings_below(table: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison whose settings, which few numbers have, stand with the method.

    They are emphasised, which the page shows as a line of its own.
    """
    columns = {"Setting": "{}", "Setting of ours": "ours: {}"}
    present = {name: form for name, form in columns.items() if name in table}
    settings = [
        "; ".join(form.format(row[name]) for name, form in present.items() if row[name])
        for row in table.to_dict("records")
    ]
    methods = zip(table["Method"], settings, strict=True)
    below = [f"{method} *{setting}*" if setting else method for method, setting in methods]
    return table.assign(Method=below).drop(columns=[*present])


def scrolled(html: Markup, name: str = "") -> Markup:
    """Return text whose tables can be scrolled, while the last column before numbers stays.

    Of a table whose numbers are not aligned at the right, it is the first.

    Args:
        html: As from `to_html`.
        name: One more class of the tables.
    """

    def wrapped(table: re.Match[str]) -> str:
        heads = _HEAD.findall(table[0])
        right = [place for place, head in enumerate(heads) if "right" in head]
        classes = f"scroll {name} heads{max(1, right[0]) if right else 1}"
        return f'<div class="{" ".join(classes.split())}">{table[0]}</div>'

    return Markup(_TABLE.sub(wrapped, html))  # noqa: S704 - only a division is added


def breakable(html: Markup) -> Markup:
    """Return a table that may break long settings, ``a(some_key=1)``, after ``(``, ``_`` and ``=``.

    A word that cannot be broken widens its column, and hides numbers behind the verdicts.
    """

    def broken(cell: re.Match[str]) -> str:
        return re.sub(r"(?<=[(=_])(?=\w)", "<wbr>", cell[0])

    return Markup(_CELL_WITH_LONG_WORD.sub(broken, html))  # noqa: S704 - only a tag is added


def _number_as_link(
    number: str, row: ComparedNumber, frames: Sequence[tuple[Artefact, pd.DataFrame]]
) -> str:
    """Return a number as a link to its runs; as it is where the page has no such table."""
    found = counterpart(frames, row)
    if found is None:
        return number
    artefact = found.artefact
    cells = cell_of_run(artefact, found.frame)[found.runs.index]
    return f"[{number}](#{artefact.paper}-{artefact.scale}-{artefact.id}-{cells.iloc[0]})"


def _hours(runs: pd.DataFrame) -> str:
    """Return the time that runs took in all, in words."""
    seconds = training_seconds(runs)
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def embedded(path: Path, alt: str) -> Markup:
    """Return a picture as an image that is part of the page, with what it shows in words.

    Raises:
        DataError: if it is missing.
    """
    with reading(path):
        data = base64.b64encode(path.read_bytes()).decode()
    return Markup('<img alt="{}" decoding="async" src="data:image/png;base64,{}">').format(
        alt, data
    )


def to_html(text: str) -> Markup:
    """Return Markdown as HTML, with verdicts as badges; raw HTML in it is shown as text."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(_VERDICT.sub(_badge, renderer.render(text)))  # noqa: S704 - the renderer escapes


def _badge(found: re.Match[str]) -> str:
    """Return the end of a table's cell whose text is a verdict."""
    look = _LOOK.get(found["result"] or found["text"], "open")
    return f'><span class="badge {look}">{found["text"]}</span></td>'
