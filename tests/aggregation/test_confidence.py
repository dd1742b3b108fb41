"""Entropies, weights and class-wise confidence, by hand."""

import math

import torch
from support.logits import logs

from fedlogit.aggregation.confidence import class_confidence, entropies, entropy_weights, mixture


def test_entropies_in_nats():
    # A fair coin has log 2; (1/4, 3/4) has 1/4 log 4 + 3/4 log 4/3 = 0.5623; certainty has 0.
    found = entropies(logs([[0.5, 0.5], [0.25, 0.75], [1 - 1e-7, 1e-7]]))[0]
    assert torch.allclose(found[:2], torch.tensor([math.log(2), 0.562335], dtype=torch.float64))
    assert found[2] < 1e-5


def test_weights_sum_to_one_and_are_uniform_for_equal_entropies():
    # Entropies log 2 and 0: exp(-log 2) = 1/2 and 1, so the weights are 1/3 and 2/3.
    weights = entropy_weights(torch.stack([logs([0.5, 0.5]), torch.tensor([[50.0, 0.0]])]))
    assert torch.allclose(weights[:, 0], torch.tensor([1 / 3, 2 / 3], dtype=torch.float64))
    # The same distribution with its classes exchanged has the same entropy.
    equal = entropy_weights(torch.stack([logs([0.2, 0.8]), logs([0.8, 0.2])]))
    assert torch.allclose(equal, torch.full((2, 1), 0.5, dtype=torch.float64))


def test_class_confidence_is_the_mean_probability():
    found = class_confidence(logs([[0.2, 0.8], [0.6, 0.4]]))
    assert torch.allclose(found, torch.tensor([[0.4, 0.6]], dtype=torch.float64))


def test_mixture():
    # 0.25 (0.2, 0.8) + 0.75 (0.6, 0.4) = (0.5, 0.5)
    logits = torch.stack([logs([0.2, 0.8]), logs([0.6, 0.4])])
    found = mixture(logits, torch.tensor([[0.25], [0.75]]))
    assert torch.allclose(found, torch.tensor([[0.5, 0.5]], dtype=torch.float64))
