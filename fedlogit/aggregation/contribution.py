"""From what clients returned to how much each of them counts: the formulas of the CELM family."""

from __future__ import annotations

import torch
import torch.nn.functional as F

__all__ = [
    "class_similarity",
    "evidence",
    "instantaneous_scores",
    "keep_largest",
    "moving_average",
    "redistributed",
    "shares_of_present",
    "to_shares",
]

_TINY = 1e-12  # ε of CELM eq. 10


def evidence(client_logits: torch.Tensor, global_logits: torch.Tensor) -> torch.Tensor:
    """Return q_ic = max(0, u_ic - b) with b the mean of the global model's logits (CELM eq. 8-9).

    Args:
        client_logits: Maximised logits u of each client and class, (clients, classes).
        global_logits: The same of the global model of the round before, (classes,).
    """
    return (client_logits - global_logits.mean()).clamp(min=0)


def instantaneous_scores(q: torch.Tensor) -> torch.Tensor | None:
    """Return instantaneous contributions that sum to 1 (CELM eq. 10-12), or None without evidence.

    Each class's evidence is shared out among the clients, and a client's score is its mean share.
    A class without any evidence gives nobody anything.

    Args:
        q: Evidence, float64 (clients, classes), not negative.
    """
    shares = q / (q.sum(0) + _TINY)
    mean = shares.mean(1)
    return mean / mean.sum() if float(mean.sum()) > 0 else None


def moving_average(old: torch.Tensor, new: torch.Tensor, keep: float) -> torch.Tensor:
    """Return the moving average ``keep * old + (1 - keep) * new``; `new` where there is no old.

    Args:
        old: NaN where there is none.
        new: As many.
        keep: Weight of the old.
    """
    old = old.to(new)
    return torch.where(old.isnan(), new, keep * old + (1 - keep) * new)


def to_shares(values: torch.Tensor) -> torch.Tensor:
    """Return values ≥ 0 that sum to 1; uniform if all are 0. NaN stays, to be refused."""
    total = values.sum()
    return torch.full_like(values, 1 / len(values)) if float(total) == 0 else values / total


def shares_of_present(shares: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    """Return the shares of some clients, scaled to sum to 1; those of everybody as they are.

    Args:
        shares: Of all clients, (clients,), which sum to 1.
        present: Numbers of some of them, int64 (n,).

    Returns:
        (n,); uniform if none of them has any.
    """
    own = shares[present]
    return own if len(own) == len(shares) else to_shares(own)


def redistributed(shares: torch.Tensor, present: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Return shares in which some clients divide anew what they had together; the others' stay.

    Args:
        shares: Of all clients, (clients,), which sum to 1.
        present: Numbers of some of them, int64 (n,).
        own: How these divide what they have, (n,), which sums to 1.
    """
    together = 1.0 if len(own) == len(shares) else shares[present].sum()
    return shares.index_copy(0, present.to(shares.device), together * own.to(shares))


def class_similarity(heads: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the cosine of each client's row of each class with the weighted average's (ShapFed).

    Args:
        heads: Gradients of the last layer, (clients, classes, features + 1).
        weights: Weight of each client in the average, (clients,).

    Returns:
        (clients, classes); 0 where a row is zero.
    """
    average = torch.einsum("n,nkd->kd", weights, heads)
    return F.cosine_similarity(heads, average[None], dim=2, eps=1e-30)


def keep_largest(values: torch.Tensor, count: int) -> torch.Tensor:
    """Return `values` (n,) with all but the `count` entries of largest magnitude set to 0.

    Entries as large as the last of these stay too, as in the code of CFFL's and CGSV's authors
    (``mask_grad_update_by_order``): after clipping many are equally large, and nothing chooses
    between them.
    """
    size = values.abs()
    least = size.topk(min(count, len(values))).values[-1]
    return values.masked_fill(size < least, 0)
