"""Robust averages and attacks, with numbers derived by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedlogit.adversaries import Adversaries
from fedlogit.aggregation.attacks import false_logits, false_soft_labels, false_votes
from fedlogit.aggregation.average import average_probabilities
from fedlogit.aggregation.robust import (
    effective_rule,
    normalise_rows,
    robust_average,
    trimmed_count,
)
from fedlogit.aggregation.votes import margin, soft_labels
from fedlogit.errors import FedlogitError

# Five peers, one probe, three classes; the last says 10 where others say at most 1.
CLAIMS = torch.tensor(
    [[0.6, 0.4, 0.0], [0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.7, 0.3, 0.0], [0.0, 0.0, 10.0]]
)[:, None]


def test_the_mean_follows_a_liar_of_sufficient_magnitude():
    # Sums 2.6, 1.1, 10.3 of 14.
    assert robust_average(CLAIMS, "mean")[0].tolist() == pytest.approx(
        [2.6 / 14, 1.1 / 14, 10.3 / 14]
    )


def test_the_trimmed_mean_leaves_out_one_of_five_at_each_end():
    # Class 0: .5 .6 .7 left, 0 and .8 out: .6; class 1: .1 .3 .3: .7/3; class 2: 0 .1 .2: .1.
    kept = torch.tensor([0.6, 0.7 / 3, 0.1])
    assert torch.allclose(robust_average(CLAIMS, "trimmed_mean", 0.2)[0], kept / kept.sum())


def test_the_median():
    # .6, .3, .1, which happen to sum to 1; of four peers the mean of the middle two.
    assert robust_average(CLAIMS, "median")[0].tolist() == pytest.approx([0.6, 0.3, 0.1])
    four = robust_average(CLAIMS[:4], "median")[0]
    kept = torch.tensor([0.65, 0.3, 0.05])
    assert torch.allclose(four, kept / kept.sum())


def test_peers_that_leave_nothing_are_silent_and_not_nan():
    three = torch.eye(3)[:, None]  # each names another class: no class has a median above 0
    assert robust_average(three, "median")[0].tolist() == [0, 0, 0]


def test_a_trimmed_mean_that_leaves_nobody_is_refused():
    assert [trimmed_count(n, 0.4) for n in (1, 2, 5, 10)] == [0, 0, 2, 4]
    assert trimmed_count(100, 0.29) == 29  # the product is a hair below
    with pytest.raises(FedlogitError, match=r"trim = 0\.5: leaves none of 4 peers"):
        trimmed_count(4, 0.5)


@pytest.mark.parametrize(
    ("peers", "trim", "rule"),
    [
        (10, 0.4, "median"),
        (5, 0.4, "median"),
        (4, 0.3, "median"),
        (10, 0.05, "mean"),
        (10, 0.2, "trimmed_mean"),
        (10, 0.3, "trimmed_mean"),
        (5, 0.2, "trimmed_mean"),
    ],
)
def test_what_a_trimmed_mean_is_with_so_many_peers(peers, trim, rule):
    claims = torch.rand(peers, 7, 4, generator=torch.Generator().manual_seed(peers)).softmax(-1)
    found = {r: robust_average(claims, r, trim) for r in ("mean", "trimmed_mean", "median")}
    alike = {r for r in found if torch.allclose(found[r], found["trimmed_mean"], atol=1e-6)}
    assert alike == {"trimmed_mean", rule}
    assert effective_rule(peers, trim) == rule


def test_each_probe_is_normalised_by_itself():
    claims = torch.tensor([[[1.0, 3.0], [0.5, 0.5]], [[1.0, 1.0], [2.0, 0.0]]])  # two peers
    # Probe 0: means 1 and 2 of 3; probe 1: 1.25 and .25 of 1.5.
    wanted = [pytest.approx([1 / 3, 2 / 3]), pytest.approx([5 / 6, 1 / 6])]
    assert robust_average(claims, "mean").tolist() == wanted
    assert robust_average(claims, "median").tolist() == wanted  # of two peers the same


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e-38, 1e-44])
def test_the_smallest_rows_are_normalised_too(size):
    rows = torch.tensor([[1.0, 3.0], [0.0, 0.0]]) * size
    wanted = rows[0].double() / rows[0].double().sum()  # 1e-44 is 7 times the least float32
    assert normalise_rows(rows).tolist() == [pytest.approx(wanted.tolist()), [0, 0]]


@given(st.integers(3, 9), st.integers(0, 2**31))
def test_a_majority_that_agrees_wins_the_tally_against_any_lie(peers, seed):
    """TallyTrain, appendix J: fewer than half of the peers cannot turn a vote."""
    generator = torch.Generator().manual_seed(seed)
    adversaries = (peers - 1) // 2
    drawn = torch.randint(5, (adversaries, 2), generator=generator)
    honest = torch.nn.functional.one_hot(torch.tensor([4, 1]), 5).float()
    claims = honest.expand(peers, 2, 5).clone()
    for attack in ("random", "colluding", "confident"):
        told = false_soft_labels(claims, adversaries, attack, drawn, 1.0)
        assert robust_average(told, "mean").argmax(-1).tolist() == [4, 1]
        assert robust_average(told, "median").argmax(-1).tolist() == [4, 1]


def test_lies_by_hand():
    logits = torch.tensor([[[3.0, 0, 0]], [[3.0, 0, 0]], [[0, 3.0, 0]], [[0, 0, 3.0]]])
    claims = torch.nn.functional.one_hot(logits.argmax(-1), 3).float()
    drawn = torch.tensor([[0], [2]])
    named = {
        attack: false_soft_labels(claims, 2, attack, drawn, 1.0).argmax(-1).tolist()
        for attack in ("colluding", "confident", "random")
    }
    assert named == {
        "colluding": [[0], [0], [1], [1]],
        "confident": [[0], [0], [2], [0]],
        "random": [[0], [0], [0], [2]],
    }
    scaled = false_soft_labels(claims, 1, "confident", drawn, magnitude=9.0)
    assert scaled[3].tolist() == [[9.0, 0, 0]]


def test_false_votes_by_hand():
    # Three honest peers, two adversaries, three probes, four classes. The plurality of the honest
    # is 0, 3, 1 (of all, the last were 2), so those who collude name 1, 0, 2; the confident name
    # what follows their own.
    votes = torch.tensor([[0, 3, 1], [0, 3, 2], [2, 1, 1], [3, 0, 2], [1, 2, 2]])
    drawn = torch.zeros(2, 3, dtype=torch.int64)
    told = {a: false_votes(votes, 4, 2, a, drawn) for a in ("colluding", "confident")}
    assert told["colluding"][3:].tolist() == [[1, 0, 2], [1, 0, 2]]
    assert told["confident"][3:].tolist() == [[0, 1, 3], [2, 3, 3]]
    assert all(torch.equal(found[:3], votes[:3]) for found in told.values())


def test_random_votes_are_those_drawn():
    votes, drawn = torch.zeros(3, 4, dtype=torch.int64), torch.tensor([[3, 1, 0, 2], [1, 1, 2, 0]])
    assert false_votes(votes, 4, 2, "random", drawn).tolist() == [[0] * 4, *drawn.tolist()]


def test_soft_labels_are_what_the_average_averages():
    logits = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(soft_labels(logits, "probabilities").mean(0), average_probabilities(logits))


def test_margin_of_a_tally():
    assert margin(torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.5, 0.0]])).tolist() == pytest.approx(
        [0.2, 0.0]
    )


def test_margin_where_samples_have_positions():
    shares = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9], [0.25, 0.25, 0.5]])
    assert margin(shares.expand(2, 3, 3))[1].tolist() == pytest.approx([0.2, 0.8, 0.25])


def test_loud_logits_are_those_of_the_class_before_times_their_magnitude():
    loud = Adversaries(share=0.5, attack="loud_logits", magnitude=10.0)
    said = false_logits(torch.tensor([[1.0, 2.0, 3.0]]), loud, torch.Generator())
    assert said.tolist() == [[30.0, 10.0, 20.0]]  # class 2, the largest, became class 0
