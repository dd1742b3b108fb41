"""Second versions of aggregation formulas: plain numbers, one client, sample and class at a time.

UWA: Who to Trust, eq. 5-7. Votes: TallyTrain §3, appendices D and E. Robust means: Yin et al. 2018.
Contributions: CELM eq. 8-12 and ShapFed's cosines (Tastan et al. 2024).
"""

from __future__ import annotations

from collections import Counter
from math import ceil, inf, log2
from statistics import mean, median

import numpy as np
from scipy.special import logsumexp, softmax
from scipy.stats import norm


def fitted(logits: np.ndarray, labels: np.ndarray, floor: float) -> list[tuple]:
    """Means and variances of each class with two samples or more (eq. 5)."""
    groups = [logits[labels == c] for c in sorted(set(labels.tolist()))]
    return [(g.mean(0), np.maximum(g.var(0), floor)) for g in groups if len(g) > 1]


def density(mixture: list[tuple], z: np.ndarray) -> float:
    """ℓ(x): the log of the mean of the components' densities."""
    each = [norm.logpdf(z, m, v**0.5).sum() for m, v in mixture]
    return float(logsumexp(each) - np.log(len(each))) if each else -inf


def weighted(z: np.ndarray, densities: np.ndarray) -> np.ndarray:
    """Eq. 6-7 at one sample; equal weights where all densities are 0."""
    known = not all(d == -inf for d in densities)
    w = softmax(densities) if known else np.full(len(z), 1 / len(z))
    return sum(w_i * z_i for w_i, z_i in zip(w, z, strict=True))


def histogram(votes: list[int], classes: int) -> list[float]:
    """H̄(x) of one probe."""
    return [Counter(votes)[c] / len(votes) for c in range(classes)]


def minority(votes: list[int], classes: int, mixing: float) -> list[float]:
    """H̃(x) of one probe: v_n is as 1 / (share of peers that vote like n) (appendix D)."""
    n = len(votes)
    rare = [n / votes.count(vote) for vote in votes]
    weights = [(1 - mixing) / n + mixing * r / sum(rare) for r in rare]
    return [sum(w for w, v in zip(weights, votes, strict=True) if v == c) for c in range(classes)]


def packed(votes: list[int], classes: int) -> list[int]:
    """Bytes of a message of ⌈log2 C⌉ bits a vote, filled up with zeros (Table 1)."""
    width = max(1, ceil(log2(classes)))
    bits = "".join(f"{vote:0{width}b}" for vote in votes)
    bits += "0" * (-len(bits) % 8)
    return [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]


def robust(claims: np.ndarray, rule: str, trim: float) -> list[float]:
    """One probe's combined claims, from (peers, classes), made to sum to 1; zeros stay."""
    row = []
    for column in claims.T.tolist():
        out = int(trim * len(column)) if rule == "trimmed_mean" else 0
        kept = sorted(column)[out : len(column) - out]
        row.append(median(kept) if rule == "median" else mean(kept))
    return [value / sum(row) if sum(row) else 0.0 for value in row]


def scores(u: np.ndarray, b: np.ndarray) -> list[float] | None:
    """CELM eq. 8-12, from the clients' and the global model's logits; None without evidence."""
    q = np.maximum(u - b.mean(), 0)
    share = [[v / sum(q[:, c]) if sum(q[:, c]) else 0 for c, v in enumerate(row)] for row in q]
    each = [mean(row) for row in share]
    return [value / sum(each) for value in each] if sum(each) else None


def cosines(rows: np.ndarray, weights: np.ndarray) -> list[list[float]]:
    """Each client's cosine with the weighted mean, class by class; 0 for a row of zeros."""
    average = sum(w * row for w, row in zip(weights, rows, strict=True))
    norms = np.linalg.norm(rows, axis=2) * np.linalg.norm(average, axis=1)
    return [[a @ m / n if n else 0.0 for a, m, n in zip(r, average, k, strict=True)]
            for r, k in zip(rows, norms, strict=True)]  # fmt: skip


def largest(values: list[float], count: int) -> list[float]:
    """The `count` largest in size, and those as large as the last of them; the others are 0."""
    least = sorted((abs(v) for v in values), reverse=True)[min(count, len(values)) - 1]
    return [v if abs(v) >= least else 0.0 for v in values]
