"""What peers say who lie about probes (TallyTrain appendix J names them; the forms are ours)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

__all__ = ["Attack", "lie"]

Attack = Literal["random", "colluding", "confident"]


def lie(
    claims: torch.Tensor,
    liars: int,
    attack: Attack,
    generator: torch.Generator,
    magnitude: float = 1.0,
) -> torch.Tensor:
    """Replace what the last peers say by a wrong class that they name with certainty.

    ``random``: each draws a class for each probe. ``colluding``: all name the class that follows
    the honest peers' plurality. ``confident``: each names the class that follows its own.

    Args:
        claims: Distributions, (peers, probes, classes).
        liars: How many of the last peers lie.
        attack: How.
        generator: Source of random classes, on the CPU.
        magnitude: What a liar's soft label says of its class, where the honest say at most 1.

    Returns:
        Claims of all peers, like `claims`.
    """
    honest, own = claims[: len(claims) - liars], claims[len(claims) - liars :]
    probes, classes = claims.shape[1:]
    if attack == "random":
        named = torch.randint(classes, (liars, probes), generator=generator).to(claims.device)
    elif attack == "colluding":
        votes = F.one_hot(honest.argmax(-1), classes).sum(0)
        named = ((votes.argmax(-1) + 1) % classes).expand(liars, probes)
    else:
        named = (own.argmax(-1) + 1) % classes
    return torch.cat([honest, magnitude * F.one_hot(named, classes).to(claims.dtype)])
