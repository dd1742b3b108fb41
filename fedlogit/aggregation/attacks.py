"""What adversaries send: of TallyTrain's probes, and of predictions of any method.

TallyTrain's appendix J names attacks; the forms are ours.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

from fedlogit.adversaries import Adversaries
from fedlogit.aggregation.votes import tally

__all__ = ["Attack", "false_logits", "false_soft_labels", "false_votes"]

Attack = Literal["random", "colluding", "confident"]


def false_soft_labels(
    messages: torch.Tensor,
    adversaries: int,
    attack: Attack,
    drawn: torch.Tensor,
    magnitude: float,
) -> torch.Tensor:
    """Replace the messages of the last peers by a wrong class with certainty.

    Args:
        messages: Distributions, (peers, probes, classes); probes may have several axes.
        adversaries: How many of the last peers send false messages.
        attack: How; see `false_votes`.
        drawn: As for `false_votes`.
        magnitude: What an adversary's soft label has at its class; an honest one has at most 1.

    Returns:
        Messages of all peers, like `messages`.
    """
    honest, classes = len(messages) - adversaries, messages.shape[-1]
    named = false_votes(messages.argmax(-1), classes, adversaries, attack, drawn)[honest:]
    return torch.cat([messages[:honest], magnitude * F.one_hot(named, classes).to(messages.dtype)])


def false_votes(
    votes: torch.Tensor,
    classes: int,
    adversaries: int,
    attack: Attack,
    drawn: torch.Tensor,
) -> torch.Tensor:
    """Replace the votes of the last peers by a wrong class.

    ``random``: each draws a class for each probe. ``colluding``: all name the class that follows
    the honest peers' plurality. ``confident``: each names the class that follows its own.

    Args:
        votes: Class that each peer would name, int64 (peers, probes); probes may have several axes.
        classes: Number of classes.
        adversaries: How many of the last peers send false messages.
        attack: How.
        drawn: Classes that ``random`` adversaries name, int64 (adversaries, probes); others look at
            none of it.

    Returns:
        Votes of all peers, like `votes`.
    """
    honest, own = votes[: len(votes) - adversaries], votes[len(votes) - adversaries :]
    if attack == "random":
        named = drawn.to(votes.device)
    elif attack == "colluding":
        named = ((tally(honest, classes).argmax(-1) + 1) % classes).expand_as(own)
    else:
        named = (own + 1) % classes
    return torch.cat([honest, named])


def false_logits(
    logits: torch.Tensor, adversaries: Adversaries, generator: torch.Generator
) -> torch.Tensor:
    """Return what an adversary sends in place of its logits.

    ``random_logits``: normal numbers around 0 with the standard deviation of its logits, so that
    their size does not give it away. ``loud_logits``: its logits moved on by one class, so that it
    names the class that follows its own, times `Adversaries.magnitude`.

    Args:
        logits: Its own, (n, classes), or (n, T, classes).
        adversaries: What it does.
        generator: Source of the normal numbers, on the CPU.

    Returns:
        Like `logits`.
    """
    if adversaries.attack == "random_logits":
        drawn = torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
        return drawn.to(logits.device) * logits.std(correction=0)
    return logits.roll(1, dims=-1) * adversaries.magnitude
