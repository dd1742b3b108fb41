"""Reported and reproduced numbers, with a verdict on each; the rule is in `rules`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.metric_names import is_counted
from fedlogit.papers.published import published_rows
from fedlogit.papers.schema import JUDGED_SCALE, short_title
from fedlogit.results.collect import collect, describe, distinct_values, summarise
from fedlogit.results.formatting import markdown, number, read_csv, spread
from fedlogit.results.statistics.means import Sample, interval
from fedlogit.results.verdicts.counterparts import Counterpart, Matched
from fedlogit.results.verdicts.number_rows import (
    ComparedNumber,
    OurNumber,
    PublishedNumber,
    TheirNumber,
    compared_numbers,
)
from fedlogit.results.verdicts.rules import VERDICT_RULE, Unjudged, is_exact, margin_unit, verdict
from fedlogit.runs.paths import ResultsLayout

__all__ = [
    "BEHIND",
    "MAKE_AGAIN",
    "NOTHING_PUBLISHED",
    "RIGHT",
    "compare",
    "comparison_in",
    "comparison_markdown",
    "comparison_table",
    "labels_of_numbers",
    "not_run",
    "nothing_published",
    "published",
    "read_comparison",
    "read_reference",
    "runs_behind",
]

_KEYS = ["dataset", "partition", "method"]
RIGHT = ("Paper", "Ours", "n", "Difference", "90 % interval")
"""Columns of a comparison that hold numbers."""
_COLUMNS = ["table", *_KEYS, "metric", "mean", "std"]
_COMPARED = [
    *("table", *_KEYS, "metric", "paper", "paper_std", "paper_n", "ours", "std", "difference"),
    *("n", "diverged", "low", "high", "verdict", "scale", "device", "counterpart"),
]
_RUNS = "runs"
BEHIND = ("hours", "code_versions", _RUNS)
"""Columns of a comparison on our runs: how long they took, by which code, and which they are."""
_NUMBERS = ("paper", "paper_std", "ours", "std", "difference", "low", "high")
_NO_RUN: OurNumber = {
    "ours": math.nan,
    "std": math.nan,
    "difference": math.nan,
    "low": math.nan,
    "high": math.nan,
    "hours": math.nan,
    "n": 0,
    "diverged": 0,
    "verdict": Unjudged.NOT_RUN,
    "scale": "",
    "device": "",
    "counterpart": "",
    "code_versions": "",
    "runs": "",
}
MAKE_AGAIN = "run python -m fedlogit compare first"
"""What to do where a file of a summary cannot be read."""
NOTHING_PUBLISHED = "There are no published numbers to compare with."


def read_reference(path: Path) -> pd.DataFrame:
    """Read published numbers: ``table,dataset,partition,method,metric,mean,std`` and maybe ``n``.

    An empty partition means that the number does not depend on it. Shares are fractions. `std` is
    what the paper prints after ±, `n` the number of runs behind it where the paper says so. A
    column `where` may name further axes: ``public.size=5000; public.anchors=1000``.

    Raises:
        DataError: if the file is missing, lacks a column, has a row twice, or has an empty metric,
            a mean, std or n that cannot be, or a share below 0 or above 1.
    """
    rows = [row for _, row in published_rows(path)]
    frame = pd.DataFrame(rows, columns=[*_COLUMNS, "n", "where"])
    numbers = ["mean", "std", "n"]
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in numbers})


def published(folder: Path, paper: str) -> pd.DataFrame:
    """Return the numbers in ``<folder>/<paper>.csv``; of a study without that file, no rows.

    Raises:
        DataError: if there is a file and it is wrong; see `read_reference`.
    """
    path = folder / f"{paper}.csv"
    return read_reference(path) if path.exists() else nothing_published()


def nothing_published() -> pd.DataFrame:
    """Return what `read_reference` returns, without a row: a study has no published numbers."""
    return pd.DataFrame(columns=[*_COLUMNS, "n", "where"])


def compare(matched: Matched) -> pd.DataFrame:
    """Return a row per published number: the paper's, ours, the difference, and a verdict.

    `counterpart` says how the settings of our runs differ, where a table stands for another or its
    scale has other settings. `runs` has the hashes that our runs' folders end in, `hours` what all
    of them took.

    Args:
        matched: Published numbers and their runs, as from
            `fedlogit.results.verdicts.counterparts.matched_numbers`.
    """
    if not matched:
        return pd.DataFrame(columns=[*_COMPARED, *BEHIND])
    frame = pd.DataFrame([_row(published, ours) for published, ours in matched])
    return frame if frame["where"].any() else frame.drop(columns="where")


def _row(published: PublishedNumber, ours: Counterpart | None) -> ComparedNumber:
    """Join one published number with the runs that are its counterpart."""
    theirs: TheirNumber = {
        "table": published["table"],
        "dataset": published["dataset"],
        "partition": published["partition"],
        "method": published["method"],
        "where": published["where"],
        "metric": published["metric"],
        "paper": published["mean"],
        "paper_std": published["std"],
        "paper_n": published["n"],
    }
    return {**theirs, **(_our_number(published, ours) if ours else _NO_RUN)}


def _our_number(published: PublishedNumber, ours: Counterpart) -> OurNumber:
    """Return what our runs gave for a published number, and the verdict or why there is none."""
    runs, metric = ours.runs, published["metric"]
    cell = summarise(runs, ["dataset", "method"], metric).iloc[0]
    n, diverged = int(cell["n"]), int(cell["diverged"])
    mine = Sample(cell["mean"], cell["std"], n)
    theirs = Sample(published["mean"], published["std"], published["n"])
    exact, unit = is_exact(metric), margin_unit(metric, theirs.mean)
    unjudged = _reason_unjudged(metric, ours, n, diverged)
    low, high = (math.nan, math.nan) if unjudged else interval(mine, theirs, exact=exact)
    return {
        "ours": mine.mean,
        "std": mine.std,
        "difference": mine.mean - theirs.mean,
        "n": n,
        "diverged": diverged,
        "low": low,
        "high": high,
        "verdict": unjudged or verdict(mine, theirs, unit, exact=exact),
        "scale": distinct_values(runs["scale"]),
        "device": distinct_values(runs["device"]),
        "counterpart": ours.difference,
        "hours": runs["hours"].sum(),
        "code_versions": distinct_values(runs["code_version"]),
        "runs": " ".join(sorted(digest[:8] for digest in runs["digest"])),
    }


def _reason_unjudged(metric: str, ours: Counterpart, n: int, diverged: int) -> Unjudged | None:
    """Return why there can be no verdict, or None.

    Args:
        metric: What was measured.
        ours: The runs.
        n: How many of them have it.
        diverged: How many diverged.
    """
    judged = ours.artefact.scale == JUDGED_SCALE
    if not judged and ours.artefact.reduced:
        return Unjudged.REDUCED_SCALE
    noted = (ours.runs["dataset_note"] != "").any() and not is_counted(metric)
    if noted or ours.difference:
        return Unjudged.STAND_IN_DATA
    if diverged:
        return Unjudged.DIVERGED
    if not judged:
        return Unjudged.OTHER_SCALE
    return None if n else Unjudged.NOT_RUN


def read_comparison(results: Path, paper: str, scale: str) -> pd.DataFrame:
    """Return the comparison of a paper at a scale, from the file that `write_summary` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    return comparison_in(ResultsLayout(results).summary(paper, scale) / "compare.csv")


