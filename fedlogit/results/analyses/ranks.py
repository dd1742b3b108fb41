"""Average ranks of methods over all cells and in each partition, and which do not differ."""

from __future__ import annotations

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.results.analyses.analysis import Analysis
from fedlogit.results.collect import collect, competitors
from fedlogit.results.statistics.means import ALPHA
from fedlogit.results.statistics.ranks import Ranking, blocks, ranking

__all__ = ["analyse"]

_WORK = ["dataset", "partition"]


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per method, that with the best average rank first.

    Columns of the CSV: `method`, `n` (cells of data set, partition and seed), `rank` (the average
    over them, 1 the best), `alike` (the methods that do not differ from it, with "; " between),
    and for each data set and partition `rank_<dataset>_<partition>`, the average over its seeds.
    """
    frame = competitors(collect(artefact))
    table, left_out = blocks(frame, artefact.metric)
    found = ranking(table)
    methods = list(found.ranks.index)
    alike = {method: _methods_alike(found.pairs, method) for method in methods}
    numbers = pd.DataFrame({"method": methods, "n": found.n, "rank": found.ranks.to_numpy()})
    numbers["alike"] = ["; ".join(alike[method]) for method in methods]
    label = artefact.label
    shown = pd.DataFrame(
        {
            label("method"): [label(method) for method in methods],
            "Average rank": [f"{rank:.1f}" for rank in found.ranks],
        }
    )
    ranks = table.rank(axis=1, ascending=False).groupby(_WORK).mean()
    several = frame["dataset"].nunique() > 1
    for dataset, partition in dict.fromkeys(zip(frame["dataset"], frame["partition"], strict=True)):
        own = ranks.loc[(dataset, partition), methods].to_numpy()
        numbers[f"rank_{dataset}_{partition}"] = own
        head = artefact.place_label(dataset, partition, several=several)
        shown[head] = [f"{rank:.1f}" for rank in own]
    right = tuple(shown.columns[1:])
    shown["Does not differ from"] = ["; ".join(map(label, alike[method])) for method in methods]
    return Analysis(numbers, shown, _caption_sentences(artefact, found, left_out), right=right)


def _methods_alike(pairs: pd.DataFrame, method: str) -> list[str]:
    """Return the methods that a test finds no difference to, best rank first."""
    kept = pairs[pairs["p_holm"] >= ALPHA]
    better = kept.loc[kept["second"] == method, "first"]
    return [*better, *kept.loc[kept["first"] == method, "second"]]


def _caption_sentences(artefact: Artefact, found: Ranking, left_out: list[str]) -> tuple[str, ...]:
    sentences = [
        f"Ranks are among {len(found.ranks)} methods for each data set, heterogeneity and seed,"
        f" {found.n} cells; 1 is best, and ties share their mean rank"
    ]
    sentences += [found.friedman()] if found.friedman() else []
    sentences.append(
        "Methods do not differ where Wilcoxon's signed-rank test on the cells gives p of 0.05 or"
        " more, corrected for all pairs after Holm"
    )
    if left_out:
        sentences.append(f"Not in every cell: {', '.join(map(artefact.label, left_out))}")
    return tuple(sentences)
