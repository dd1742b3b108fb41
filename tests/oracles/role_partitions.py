"""Second versions of mavericks, free riders and k classes per client (CELM §6.1-6.2, Who to
Trust A.2; sizes are the project's)."""

from __future__ import annotations

import numpy as np

Parts = list[list[int]]


def _of(labels: np.ndarray, chosen: list[int]) -> list[int]:
    return [x for x in range(len(labels)) if labels[x] in chosen]


def _order(numbers, classes: int, rare: int, rare_classes: str) -> list[int]:
    """Return all classes, common ones first, rare ones last."""
    order = numbers("partition", 0).permutation(classes).tolist()
    last = list(range(classes - rare, classes))
    return order if rare_classes == "drawn" else [k for k in order if k not in last] + last


def _rider(labels, clients, numbers, common: list[int], share: float) -> list[int]:
    size, source = round(share * len(labels) / clients), numbers("partition", 1)
    each = [size // len(common) + (i < size % len(common)) for i in range(len(common))]
    taken: list[int] = []
    for k, wanted in zip(common, each, strict=True):
        taken += source.choice(_of(labels, [k]), wanted, replace=False).tolist()
    return taken


def _shared(numbers, rest: list[int], clients: int) -> Parts:
    order = numbers("partition", 2).permutation(rest)
    return [part.tolist() for part in np.array_split(order, clients)]


def maverick(labels, clients, classes, seed, numbers, rare=3, rare_classes="last") -> Parts:
    """Return all samples of the rare classes at client 0, the rest IID."""
    order = _order(numbers, classes, rare, rare_classes)
    rest = _of(labels, order[:-rare])
    return [_of(labels, order[-rare:]), *_shared(numbers, rest, clients - 1)]


def fr(labels, clients, classes, seed, numbers, common=2, share=0.1) -> Parts:
    """Return a few samples of common classes at the last client, the rest IID."""
    few = _rider(labels, clients, numbers, _order(numbers, classes, 0, "drawn")[:common], share)
    rest = [x for x in range(len(labels)) if x not in set(few)]
    return [*_shared(numbers, rest, clients - 1), few]


def frm(
    labels, clients, classes, seed, numbers, rare=3, rare_classes="last", common=2, share=0.1
) -> Parts:
    """Return a maverick first and a free rider last."""
    order = _order(numbers, classes, rare, rare_classes)
    few = _rider(labels, clients, numbers, order[:common], share)
    rest = [x for x in _of(labels, order[:-rare]) if x not in set(few)]
    return [_of(labels, order[-rare:]), *_shared(numbers, rest, clients - 2), few]


def k_classes(
    labels, clients, classes, seed, numbers, k, private_size=10000, class_sets="random"
) -> Parts:
    """Return so many samples of k classes for each client, which may be others' too."""
    source = numbers("partition")
    sets: Parts = []
    for _ in range(clients):
        if class_sets == "random":
            sets.append(source.choice(classes, k, replace=False).tolist())
        else:
            luck, owners = source.permutation(classes), _owners(sets, classes)
            first = sorted(zip(owners, luck, range(classes), strict=True))[:k]
            sets.append([c for _, _, c in first])
    for lost in [c for c in range(classes) if not _owners(sets, classes)[c]]:
        owners = _owners(sets, classes)
        spare = [(i, j) for i in range(clients) for j in range(k) if owners[sets[i][j]] > 1]
        if spare:
            i, j = source.choice(spare)
            sets[i][j] = lost
    parts: Parts = [[] for _ in range(clients)]
    for i in range(clients):
        for j, c in enumerate(sorted(sets[i])):
            pool, wanted = _of(labels, [c]), private_size // k + (j < private_size % k)
            parts[i] += source.choice(pool, min(wanted, len(pool)), replace=False).tolist()
    return parts


def _owners(sets: Parts, classes: int) -> list[int]:
    return [sum(c in chosen for chosen in sets) for c in range(classes)]
