"""What docs/comparison.md says of the tests of ranks is what the results' files say."""

from __future__ import annotations

import itertools
from collections import Counter

import pandas as pd
from documented import ROOT

TABLES = ROOT / "results/tables/comparison/paper"
PAGE = " ".join((ROOT / "docs/comparison.md").read_text(encoding="utf-8").split())


def alike() -> dict[str, list[str]]:
    """Return the methods that the tests on partitions and seeds do not tell from each method."""
    ranks = pd.read_csv(TABLES / "average_ranks.csv", index_col="method", keep_default_na=False)
    return {method: names.split("; ") for method, names in ranks["alike"].items()}


def exceptions(first: str, second: str, means: pd.DataFrame) -> list[str]:
    """Return the partitions in which the mean is not higher for the method that mostly leads."""
    ahead = means[first] > means[second]
    return list(means.index[ahead != (ahead.mean() > 0.5)])


def test_pairs_differ_in_as_many_partitions_as_the_page_says():
    accuracy = pd.read_csv(TABLES / "accuracy.csv")
    means = accuracy.pivot(index="partition", columns="method", values="mean")
    assert len(means) == 6
    as_good = alike()
    pairs = list(itertools.combinations(as_good, 2))
    differing = [(first, second) for first, second in pairs if second not in as_good[first]]
    found = [exceptions(first, second, means) for first, second in differing]
    by_number = Counter(map(len, found))
    assert by_number.keys() == {0, 1}
    where = Counter(partition for (partition,) in filter(None, found))
    said = (
        f"no pair would differ after correction for {len(pairs)}",
        f"of the {len(differing)} pairs that [differ by the tests]",
        f"in all six partitions in {by_number[0]} pairs, and in five of six in the other"
        f" {by_number[1]}.",
        f"In {where['iid']} of these the exception is IID, in {where['k2']} two classes per client",
    )
    assert [text for text in said if text not in PAGE] == []
