"""FedET's consensus, MinE's label, FedKT's votes, and what an aggregator may return."""

import math
import re

import pytest
import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.custom import load_function
from fedlogit.aggregation.fedet import consensus_with_diversity, variance_weights
from fedlogit.aggregation.hard_votes import consistent_votes, least_entropy, majority
from fedlogit.aggregation.targets import as_distributions, as_targets, one_hot_targets
from fedlogit.errors import FedlogitError
from fedlogit.methods.fedet import FedET

LOGITS = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))


def test_fedet_weighs_by_variance():
    # Population variances over classes: of (0, 2) it is 1, of (0, 4) it is 4.
    weights = variance_weights(torch.tensor([[[0.0, 2.0]], [[0.0, 4.0]]]))
    assert weights[:, 0].tolist() == pytest.approx([0.2, 0.8])
    near = variance_weights(torch.tensor([[[0.0, 0.2]], [[0.0, 0.4]]]))  # 0.01 and 0.04
    assert near[:, 0].tolist() == pytest.approx([0.2, 0.8])
    flat = variance_weights(torch.zeros(2, 1, 3))
    assert flat[:, 0].tolist() == [0.5, 0.5], "no variance anywhere: nobody is preferred"


def test_fedet_with_equal_variances_is_the_mean():
    logits = torch.stack([LOGITS[0], LOGITS[0].flip(1)])
    target = consensus_with_diversity(logits, 0.0)
    assert torch.equal(target.distributions.argmax(1), logits.mean(0).argmax(1))


def test_fedet_without_dissent_has_no_diversity_term():
    target = consensus_with_diversity(torch.tensor([[[3.0, 0.0]], [[2.0, 0.0]]]), 0.05)
    assert target.distributions.tolist() == [[1.0, 0.0]]
    assert target.weights.tolist() == [1.0]


def test_fedet_with_dissent():
    # Variances 4 and 1, so α = 0.8 and 0.2; consensus 0.8 (4, 0) + 0.2 (0, 2): class 0. Client 1
    # disagrees alone, so z_div = (0, 2) and σ(z_div)_1 = e² / (1 + e²).
    target = consensus_with_diversity(torch.tensor([[[4.0, 0.0]], [[0.0, 2.0]]]), 0.05)
    p = math.exp(2) / (1 + math.exp(2))
    assert target.weights.tolist() == pytest.approx([1.05])
    assert target.weighted()[0].tolist() == pytest.approx([1 + 0.05 * (1 - p), 0.05 * p])


def test_fedet_weighs_the_consensus_and_those_who_dissent():
    # Variances over two classes are 9, 1 and 4, half the difference squared: α = 9/14, 1/14, 4/14.
    # Consensus: class 0 has 9/14 · 6, class 1 has 1/14 · 2 + 4/14 · 4, so class 0.
    logits = torch.tensor([[[6.0, 0.0]], [[0.0, 2.0]], [[0.0, 4.0]]])
    target = consensus_with_diversity(logits, 0.5)
    # Clients 1 and 2 dissent with α̃ = 1/5 and 4/5, so z_div = (0, 0.4 + 3.2).
    p = 1 / (1 + math.exp(-3.6))
    assert target.weights.tolist() == pytest.approx([1.5])
    assert target.weighted()[0].tolist() == pytest.approx([1 + 0.5 * (1 - p), 0.5 * p])


def test_fedets_sure_client_outvotes_two():
    # α = 16/18, 1/18, 1/18: class 0 has 16/18 · 8, though two of three say class 1.
    logits = torch.tensor([[[8.0, 0.0]], [[0.0, 2.0]], [[0.0, 2.0]]])
    assert consensus_with_diversity(logits, 0.0).distributions.tolist() == [[1.0, 0.0]]


def test_fedets_published_regularisation():
    assert FedET().regularisation == 0.05


def test_mine_takes_the_surest():
    logits = torch.tensor([[[1.0, 0.0, 0.0]], [[0.0, 0.0, 9.0]]])
    assert least_entropy(logits).tolist() == [2]
    assert torch.equal(least_entropy(LOGITS[:1]), LOGITS[0].argmax(1)), "one client: its argmax"


