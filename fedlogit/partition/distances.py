"""How far two partitions are apart, as joint client-class distributions (CELM §6.3, Table 4).

CELM does not define its three distances. This convention reproduces all fifteen numbers of
Table 4's uniform baseline to the printed digit: the (N, K) counts divided by their *grand* total
are one joint distribution, compared with 1 / (N K). It is not an average over clients.
"""

from __future__ import annotations

import numpy as np

from fedlogit.errors import FedlogitError

__all__ = ["distances"]


def distances(counts_p: np.ndarray, counts_q: np.ndarray | None = None) -> dict[str, float]:
    """Compare two non-negative matrices, each divided by its sum.

    Args:
        counts_p: Samples (or scores) of each class at each client, (N, K).
        counts_q: What to compare with, (N, K); None compares with the uniform distribution.

    Returns:
        ``jsd``, the Jensen-Shannon distance (square root, natural logarithm) and ``hellinger``,
        ``sqrt(1 - sum sqrt(p q))``, both of the flattened matrices; ``emd``, the Wasserstein
        distance between the two sets of N client rows as equally weighted points of R^K, i.e. the
        mean Euclidean distance of rows under the best matching; and ``emd_direct``, the same with
        client i matched to client i.

    Raises:
        FedlogitError: if the matrices differ in shape, or one is not finite, non-negative and
            somewhere positive.
    """
    from scipy.optimize import linear_sum_assignment  # which takes a second that runs need not wait
    from scipy.spatial.distance import cdist, jensenshannon

    p = _joint(counts_p)
    q = np.full_like(p, 1 / p.size) if counts_q is None else _joint(counts_q)
    if p.shape != q.shape:
        raise FedlogitError(f"cannot compare counts of shapes {p.shape} and {q.shape}")
    cost = cdist(p, q)
    rows, columns = linear_sum_assignment(cost)
    with np.errstate(invalid="ignore"):
        # Of equal distributions rounding can bring the divergence below 0, whose root is NaN.
        jsd = float(np.nan_to_num(jensenshannon(p.ravel(), q.ravel()), nan=0.0))
    return {
        "jsd": jsd,
        "emd": float(cost[rows, columns].mean()),
        "emd_direct": float(np.diagonal(cost).mean()),
        # Rounding can bring the sum of identical distributions a hair above 1.
        "hellinger": float(np.sqrt(max(0.0, 1 - np.sqrt(p * q).sum()))),
    }


def _joint(counts: np.ndarray) -> np.ndarray:
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim != 2 or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        raise FedlogitError(
            f"counts of shape {counts.shape}: a clients × classes matrix of finite numbers ≥ 0,"
            " not all 0, is needed"
        )
    return counts / counts.sum()
