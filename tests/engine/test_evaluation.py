"""Scores on the test split, by hand."""

import numpy as np
import pytest
import torch

from fedlogit.engine import device_data, evaluation
from fedlogit.engine.evaluation import (
    EvalCounts,
    count_correct,
    personalized_accuracy,
    score,
)
from fedlogit.engine.transforms import normalise


def test_scores_by_hand():
    # Class 0 right 2 of 3, class 1 right 1 of 1, class 2 absent. The true class has these p:
    p = torch.tensor([0.5, 0.5, 0.25, 0.5])
    labels = torch.tensor([0, 0, 0, 1])
    logits = torch.tensor([[2, 1, 1], [2, 1, 1], [1, 2, 1], [1, 2, 1]]).double().div(4).log()
    assert torch.equal(logits.exp().gather(1, labels[:, None])[:, 0].float(), p)
    (one,), (two,) = (count_correct(logits[None, i], labels[i]) for i in (slice(3), slice(3, 4)))
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


def test_scores_of_two_models_are_averaged_and_their_spread_is_the_populations():
    # Four samples of classes 0, 0, 0, 1. One model says 0 always, with p = 1/2; the other says
    # 0, 1, 1, 1 and is as sure of it.
    labels = torch.tensor([0, 0, 0, 1])
    said = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]])
    logits = (1 + torch.nn.functional.one_hot(said, 3)).double().log()
    scores = score(count_correct(logits, labels))
    assert scores.per_client.tolist() == [0.75, 0.5]
    assert scores.balanced.tolist() == pytest.approx([0.5, (1 / 3 + 1) / 2])
    assert scores.per_class[:2].tolist() == pytest.approx([2 / 3, 0.5])
    row = scores.row()
    assert (row["accuracy"], row["accuracy_std"]) == (0.625, 0.125)
    assert (row["accuracy_min"], row["accuracy_max"]) == (0.5, 0.75)
    assert row["balanced_accuracy"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    # A right answer costs log 2 and a wrong one log 4; the first model has 3 right, the second 2.
    losses = np.array([3 + 2, 2 + 2 * 2]) * np.log(2) / 4
    assert row["loss_test"] == pytest.approx(losses.mean())
    assert row["perplexity"] == pytest.approx(np.exp(losses).mean())
    # Each bin has all four of a model: 3/4 and 2/4 are right where it is sure by 1/2.
    assert scores.ece.tolist() == pytest.approx([0.25, 0.0])


def test_personalized_accuracy_by_hand():
    # Three quarters of the first client's samples are of class 0; the second has class 1 alone.
    counts = np.array([[30, 10, 0], [0, 20, 0]])
    recall = np.array([[0.8, 0.4, 0.0], [0.1, 0.5, 0.0]])
    first, second = 0.75 * 0.8 + 0.25 * 0.4, 0.5
    assert personalized_accuracy(recall, counts) == pytest.approx((first + second) / 2)
    # One model for both:
    assert personalized_accuracy(recall[:1], counts) == pytest.approx((first + 0.4) / 2)


def test_personalized_accuracy_leaves_out_classes_without_test_samples():
    recall = np.array([[0.8, np.nan], [0.6, np.nan]])
    assert personalized_accuracy(recall, np.array([[10, 90], [0, 5]])) == pytest.approx(0.8)
    assert np.isnan(personalized_accuracy(recall, np.array([[0, 1], [0, 5]])))


def test_calibration_by_hand():
    # Confidence 1/2 twice, one right: no gap. 0.9, right, and 0.8, wrong, are in other bins of 15:
    # (0.1 + 0.8) / 4.
    p = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.9, 0.1, 1e-9], [0.1, 0.8, 0.1]])
    scores = score(count_correct(p.double().log()[None], torch.tensor([0, 1, 0, 0])))
    assert scores.row()["ece"] == pytest.approx((0.1 + 0.8) / 4)


def test_a_bin_has_its_upper_end():
    # Confidence 1/3, right, and 0.3, wrong, are both above 4/15 and at most 5/15.
    p = torch.tensor([[1, 1, 1, 1e-30, 1e-30], [0.9, 0.6, 0.6, 0.6, 0.3]]) / 3
    scores = score(count_correct(p.double().log()[None], torch.tensor([0, 1])))
    assert scores.row()["ece"] == pytest.approx((2 / 3 - 0.3) / 2)


