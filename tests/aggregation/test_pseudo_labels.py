"""FedOL's votes and baselines, with numbers derived by hand."""

import pytest
import torch
from support.logits import logs

from fedlogit.aggregation.pseudo_labels import entropy_baselines, pseudo_labels, weighted_votes
from fedlogit.methods.fedol import FedOL


def test_baseline_is_the_kth_smallest_entropy():
    uncertainty = torch.tensor([[0.4, 0.1, 0.3, 0.2, 0.5]])
    # ⌈0.1 · 5⌉ = 1, ⌈0.4 · 5⌉ = 2, ⌈0.41 · 5⌉ = 3, ⌈1 · 5⌉ = 5
    for ratio, wanted in ((0.1, 0.1), (0.4, 0.2), (0.41, 0.3), (1.0, 0.5)):
        assert entropy_baselines(uncertainty, ratio).item() == pytest.approx(wanted)


def test_baseline_is_not_moved_by_rounding():
    """0.15 · 20 is 3.0000000000000004 in binary; its ceiling must be 3."""
    uncertainty = torch.arange(20.0)[None]
    assert entropy_baselines(uncertainty, 0.1 + 0.05).item() == 2.0


def test_votes_of_two_models():
    # C² = (0.7, 0.3) and (0.2, 0.8); model 0 says class 0, model 1 says class 1.
    confidence = torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    both = torch.ones(2, 1, dtype=torch.bool)
    found = weighted_votes(torch.tensor([[0], [1]]), both, confidence, negative=True)
    # G_0 = (0.7 - 0.2) / 0.9, G_1 = (0.8 - 0.3) / 1.1
    assert found[0].tolist() == pytest.approx([0.5 / 0.9, 0.5 / 1.1])
    # Equal to 2 P_c - 1 with P_c the share that voted for c: 2 · 0.7 / 0.9 - 1.
    assert found[0, 0].item() == pytest.approx(2 * 0.7 / 0.9 - 1)
    # Without rejections the larger weight wins instead: 0.7 against 0.8.
    plain = weighted_votes(torch.tensor([[0], [1]]), both, confidence, negative=False)
    assert plain[0].tolist() == pytest.approx([0.7, 0.8])


def test_votes_lie_between_minus_one_and_one_and_skip_the_unsure():
    confidence = torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    only_second = torch.tensor([[False], [True]])
    found = weighted_votes(torch.tensor([[0], [1]]), only_second, confidence, negative=True)
    assert found[0].tolist() == pytest.approx([-1, 1])


def test_one_client_with_full_ratio_labels_everything_itself():
    logits = torch.randn(1, 30, 5, generator=torch.Generator().manual_seed(0))
    confidence = logits.softmax(-1).mean(1)
    assert torch.equal(pseudo_labels(logits, confidence, 1.0), logits[0].argmax(1))


def test_a_sample_without_a_voter_has_no_label():
    # Ten samples of falling certainty; with ρ = 0.1 only the first may be voted on.
    tops = torch.linspace(0.95, 0.55, 10)
    logits = torch.stack([tops, 1 - tops], 1).log()[None]
    found = pseudo_labels(logits, torch.tensor([[0.5, 0.5]]), 0.1)
    assert found.tolist() == [0] + [-1] * 9


def test_ties_go_to_the_lowest_class():
    logits = torch.stack([logs([0.1, 0.8, 0.1]), logs([0.8, 0.1, 0.1])])
    confidence = torch.full((2, 3), 1 / 3)
    assert pseudo_labels(logits, confidence, 1.0).tolist() == [0]


def test_a_class_without_a_vote_is_never_chosen():
    # One model says class 1, one class 2; of class 0, which neither predicts, they know nothing.
    logits = torch.stack([logs([0.1, 0.6, 0.3]), logs([0.1, 0.3, 0.6])])
    weak = torch.tensor([[1e-30, 0.30, 0.70], [1e-30, 0.65, 0.35]])
    # G_1 = (0.30 - 0.65) / 0.95 = -0.37 and G_2 = (0.35 - 0.70) / 1.05 = -0.33.
    assert pseudo_labels(logits, weak, 1.0).tolist() == [2]


@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_votes_of_next_to_no_weight_still_beat_none(unknown):
    logits = torch.stack([logs([0.1, 0.6, 0.3]), logs([0.1, 0.3, 0.6])])
    # G_1 = G_2 = (1e-20 - 1) / (1 + 1e-20), which is -1 to the last bit, as is G_0 without a vote.
    weak = torch.tensor([[unknown, 1e-20, 1.0], [unknown, 1.0, 1e-20]])
    assert pseudo_labels(logits, weak, 1.0).tolist() == [1]


def test_a_class_of_no_weight_has_the_least_score():
    everybody = torch.ones(1, 1, dtype=torch.bool)
    found = weighted_votes(
        torch.tensor([[1]]), everybody, torch.tensor([[0.0, 1.0]]), negative=True
    )
    assert found.tolist() == [[-1.0, 1.0]]


def test_a_label_weighs_rejections_unless_told_otherwise():
    # The votes of test_votes_of_two_models: G is (0.56, 0.45), and without rejections (0.7, 0.8).
    logits = torch.stack([logs([0.9, 0.1]), logs([0.1, 0.9])])
    confidence = torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    assert pseudo_labels(logits, confidence, 1.0).tolist() == [0]
    assert pseudo_labels(logits, confidence, 1.0, negative=False).tolist() == [1]


