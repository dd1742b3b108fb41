"""Clients that are strong in the same classes are in one group."""

import numpy as np
import torch

from fedlogit.aggregation.client_groups import similar_clients

ROWS = torch.tensor([[0.9, 0.1, 0], [0, 0.2, 0.8], [0.8, 0.2, 0], [0.1, 0.1, 0.8]])


def test_groups_by_hand():
    """Clients 0 and 2 have the first class, 1 and 3 the last."""
    assert similar_clients(ROWS, 2, np.random.default_rng(0)) == [[0, 2], [1, 3]]


def test_no_more_groups_than_different_clients():
    assert similar_clients(ROWS[[0, 0, 1]], 3, np.random.default_rng(0)) == [[0, 1], [2]]
    assert similar_clients(ROWS[:1], 5, np.random.default_rng(0)) == [[0]]
