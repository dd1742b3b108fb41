"""Second version of UWA (Who to Trust §3.1.3, eq. 5-7)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from oracles import average
from oracles.world import World
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.cluster import KMeans

Components = list[tuple[np.ndarray, np.ndarray]]  # mean and variance of each logit


def rounds(
    world: World, variance_floor: float = 1e-3, fit: str = "supervised", constant_below: float = 0.0
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    how = partial(_weighted, floor=variance_floor, how=fit, least=constant_below)
    return average.rounds(world, aggregate=how)


def _weighted(world, r, models, logits, floor, how, least):
    """Return softmax Σ_i w_i(x) f_i(x)."""
    log_density = np.full(logits.shape[:2], -np.inf)
    for i, model in enumerate(models):
        held = world.validation[i]
        with torch.no_grad():
            own = model(world.x[held]).double().numpy()
        labels = world.y[held].numpy()
        if least and own.std(0).max() <= np.sqrt(least):
            continue
        if how == "supervised":
            found = _by_class(own, labels, floor)
        else:
            seed = world.address(world.seed, "em", i, r) % 2**32
            found = _by_em(own, min(len(set(labels)), len(own)), floor, seed)
        for x in range(logits.shape[1]):
            z = logits[i, x].double().numpy()
            each = [norm.logpdf(z, m, np.sqrt(v)).sum() for m, v in found]
            if each:
                log_density[i, x] = logsumexp(each) - np.log(len(each))
    with_density = (log_density > -np.inf).any(1)
    log_density[:, np.isinf(log_density).all(0)] = 0.0
    w = np.exp(log_density - logsumexp(log_density, axis=0))
    z = sum(torch.tensor(w[i])[:, None] * logits[i].double() for i in range(len(w)))
    more = {
        "kept/aggregation/weights": w,
        "weight_max": w.max(0).mean(),
        "weight_over_99": (w.max(0) > 0.99).mean(),
        "with_density": with_density.mean(),
        "bytes_up.densities": 4 * w.size,
    }
    return z.softmax(1), more


def _by_class(own: np.ndarray, labels: np.ndarray, floor: float) -> Components:
    """Return the mean and variance of each class with two samples or more."""
    groups = [own[labels == c] for c in sorted(set(labels)) if (labels == c).sum() >= 2]
    return [(g.mean(0), np.maximum(g.var(0), floor)) for g in groups]


def _by_em(own: np.ndarray, k: int, floor: float, seed: int) -> Components:
    """Return the components that expectation-maximisation ends with, started from k-means."""
    start = KMeans(k, n_init=1, random_state=np.random.RandomState(seed)).fit(own).labels_
    share, before, converged = np.eye(k)[start], -np.inf, False
    while True:
        sizes = share.sum(0) + 10 * np.finfo(float).eps
        means = share.T @ own / sizes[:, None]
        around = [(share[:, j, None] * (own - means[j]) ** 2).sum(0) / sizes[j] for j in range(k)]
        found = [(m, v + floor) for m, v in zip(means, around, strict=True)]
        each = np.stack([norm.logpdf(own, m, np.sqrt(v)).sum(1) for m, v in found], 1)
        each += np.log(sizes / sizes.sum())
        bound = logsumexp(each, axis=1).mean()
        if converged:
            return [(m, np.maximum(v - floor, floor)) for m, v in found]
        converged, before = abs(bound - before) < 1e-3, bound
        share = np.exp(each - logsumexp(each, axis=1, keepdims=True))
