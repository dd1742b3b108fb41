"""The mean of logits, and aggregators that must learn whom to believe."""

import pytest
import torch

from fedlogit.aggregation import meta_model
from fedlogit.aggregation.average import average_logits, average_probabilities
from fedlogit.aggregation.meta_model import features, fit_and_predict


def test_average_by_hand():
    logits = torch.tensor([[[1.0, 3.0]], [[5.0, -1.0]]])
    assert average_logits(logits).tolist() == [[3.0, 1.0]]


def test_average_of_probabilities_by_hand():
    # Point 0: softmax (log 3, 0) = (3/4, 1/4) and (0, 0) = (1/2, 1/2); point 1: (1/2, 1/2) twice.
    logits = torch.tensor([[[3.0, 1.0], [2.0, 2.0]], [[1.0, 1.0], [5.0, 5.0]]]).log()
    found = average_probabilities(logits)
    assert found.tolist() == [pytest.approx([0.625, 0.375]), pytest.approx([0.5, 0.5])]


def test_features_put_clients_side_by_side():
    logits = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]])
    assert features(logits).tolist() == [[1, 2, 3, 4, 5, 6]]


def liar_and_truth(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Client 0 shouts a random class, client 1 whispers the right one."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (n,), generator=generator)
    noise = torch.randint(0, 3, (n,), generator=generator)
    one_hot = torch.nn.functional.one_hot
    return torch.stack([10.0 * one_hot(noise, 3), 1.0 * one_hot(labels, 3)]), labels


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "forest", "boosting"])
def test_an_aggregator_learns_whom_to_believe(kind):
    known, labels = liar_and_truth(600, seed=0)
    wanted, truth = liar_and_truth(200, seed=1)
    assert (average_logits(wanted).argmax(1) == truth).float().mean() < 0.5
    p = fit_and_predict(kind, known, labels, wanted, classes=3, seed=0)
    assert p.shape == (200, 3)
    assert torch.allclose(p.sum(1), torch.ones(200), atol=1e-5)
    assert (p.argmax(1) == truth).float().mean() > 0.95


def test_of_a_handful_of_samples_one_is_held_out(monkeypatch):
    """Without one there is no loss to wait for, and training ends as soon as patience does."""
    held_out, epoch = [], meta_model._epoch

    def counted(rows, *draws):
        held_out.append(9 - len(rows))
        return epoch(rows, *draws)

    monkeypatch.setattr(meta_model, "_epoch", counted)
    known, labels = liar_and_truth(9, seed=0)
    fit_and_predict("mlp", known, labels, known, classes=3, seed=0)
    assert set(held_out) == {1}
    assert len(held_out) > meta_model.PATIENCE


def test_of_a_single_sample_its_class_is_learnt():
    known, labels = liar_and_truth(1, seed=0)
    p = fit_and_predict("mlp", known, labels, known, classes=3, seed=0)
    assert p.argmax(1).tolist() == labels.tolist()


@pytest.mark.parametrize("kind", ["mlp", "forest", "boosting"])
def test_same_seed_same_bits_and_the_global_generator_is_left_alone(kind):
    known, labels = liar_and_truth(200, seed=0)
    wanted, _ = liar_and_truth(50, seed=1)
    before = torch.random.get_rng_state()
    a = fit_and_predict(kind, known, labels, wanted, classes=3, seed=5)
    b = fit_and_predict(kind, known, labels, wanted, classes=3, seed=5)
    assert torch.equal(a, b)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_class_nobody_labelled_gets_probability_zero_from_trees():
    known, labels = liar_and_truth(200, seed=0)
    seen = labels != 2
    p = fit_and_predict("forest", known[:, seen], labels[seen], known, classes=3, seed=0)
    assert (p[:, 2] == 0).all()


@pytest.mark.parametrize("kind", ["mlp", "forest", "boosting"])
def test_a_prediction_does_not_depend_on_the_other_public_samples(kind):
    known, labels = liar_and_truth(200, seed=0)
    wanted, _ = liar_and_truth(50, seed=1)
    together = fit_and_predict(kind, known, labels, wanted, classes=3, seed=0)
    few = fit_and_predict(kind, known, labels, wanted[:, :5], classes=3, seed=0)
    assert torch.allclose(few, together[:5], atol=1e-6)


def test_a_feature_that_is_constant_on_labelled_samples_is_not_blown_up():
    known, labels = liar_and_truth(200, seed=0)
    wanted, truth = liar_and_truth(50, seed=1)
    # A third client, whose network is dead on the labelled samples and nearly so on the others.
    known = torch.cat([known, torch.full((1, 200, 3), -7.3)])
    wanted = torch.cat([wanted, torch.full((1, 50, 3), -7.31)])
    p = fit_and_predict("mlp", known, labels, wanted, classes=3, seed=0)
    assert (p.argmax(1) == truth).float().mean() > 0.9


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_trees_that_saw_one_class_are_sure_of_it(kind):
    known, labels = liar_and_truth(60, seed=0)
    seen = labels == 1
    p = fit_and_predict(kind, known[:, seen], labels[seen], known, classes=3, seed=0)
    assert p.tolist() == [[0, 1, 0]] * 60
