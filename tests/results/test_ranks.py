"""Ranks and tests over many cells: numbers by hand, and against other ways to compute them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.refusals import refused

from fedlogit.results.analyses import analyse
from fedlogit.results.statistics.ranks import blocks, ranking


def table(**columns: list[float]) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_the_best_has_rank_one_and_ties_share_theirs():
    found = ranking(table(a=[0.9, 0.8], b=[0.5, 0.8], c=[0.7, 0.1]))
    # Cell 1: a, c, b. Cell 2: a and b share 1 and 2, c is third.
    assert found.ranks.to_dict() == {"a": 1.25, "b": 2.25, "c": 2.5}
    assert list(found.ranks.index) == ["a", "b", "c"]


def test_friedman_by_hand():
    # Ranks 1, 2, 3 in all of 4 cells: χ² = 12/(n k (k+1)) Σ R² - 3 n (k+1) with rank sums 4, 8, 12:
    # 12/48 · 224 - 48 = 8, with 2 degrees of freedom p = e^(-4).
    found = ranking(table(a=[0.9] * 4, b=[0.8] * 4, c=[0.7] * 4))
    assert found.p_any == pytest.approx(math.exp(-4))
    assert (found.n, len(found.pairs)) == (4, 3)


def test_wilcoxon_and_holm_by_hand():
    # All 8 differences point one way: p = 2 / 2^8 for each of 3 pairs; Holm: 3 p, then no smaller.
    up = np.linspace(0.1, 0.8, 8)
    found = ranking(table(a=up + 0.3, b=up * 1.2, c=up))
    assert found.pairs["p"].tolist() == pytest.approx([2 / 256] * 3)
    assert found.pairs["p_holm"].tolist() == pytest.approx([6 / 256] * 3)
    assert found.cliques == []


def test_wilcoxon_is_what_all_sign_patterns_give():
    rng = np.random.default_rng(3)
    a, b = rng.random(7), rng.random(7)
    found = ranking(table(a=a, b=b))
    sizes = np.argsort(np.argsort(np.abs(a - b))) + 1
    seen = abs(sizes[a > b].sum() - sizes.sum() / 2)
    sums = [np.dot(signs, sizes) for signs in itertools.product([0, 1], repeat=7)]
    p = np.mean(np.abs(np.array(sums) - sizes.sum() / 2) >= seen)
    assert found.pairs["p"].tolist() == [pytest.approx(p)]
    assert math.isnan(found.p_any)  # of two methods


@pytest.mark.parametrize("n", [6, 13, 30])
def test_wilcoxon_without_ties_is_scipy_s_exact_test(n):
    gaps = np.random.default_rng(n).normal(0.3, 1, n)
    found = ranking(table(a=gaps, b=np.zeros(n)))
    wanted = stats.wilcoxon(gaps, method="exact").pvalue
    assert found.pairs["p"].tolist() == [pytest.approx(wanted)]


def test_wilcoxon_with_ties_and_zeros_by_hand():
    # Differences .1, .1, .1, -.1, .2 and 0, which is dropped. Ranks of sizes 2.5 (four) and 5, sum
    # 15; those above 0 have 12.5, 5 from the middle. As far are, above, 5 with three (4 patterns)
    # or four (1) of the others; below as many: p = 10 / 32.
    low = np.array([0.7, 0.3, 0.2, 0.6, 0.1, 0.4])
    high = np.array([0.8, 0.4, 0.3, 0.5, 0.3, 0.4])
    assert len(set(np.abs(high - low)[:4])) > 1  # rounding breaks the ties
    assert ranking(table(a=high, b=low)).pairs["p"].tolist() == [pytest.approx(10 / 32)]


@pytest.mark.parametrize("seed", range(5))
def test_wilcoxon_with_ties_is_what_all_sign_patterns_give(seed):
    gaps = np.random.default_rng(seed).integers(-3, 6, 9) / 10
    ranks = stats.rankdata(np.abs(gaps[gaps != 0]))
    seen = abs(ranks[gaps[gaps != 0] > 0].sum() - ranks.sum() / 2)
    sums = [np.dot(signs, ranks) for signs in itertools.product([0, 1], repeat=len(ranks))]
    wanted = np.mean(np.abs(np.array(sums) - ranks.sum() / 2) >= seen)
    found = ranking(table(a=gaps + 0.7, b=np.full(9, 0.7)))
    assert found.pairs["p"].tolist() == [pytest.approx(wanted)]


def test_methods_that_do_not_differ_are_joined():
    cells = np.arange(12) / 100
    noise = np.tile([1, -1], 6) * np.linspace(0.001, 0.002, 12)
    found = ranking(table(low=cells, high=cells + 0.5, twin=cells + 0.5 + noise))
    assert sorted(found.ranks.index[:2]) == ["high", "twin"]
    assert found.cliques == [(0, 1)]


@pytest.mark.parametrize(("against", "p", "cliques"), [(2, 6 / 128, []), (3, 10 / 128, [(0, 1)])])
def test_methods_are_joined_from_five_per_cent_on(against, p, cliques):
    # Seven differences of sizes 1 to 7, of which one points the other way. Of 2^7 patterns 3 have
    # a sum of 2 or less (0, 1, 2) and 5 one of 3 or less (3 and 1 + 2, too); above, as many.
    gaps = np.array([-size if size == against else size for size in range(1, 8)]) / 10
    found = ranking(table(a=gaps + 0.7, b=np.full(7, 0.7)))
    assert found.pairs["p_holm"].tolist() == [pytest.approx(p)]
    assert found.cliques == cliques


def test_few_cells_join_everybody():
    found = ranking(table(a=[0.9, 0.9], b=[0.5, 0.5], c=[0.1, 0.1]))
    assert found.cliques == [(0, 2)]
    # Rank sums 2, 4 and 6: χ² = 12 / (2 · 3 · 4) · 56 - 3 · 2 · 4 = 4, p = e^(-2).
    assert found.p_any == pytest.approx(math.exp(-2))
    assert ranking(table(a=[0.5], b=[0.5])).pairs["p"].tolist() == [1.0]


def test_joined_runs_are_the_longest_and_of_which_no_two_differ():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.random((15, 6)) + np.linspace(0, 0.9, 6), columns=list("abcdef"))
    found = ranking(data)
    names = list(found.ranks.index)
    p = {frozenset((r.first, r.second)): r.p_holm for r in found.pairs.itertuples()}

    def alike(i: int, j: int) -> bool:
        pairs = itertools.combinations(names[i : j + 1], 2)
        return all(p[frozenset(pair)] >= 0.05 for pair in pairs)

    runs = [(i, j) for i, j in itertools.combinations(range(6), 2) if alike(i, j)]
    longest = [r for r in runs if not any(o != r and o[0] <= r[0] and r[1] <= o[1] for o in runs)]
    assert found.cliques == longest
    assert 1 < len(found.cliques) < 6


def test_a_block_is_a_partition_and_a_seed_and_who_lacks_a_partition_is_left_out():
    rows = [
        {"dataset": "d", "partition": part, "seed": seed, "method": method, "accuracy": 0.5}
        for part in ("iid", "k2") for seed in (0, 1) for method in ("uwa", "average", "fedmd")
    ]  # fmt: skip
    names = ["uwa", "average", "fedmd"]
    found, left_out = blocks(pd.DataFrame(rows[:-1]), "accuracy")
    assert (found.shape, list(found.columns), left_out) == ((3, 3), names, [])
    without = [row for row in rows if (row["method"], row["partition"]) != ("fedmd", "k2")]
    found, left_out = blocks(pd.DataFrame(without), "accuracy")
    assert (found.shape, list(found.columns), left_out) == ((4, 2), names[:2], ["fedmd"])
    diverged = pd.DataFrame(rows)
    diverged.loc[0, "accuracy"] = math.nan
    found, left_out = blocks(diverged, "accuracy")
    assert (found.shape, left_out) == ((4, 2), ["uwa"])


def test_the_table_of_ranks_by_hand(make_run, make_artefact):
    """FedAvg is best in all 8 cells; UWA is second in one partition, Average in the other."""
    second = {"k_classes(2)": "uwa", "k_classes(5)": "average"}
    runs = [
        make_run(
            {"fedavg": 0.9, second[partition]: 0.7}.get(method, 0.6) + 0.01 * seed,
            method=method, partition=partition, seed=seed,
        )
        for partition in second
        for method in ("average", "uwa", "fedavg")
        for seed in range(4)
    ]  # fmt: skip
    ceiling = make_run(1.0, method="fully_informed", partition="iid")
    artefact = make_artefact(*runs, ceiling, analysis="ranks", rows=None, columns=None)
    found = analyse(artefact)
    wanted = {
        "method": ["fedavg", "average", "uwa"],
        "n": [8, 8, 8],
        "rank": [1.0, 2.5, 2.5],
        # All 8 differences to FedAvg have one sign: p = 3 · 2 / 2^8 < 0.05.
        "alike": ["", "uwa", "average"],
        "rank_mnist_k_classes(2)": [1.0, 3.0, 2.0],
        "rank_mnist_k_classes(5)": [1.0, 2.0, 3.0],
    }
    pd.testing.assert_frame_equal(found.numbers, pd.DataFrame(wanted))
    assert found.shown["Does not differ from"].tolist()[0] == ""
    # Rank sums 8, 20, 20: χ² = 12 / (8 · 3 · 4) · 864 - 3 · 8 · 4 = 12, p = e^(-6).
    assert "Friedman's test that all are alike: p = 0.002" in found.sentences


def test_who_does_not_differ_is_told_after_the_correction(make_run, make_artefact):
    """In six cells of one order each p is 2 / 2^6 = 0.031, and after Holm's 3 p nobody differs."""
    accuracies = {"fedavg": 0.9, "uwa": 0.7, "average": 0.5}
    runs = [
        make_run(accuracy + 0.01 * seed, method=method, seed=seed)
        for method, accuracy in accuracies.items()
        for seed in range(6)
    ]
    found = analyse(make_artefact(*runs, analysis="ranks", rows=None, columns=None)).numbers
    assert found["alike"].tolist() == ["uwa; average", "fedavg; average", "fedavg; uwa"]


