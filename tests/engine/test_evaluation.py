"""Scores on the test split, by hand."""

import numpy as np
import pytest
import torch

from fedlogit.engine.evaluation import count_correct, score


def test_scores_by_hand():
    # Class 0 right 2 of 3, class 1 right 1 of 1, class 2 absent. The true class has these p:
    p = torch.tensor([0.5, 0.5, 0.25, 0.5])
    labels = torch.tensor([0, 0, 0, 1])
    logits = torch.tensor([[2, 1, 1], [2, 1, 1], [1, 2, 1], [1, 2, 1]]).double().div(4).log()
    assert torch.equal(logits.exp().gather(1, labels[:, None])[:, 0].float(), p)
    one, two = count_correct(logits[:3], labels[:3]), count_correct(logits[3:], labels[3:])
    both = one + two
    assert both.hits.tolist() == [2, 1, 0]
    assert both.totals.tolist() == [3, 1, 0]
    scores = score([both])
    assert scores.per_client.tolist() == [0.75]
    assert scores.balanced.tolist() == [pytest.approx((2 / 3 + 1) / 2)]
    assert scores.per_class[:2].tolist() == [pytest.approx(2 / 3), 1.0]
    assert np.isnan(scores.per_class[2])
    assert scores.row()["accuracy_std"] == 0.0
    # Perplexity: (1/2 · 1/2 · 1/4 · 1/2)^(-1/4) = 32^(1/4); its logarithm is the mean loss.
    assert scores.row()["perplexity"] == pytest.approx(32**0.25)
    assert scores.row()["loss_test"] == pytest.approx(np.log(32) / 4)
