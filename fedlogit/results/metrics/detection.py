"""Finding free riders by their contributions (CELM §6.2, Table 3, Figure 4).

In each round contributions become z-scores; a client below a threshold is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["THRESHOLDS", "auroc", "false_positive_rate", "z_scores"]

THRESHOLDS = np.round(np.arange(-20, 1) / 10, 1)
"""CELM averages over "multiple threshold values" that it does not name; these are ours."""


def z_scores(contributions: np.ndarray) -> np.ndarray:
    """Return (c - mean) / std of each round, with the population's std; 0 where all are equal.

    Args:
        contributions: (rounds, clients).
    """
    centred = contributions - contributions.mean(axis=1, keepdims=True)
    std = contributions.std(axis=1, keepdims=True)
    # Equal contributions, such as 1/N, have a spread of rounding only.
    return np.divide(centred, std, out=np.zeros_like(centred), where=std > 1e-9)


def auroc(contributions: np.ndarray, riders: Sequence[int]) -> float:
    """Return the mean over rounds of the chance that a free rider is below an honest client.

    Args:
        contributions: (rounds, clients).
        riders: Which clients are free riders; ties count one half.
    """
    from scipy.stats import mannwhitneyu  # takes a second to import

    z = z_scores(contributions)
    is_rider = np.isin(np.arange(z.shape[1]), list(riders))
    # U counts the pairs in which the honest client is above, so U / pairs is the AUROC; this is
    # one call for all rounds, where scikit-learn's roc_auc_score takes one for each.
    u = mannwhitneyu(z[:, ~is_rider], z[:, is_rider], method="asymptotic", axis=1).statistic
    return float(np.mean(u / (is_rider.sum() * (~is_rider).sum())))


def false_positive_rate(contributions: np.ndarray, riders: Sequence[int]) -> np.ndarray:
    """Return the share of honest clients flagged at each of `THRESHOLDS`, mean over rounds."""
    z = z_scores(contributions)
    honest = z[:, ~np.isin(np.arange(z.shape[1]), list(riders))]
    return np.array([(honest < threshold).mean() for threshold in THRESHOLDS])
