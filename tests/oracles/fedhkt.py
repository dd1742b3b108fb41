"""FedHKT in one round, a second time: Σ_k λ_k KL(p_k ‖ σ(w_s)) with λ of FedOL's eq. 14.

No code of it is public. Without several rounds it neither groups clients nor averages models.
"""

from __future__ import annotations

import torch


def terms(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (λ_k, p_k) of each client, from logits (clients, points, classes)."""
    found = []
    for z_k in z:
        p = z_k.softmax(1)
        found.append(((p * p.log()).sum(1).exp(), p))  # exp(-H)
    total = sum(weight for weight, _ in found)
    return [(weight / total, p) for weight, p in found]
