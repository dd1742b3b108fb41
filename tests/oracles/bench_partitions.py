"""Second versions of partitions of other frameworks (shards: McMahan et al. 2017, §3; quantity:
NIID-Bench §4.4 and its code; dir_equal: Hsu et al. 2019, arXiv 1909.06335)."""

from __future__ import annotations

Parts = list[list[int]]


def shards(labels, clients, classes, seed, numbers, per_client=2) -> Parts:
    """Return so many pieces of the samples sorted by class for each client."""
    source, n, pieces = numbers("partition"), len(labels), clients * per_client
    place = {x: i for i, x in enumerate(source.permutation(n).tolist())}
    ordered = sorted(range(n), key=lambda x: (labels[x], place[x]))
    sizes = [n // pieces + (i < n % pieces) for i in range(pieces)]
    hand = [ordered[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(pieces)]
    deck = source.permutation(pieces).tolist()
    return [
        [x for s in deck[i * per_client : (i + 1) * per_client] for x in hand[s]]
        for i in range(clients)
    ]


def quantity(labels, clients, classes, seed, numbers, beta, min_size=10) -> Parts:
    """Return pieces of a random order whose lengths are drawn."""
    source, n = numbers("partition"), len(labels)
    lengths = [0]
    while min(lengths) < min_size:
        q = source.dirichlet([beta] * clients).tolist()
        borders = [int(n * sum(q[:i])) for i in range(clients)] + [n]
        lengths = [borders[i + 1] - borders[i] for i in range(clients)]
    order = source.permutation(n).tolist()
    return [order[borders[i] : borders[i + 1]] for i in range(clients)]


def dir_equal(labels, clients, classes, seed, numbers, alpha, size=None, prior="data") -> Parts:
    """Return samples drawn one by one, each of a class that its client's shares decide."""
    source, n = numbers("partition"), len(labels)
    left = {k: [x for x in range(n) if labels[x] == k] for k in range(classes)}
    left = {k: pool for k, pool in left.items() if pool}
    p = [len(pool) / n if prior == "data" else 1 / len(left) for pool in left.values()]
    q = [
        dict(zip(left, source.dirichlet([alpha * one for one in p]).tolist(), strict=True))
        for _ in range(clients)
    ]
    sizes = [size or n // clients + (i < n % clients) for i in range(clients)]
    turns = source.permutation([i for i in range(clients) for _ in range(sizes[i])]).tolist()
    drawn = [[] for _ in range(clients)]
    number = {k: len(pool) for k, pool in left.items()}
    at_the_end = dict(number)
    for i, luck in zip(turns, source.random(len(turns)).tolist(), strict=True):
        open_ = [k for k in number if number[k]]
        weights = [q[i][k] for k in open_]
        if sum(weights) == 0:
            weights = [at_the_end[k] for k in open_]
        k = _wheel(open_, weights, luck)
        drawn[i].append(k)
        number[k] -= 1
        if number[k] == 0:
            at_the_end = dict(number)
    piles = {k: source.permutation(pool).tolist() for k, pool in left.items()}
    parts: Parts = [[] for _ in range(clients)]
    for i in range(clients):
        for k in drawn[i]:
            parts[i].append(piles[k].pop(0))
    return parts


def _wheel(choices: list[int], weights: list[float], luck: float) -> int:
    """Return the choice on whose part of a wheel the luck in [0, 1) falls."""
    total, reached = sum(weights), 0.0
    for choice, weight in zip(choices, weights, strict=True):
        reached += weight / total
        if luck < reached:
            return choice
    return next(c for c, w in reversed([*zip(choices, weights, strict=True)]) if w)
