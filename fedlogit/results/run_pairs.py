"""Runs of the same spec in two folders, such as published runs and the same ones trained again.

Equal specs give the same bits on the same machine. Another processor, engine or library adds in
another order, and training can turn that rounding into points of accuracy: into how many, is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.errors import FedlogitError
from fedlogit.papers.metric_names import is_share
from fedlogit.results.formatting import markdown, number, sentence
from fedlogit.results.metrics import metric_label, value
from fedlogit.results.runs.finished import finished_runs
from fedlogit.results.runs.run import Run, read_run
from fedlogit.runs.compare_runs import untimed_rows
from fedlogit.runs.integrity import read_spec
from fedlogit.runs.paths import run_dir

__all__ = ["Pair", "counts", "differences", "pairs", "table"]

_DATA = ("dataset_digest", "split_digest", "tokenizer_digest", "probes_digest")


@dataclass(frozen=True)
class Pair:
    """Two finished runs of one spec."""

    one: Run
    other: Run

    def equal_rounds(self) -> int:
        """Return how many of the first rounds are equal to the last bit in the columns of both."""
        rows = zip(untimed_rows(self.one.folder), untimed_rows(self.other.folder), strict=False)
        equal = (all(one[key] == other[key] for key in one.keys() & other) for one, other in rows)
        return sum(takewhile(bool, equal))

    def same_bytes(self) -> bool:
        """Return whether both sent as many bytes of each kind."""
        return self.one.result.bytes == self.other.result.bytes

    def same_data(self) -> bool:
        """Return whether both had the same data set, divided in the same way."""
        one, other = (run.result.provenance for run in (self.one, self.other))
        if one.normalised_by and other.normalised_by and one.normalised_by != other.normalised_by:
            return False
        return all(getattr(one, key) == getattr(other, key) for key in _DATA)


def pairs(one: Path, other: Path) -> list[Pair]:
    """Return the runs that have ended in both folders, by spec, in the order of the second.

    Raises:
        FedlogitError: if a folder is not there, no spec is in both, or a run is damaged.
    """
    folders = [_by_digest(root) for root in (one, other)]
    shared = [digest for digest in folders[1] if digest in folders[0]]
    if not shared:
        raise FedlogitError(f"{other}: no run there has the spec of a finished run in {one}")
    return [Pair(*(read_run(found[digest], digest) for found in folders)) for digest in shared]


def _by_digest(root: Path) -> dict[str, Path]:
    if not root.is_dir():
        raise FedlogitError(f"{root}: is not a folder; give one that holds runs")
    return {read_spec(folder).digest(): folder for folder in finished_runs(root)}


def differences(found: Sequence[Pair], metric: str) -> pd.DataFrame:
    """Return a row per pair: the metric of both, rounds that are equal, bytes, and provenance."""
    return pd.DataFrame([_row(pair, metric) for pair in found])


def _row(pair: Pair, metric: str) -> dict[str, Any]:
    first, second = value(pair.one, metric), value(pair.other, metric)
    row = {
        "run": run_dir(pair.other.spec).as_posix(),
        "first": first,
        "second": second,
        "difference": second - first,
        "rounds": max(len(pair.one.rounds), len(pair.other.rounds)),
        "equal_rounds": pair.equal_rounds(),
        "same_bytes": pair.same_bytes(),
        "same_data": pair.same_data(),
    }
    for which, run in (("first", pair.one), ("second", pair.other)):
        facts = run.result.provenance
        provenance = {"device": facts.device, "engine": facts.engine, "code": facts.whole_version}
        row |= {f"{which}_{key}": value for key, value in provenance.items()}
    return row


def table(frame: pd.DataFrame, metric: str, samples: str) -> str:
    """Return the rows of `differences` for a terminal; `samples` are as from `measured_on`."""
    units = (" [%]", " [%]", " [points]") if is_share(metric) else ("", "", "")
    shown = pd.DataFrame({"run": frame["run"]})
    for name, unit in zip(("first", "second", "difference"), units, strict=True):
        shown[f"{name}{unit}"] = [number(x, metric, percent=True) for x in frame[name]]
    rounds = zip(frame["equal_rounds"], frame["rounds"], strict=True)
    shown["equal rounds"] = [f"{equal} of {all_}" for equal, all_ in rounds]
    shown["bytes"] = ["same" if same else "differ" for same in frame["same_bytes"]]
    shown["data"] = ["same" if same else "differ" for same in frame["same_data"]]
    heading = sentence(metric_label(metric, samples))
    return f"{heading}\n\n{markdown(shown, 'simple', right=[*shown.columns[1:4]])}"


def counts(frame: pd.DataFrame, metric: str, samples: str) -> str:
    """Return one sentence about the rows of `differences`; `samples` are as from `measured_on`."""
    equal = int((frame["equal_rounds"] == frame["rounds"]).sum())
    text = f"runs in both folders: {len(frame)}, equal in every round: {equal}"
    apart = frame["difference"].abs()
    if not apart.notna().any():
        return text
    unit = " points" if is_share(metric) else ""
    middle, most = (number(float(x), metric, percent=True) for x in (apart.median(), apart.max()))
    label = metric_label(metric, samples)
    return f"{text}; {label} differs by {middle}{unit} in the median, {most} at most"
