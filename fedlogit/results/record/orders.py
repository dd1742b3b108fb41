"""The pairs of methods of the record, and how many of them are in the papers' order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from fedlogit.papers import Paper
from fedlogit.papers.metric_names import is_share
from fedlogit.results.formatting import in_words, markdown, occurrences, sentence
from fedlogit.results.record.numbers import comparisons
from fedlogit.results.verdicts.orders import ORDERS, Order, read_orders

__all__ = ["orders_sentence", "orders_table", "recorded_orders"]

_FAR = 0.10  # of a share: such a difference is hard to miss, as from a method at chance
_SINGLE_RUN = (Order.SINGLE_SAME, Order.SINGLE_OPPOSITE, Order.SINGLE_EQUAL)
_PLACE = ["paper", "table", "dataset", "partition", "where", "metric", "scale"]
_SEVERAL_RUNS = {
    Order.SAME: "are in the same order here",
    Order.OPPOSITE: "in the opposite order",
    Order.NOT_DISTINGUISHED: "not distinguished",
}


def recorded_orders(rows: pd.DataFrame, papers: Mapping[str, Paper], results: Path) -> pd.DataFrame:
    """Return the pairs of methods whose two numbers the record has from the same scale.

    Args:
        rows: The record, as from `fedlogit.results.record.numbers.record`.
        papers: The papers.
        results: The folder with ``summary``, as `fedlogit.results.summary.write_summary` left it.

    Returns:
        As from `fedlogit.results.verdicts.orders.pairwise_orders`, after the `paper`.

    Raises:
        DataError: if a file of pairs is missing or damaged.
    """
    shown = rows[[*_PLACE, "method"]]
    parts = []
    for name, paper in papers.items():
        for _, comparison in comparisons(paper, results):
            pairs = read_orders(comparison.with_name("orders.csv"))
            pairs.insert(0, "paper", name)
            for side in ("first", "second"):
                pairs = pairs.merge(shown.rename(columns={"method": side}), how="inner")
            parts.append(pairs)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["order"])


def orders_sentence(pairs: pd.DataFrame) -> str:
    """Return in words how many pairs there are, and in which order; "" without any.

    Args:
        pairs: As from `recorded_orders`; so everywhere in this module.
    """
    if pairs.empty:
        return ""
    near = pairs[pairs["metric"].map(is_share) & (pairs["published"].abs() <= _FAR)]
    text = (
        f"Of {len(pairs)} pairs of methods whose published numbers differ by more than a point,"
        f" {_orders_in_words(pairs)}."
    )
    if len(near) in (0, len(pairs)):
        return text
    return (
        f"{text} Of the {len(near)} pairs of accuracies or other shares that differ by at most 10"
        f" points, {_orders_in_words(near)}."
    )


def _orders_in_words(pairs: pd.DataFrame) -> str:
    found = _counts(pairs)
    parts = [f"{found[order]} {words}" for order, words in _SEVERAL_RUNS.items() if found[order]]
    if single := sum(found[order] for order in _SINGLE_RUN):
        equal = f", {found[Order.SINGLE_EQUAL]} equal" if found[Order.SINGLE_EQUAL] else ""
        same = found[Order.SINGLE_SAME]
        parts.append(f"{single} have a single run ({same} in the papers' direction{equal})")
    return in_words(parts)


def orders_table(pairs: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return a Markdown table: how many pairs of each of the papers' tables are in which order.

    Args:
        pairs: The pairs.
        papers: The papers, for what they and their tables are called.
    """
    groups = [
        (
            f"{papers[str(paper)].short_name}, {papers[str(paper)].short_title(str(table))}",
            scale,
            of,
        )
        for (paper, table, scale), of in pairs.groupby(["paper", "table", "scale"], sort=False)
    ]
    shown = [order for order in ORDERS if _counts(pairs)[order]]
    table = pd.DataFrame(
        {"Table": name, "Scale": str(scale), "Pairs": str(len(of))}
        | {sentence(order): str(_counts(of)[order] or "–") for order in shown}
        for name, scale, of in [*groups, ("all", "", pairs)]
    )
    return markdown(table, right=set(table.columns[2:]))


def _counts(pairs: pd.DataFrame) -> dict[str, int]:
    """Return how many pairs are in which order."""
    return occurrences(pairs["order"], ORDERS)
