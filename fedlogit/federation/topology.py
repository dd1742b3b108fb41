"""Which peers are connected: a full mesh, a ring, or a random graph of equal degrees.

TallyTrain's experiments have a full mesh; §5.3 names sparse gossip as its first extension.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from fedlogit.errors import FedlogitError
from fedlogit.rng import derive

__all__ = ["Topology", "adjacency", "check_degree"]

Topology = Literal["mesh", "ring", "regular"]
_TRIES = 1000


@cache
def adjacency(kind: Topology, peers: int, degree: int, seed: int) -> np.ndarray:
    """Return the adjacency matrix, symmetric bool (peers, peers), with ones on the diagonal.

    It is read-only, as all who ask for the same graph get one array.

    Args:
        kind: ``mesh``; ``ring``, in order of the peers' numbers; ``regular``, drawn once from all
            connected graphs in which each peer has `degree` neighbours.
        peers: Number of peers.
        degree: Neighbours of each peer in a regular graph.
        seed: Seed of the run.

    Raises:
        FedlogitError: if there is no such graph.
    """
    found = _graph(kind, peers, degree, seed)
    found.setflags(write=False)
    return found


def _graph(kind: Topology, peers: int, degree: int, seed: int) -> np.ndarray:
    if kind == "mesh":
        return np.ones((peers, peers), dtype=bool)
    if kind == "ring":
        steps = np.abs(np.subtract.outer(np.arange(peers), np.arange(peers)))
        return (steps <= 1) | (steps == peers - 1)
    return _regular(peers, degree, seed)


def check_degree(peers: int, degree: int) -> None:
    """Refuse a degree that no connected graph has.

    Raises:
        FedlogitError: saying which would be right.
    """
    if not 2 <= degree < peers or degree * peers % 2:
        even = ", an even one" if peers % 2 else ""
        raise FedlogitError(
            f"degree = {degree}: no connected graph of {peers} peers has it; give one from 2 to"
            f" {peers - 1}{even}"
        )


def _regular(peers: int, degree: int, seed: int) -> np.ndarray:
    check_degree(peers, degree)
    import networkx as nx  # PyTorch's own dependency; half a second that few runs need

    for attempt in range(_TRIES):
        graph = nx.random_regular_graph(degree, peers, derive(seed, "topology", attempt) % 2**32)
        if nx.is_connected(graph):
            edges = nx.to_numpy_array(graph, nodelist=range(peers)) > 0
            return edges | np.eye(peers, dtype=bool)
    raise FedlogitError(f"degree = {degree}: no connected graph of {peers} peers in {_TRIES} draws")
