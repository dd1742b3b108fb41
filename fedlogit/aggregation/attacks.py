"""What peers say who lie about probes (TallyTrain appendix J names them; the forms are ours)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

from fedlogit.aggregation.votes import tally

__all__ = ["Attack", "corrupt", "false_votes"]

Attack = Literal["random", "colluding", "confident"]


def corrupt(
    claims: torch.Tensor,
    liars: int,
    attack: Attack,
    generator: torch.Generator,
    magnitude: float = 1.0,
) -> torch.Tensor:
    """Replace what the last peers say by a wrong class that they name with certainty.

    Args:
        claims: Distributions, (peers, probes, classes); probes may have several axes.
        liars: How many of the last peers lie.
        attack: How; see `false_votes`.
        generator: Source of random classes, on the CPU.
        magnitude: What a liar's soft label says of its class, where the honest say at most 1.

    Returns:
        Claims of all peers, like `claims`.
    """
    honest, classes = len(claims) - liars, claims.shape[-1]
    named = false_votes(claims.argmax(-1), classes, liars, attack, generator)[honest:]
    return torch.cat([claims[:honest], magnitude * F.one_hot(named, classes).to(claims.dtype)])


def false_votes(
    votes: torch.Tensor, classes: int, liars: int, attack: Attack, generator: torch.Generator
) -> torch.Tensor:
    """Replace the votes of the last peers by a wrong class.

    ``random``: each draws a class for each probe. ``colluding``: all name the class that follows
    the honest peers' plurality. ``confident``: each names the class that follows its own.

    Args:
        votes: Class that each peer would name, int64 (peers, probes); probes may have several axes.
        classes: Number of classes.
        liars: How many of the last peers lie.
        attack: How.
        generator: Source of random classes, on the CPU.

    Returns:
        Votes of all peers, like `votes`.
    """
    honest, own = votes[: len(votes) - liars], votes[len(votes) - liars :]
    if attack == "random":
        named = torch.randint(classes, own.shape, generator=generator).to(votes.device)
    elif attack == "colluding":
        named = ((tally(honest, classes).argmax(-1) + 1) % classes).expand_as(own)
    else:
        named = (own + 1) % classes
    return torch.cat([honest, named])
