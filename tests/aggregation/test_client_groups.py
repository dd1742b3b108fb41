"""Clients that are strong in the same classes are in one group."""

import numpy as np
import torch

from fedlogit.aggregation.client_groups import similar_clients

ROWS = torch.tensor([[0.9, 0.1, 0], [0, 0.2, 0.8], [0.8, 0.2, 0], [0.1, 0.1, 0.8]])


def test_groups_by_hand():
    """Clients 0 and 2 have the first class, 1 and 3 the last."""
    assert similar_clients(ROWS, 2, np.random.default_rng(0)) == [[0, 2], [1, 3]]


def test_of_ten_starts_the_best_end_counts():
    """Of these sixteen clients in no clear groups, single starts of eight seeds end in six ways."""
    rows = torch.as_tensor(np.random.default_rng(1).dirichlet(np.ones(3), 16).round(2))
    first, *others = (similar_clients(rows, 5, np.random.default_rng(seed)) for seed in range(8))
    assert others == [first] * 7
    apart = sum(float((rows[group] - rows[group].mean(0)).square().sum()) for group in first)
    assert apart < 0.308, "the next best ends at 0.321"


def test_no_more_groups_than_different_clients():
    assert similar_clients(ROWS[[0, 0, 1]], 3, np.random.default_rng(0)) == [[0, 1], [2]]
    assert similar_clients(ROWS[:1], 5, np.random.default_rng(0)) == [[0]]