def comparison_in(path: Path) -> pd.DataFrame:
    """Return the comparison in a file that `write_summary` wrote.

    Raises:
        DataError: if it is missing, no table, or lacks a column.
    """
    texts = ("table", *_KEYS, "where", "metric", "counterpart", "code_versions", _RUNS)
    text = dict.fromkeys(texts, str)
    kinds = text | dict.fromkeys(_NUMBERS, float) | {"n": int}
    rows = read_csv(path, _COMPARED, kinds, MAKE_AGAIN)
    return rows.fillna({key: "" for key in text if key in rows})


def runs_behind(path: Path) -> list[str]:
    """Return the hashes that the folders of all runs of a comparison end in, each once.

    Raises:
        DataError: if it is missing or damaged, or of a version that did not write them.
    """
    rows = comparison_in(path)
    if _RUNS not in rows:
        raise DataError(f"{path}: column {_RUNS!r} is missing; run make redraw")
    return sorted({digest for runs in rows[_RUNS] for digest in runs.split()})


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
    for key in _KEYS:
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


def comparison_markdown(rows: pd.DataFrame, artefacts: Sequence[Artefact]) -> str:
    """Return a comparison as a section of Markdown, with its rule and where the runs come from."""
    if rows.empty:
        return f"### Reported and reproduced\n\n{NOTHING_PUBLISHED}"
    labels = labels_of_numbers(artefacts)
    table = comparison_table(rows, labels)
    text = "" if table.empty else markdown(table, right=RIGHT)
    used = [a for a in artefacts if a.runs and a.id in set(rows["table"])]
    nothing = "no run is of one of them" if any(a.runs for a in artefacts) else "nothing was run"
    source = describe(pd.concat([collect(a) for a in used])) if used else nothing
    parts = [text, not_run(rows, labels), f"Ours: {source}.", VERDICT_RULE]
    return "\n\n".join(["### Reported and reproduced", *filter(None, parts)])
