"""Whether clients' logits on held-out samples of a class are Gaussian (Who to Trust §3.1.3)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import scipy
from scipy.special import gammaln

from fedlogit.errors import DataError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.results.analyses.analysis import Analysis, sorted_as
from fedlogit.results.collect import collect, refuse_mixed
from fedlogit.results.runs.gathered import gather_one_dataset
from fedlogit.results.runs.run import Run

__all__ = ["KINDS", "analyse", "groups", "standardised"]

_FEWEST = 20
"""Samples of a class that a client needs to be looked at: of few, even Gaussian ones lack tails."""

KINDS = {
    "true": "The true class",
    "held": "Other classes that the client holds",
    "not held": "Classes that it does not hold",
}
"""What a logit is of, seen from a sample."""

_LEVEL = 0.05


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per partition, method and kind of logit.

    A group is the logits for one class, of one client's held-out samples of one class; the
    components of a diagonal mixture are made of such groups. Columns of the CSV: `partition`,
    `method`, `logit` (a key of `KINDS`), `groups`, `rejected` (the share whose normality is
    rejected by Shapiro and Wilk's test at 5 %), `skewness` and `kurtosis` (the latter in excess of
    a Gaussian's; means over groups of estimates that have mean 0 for Gaussian samples of any
    number), `correlation` (mean size of the correlation with the other logits of the sample, which
    a diagonal mixture leaves out) and `independent` (that size's mean for independent Gaussians).
    """
    runs = [(run_place(run.spec, ref.axes), run) for ref, run in gather_one_dataset(artefact)]
    refuse_mixed(collect(artefact), ("partition", "method"))
    rows = [
        {"partition": place["partition"], "method": place["method"], **group}
        for place, run in runs
        for group in _test_rows(run)
    ]
    if not rows:
        raise DataError(f"{artefact.name}: no client has {_FEWEST} held-out samples of a class")
    rows.sort(key=lambda row: list(KINDS).index(str(row["logit"])))
    tests = pd.DataFrame(rows).groupby(["partition", "method", "logit"], sort=False)
    numbers = tests.agg(
        groups=("p", "size"),
        rejected=("p", lambda p: float((p < _LEVEL).mean())),
        skewness=("skewness", "mean"),
        kurtosis=("kurtosis", "mean"),
        correlation=("correlation", "mean"),
        independent=("independent", "mean"),
    ).reset_index()
    numbers = sorted_as(numbers, {"partition": numbers["partition"]})
    sentences = (
        f"Groups of at least {_FEWEST} samples; rejected by Shapiro and Wilk's test at 5 %;"
        " the other columns are means over groups",
        "Of independent Gaussian logits 5 % would be rejected, mean skewness and excess kurtosis"
        f" would be 0, and {_range(numbers['independent'])} the mean size of correlations",
    )
    shown = _printed_table(artefact, numbers)
    return Analysis(numbers, shown, sentences, heads=3, right=tuple(shown.columns[3:]))


def groups(run: Run) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """Yield each client's logits on its held-out samples of a class, (n, classes), in the end.

    With them come the class, and which classes the client holds, bool (classes,).
    """
    names = ("held_out_logits", "held_out_labels", "held_out_clients")
    kept = run.export("aggregation", *names, "owned")
    logits, labels, clients = (kept[name] for name in names)
    for client in np.unique(clients):
        for label in np.unique(labels[clients == client]):
            of_both = logits[(clients == client) & (labels == label)].astype(float)
            if len(of_both) >= _FEWEST:
                yield of_both, int(label), kept["owned"][client].astype(bool)


def standardised(run: Run) -> Iterator[tuple[str, np.ndarray]]:
    """Yield, for each group and logit, its kind and values with mean 0 and deviation 1, (n,)."""
    for logits, label, held in groups(run):
        for of, column in enumerate(logits.T):
            if (spread := column.std(ddof=1)) > 0:
                yield _kind_of_values(of, label, held), (column - column.mean()) / spread


def _test_rows(run: Run) -> Iterator[dict[str, object]]:
    for logits, label, held in groups(run):
        with np.errstate(invalid="ignore"):
            size = np.abs(np.corrcoef(logits.T))
        for of, column in enumerate(logits.T):
            if column.std() > 0:
                yield {
                    "logit": _kind_of_values(of, label, held),
                    "p": scipy.stats.shapiro(column).pvalue,
                    "skewness": scipy.stats.skew(column, bias=False),
                    "kurtosis": scipy.stats.kurtosis(column, bias=False),
                    "correlation": np.nanmean(np.delete(size[of], of)),
                    "independent": _size_by_chance(len(column)),
                }


def _size_by_chance(n: int) -> float:
    """Return the mean size of the correlation of n samples of two independent Gaussians."""
    return float(np.exp(gammaln((n - 1) / 2) - gammaln(n / 2)) / np.sqrt(np.pi))


def _range(values: pd.Series) -> str:
    low, high = (f"{value:.2f}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _kind_of_values(of: int, label: int, held: np.ndarray) -> str:
    return "true" if of == label else "held" if held[of] else "not held"


def _printed_table(artefact: Artefact, numbers: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            artefact.label("partition"): numbers["partition"].map(artefact.label),
            artefact.label("method"): numbers["method"].map(artefact.label),
            "Logit for": numbers["logit"].map(KINDS),
            "Groups": numbers["groups"].astype(str),
            "Rejected (%)": [f"{100 * share:.1f}" for share in numbers["rejected"]],
            "Skewness": [f"{value:.2f}" for value in numbers["skewness"]],
            "Excess kurtosis": [f"{value:.2f}" for value in numbers["kurtosis"]],
            "Size of correlations": [f"{value:.2f}" for value in numbers["correlation"]],
        }
    )
