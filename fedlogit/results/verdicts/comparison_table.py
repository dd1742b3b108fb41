"""Reported and reproduced numbers as tables and text to read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.schema import short_title
from fedlogit.results.collect import collect, describe
from fedlogit.results.formatting import markdown, number, spread
from fedlogit.results.verdicts.number_rows import ComparedNumber, compared_numbers
from fedlogit.results.verdicts.rules import VERDICT_RULE, Unjudged

__all__ = [
    "NOTHING_PUBLISHED",
    "RIGHT",
    "comparison_markdown",
    "comparison_table",
    "labels_of_numbers",
    "not_run",
]

RIGHT = ("Paper", "Ours", "n", "Difference", "90 % interval")
"""Columns of a comparison that hold numbers."""
NOTHING_PUBLISHED = "There are no published numbers to compare with."


def comparison_markdown(rows: pd.DataFrame, artefacts: Sequence[Artefact]) -> str:
    """Return a comparison as a section of Markdown, with its rule and where the runs come from."""
    if rows.empty:
        return f"### Reported and reproduced\n\n{NOTHING_PUBLISHED}"
    labels = labels_of_numbers(artefacts)
    table = comparison_table(rows, labels)
    text = "" if table.empty else markdown(table, right=RIGHT)
    used = [a for a in artefacts if a.runs and a.id in set(rows["table"])]
    nothing = "no run is of one of them" if any(a.runs for a in artefacts) else "nothing was run"
    source = describe(pd.concat([collect(a, gaps=True) for a in used])) if used else nothing
    parts = [text, not_run(rows, labels), f"Ours: {source}.", VERDICT_RULE]
    return "\n\n".join(["### Reported and reproduced", *filter(None, parts)])


def labels_of_numbers(artefacts: Sequence[Artefact]) -> dict[str, str]:
    """Return how a paper's tables are called, by id, and how values on their axes are printed."""
    names = {a.id: short_title(a.title) for a in artefacts if a.kind == "table"}
    return {**names, **artefacts[0].labels}


def comparison_table(
    rows: pd.DataFrame, labels: Mapping[str, str], *, whole: bool = False
) -> pd.DataFrame:
    """Return a comparison as strings to print; columns that never vary are left out.

    So are numbers whose runs do not exist, of which there may be hundreds, unless it is to be
    `whole`; `not_run` tells of them.
    """
    rows = rows if whole else rows[rows["verdict"] != Unjudged.NOT_RUN]
    metric = rows["metric"].map(lambda value: labels.get(value, value))
    shown = {"Table": rows["table"].map(lambda id_: labels.get(id_, id_)), "Metric": metric}
    table = pd.DataFrame({k: v for k, v in shown.items() if v.nunique() > 1}, index=rows.index)
    for key in ("dataset", "partition", "method"):
        table[key.capitalize()] = rows[key].map(lambda value: labels.get(value, value) or "any")
    if rows.get("where", pd.Series(dtype=str)).any():
        table["Setting"] = rows["where"]
    if (rows["counterpart"] != "").any():
        table["Setting of ours"] = rows["counterpart"]
    records = compared_numbers(rows)
    table["Paper"] = [spread(r["paper"], r["paper_std"], r["metric"]) for r in records]
    table["Ours"] = [spread(r["ours"], r["std"], r["metric"]) for r in records]
    table["n"] = rows["n"].astype(str)
    table["Difference"] = [_signed_number(r["difference"], r["metric"]) for r in records]
    table["90 % interval"] = [_interval_text(r) for r in records]
    if (table["90 % interval"] == "–").all():
        table = table.drop(columns="90 % interval")
    return table.assign(Verdict=rows["verdict"])


def not_run(rows: pd.DataFrame, labels: Mapping[str, str]) -> str:
    """Return a sentence on the published numbers that have no counterpart here, or ""."""
    missing = rows[rows["verdict"] == Unjudged.NOT_RUN]
    if missing.empty:
        return ""
    named = missing[["table", "dataset"]].map(lambda value: labels.get(value, value))
    places = (named["table"] + " on " + named["dataset"]).value_counts(sort=False)
    numbers = (f"{place}: {count}" for place, count in places.items())
    total = f"{len(missing)} of {len(rows)} published numbers"
    return f"Not run at this scale: {total} ({', '.join(numbers)})."


def _signed_number(value: float, metric: str) -> str:
    sign = "+" if value > 0 else ""
    return sign + number(value, metric)


def _interval_text(row: ComparedNumber) -> str:
    if math.isnan(row["low"]):
        return "–"
    low, high = (_signed_number(end, row["metric"]) for end in (row["low"], row["high"]))
    return f"{low} to {high}"
