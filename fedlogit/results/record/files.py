"""The record as files: a table to compute with, a page to read, a picture, and a sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from fedlogit.papers import Paper, Plan
from fedlogit.results.formatting import markdown, sentence, write_csv, write_text
from fedlogit.results.record.counts import caveats, counts_sentence, counts_table
from fedlogit.results.record.notes import read_notes
from fedlogit.results.record.numbers import as_comparison, record
from fedlogit.results.record.orders import orders_sentence, recorded_orders
from fedlogit.results.record.picture import draw_record
from fedlogit.results.style import save_figure
from fedlogit.results.verdicts.comparison_table import RIGHT, comparison_table
from fedlogit.results.verdicts.rules import VERDICT_RULE, Unjudged

__all__ = ["record_markdown", "write_record"]

_HEAD = """# The record

{counts}

{table}

{rule}

*n* is the number of runs, one per seed, and *interval* that of our mean minus the paper's. Shares
such as accuracy are fractions. Ours at a reduced scale stands beside the paper's without a verdict.
[docs/record.md](../docs/record.md) says how to read this, and what was tried where numbers
did not come out."""


def write_record(
    plan: Plan, references: Path, results: Path, among: Collection[tuple[str, str]] | None = None
) -> list[Path]:
    """Write ``record.{csv,md,png,pdf}``, ``record.orders.csv`` and ``record.{counts,papers}.md``.

    The arguments are those of `fedlogit.results.record.numbers.record`; files go into `results`.

    Returns:
        What was written: nothing if no paper has published numbers.

    Raises:
        DataError: as `fedlogit.results.record.numbers.record`.
    """
    rows = record(plan, references, results, among)
    if rows.empty:
        return []
    base = results / "record"
    pairs = recorded_orders(rows, plan.papers, results)
    details = [*caveats(rows, read_notes(references)), orders_sentence(pairs)]
    items = "\n".join(f"- {text}" for text in details if text)
    return [
        write_csv(base.with_suffix(".csv"), rows),
        write_csv(base.with_suffix(".orders.csv"), pairs),
        write_text(base.with_suffix(".md"), record_markdown(rows, plan.papers)),
        write_text(base.with_suffix(".counts.md"), f"{counts_sentence(rows)}\n\n{items}".strip()),
        write_text(base.with_suffix(".papers.md"), counts_table(rows, plan.papers)),
        *save_figure(draw_record(rows, plan.papers), base),
    ]


def record_markdown(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return every number in a table for each of the papers' tables.

    Args:
        rows: As from `fedlogit.results.record.numbers.record`.
        papers: The papers, for titles and labels.
    """
    counted = {"counts": counts_sentence(rows), "table": counts_table(rows, papers)}
    parts = [_HEAD.format(rule=VERDICT_RULE, **counted)]
    for name, of_paper in rows.groupby("paper", sort=False):
        paper = papers[str(name)]
        parts += [f"## {paper.short_name}", counts_sentence(of_paper)]
        for table, part in of_paper.groupby("table", sort=False):
            parts += [f"### {paper.artefacts[str(table)].title}", _table(part, paper), _notes(part)]
    return "\n\n".join(part for part in parts if part)


def _table(rows: pd.DataFrame, paper: Paper) -> str:
    """Return the numbers of one table as strings; its reasons follow below it, each once."""
    shown = as_comparison(rows)
    unjudged = shown["verdict"].isin((Unjudged.REDUCED_SCALE, Unjudged.OTHER_SCALE))
    shown.loc[unjudged, "verdict"] += " (" + shown.loc[unjudged, "scale"] + ")"
    table = comparison_table(shown, paper.labels, whole=True)
    if (rows["verdict"] == Unjudged.NOT_RUN).all():
        table = table.drop(columns=[c for c in ("Ours", "n", "Difference") if c in table])
    return markdown(table, right=set(RIGHT) & set(table.columns))


def _notes(rows: pd.DataFrame) -> str:
    """Return, as a list, why numbers have no verdict, and where ours come from."""
    run = rows[rows["verdict"] != Unjudged.NOT_RUN]
    notes = [
        f"{sentence(str(verdict))} ({len(part)} of {len(rows)}): {why}."
        for (verdict, why), part in rows[rows["why"] != ""].groupby(["verdict", "why"], sort=False)
    ]
    for (scale, device), part in run.groupby(["scale", "device"], sort=False):
        notes.append(f"Ours ({len(part)}): scale {scale}, on {device}.")
    return "\n".join(f"- {line}" for line in notes)
