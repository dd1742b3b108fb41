"""What TallyTrain's peers say about probes and make of it (eq. 2; appendices D, E and J; §5.3).

Probe by probe and peer by peer. What the paper leaves open is as documented: asymmetric weights,
attacks are, what a message of top-k means, and that a row of soft labels is made to sum to 1.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from oracles.payloads import message
from oracles.world import World

__all__ = ["discuss"]


def discuss(
    world: World,
    r: int,
    z: np.ndarray,
    signal: str = "votes",
    k: int = 1,
    packed: bool = False,
    topology: str = "mesh",
    degree: int = 4,
    adversaries: int = 0,
    attack: str = "confident",
    magnitude: float = 1.0,
    **combining: object,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Counter[str]]:
    """Return the classes named, each peer's consensus, its disagreement, and the bytes sent.

    Classes are (peers, probes), a consensus is (peers, probes, classes). Disagreement is 1 - max
    H̄, (peers, probes), for which all that are heard count alike.
    """
    n, probes, classes = z.shape
    claims = np.array([[claim(z[i, x], signal, k) for x in range(probes)] for i in range(n)])
    drawn = torch.randint(classes, (adversaries, probes), generator=world.noise("lies", r))
    size = 1.0 if signal == "votes" or (signal == "top_k" and k == 1) else magnitude
    for peer in range(n - adversaries, n):
        for x in range(probes):
            votes = Counter(z[: n - adversaries, x].argmax(1).tolist())
            named = {
                "random": drawn[peer - n, x],
                "colluding": (min(votes, key=lambda c: (-votes[c], c)) + 1) % classes,
                "confident": (z[peer, x].argmax() + 1) % classes,
            }[attack]
            claims[peer, x] = size * (np.arange(classes) == int(named))
    consensus, uniform, sent = [], [], Counter[str]()
    for i in range(n):
        hears = [j for j in range(n) if topology == "mesh" or (i - j) % n in (0, 1, n - 1)]
        if topology == "regular":
            hears = [j for j in range(n) if world.graph(degree)[i, j]]
        consensus.append([combined(claims[hears, x], **combining) for x in range(probes)])
        alike = combining | {"asymmetry": 0.0}
        uniform.append([combined(claims[hears, x], **alike).max() for x in range(probes)])
        for j in hears:
            sent.update(message(probes, classes, signal, k, packed) if j != i else {})
    return claims.argmax(2), np.array(consensus), 1 - np.array(uniform), sent


def claim(z: np.ndarray, signal: str, k: int) -> np.ndarray:
    """Return a peer's vote, its softmax, or the k largest of this made to sum to 1."""
    p = np.exp(z - z.max())
    kept = np.argsort(-p, kind="stable")[: {"votes": 1, "top_k": k}.get(signal)]
    made = np.zeros(len(z))
    made[kept] = p[kept] / p[kept].sum()
    return made


def combined(
    claims: np.ndarray, rule: str = "mean", trim: float = 0.2, asymmetry: float = 0.0
) -> np.ndarray:
    """Return the distribution of one probe from what is heard of it, (peers, classes)."""
    n, votes = len(claims), claims.argmax(1)
    rare = np.array([1 / np.mean(votes == vote) for vote in votes])
    made = ((1 - asymmetry) / n + asymmetry * rare / rare.sum()) @ claims
    if rule == "trimmed_mean":
        made = np.sort(claims, 0)[int(trim * n) : n - int(trim * n)].mean(0)
    if rule == "median":
        made = np.median(claims, 0)
    return made / made.sum() if made.sum() > 0 else made
