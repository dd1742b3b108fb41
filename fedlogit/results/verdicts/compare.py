"""Published numbers beside ours, with a verdict on each; the rule is in `rules`."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers.metric_names import is_counted
from fedlogit.papers.schema import JUDGED_SCALE
from fedlogit.results.collect import distinct_values, summarise_one
from fedlogit.results.formatting import read_csv
from fedlogit.results.statistics.means import Sample, interval
from fedlogit.results.verdicts.counterparts import Counterpart, Matched
from fedlogit.results.verdicts.number_rows import (
    ComparedNumber,
    OurNumber,
    PublishedNumber,
    TheirNumber,
)
from fedlogit.results.verdicts.rules import Unjudged, is_exact, margin_unit, verdict

__all__ = ["BEHIND", "MAKE_AGAIN", "compare", "read_comparison", "runs_behind"]

_KEYS = ["dataset", "partition", "method"]
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
    cell = summarise_one(runs, metric)
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


def read_comparison(path: Path) -> pd.DataFrame:
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
    rows = read_comparison(path)
    if _RUNS not in rows:
        raise DataError(f"{path}: column {_RUNS!r} is missing; run make redraw")
    return sorted({digest for runs in rows[_RUNS] for digest in runs.split()})
