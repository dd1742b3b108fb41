"""Rank correlation of the contributions that methods estimate with exact Shapley values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedlogit.coalitions import coalitions, shapley_values
from fedlogit.errors import DataError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.papers.options import Contribution
from fedlogit.results.analyses.analysis import Analysis, sorted_as
from fedlogit.results.formatting import spread
from fedlogit.results.metrics.shapley import ALIKE, rank_correlation
from fedlogit.results.runs.gathered import gather_one_dataset
from fedlogit.results.runs.run import Run

__all__ = ["ContributionsBesideShapley", "analyse", "contributions_beside_shapley", "correlations"]

_MOST_CLIENTS = 16  # 65,536 coalitions


@dataclass(frozen=True)
class ContributionsBesideShapley:
    """A method's contributions beside the Shapley values of the same federation.

    Attributes:
        partition: Its key.
        method: Its key.
        seed: The run's.
        contributions: After the last round, float64 (clients,).
        values: Of test accuracy, float64 (clients,).
    """

    partition: str
    method: str
    seed: int
    contributions: np.ndarray
    values: np.ndarray

    def correlation(self) -> float:
        """Return Spearman's rank correlation; NaN if all clients contribute (nearly) alike."""
        return rank_correlation(self.contributions, self.values)

    def agrees_on_best(self) -> bool:
        """Return whether the client with the largest value has the largest contribution."""
        return bool(np.argmax(self.contributions) == np.argmax(self.values))


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per partition and method.

    Columns of the CSV: `partition`, `method`, `correlation` and `correlation_std` (Spearman's, mean
    and deviation over seeds), `best` (share of seeds in which the client with the largest value
    has the largest contribution), `n` (seeds in which clients' contributions differ; the other
    columns are of these).
    """
    options = artefact.read_options(Contribution)
    found: dict[tuple[str, str], list[ContributionsBesideShapley]] = {}
    for one in contributions_beside_shapley(artefact, options):
        found.setdefault((one.partition, one.method), []).append(one)
    numbers = pd.DataFrame([_summary(*place, own) for place, own in found.items()])
    numbers = sorted_as(numbers, {"partition": numbers["partition"]})
    shown = pd.DataFrame(
        {
            artefact.label("partition"): numbers["partition"].map(artefact.label),
            artefact.label("method"): numbers["method"].map(artefact.label),
            "Rank correlation": [_correlation_text(row) for row in numbers.to_dict("records")],
            "Best client found": [
                f"{row['best']:.0%}" if row["n"] else "–" for row in numbers.to_dict("records")
            ],
            "Seeds": numbers["n"].astype(str),
        }
    )
    sentences = (
        "Spearman's rank correlation of contributions after the last round with Shapley values",
        f"A coalition is worth the test accuracy of {artefact.label(options.value)} trained by its"
        " clients alone, and nobody is worth chance",
        "Mean ± standard deviation over seeds in which contributions differ by"
        f" {ALIKE:.0%} of an equal share or more; –: they never do",
    )
    return Analysis(numbers, shown, sentences, heads=2, right=tuple(shown.columns[2:]))


def contributions_beside_shapley(
    artefact: Artefact, options: Contribution
) -> Iterator[ContributionsBesideShapley]:
    """Yield each method's contributions beside exact values, by partition, method and seed.

    Raises:
        DataError: if a coalition has no run, or a run no contributions.
        FedlogitError: if there are several data sets, whose coalitions would be mixed.
    """
    placed = [(run_place(run.spec, ref.axes), run) for ref, run in gather_one_dataset(artefact)]
    runs = [(str(place["partition"]), str(place["method"]), run) for place, run in placed]
    worth: dict[tuple[str, int], dict[frozenset[int], float]] = {}
    for partition, method, run in runs:
        if method == options.value:
            worth.setdefault((partition, run.spec.seed), {})[_coalition(run)] = _accuracy(run)
    values: dict[tuple[str, int], np.ndarray] = {}
    for partition, method, run in runs:
        place = (partition, run.spec.seed)
        if place not in values:
            where = f"{artefact.name}: {partition}, seed {run.spec.seed}"
            values[place] = _values(where, run, worth.get(place, {}))
        if run.spec.participation is None:
            yield ContributionsBesideShapley(
                partition, method, run.spec.seed, _contributions(run), values[place]
            )


def correlations(own: Iterable[ContributionsBesideShapley]) -> np.ndarray:
    """Return the rank correlation of each run in which contributions differ, float64 (runs,)."""
    each = np.array([one.correlation() for one in own])
    return each[~np.isnan(each)]


def _values(where: str, run: Run, worth: dict[frozenset[int], float]) -> np.ndarray:
    """Return the Shapley values of a federation whose coalitions are worth that."""
    counts = run.counts()
    if len(counts) > _MOST_CLIENTS:
        raise DataError(
            f"{where}: Shapley values of {len(counts)} clients take 2 ** {len(counts)} coalitions;"
            f" give at most {_MOST_CLIENTS} clients"
        )
    worth = {frozenset(): 1 / counts.shape[1]} | worth
    missing = [set(who) for who in coalitions(len(counts)) if who not in worth]
    if missing:
        raise DataError(
            f"{where}: {len(missing)} of {2 ** len(counts)} coalitions have no run, the first is"
            f" {missing[0]}"
        )
    return shapley_values(worth.__getitem__, len(counts))


def _coalition(run: Run) -> frozenset[int]:
    who, n = run.spec.participation, run.spec.clients
    return frozenset(who.present(1, n, run.spec.seed) if who else range(n))


def _accuracy(run: Run) -> float:
    accuracy = run.result.final.accuracy
    if run.diverged or accuracy is None:
        raise DataError(f"{run.folder}: a coalition's training diverged; it has no worth")
    return accuracy


def _contributions(run: Run) -> np.ndarray:
    """Return contributions; of a method that weighs predictions, mean weights on public samples."""
    if "aggregation" in run.spec.export:
        return np.asarray(run.export("aggregation", "weights")["weights"], dtype=np.float64).mean(1)
    return run.contributions()[-1]


def _summary(
    partition: str, method: str, own: list[ContributionsBesideShapley]
) -> dict[str, object]:
    found = correlations(own)
    ranked = [one for one in own if not math.isnan(one.correlation())]
    return {
        "partition": partition,
        "method": method,
        "correlation": found.mean() if len(found) else math.nan,
        "correlation_std": found.std(ddof=1) if len(found) > 1 else math.nan,
        "best": np.mean([one.agrees_on_best() for one in ranked]) if ranked else math.nan,
        "n": len(found),
    }


def _correlation_text(row: dict[object, float]) -> str:
    if not row["n"]:
        return "–"
    return spread(row["correlation"], row["correlation_std"], "shapley_correlation", decimals=2)