def test_one_voter_is_enough():
    # With ρ = 1/2 the first model may vote on the first sample only, the second on the second.
    logits = torch.stack([logs([0.1, 0.9], [0.6, 0.4]), logs([0.4, 0.6], [0.9, 0.1])])
    assert pseudo_labels(logits, torch.full((2, 2), 0.5), 0.5).tolist() == [1, 0]


def test_votes_of_three_models_sample_by_sample():
    confidence = torch.tensor([[0.5, 0.5], [0.8, 0.2], [0.4, 0.6]])
    predicted = torch.tensor([[0, 1], [0, 1], [1, 0]])
    voters = torch.tensor([[True, True], [True, False], [True, True]])
    found = weighted_votes(predicted, voters, confidence, negative=True)
    # Sample 0: ((0.5 + 0.8 - 0.4) / 1.7, (0.6 - 0.5 - 0.2) / 1.3); sample 1 without model 1.
    assert found[0].tolist() == pytest.approx([0.9 / 1.7, -0.1 / 1.3])
    assert found[1].tolist() == pytest.approx([-0.1 / 0.9, -0.1 / 1.1])


def test_the_papers_settings():
    method = FedOL()
    assert (method.iterations, method.trade_off) == (10, 0.2)
    assert (method.first_ratio, method.ratio_step) == (0.1, 0.05)
    assert (method.negative, method.curriculum) == (True, True)
    assert (method.votes, method.mixture) == ("confidence", "entropy")


def test_from_the_second_iteration_the_server_votes():
    # Of one sample C² is the prediction itself: (0.6, 0.4), and the server's (0.45, 0.55).
    client, server = logs([0.6, 0.4])[None], logs([0.45, 0.55])
    method = FedOL(first_ratio=1.0)
    assert method.labels(client, None, 1).tolist() == [0]
    # G_0 = (0.6 - 0.45) / 1.05 = 0.143, G_1 = (0.55 - 0.4) / 0.95 = 0.158.
    assert method.labels(client, server, 2).tolist() == [1]


def test_votes_that_count_alike_tie():
    two = torch.stack([logs([0.6, 0.4]), logs([0.45, 0.55])])
    assert FedOL(first_ratio=1.0).labels(two, None, 1).tolist() == [1]
    assert FedOL(first_ratio=1.0, votes="equal").labels(two, None, 1).tolist() == [0]


def test_switches_reach_the_votes():
    # G is (0.56, 0.45) as in test_votes_of_two_models, and without rejections (0.7, 0.8).
    two = torch.stack([logs([0.7, 0.3]), logs([0.2, 0.8])])
    assert FedOL(first_ratio=1.0).labels(two, None, 1).tolist() == [0]
    assert FedOL(first_ratio=1.0, negative=False).labels(two, None, 1).tolist() == [1]


def test_a_later_iteration_labels_more():
    # Ten samples of falling certainty: ρ is 0.1 at first and 0.3 in the fifth iteration.
    tops = torch.linspace(0.95, 0.55, 10)
    logits = torch.stack([tops, 1 - tops], 1).log()[None]
    for iteration, known in ((1, 1), (5, 3)):
        found = FedOL().labels(logits, None, iteration)
        assert (found >= 0).sum() == known


def test_ratio_grows_by_steps_and_stops_at_one():
    method = FedOL()
    assert [round(method.ratio(t), 2) for t in (1, 2, 10)] == [0.1, 0.15, 0.55]
    assert FedOL(curriculum=False).ratio(1) == pytest.approx(0.55)
    assert FedOL(ratio_step=0.3).ratio(10) == 1.0


def test_objective_adds_the_pseudo_label():
    # One client with p = (0.6, 0.4) and ρ = 1: ŷ = (1, 0), τ = 0.2, so the weighted target is
    # (0.6 + 0.2, 0.4), weight 1.2 and distribution (2/3, 1/3).
    targets = FedOL(first_ratio=1.0).targets(logs([[0.6, 0.4]]))
    assert targets.weights.tolist() == pytest.approx([1.2])
    assert targets.distributions[0].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert targets.weighted()[0].tolist() == pytest.approx([0.8, 0.4])


def test_the_objective_mixes_clients_by_entropy_and_adds_votes_where_there_are_some():
    # Entropies log 2 and 0, so λ = (1/3, 2/3) and the mixture is (0.5 + 2) / 3 = 5/6 for class 0.
    logits = torch.stack([logs([0.5, 0.5]), torch.tensor([[60.0, 0.0]])])
    method = FedOL(trade_off=0.5)
    for label, weight, first in ((0, 1.5, 5 / 6 + 0.5), (1, 1.5, 5 / 6), (-1, 1.0, 5 / 6)):
        target = method._objective(logits, torch.tensor([label]))
        assert target.weights.tolist() == pytest.approx([weight])
        assert target.weighted()[0, 0].item() == pytest.approx(first)
        assert target.distributions.sum().item() == pytest.approx(1)
    even = FedOL(trade_off=0.5, mixture="equal")._objective(logits, torch.tensor([-1]))
    assert even.weighted()[0].tolist() == pytest.approx([0.75, 0.25])


def test_without_trade_off_the_objective_is_fedhkts():
    from fedlogit.methods.fedhkt import FedHKT

    logits = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(1))
    mine = FedOL(trade_off=0.0).targets(logits)
    assert torch.allclose(mine.weighted(), FedHKT().targets(logits))
