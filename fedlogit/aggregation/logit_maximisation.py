"""LMProbe: images that maximise a class's logit, and the logits they reach (CELM Algorithm 1).

All classes of a model are one batch, since the loss is a sum over images and no image sees another.
`maximise_logits` does so for one model, `maximise_stacked` for several of one architecture at once:
on a GPU, whose time goes into launching kernels for tiny batches, that is several times faster; on
a CPU a model per thread is. Both run the same steps. Single pixels differ all the same, because
Adam divides gradients by their size and so amplifies the rounding of those near 0; norms and
logits agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call, stack_module_state

__all__ = ["Ascent", "maximise_logits", "maximise_stacked"]


@dataclass(frozen=True)
class Ascent:
    """How to maximise s_c(x; w) - λ‖x‖².

    Attributes:
        steps: L, number of Adam steps, whose moments start at 0.
        rate: η, Adam's learning rate.
        penalty: λ of the squared norm, summed over pixels.
        check: Called at every step; may raise to leave early.
    """

    steps: int
    rate: float
    penalty: float
    check: Callable[[], None] = lambda: None


def maximise_logits(
    model: nn.Module, start: torch.Tensor, classes: torch.Tensor, ascent: Ascent
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ascend each class's logit from its start image, weights frozen.

    Args:
        model: In evaluation mode afterwards; its weights and gradients stay as they are.
        start: A normalised image for each class, (k, channels, height, width).
        classes: Which logit each image maximises, int64 (k,).
        ascent: How.

    Returns:
        Logits u_c at the final images, (k,), and those images; pixels are not clamped.
    """
    model.eval()

    def logits(x: torch.Tensor) -> torch.Tensor:
        return model(x).float().gather(1, classes[:, None])[:, 0]

    return _ascend(logits, start, ascent)


def maximise_stacked(
    models: Sequence[nn.Module], start: torch.Tensor, classes: torch.Tensor, ascent: Ascent
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do `maximise_logits` for models of one architecture in one batched optimisation.

    Args:
        models: The models.
        start: (models, k, channels, height, width).
        classes: The same classes for all of them, int64 (k,).
        ascent: How.

    Returns:
        Logits (models, k) and final images.
    """
    for model in models:
        model.eval()
    state = stack_module_state(list(models))

    def outputs(weights: dict, buffers: dict, x: torch.Tensor) -> torch.Tensor:
        return functional_call(models[0], (weights, buffers), (x,))

    def logits(x: torch.Tensor) -> torch.Tensor:
        z = torch.vmap(outputs)(*state, x).float()
        return z.gather(2, classes[None, :, None].expand(len(models), -1, 1))[..., 0]

    return _ascend(logits, start, ascent)


def _ascend(
    logits: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor, ascent: Ascent
) -> tuple[torch.Tensor, torch.Tensor]:
    x = start.detach().clone().requires_grad_()
    adam = torch.optim.Adam([x], lr=ascent.rate, betas=(0.9, 0.999), fused=True)
    for _ in range(ascent.steps):
        ascent.check()
        loss = ascent.penalty * x.square().sum() - logits(x).sum()
        # With respect to the images only: the models' own gradients are left alone.
        (gradient,) = torch.autograd.grad(loss, [x])
        # A stacked convolution returns it in another memory layout, which fused Adam ignores.
        x.grad = gradient.contiguous()
        adam.step()
    with torch.no_grad():
        return logits(x), x.detach()
