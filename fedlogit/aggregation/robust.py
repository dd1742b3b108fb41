"""Robust averages of what peers claim, coordinate by coordinate (Yin et al. 2018; TallyTrain J).

Votes are tallied without any of these: a peer has one vote, whatever it says. Soft labels have
neither a largest size nor a check, so that one adversary can move their mean anywhere.
"""

from __future__ import annotations

import math
from typing import Literal

import torch

from fedlogit.errors import FedlogitError

__all__ = ["Rule", "effective_rule", "normalise_rows", "robust_average", "trimmed_count"]

Rule = Literal["mean", "trimmed_mean", "median"]


def robust_average(claims: torch.Tensor, rule: Rule, trim: float = 0.0) -> torch.Tensor:
    """Return one distribution a probe.

    Args:
        claims: What peers say, (peers, probes, classes); probes may have several axes.
        rule: ``mean``; ``trimmed_mean``, without the largest and the smallest share `trim` of the
            peers in each coordinate; ``median``, of an even number the mean of the middle two.
        trim: From 0 to less than a half; what is left out at each end is rounded down. Where that
            leaves one or two of the peers, it is their median.

    Returns:
        (probes, classes), each row summing to 1, or to 0 where the peers leave nothing.

    Raises:
        FedlogitError: if nobody would be left.
    """
    if rule == "median":
        ranked, peers = claims.sort(0).values, len(claims)  # `quantile` has a largest size
        return normalise_rows(ranked[(peers - 1) // 2].lerp(ranked[peers // 2], 0.5))
    if rule == "trimmed_mean":
        out = trimmed_count(len(claims), trim)
        return normalise_rows(claims.sort(0).values[out : len(claims) - out].mean(0))
    return normalise_rows(claims.mean(0))


def trimmed_count(peers: int, trim: float) -> int:
    """Return how many peers a trimmed mean leaves out at each end.

    Raises:
        FedlogitError: if nobody would be left.
    """
    out = math.floor(trim * peers + 1e-9)  # 0.29 * 100 is 28.999999999999996
    if 2 * out >= peers:
        raise FedlogitError(f"trim = {trim}: leaves none of {peers} peers; give less than 0.5")
    return out


def effective_rule(peers: int, trim: float) -> Rule:
    """Return the rule that a trimmed mean of so many peers is.

    Without anybody left out it is the mean; where one or two are left, the median.
    """
    out = trimmed_count(peers, trim)
    return "mean" if not out else "median" if peers - 2 * out <= 2 else "trimmed_mean"


def normalise_rows(rows: torch.Tensor) -> torch.Tensor:
    """Return rows that sum to 1, however small their entries are; a row of zeros stays.

    Who learns from a row of zeros learns nothing from it: it weighs nothing in a cross-entropy.
    """
    exact = rows.double()  # the smallest float32 have no precision, and no reciprocal
    total = exact.sum(-1, keepdim=True)
    return torch.where(total > 0, exact / total, exact).to(rows.dtype)
