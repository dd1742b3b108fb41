"""Topology: which peers are connected, and what that costs."""

import numpy as np
import pytest
import torch

from fedlogit.errors import FedlogitError
from fedlogit.federation import Ledger
from fedlogit.federation.topology import adjacency


def test_a_ring_by_hand():
    assert adjacency("ring", 4, 4, 0).astype(int).tolist() == [
        [1, 1, 0, 1],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ]
    assert adjacency("ring", 3, 4, 0).all()
    assert adjacency("ring", 2, 4, 0).all()


@pytest.mark.parametrize(("peers", "degree"), [(10, 4), (9, 2), (10, 3), (6, 5)])
def test_a_regular_graph_is_connected_and_everybody_has_as_many_neighbours(peers, degree):
    heard = adjacency("regular", peers, degree, 0)
    assert (heard == heard.T).all()
    assert heard.diagonal().all()
    assert (heard.sum(1) == degree + 1).all()
    assert (np.linalg.matrix_power(heard.astype(int), peers) > 0).all()


def test_seeds_draw_graphs():
    one, again, other = (adjacency("regular", 10, 4, seed) for seed in (0, 0, 1))
    assert (one == again).all()
    assert (one != other).any()


def test_nobody_changes_a_graph_that_others_have():
    with pytest.raises(ValueError, match="read-only"):
        adjacency("mesh", 4, 4, 0)[0, 1] = False


@pytest.mark.parametrize(
    ("peers", "degree", "said"),
    [
        (5, 3, "degree = 3: no connected graph of 5 peers has it; give one from 2 to 4, an even"),
        (4, 4, "degree = 4: no connected graph of 4 peers has it; give one from 2 to 3"),
        (4, 1, "degree = 1"),
    ],
)
def test_a_degree_that_no_graph_has(peers, degree, said):
    with pytest.raises(FedlogitError, match=said):
        adjacency("regular", peers, degree, 0)


def test_bytes_follow_the_links():
    votes = torch.empty(10, 16, dtype=torch.uint8)
    sent = {}
    for kind in ("mesh", "ring", "regular"):
        heard, ledger = adjacency(kind, 10, 4, 0), Ledger()
        ledger.exchange("votes", votes, links=int(heard.sum()) - 10)
        sent[kind] = ledger.totals()["up"]["votes"] / 10
    assert sent == {"mesh": 9 * 16, "ring": 2 * 16, "regular": 4 * 16}
