"""Shapley values of any game with few players."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np

__all__ = ["coalitions", "shapley_values"]


def coalitions(players: int) -> list[frozenset[int]]:
    """Return all subsets of the players 0 … N - 1, the smallest first."""
    return [frozenset(s) for k in range(players + 1) for s in combinations(range(players), k)]


def shapley_values(value: Callable[[frozenset[int]], float], players: int) -> np.ndarray:
    """Return φ_i = Σ_S |S|! (N-|S|-1)! / N! (v(S ∪ {i}) - v(S)) over coalitions S without i.

    Args:
        value: The worth v of a coalition, the empty one included.
        players: Number of players N.

    Returns:
        float64 (players,), which sum to v(all) - v(none).
    """
    subsets = coalitions(players)
    worth = {s: value(s) for s in subsets}
    return np.array(
        [
            sum(
                (worth[s | {i}] - worth[s]) / (players * comb(players - 1, len(s)))
                for s in subsets
                if i not in s
            )
            for i in range(players)
        ]
    )