def test_majority():
    assert majority(torch.tensor([[0, 1], [2, 1], [2, 0]]), 3).tolist() == [2, 1]
    assert majority(torch.tensor([[2], [1]]), 3).tolist() == [1], "a tie goes to the lowest"


def test_disagreeing_students_cast_no_vote():
    # Party 0 agrees on class 1 in the first sample; party 1's students disagree; party 2 agrees on
    # class 0 in the second sample.
    parties = torch.tensor([[[1, 2], [1, 1]], [[2, 1], [0, 2]], [[2, 0], [0, 0]]])
    assert consistent_votes(parties, 3, consistent=True).tolist() == [1, 0]
    # All six votes: sample 0 has 1 1 2 0 2 0, a tie; sample 1 has 2 1 1 2 0 0, another.
    assert consistent_votes(parties, 3, consistent=False).tolist() == [0, 0]
    nobody = torch.tensor([[[0], [1]]])
    assert consistent_votes(nobody, 3, consistent=True).tolist() == [-1]
    assert consistent_votes(torch.tensor([[[2]]]), 3, consistent=True).tolist() == [2], "one vote"


def test_hard_targets_leave_the_unlabelled_out():
    target = one_hot_targets(torch.tensor([2, -1]), 3)
    assert target.weights.tolist() == [1, 0]
    assert target.distributions[0].tolist() == [0, 0, 1]
    assert target.distributions[1].sum().item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("text", "returned str"),
        (torch.ones(7, 3) / 3, r"shape \(7, 3\)"),
        (torch.ones(7, 4), "public sample 0: smallest 1, sum 4"),
        (torch.full((7, 4), torch.nan), "public sample 0"),
        (torch.tensor([1.5, -0.5, 0, 0]).expand(7, 4), "smallest -0.5"),
        (Targets(torch.ones(7, 4) / 4, -torch.ones(7)), "weight -1"),
        (Targets(torch.ones(7, 4) / 4, torch.ones(6)), r"\(6,\) weights"),
        (Targets(torch.ones(7, 4) / 4, None), "Targets whose weights are NoneType; give a tensor"),
        (Targets([0.5], torch.ones(7)), "Targets whose distributions are list; give a tensor"),
        (torch.ones(7, 4, device="meta"), "distributions on meta; give them on cpu, as the logits"),
        (Targets(torch.ones(7, 4) / 4, torch.ones(7, device="meta")), "weights on meta; give them"),
        (torch.tensor(1.0), r"returned shape \(\) with \(\) weights; the logits ask for \(7, 4\)"),
    ],
)
def test_what_is_no_distribution_is_refused(found, said):
    with pytest.raises(FedlogitError, match=said) as error:
        as_targets(found, LOGITS, "mine:f")
    assert "mine:f" in str(error.value)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "aggregate returned a NoneType; give a tensor of shape (7, 4)"),
        (torch.ones(7, 3), "aggregate returned a Tensor of shape (7, 3); give a tensor"),
        (torch.ones(7, 4, device="meta"), "a tensor on meta; give one on cpu, as the logits are"),
        (torch.full((7, 4), torch.nan), "negative or not finite"),
        (LOGITS[0], "negative or not finite, and no distributions; take a softmax of logits"),
    ],
)
def test_what_cannot_be_a_soft_target_is_refused(found, said):
    with pytest.raises(FedlogitError, match=re.escape(said)):
        as_distributions(found, LOGITS, "mine")


def test_soft_targets_may_have_another_sum():
    assert torch.equal(as_distributions(torch.ones(7, 4), LOGITS, "mine"), torch.ones(7, 4))


def test_distributions_alone_count_one():
    assert as_targets(torch.ones(7, 4) / 4, LOGITS, "f").weights.tolist() == [1.0] * 7


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("median", "should be 'package.module:function'"),
        ("my-rules.median:median", "should be 'package.module:function'"),
        ("no_such_package:f", "cannot be imported"),
        ("math:no_such_function", "cannot be imported: math has no 'no_such_function'"),
        ("math:sqr", "math has no 'sqr'; did you mean 'sqrt'"),
        ("math:pi", "is a float, not a function"),
    ],
)
def test_a_function_that_is_not_there(name, said):
    with pytest.raises(FedlogitError, match=said):
        load_function(name)
