"""TallyTrain's votes, with numbers derived by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedlogit.aggregation.average import average_probabilities
from fedlogit.aggregation.votes import (
    asymmetric,
    bits_per_vote,
    emphasis,
    pack,
    soft_labels,
    tally,
    unpack,
    vote_counts,
)
from fedlogit.errors import FedlogitError


def top_k(logits: torch.Tensor, k: int) -> torch.Tensor:
    """Return the mean of the peers' k largest probabilities, each peer's normalised."""
    return soft_labels(logits, "top_k", k).mean(0)


VOTES = torch.tensor([[0, 2], [0, 1], [1, 1], [0, 1]])  # four peers, two probes


def test_tally():
    assert tally(VOTES, 3).tolist() == [[0.75, 0.25, 0], [0, 0.75, 0.25]]


def test_votes_are_counted_in_whole_numbers():
    counts = vote_counts(VOTES, 3)
    assert counts.tolist() == [[3, 1, 0], [0, 3, 1]]
    assert counts.dtype == torch.int32


def test_positions_of_a_sequence_are_probes_like_others():
    """Two sequences of three positions are six probes: every function, axis by axis."""
    logits = torch.randn(4, 2, 3, 6, generator=torch.Generator().manual_seed(0))
    flat, votes = logits.flatten(1, 2), logits.argmax(-1)
    found = {
        "tally": (tally(votes, 6), tally(votes.flatten(1), 6)),
        "soft": (average_probabilities(logits), average_probabilities(flat)),
        "top_k": (top_k(logits, 3), top_k(flat, 3)),
        "asymmetric": (asymmetric(votes, 6, 0.5), asymmetric(votes.flatten(1), 6, 0.5)),
    }
    for name, (shaped, rows) in found.items():
        assert shaped.shape == (2, 3, 6), name
        assert torch.equal(shaped.flatten(0, 1), rows), name
    weights = emphasis(found["tally"][0], 2.0)
    assert torch.equal(weights.flatten(), emphasis(found["tally"][1], 2.0))
    hot = torch.nn.functional.one_hot(votes, 6).float()
    assert torch.equal(tally(votes, 6), hot.mean(0))


def test_emphasis_grows_with_disagreement():
    # 1 + 2 (1 - 0.75) = 1.5; unanimous probes count 1.
    assert emphasis(tally(VOTES, 3), 2.0).tolist() == [1.5, 1.5]
    assert emphasis(tally(VOTES[:1], 3), 2.0).tolist() == [1.0, 1.0]


def test_asymmetric_weights_favour_the_minority():
    # Probe 0: shares of like-minded .75 .75 .25 .75, inverses 4/3 4/3 4 4/3 with sum 8, so
    # v = 1/6 1/6 1/2 1/6; ω = .5/4 + .5 v gives class 1 .125 + .25 = .375, class 0 the rest.
    found = asymmetric(VOTES, 3, 0.5)
    assert found[0].tolist() == pytest.approx([0.625, 0.375, 0])
    assert found[1].tolist() == pytest.approx([0, 0.625, 0.375])
    assert torch.allclose(asymmetric(VOTES, 3, 0.0), tally(VOTES, 3))


def test_top_k_spans_from_tally_to_average_probabilities():
    logits = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(top_k(logits, 1), tally(logits.argmax(-1), 6))
    assert torch.allclose(top_k(logits, 6), average_probabilities(logits), atol=1e-6)
    # One peer with (.5, .3, .2) and k = 2: (.625, .375, 0).
    one = torch.tensor([[[0.5, 0.3, 0.2]]]).log()
    assert top_k(one, 2)[0].tolist() == pytest.approx([0.625, 0.375, 0])


def test_bits_of_a_vote():
    assert [bits_per_vote(c, packed=True) for c in (2, 10, 100, 256, 2048)] == [1, 4, 7, 8, 11]
    assert [bits_per_vote(c, packed=False) for c in (2, 256, 257, 2048)] == [8, 8, 16, 16]
    with pytest.raises(FedlogitError, match="65537 classes: a vote has two bytes"):
        bits_per_vote(65537, packed=False)


def test_packing_by_hand():
    # Ten classes have 4 bits: 3 = 0011, 9 = 1001, 1 = 0001 and four zeros: 0x39, 0x10.
    assert pack(torch.tensor([3, 9, 1]), 10).tolist() == [0x39, 0x10]


def test_whole_bytes_by_hand():
    # Up to 256 classes a byte; above, two, the high one first: 300 = 1 * 256 + 44.
    assert pack(torch.tensor([3, 255]), 256, packed=False).tolist() == [3, 255]
    assert pack(torch.tensor([300, 7]), 2048, packed=False).tolist() == [1, 44, 0, 7]


@given(st.integers(2, 3000), st.booleans(), st.data())
def test_packed_votes_come_back(classes, packed, data):
    drawn = st.lists(st.integers(0, classes - 1), min_size=0, max_size=40)
    votes = torch.tensor(data.draw(drawn)).long()
    votes = torch.stack([votes, votes.flip(0)])  # two peers
    messages = pack(votes, classes, packed=packed)
    bits = bits_per_vote(classes, packed=packed)
    assert messages.dtype == torch.uint8
    assert messages.shape == (2, -(-votes.shape[1] * bits // 8)), "no byte more than needed"
    assert torch.equal(unpack(messages, votes.shape[1], classes, packed=packed), votes)


def test_a_message_of_another_length_is_refused():
    with pytest.raises(FedlogitError, match="1 bytes is not 3 votes of 4 bits"):
        unpack(torch.zeros(1, dtype=torch.uint8), 3, 10)
    with pytest.raises(FedlogitError, match="3 bytes is not 2 votes of 16 bits"):
        unpack(torch.zeros(3, dtype=torch.uint8), 2, 2048, packed=False)
    with pytest.raises(FedlogitError, match="class 15 of 10"):
        unpack(torch.tensor([0xF0], dtype=torch.uint8), 1, 10)


def test_one_rank_names_the_first_of_equal_logits_as_a_vote_does():
    # Ten classes of which 3 and 7 tie, and one float below them 5, which softmax rounds to theirs.
    logits = torch.zeros(1, 200, 10)
    logits[..., [3, 7]] = 1.0
    logits[..., 5] = torch.nextafter(torch.tensor(1.0), torch.tensor(0.0))
    assert (soft_labels(logits, "top_k", 1).argmax(-1) == 3).all()
    assert torch.equal(top_k(logits, 1), tally(logits.argmax(-1), 10))
