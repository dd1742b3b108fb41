"""Reported and reproduced numbers as tables and text to read."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.metric_names import is_share
from fedlogit.papers.options import Printed
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
    "tables_in_percent",
]

RIGHT = ("Paper", "Ours", "n", "Difference", "90 % interval")
"""Columns of a comparison that hold numbers."""
_IN_PERCENT = "Differences of numbers in %, and their intervals, are in percentage points."
NOTHING_PUBLISHED = "There are no published numbers to compare with."


def comparison_markdown(rows: pd.DataFrame, artefacts: Sequence[Artefact]) -> str:
    """Return a comparison as a section of Markdown, with its rule and where the runs come from."""
    if rows.empty:
        return f"### Reported and reproduced\n\n{NOTHING_PUBLISHED}"
    labels = labels_of_numbers(artefacts)
    percent = tables_in_percent(artefacts)
    table = comparison_table(rows, labels, percent=percent)
    text = "" if table.empty else markdown(table, right=RIGHT)
    unit = _IN_PERCENT if text and table["Ours"].str.endswith("%").any() else ""
    used = [a for a in artefacts if a.runs and a.id in set(rows["table"])]
    nothing = "no run is of one of them" if any(a.runs for a in artefacts) else "nothing was run"
    source = describe(pd.concat([collect(a, gaps=True) for a in used])) if used else nothing
    parts = [text, not_run(rows, labels), unit, f"Ours: {source}.", VERDICT_RULE]
    return "\n\n".join(["### Reported and reproduced", *filter(None, parts)])


def labels_of_numbers(artefacts: Sequence[Artefact]) -> dict[str, str]:
    """Return how a paper's tables are called, by id, and how values on their axes are printed."""
    names = {a.id: short_title(a.title) for a in artefacts if a.kind == "table"}
    return {**names, **artefacts[0].labels}


def tables_in_percent(artefacts: Sequence[Artefact]) -> frozenset[str]:
    """Return the ids of a paper's tables whose shares are printed in per cent here."""
    means = [a for a in artefacts if a.kind == "table" and not a.analysis]
    return frozenset(
        (a.stands_for and a.stands_for.table) or a.id
        for a in means
        if a.read_options(Printed).percent
    )


def comparison_table(
    rows: pd.DataFrame,
    labels: Mapping[str, str],
    *,
    whole: bool = False,
    percent: Collection[str] = (),
) -> pd.DataFrame:
    """Return a comparison as strings to print; columns that never vary are left out.

    So are numbers whose runs do not exist, of which there may be hundreds, unless it is to be
    `whole`; `not_run` tells of them. Shares are in per cent in the tables of the ids in `percent`.
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
    units = [bool(r["table"] in percent and is_share(r["metric"])) for r in records]
    both = [*zip(records, units, strict=True)]
    table["Paper"] = [_mean_text(r["paper"], r["paper_std"], r, unit) for r, unit in both]
    table["Ours"] = [_mean_text(r["ours"], r["std"], r, unit) for r, unit in both]
    table["n"] = rows["n"].astype(str)
    table["Difference"] = [_signed_number(r["difference"], r["metric"], unit) for r, unit in both]
    table["90 % interval"] = [_interval_text(r, unit) for r, unit in both]
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


def _mean_text(mean: float, std: float, row: ComparedNumber, percent: bool) -> str:
    text = spread(mean, std, row["metric"], percent=percent)
    return f"{text} %" if percent and not math.isnan(mean) else text


def _signed_number(value: float, metric: str, percent: bool) -> str:
    """Return a difference with its sign, unless it is printed as zero."""
    text = number(value, metric, percent=percent)
    if not re.search("[1-9]", text):
        return text.removeprefix("-")
    return f"+{text}" if value > 0 else text


def _interval_text(row: ComparedNumber, percent: bool) -> str:
    if math.isnan(row["low"]):
        return "–"
    ends = [_signed_number(end, row["metric"], percent) for end in (row["low"], row["high"])]
    return " to ".join(ends)