def test_seeds_that_only_some_methods_have_do_not_count():
    rows = [("a", 0, 0.9), ("b", 0, 0.5), ("a", 1, 0.8), ("b", 1, 0.4), ("a", 2, 0.1), ("c", 0, 0)]
    frame = pd.DataFrame(rows, columns=["method", "seed", "accuracy"])
    frame = frame.assign(dataset="mnist", partition="iid")
    assert blocks(frame[frame["method"] != "c"], "accuracy")[0].to_numpy().tolist() == [
        [0.9, 0.5],
        [0.8, 0.4],
    ]
    assert list(blocks(frame, "accuracy")[0].columns) == ["a", "b", "c"]
    assert len(blocks(frame, "accuracy")[0]) == 1


def test_one_method_alone_has_no_rank():
    frame = pd.DataFrame({"method": ["a", "b"], "seed": [0, 1], "accuracy": [0.5, 0.5]})
    with refused("fewer than two methods have accuracy in all 0 cells"):
        blocks(frame.assign(dataset="mnist", partition="iid"), "accuracy")


def test_runs_that_differ_in_more_than_the_method_have_no_rank():
    frame = pd.DataFrame({"method": ["a", "a", "b"], "seed": 0, "accuracy": 0.5})
    with refused("two runs share the cell dataset=mnist, partition=iid, method=a, seed=0"):
        blocks(frame.assign(dataset="mnist", partition="iid"), "accuracy")
