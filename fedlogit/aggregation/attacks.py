"""What Byzantine peers send about probes (TallyTrain appendix J names them; the forms are ours)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

from fedlogit.aggregation.votes import tally

__all__ = ["Attack", "corrupt", "false_votes"]

Attack = Literal["random", "colluding", "confident"]


def corrupt(
    messages: torch.Tensor,
    adversaries: int,
    attack: Attack,
    generator: torch.Generator,
    magnitude: float = 1.0,
) -> torch.Tensor:
    """Replace the messages of the last peers by a wrong class with certainty.

    Args:
        messages: Distributions, (peers, probes, classes); probes may have several axes.
        adversaries: How many of the last peers send false messages.
        attack: How; see `false_votes`.
        generator: Source of random classes, on the CPU.
        magnitude: What an adversary's soft label has at its class; an honest one has at most 1.

    Returns:
        Messages of all peers, like `messages`.
    """
    honest, classes = len(messages) - adversaries, messages.shape[-1]
    named = false_votes(messages.argmax(-1), classes, adversaries, attack, generator)[honest:]
    return torch.cat([messages[:honest], magnitude * F.one_hot(named, classes).to(messages.dtype)])


def false_votes(
    votes: torch.Tensor, classes: int, adversaries: int, attack: Attack, generator: torch.Generator
) -> torch.Tensor:
    """Replace the votes of the last peers by a wrong class.

    ``random``: each draws a class for each probe. ``colluding``: all name the class that follows
    the honest peers' plurality. ``confident``: each names the class that follows its own.

    Args:
        votes: Class that each peer would name, int64 (peers, probes); probes may have several axes.
        classes: Number of classes.
        adversaries: How many of the last peers send false messages.
        attack: How.
        generator: Source of random classes, on the CPU.

    Returns:
        Votes of all peers, like `votes`.
    """
    honest, own = votes[: len(votes) - adversaries], votes[len(votes) - adversaries :]
    if attack == "random":
        named = torch.randint(classes, own.shape, generator=generator).to(votes.device)
    elif attack == "colluding":
        named = ((tally(honest, classes).argmax(-1) + 1) % classes).expand_as(own)
    else:
        named = (own + 1) % classes
    return torch.cat([honest, named])
