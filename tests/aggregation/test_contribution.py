"""The formulas of the CELM family, with numbers worked out by hand."""

import pytest
import torch

from fedlogit.aggregation.contribution import (
    class_similarity,
    evidence,
    instantaneous_scores,
    keep_largest,
    moving_average,
    redistributed,
    shares_of_present,
    to_shares,
)


def test_evidence_is_what_exceeds_the_global_model_s_mean_logit():
    # b = (1 + 3) / 2 = 2 (eq. 8); q = max(0, u - 2) (eq. 9)
    u = torch.tensor([[5.0, 1.0], [2.0, 2.5]])
    assert evidence(u, torch.tensor([1.0, 3.0])).tolist() == [[3.0, 0.0], [0.0, 0.5]]


def test_scores_are_mean_class_shares():
    # Class 0: 3 and 1 of 4, so .75 and .25. Class 1: 0 and 2 of 2, so 0 and 1 (eq. 10).
    # Means .375 and .625 (eq. 11), which already sum to 1 (eq. 12).
    q = torch.tensor([[3.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    assert instantaneous_scores(q).tolist() == pytest.approx([0.375, 0.625], abs=1e-11)


def test_a_class_without_evidence_gives_nothing_to_anybody():
    # Class 1 is nobody's: means (.75/2, .25/2), renormalised to .75, .25.
    q = torch.tensor([[3.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert instantaneous_scores(q).tolist() == pytest.approx([0.75, 0.25], abs=1e-11)


def test_an_exclusive_class_outweighs_many_shared_samples():
    # Client 0 alone has class 1; three clients share class 0 equally: 1/6 + 1/2 against 1/6.
    q = torch.tensor([[9.0, 1.0], [9.0, 0.0], [9.0, 0.0]], dtype=torch.float64)
    assert instantaneous_scores(q).tolist() == pytest.approx([4 / 6, 1 / 6, 1 / 6], abs=1e-11)


def test_no_evidence_at_all_is_no_score():
    assert instantaneous_scores(torch.zeros(3, 4, dtype=torch.float64)) is None


def test_moving_average():
    old, new = torch.tensor([0.2, 0.8]), torch.tensor([0.6, 0.4])
    assert moving_average(old, new, 0.5).tolist() == pytest.approx([0.4, 0.6])
    assert moving_average(old, new, 0.0).tolist() == pytest.approx([0.6, 0.4])
    assert moving_average(torch.tensor([torch.nan, 0.8]), new, 0.5).tolist() == pytest.approx(
        [0.6, 0.6]
    )


def test_class_similarity_by_hand():
    # Equal weights. Class 0: rows (2, 0) and (0, 2), average (1, 1): cosine 1/sqrt(2) for both.
    # Class 1: rows (1, 0) and (-3, 0), average (-1, 0): cosines -1 and 1.
    # Class 2: a zero row has no direction: 0.
    heads = torch.tensor(
        [[[2.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [[0.0, 2.0], [-3.0, 0.0], [0.0, 5.0]]],
        dtype=torch.float64,
    )
    found = class_similarity(heads, torch.tensor([0.5, 0.5], dtype=torch.float64))
    root = 2**-0.5
    assert found[0].tolist() == pytest.approx([root, -1.0, 0.0])
    assert found[1].tolist() == pytest.approx([root, 1.0, 1.0])


def test_class_similarity_is_with_the_weighted_average():
    # (2, 0) and (0, 2) by 3/4 and 1/4: (1.5, .5), with cosines 3 and 1 over sqrt(10).
    heads = torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]], dtype=torch.float64)
    found = class_similarity(heads, torch.tensor([0.75, 0.25], dtype=torch.float64))
    assert found[:, 0].tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5])


def test_largest_keeps_entries_of_largest_magnitude():
    values = torch.tensor([0.1, -3.0, 2.0, 0.0])
    assert keep_largest(values, 2).tolist() == [0.0, -3.0, 2.0, 0.0]
    assert keep_largest(values, 9).tolist() == values.tolist()


def test_largest_keeps_entries_as_large_as_the_last_one():
    values = torch.tensor([2.0, -1.0, 0.5, 1.0, 1.0])
    assert keep_largest(values, 2).tolist() == [2.0, -1.0, 0.0, 1.0, 1.0]
    assert keep_largest(torch.tensor([0.0, 3.0, 0.0]), 2).tolist() == [0.0, 3.0, 0.0]


def test_shares_of_nothing_are_equal():
    assert to_shares(torch.tensor([1.0, 3.0])).tolist() == [0.25, 0.75]
    assert to_shares(torch.zeros(4)).tolist() == [0.25] * 4
    assert to_shares(torch.tensor([1.0, torch.nan])).isnan().all(), "no share, not an equal one"


NEARLY = torch.tensor([0.7, 0.1, 0.1, 0.1], dtype=torch.float64)  # sums to 1 - 2^-53
HALF = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


def test_shares_of_everybody_are_left_as_they_are_to_the_bit():
    everybody = torch.arange(4)
    assert float(NEARLY.sum()) != 1
    assert torch.equal(shares_of_present(NEARLY, everybody), NEARLY)
    assert torch.equal(redistributed(NEARLY, everybody, NEARLY.flip(0)), NEARLY.flip(0))


def test_some_share_what_they_have_together_and_the_others_keep_theirs():
    present = torch.tensor([0, 2])
    assert shares_of_present(HALF, present).tolist() == pytest.approx([5 / 7, 2 / 7])
    found = redistributed(HALF, present, torch.tensor([0.25, 0.75], dtype=torch.float64))
    assert found.tolist() == pytest.approx([0.175, 0.3, 0.525])
    assert found[1] == HALF[1]


def test_some_who_have_nothing_count_alike():
    nothing = torch.tensor([0.0, 0.0, 1.0])
    assert shares_of_present(nothing, torch.tensor([0, 1])).tolist() == [0.5, 0.5]


def test_an_average_begins_where_there_is_no_old_value():
    old, new = torch.tensor([torch.nan, 1.0]), torch.tensor([3.0, 3.0])
    assert moving_average(old, new, 0.5).tolist() == [3, 2]
