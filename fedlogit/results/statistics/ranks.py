"""Which methods differ over many cells: ranks, Friedman's test, Wilcoxon's for pairs, cliques.

After Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets" (JMLR 7, 2006),
§3.2.2, with pairs compared as in Benavoli, Corani and Mangili, "Should We Really Use Post-Hoc Tests
Based on Mean-Ranks?" (JMLR 17, 2016): by Wilcoxon's signed ranks, corrected after Holm, since ranks
in a pool of methods depend on who else is in it.

Demšar's blocks are independent data sets. Ours are partitions and seeds of one or two, and those of
one partition resemble each other, so p values are about these data sets and these partitions, and
not about data sets or partitions at large.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy  # whose `stats`, a second of imports, comes when it is used

from fedlogit.errors import FedlogitError
from fedlogit.results.collect import refuse_mixed
from fedlogit.results.statistics.means import ALPHA, holm

__all__ = ["Ranking", "blocks", "ranking"]

_WORK = ["dataset", "partition"]
_DECIMALS = 12  # differences that are equal in all but rounding are ties


@dataclass(frozen=True)
class Ranking:
    """How methods rank, and which of them differ.

    Attributes:
        ranks: Average rank of each method over blocks, 1 the best; rising.
        n: Number of blocks.
        p_any: p of Friedman's test that all methods are alike; NaN of fewer than two blocks or
            three methods.
        pairs: A row for each pair: `first` (that ranks better), `second`, `p` of Wilcoxon's
            signed-rank test on the blocks, and `p_holm`, corrected for the number of pairs.
        cliques: Largest runs of neighbours in rank of which no two differ (p_holm >= `ALPHA`), as
            places in `ranks`, first and last; of two methods or more.
    """

    ranks: pd.Series
    n: int
    p_any: float
    pairs: pd.DataFrame
    cliques: list[tuple[int, int]]

    def friedman(self) -> str:
        """Return what Friedman's test gave, in words; "" if there was none."""
        if math.isnan(self.p_any):
            return ""
        p = (
            "p\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}0.001"
            if self.p_any < 0.001
            else f"p = {self.p_any:.3f}"
        )
        return f"Friedman's test that all are alike: {p}"


def blocks(frame: pd.DataFrame, metric: str) -> tuple[pd.DataFrame, list[str]]:
    """Return a metric by block and method, of methods that have every block.

    A block is what methods share: a data set, a partition and a seed. Of a data set and partition
    those seeds count that all methods have which were run there.

    Args:
        frame: Runs, as from `fedlogit.results.collect.collect`.
        metric: The column.

    Returns:
        The metric (blocks, methods), and the methods that are left out because a block lacks them.

    Raises:
        FedlogitError: if runs differ in more than method and block, or if fewer than two methods
            have every block.
    """
    refuse_mixed(frame, [*_WORK, "method"])
    table = _runs_at_common_seeds(frame).pivot(
        index=[*_WORK, "seed"], columns="method", values=metric
    )
    table = table[[name for name in dict.fromkeys(frame["method"]) if name in table]]
    whole = table.notna().all()
    if whole.sum() < 2:
        raise FedlogitError(
            f"fewer than two methods have {metric} in all {len(table)} cells of data set, partition"
            " and seed, so there are no ranks"
        )
    return table.loc[:, whole], list(table.columns[~whole])


def _runs_at_common_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with seeds that all methods of their data set and partition have."""
    methods = frame.groupby(_WORK)["method"].transform("nunique")
    having = frame.groupby([*_WORK, "seed"])["method"].transform("nunique")
    return frame[having == methods]


def ranking(table: pd.DataFrame) -> Ranking:
    """Rank methods, the largest value first; ties share their mean rank.

    Args:
        table: A metric, (blocks, methods), without gaps.
    """
    ranks = table.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    columns = [table[name].to_numpy(dtype=float) for name in ranks.index]
    enough = len(table) > 1 and len(columns) > 2
    p_any = float(scipy.stats.friedmanchisquare(*columns).pvalue) if enough else math.nan
    pairs = _pairs(list(ranks.index), columns)
    return Ranking(ranks, len(table), p_any, pairs, _cliques(len(columns), pairs))


def _pairs(names: Sequence[str], columns: Sequence[np.ndarray]) -> pd.DataFrame:
    """Compare every two methods, those that rank better first."""
    places = list(itertools.combinations(range(len(names)), 2))
    p_values = [_wilcoxon(columns[i] - columns[j]) for i, j in places]
    named = [(names[i], names[j]) for i, j in places]
    pairs = pd.DataFrame(named, columns=["first", "second"])
    return pairs.assign(p=p_values, p_holm=holm(p_values))


def _wilcoxon(differences: np.ndarray) -> float:
    """Return the exact p of the signed-rank test, two-sided; 1 where nothing differs.

    Zeros are dropped, and ties have their mean rank, as Wilcoxon has it. The chance of each sum of
    ranks is over all signs, found rank by rank; SciPy's exact method has no ties, and its
    permutations of 30 pairs are 2^30.
    """
    rounded = np.round(differences, _DECIMALS)
    kept = rounded[rounded != 0]
    if not len(kept):
        return 1.0
    # Doubled, so that they are whole.
    ranks = np.rint(2 * scipy.stats.rankdata(np.abs(kept))).astype(int)
    chances = np.ones(1)  # of each sum of the ranks with a plus
    for rank in ranks:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    distance = np.abs(2 * np.arange(len(chances)) - ranks.sum())  # from the middle, doubled again
    return min(1.0, float(chances[distance >= distance[ranks[kept > 0].sum()]].sum()))


def _cliques(n: int, pairs: pd.DataFrame) -> list[tuple[int, int]]:
    """Return the largest runs of neighbours of which no two differ, as first and last place."""
    alike = np.eye(n, dtype=bool)
    upper = np.triu_indices(n, 1)  # in the order of `itertools.combinations`
    alike[upper] = pairs["p_holm"].to_numpy() >= ALPHA
    found: list[tuple[int, int]] = []
    for first in range(n):
        last = first
        while last + 1 < n and alike[first : last + 1, last + 1].all():
            last += 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
