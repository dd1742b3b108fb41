"""Votes of peers on public probes, and what they become (TallyTrain §3, appendices D and E).

A probe is a sample, or a position of a sequence of tokens: where shapes below say ``probes``, they
may have several axes.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from fedlogit.errors import FedlogitError

__all__ = [
    "asymmetric",
    "bits_per_vote",
    "emphasis",
    "margin",
    "pack",
    "soft_labels",
    "tally",
    "unpack",
    "vote_counts",
]


def tally(votes: torch.Tensor, classes: int) -> torch.Tensor:
    """Return the voting histogram H̄(x) = (1/N) Σ_n e_{y_n(x)} (eq. 2).

    Args:
        votes: Class that each peer names, int64 (peers, probes).
        classes: Number of classes C.

    Returns:
        Distributions (probes, classes), float32.
    """
    return vote_counts(votes, classes) / len(votes)


def vote_counts(votes: torch.Tensor, classes: int) -> torch.Tensor:
    """Return how many voters name each class.

    Args:
        votes: Class that each voter names, int64 (voters, probes).
        classes: Number of classes C.

    Returns:
        int32 (probes, classes).
    """
    # One voter after another: all one-hot rows at once are gigabytes where C is a vocabulary.
    counts = torch.zeros(*votes.shape[1:], classes, dtype=torch.int32, device=votes.device)
    one = torch.ones((), dtype=torch.int32, device=votes.device)
    for vote in votes:
        counts.scatter_add_(-1, vote[..., None], one.expand(*vote.shape, 1))
    return counts


def soft_labels(logits: torch.Tensor, signal: str, k: int = 1) -> torch.Tensor:
    """Return what each peer says, as distributions like `logits`; their mean is the consensus.

    Args:
        logits: (peers, probes, classes).
        signal: ``probabilities``, a peer's softmax, whose mean FedMD's peers learn from here
            (§4.1); ``top_k``, its k largest probabilities, normalised.
        k: Ranks of ``top_k``.
    """
    probabilities = logits.softmax(-1)
    if signal == "probabilities":
        return probabilities
    # A vote names the first of equal logits, where topk names any.
    vote = logits.argmax(-1, keepdim=True)
    index = vote if k == 1 else probabilities.topk(k, dim=-1).indices
    values = probabilities.gather(-1, index)
    kept = torch.zeros_like(probabilities).scatter_(-1, index, values)
    return kept / kept.sum(-1, keepdim=True)


def margin(consensus: torch.Tensor) -> torch.Tensor:
    """Return by how much the first class leads the second, (..., classes) -> (...)."""
    first = consensus.topk(2, dim=-1).values
    return first[..., 0] - first[..., 1]


def emphasis(consensus: torch.Tensor, strength: float) -> torch.Tensor:
    """Return 1 + β_dis (1 - max_c H̄_c(x)): more weight where peers disagree (appendix D).

    Args:
        consensus: H̄, (..., probes, classes).
        strength: β_dis; 0 weighs all alike.

    Returns:
        (..., probes).
    """
    return 1 + strength * (1 - consensus.max(-1).values)


def asymmetric(votes: torch.Tensor, classes: int, mixing: float) -> torch.Tensor:
    """Return H̃(x) = Σ_n ω_n(x) e_{Y_n}, with more weight on peers in the minority (appendix D).

    ω_n = (1 - β_asy) / N + β_asy v_n, with v_n inversely proportional to the share of peers that
    vote like n, and summing to 1. The paper gives no formula; this one is ours.

    Args:
        votes: int64 (peers, probes).
        classes: Number of classes.
        mixing: β_asy, from 0 (the tally) to 1.
    """
    counts = vote_counts(votes, classes)
    alike = torch.stack([counts.gather(-1, own[..., None])[..., 0] for own in votes]) / len(votes)
    rare = 1 / alike
    weights = (1 - mixing) / len(votes) + mixing * rare / rare.sum(0)
    tallied = weights.new_zeros(*votes.shape[1:], classes)
    for own, weight in zip(votes, weights, strict=True):  # a peer at a time: C may be a vocabulary
        tallied.scatter_add_(-1, own[..., None], weight[..., None])
    return tallied


def bits_per_vote(classes: int, *, packed: bool) -> int:
    """Return the bits of one vote: ⌈log2 C⌉ packed, else whole bytes, of which at most two.

    Raises:
        FedlogitError: if two bytes do not tell so many classes apart.
    """
    if classes > 2**16:
        raise FedlogitError(f"{classes} classes: a vote has two bytes, which tell 65536 apart")
    if packed:
        return max(1, math.ceil(math.log2(classes)))
    return 8 if classes <= 2**8 else 16


def pack(votes: torch.Tensor, classes: int, *, packed: bool = True) -> torch.Tensor:
    """Return votes as messages: ⌈log2 C⌉ bits a vote, or one or two bytes, the highest first.

    Args:
        votes: int64 (..., probes); a message for each row.
        classes: Number of classes.
        packed: In bits, not in whole bytes.

    Returns:
        uint8 (..., bytes); the last byte of packed votes is filled up with zeros.
    """
    digit = 1 if packed else 8  # bits that are written at a time
    shifts = _shifts(bits_per_vote(classes, packed=packed), digit, votes.device)
    digits = ((votes[..., None] >> shifts) & (2**digit - 1)).flatten(-2)
    if not packed:
        return digits.to(torch.uint8)
    octets = F.pad(digits, (0, -digits.shape[-1] % 8)).unflatten(-1, (-1, 8))
    return (octets << _shifts(8, 1, votes.device)).sum(-1).to(torch.uint8)


def unpack(
    messages: torch.Tensor, probes: int, classes: int, *, packed: bool = True
) -> torch.Tensor:
    """Return the votes that `pack` packed, int64 (..., probes).

    Raises:
        FedlogitError: if messages have another length, or name a class that does not exist.
    """
    width = bits_per_vote(classes, packed=packed)
    if messages.shape[-1] != -(-probes * width // 8):
        raise FedlogitError(
            f"a message of {messages.shape[-1]} bytes is not {probes} votes of {width} bits"
        )
    digit, digits = 8, messages.long()
    if packed:
        digit = 1
        digits = ((digits[..., None] >> _shifts(8, 1, messages.device)) & 1).flatten(-2)
    digits = digits[..., : probes * width // digit].unflatten(-1, (probes, width // digit))
    votes = (digits << _shifts(width, digit, messages.device)).sum(-1)
    if votes.numel() and int(votes.max()) >= classes:
        raise FedlogitError(f"a vote for class {int(votes.max())} of {classes}")
    return votes


def _shifts(width: int, digit: int, device: torch.device) -> torch.Tensor:
    """Return by how many bits each digit of a number stands to the left, the highest first."""
    return torch.arange(width - digit, -1, -digit, device=device)