def test_the_last_two_bins_are_apart():
    # 0.95, right, is above 14/15, and 0.9, wrong, is below.
    p = torch.tensor([[0.95, 0.05], [0.1, 0.9]])
    scores = score(count_correct(p.double().log()[None], torch.tensor([0, 0])))
    assert scores.row()["ece"] == pytest.approx((0.05 + 0.9) / 2)


def in_bins(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """Compute the error as Guo et al. write it: a loop over bins, of means."""
    p, predicted = logits.softmax(1).max(1)
    error = 0.0
    for m in range(15):
        inside = (p > m / 15) & (p <= (m + 1) / 15)
        if inside.any():
            accuracy = (predicted == labels)[inside].double().mean()
            error += inside.double().mean() * abs(accuracy - p[inside].mean())
    return float(error)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 100.0])
def test_calibration_is_that_of_a_loop_over_bins_also_in_parts(scale):
    logits = scale * torch.randn(500, 7, generator=torch.Generator().manual_seed(1))
    # Every other answer is right, so that little confidence is too little and much is too much:
    # where all gaps had one sign, their sum would not depend on the bins.
    labels = torch.where(torch.arange(500) % 2 == 0, logits.argmax(1), torch.arange(500) % 7)
    parts = [count_correct(logits[None, i], labels[i])[0] for i in (slice(99), slice(99, None))]
    whole: EvalCounts = parts[0] + parts[1]
    assert score([whole]).ece[0] == pytest.approx(in_bins(logits.double(), labels), abs=1e-5)


def test_a_model_that_is_always_sure_and_right_has_no_calibration_error():
    labels = torch.arange(20) % 4
    logits = 1000.0 * torch.nn.functional.one_hot(labels, 4)
    assert score(count_correct(logits[None], labels)).ece[0] == 0
    assert score(count_correct(-logits[None], labels)).ece[0] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("positions", [(), (6,)])
def test_models_are_counted_together_as_one_by_one_and_lose_what_pytorch_says(
    monkeypatch, positions
):
    generator = torch.Generator().manual_seed(2)
    logits = 4 * torch.randn(3, 50, *positions, 5, generator=generator)
    labels = torch.randint(0, 5, (50, *positions), generator=generator)
    together = count_correct(logits, labels)
    monkeypatch.setattr(evaluation, "_AT_ONCE", 1)
    for one, found, own in zip(together, count_correct(logits, labels), logits, strict=True):
        expected = torch.nn.functional.cross_entropy(
            own.double().flatten(0, -2), labels.flatten(), reduction="sum"
        )
        assert one.loss == pytest.approx(float(expected), rel=1e-6)
        assert one.hits.sum() == (own.argmax(-1) == labels).sum()
        assert one.totals.tolist() == labels.flatten().bincount(minlength=5).tolist()
        for name in ("hits", "totals", "loss", "gaps"):
            assert torch.allclose(getattr(one, name), getattr(found, name), rtol=1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_no_number_leaves_no_finite_loss(wrong):
    logits = torch.zeros(1, 2, 3)
    logits[0, 0, 1] = wrong
    assert not count_correct(logits, torch.tensor([1, 0]))[0].loss.isfinite()


def test_test_images_are_normalised_once_but_for_a_model_that_writes_into_them(federation):
    data, part = federation().data, slice(0, 50)
    wanted = normalise(data.x_test[part], data.mean, data.std)
    first = data.test_inputs(part)
    assert data.test_inputs(part) is first
    assert torch.equal(first, wanted)
    first.relu_()
    assert torch.equal(data.test_inputs(part), wanted)


def test_a_large_test_set_is_normalised_anew(federation, monkeypatch):
    data, part = federation().data, slice(0, 50)
    monkeypatch.setattr(device_data, "_LARGEST_KEPT", 4 * data.x_test.numel() - 1)
    assert data.test_inputs(part) is not data.test_inputs(part)
