"""Second versions of CELM's label skews (CELM §5). They follow splits.py of its author's
asimukaye/spectralfuse, except the nested classes of `sls`."""

from __future__ import annotations

import numpy as np

Parts = list[list[int]]


def _of(labels: np.ndarray, k: int) -> list[int]:
    return [x for x in range(len(labels)) if labels[x] == k]


def dir_client(labels, clients, classes, seed, numbers, alpha, rng=None) -> Parts:
    """Return a Dirichlet draw a client, normalised over clients class by class."""
    rng = rng or np.random.RandomState(seed)
    p = np.array([rng.dirichlet(np.repeat(alpha, classes)) for _ in range(clients)])
    parts: Parts = [[] for _ in range(clients)]
    for k in range(classes):
        samples = _of(labels, k)
        rng.shuffle(samples)
        share, total, start = p[:, k] / p[:, k].sum(), 0.0, 0
        for i in range(clients):
            total += share[i]
            stop = len(samples) if i == clients - 1 else int(total * len(samples))
            parts[i] += samples[start:stop]
            start = stop
    return parts


def fr_repeat(labels, clients, classes, seed, numbers, alpha=1.0, keep=10) -> Parts:
    """Return `dir_client`, but the last client repeats a few samples up to the others' mean."""
    rng = np.random.RandomState(seed)
    parts = dir_client(labels, clients, classes, seed, numbers, alpha, rng)
    few = rng.choice(parts[-1], keep, replace=True)
    size = int(sum(map(len, parts[:-1])) / (clients - 1))
    return [*parts[:-1], [few[x % keep] for x in range(size)]]


def pls(labels, clients, classes, seed, numbers, m0, s_max, s_min=100) -> Parts:
    """Return clients of equal size with more and more classes."""
    rng = np.random.RandomState(seed)
    unused = [_of(labels, k) for k in range(classes)]
    parts = []
    for i in range(clients):
        mine: list[int] = []
        wanted = s_min + (clients - i) * ((s_max - s_min) // clients)
        for k in rng.choice(classes, _owned(i, clients, classes, m0), replace=False):
            if len(unused[k]) >= s_min and len(mine) <= m0 * s_max:
                taken = rng.choice(unused[k], min(wanted, len(unused[k])), replace=False)
                unused[k] = [x for x in unused[k] if x not in set(taken)]
                mine += taken.tolist()
        rng.shuffle(mine)
        parts.append(mine)
    return [list(rng.choice(mine, min(map(len, parts)), replace=False)) for mine in parts]


def sls(labels, clients, classes, seed, numbers, m0=2, order="drawn") -> Parts:
    """Return nested sets of classes; with ``random`` sets each client draws its own."""
    rng = np.random.RandomState(seed)
    place = list(range(classes)) if order != "drawn" else rng.permutation(classes).tolist()
    sizes = [_owned(i, clients, classes, m0) for i in range(clients)]
    if order == "random":
        sets = [set(rng.choice(classes, size, replace=False)) for size in sizes]
    else:
        sets = [set(place[:size]) for size in [*sizes[:-1], classes]]
    parts: Parts = [[] for _ in range(clients)]
    for k in range(classes):
        owners = [i for i in range(clients) if k in sets[i]]
        samples = _of(labels, k)
        rng.shuffle(samples) if owners else None
        for i, piece in zip(owners, np.array_split(samples, max(1, len(owners))), strict=False):
            parts[i] += piece.tolist()
    return parts


def _owned(i: int, clients: int, classes: int, m0: int) -> int:
    return m0 + i * ((classes - m0) // (clients - 1))
