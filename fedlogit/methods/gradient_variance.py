"""How much a distillation gradient varies with the probes that happen to be drawn."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from fedlogit.federation import Client

__all__ = ["gradient_variance"]


def gradient_variance(
    client: Client,
    batches: Sequence[torch.Tensor],
    targets: Sequence[Sequence[torch.Tensor]],
) -> list[float]:
    """Return, for each kind of target, the trace of the covariance of the gradient over batches.

    The gradient is that of the mean cross-entropy with the targets, which is that of
    KL(target ‖ model), in the model's parameters. Nothing of the client changes.

    Args:
        client: Whose gradient.
        batches: The model's inputs, (samples, …) of each batch; at least two batches.
        targets: For each kind, the distributions (samples, classes) of each batch.
    """
    client.model.eval()
    parameters = list(client.model.parameters())
    sums = torch.zeros(
        len(targets), len(client.vector), device=client.vector.device, dtype=torch.float64
    )
    squares = [0.0] * len(targets)
    for b, inputs in enumerate(batches):
        logits = client.model(inputs).float()
        for kind, target in enumerate(targets):
            loss = F.cross_entropy(logits, target[b])
            last = kind == len(targets) - 1
            parts = torch.autograd.grad(loss, parameters, retain_graph=not last)
            gradient = torch.cat([part.flatten() for part in parts]).double()
            sums[kind] += gradient
            squares[kind] += float(gradient.square().sum())
    n = len(batches)
    means = sums.square().sum(1).tolist()
    return [(square - mean / n) / (n - 1) for square, mean in zip(squares, means, strict=True)]
