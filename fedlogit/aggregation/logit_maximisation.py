"""LMProbe: images that maximise a class's logit, and the logits they reach (CELM Algorithm 1).

All classes of a model are one batch, since the loss is a sum over images and no image sees another,
unless the model normalises by the statistics of its batch (`batch_stats`, `lenet_bn`): then its
images, one of each class probed, are normalised together. `maximise_logits` does so for one model,
`maximise_stacked` for several of one architecture at once: where time goes into starting operations
on tiny batches (`probed_together`), that is several times faster; elsewhere a model per thread is.
Both run the same steps. As many models are stacked as `models_at_once` finds room for, which
depends on their sizes only, so that the same run has the same bits. Single pixels differ all the
same, because Adam divides gradients by their size and so amplifies the rounding of those near 0;
norms and logits agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call, stack_module_state

from fedlogit.optimizers import Adam

__all__ = [
    "ROOM",
    "Ascent",
    "maximise_logits",
    "maximise_stacked",
    "models_at_once",
    "probed_together",
]

ROOM = 4 * 2**30
"""Bytes that stacked models may need at once: what a step keeps for its gradient, and weights.

Far more than the perceptrons and small networks of CELM need for twenty clients; of ViT-B/16 with
eight classes only a few models fit. It is a constant, not the memory that happens to be free,
because how many models share a product decides how it is rounded.
"""


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
    return _ascend(lambda x: model(x).float(), start, classes, ascent)


def probed_together(model: nn.Module, device: str) -> bool:
    """Return whether models like this one are probed together: on a GPU, or perceptrons.

    Args:
        model: One of them.
        device: Type of the device.
    """
    return device == "cuda" or all(
        isinstance(layer, nn.Linear) for layer in model.modules() if layer._parameters
    )


def models_at_once(model: nn.Module, images: torch.Tensor, room: int | None = None) -> int:
    """Return how many models like this one may be probed together, at least 1.

    Args:
        model: One of them.
        images: The images (k, channels, height, width) of one model.
        room: Bytes there are; None is `ROOM`.
    """
    model.eval()
    kept: dict[int, torch.Tensor] = {}  # alive, so that no two have one address

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.enable_grad(), saved_tensors_hooks(keep, lambda tensor: tensor):
        model(images.detach().requires_grad_())
    state = [*model.parameters(), *model.buffers()]
    for tensor in state:  # which may be views of one vector, and are copied once for all
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    size = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    size += sum(tensor.nbytes for tensor in state)
    return max(1, (ROOM if room is None else room) // max(1, size))


def maximise_stacked(
    models: Sequence[nn.Module],
    start: torch.Tensor,
    classes: torch.Tensor,
    ascent: Ascent,
    at_once: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do `maximise_logits` for models of one architecture in batched optimisations.

    Args:
        models: The models.
        start: (models, k, channels, height, width).
        classes: The same classes for all of them, int64 (k,).
        ascent: How.
        at_once: How many models are stacked; None stacks all.

    Returns:
        Logits (models, k) and final images.
    """
    size = at_once or len(models)
    parts = [
        _maximise_together(models[i : i + size], start[i : i + size], classes, ascent)
        for i in range(0, len(models), size)
    ]
    logits, images = zip(*parts, strict=True)
    return torch.cat(logits), torch.cat(images)


def _maximise_together(
    models: Sequence[nn.Module], start: torch.Tensor, classes: torch.Tensor, ascent: Ascent
) -> tuple[torch.Tensor, torch.Tensor]:
    for model in models:
        model.eval()
    state = stack_module_state(list(models))

    def outputs(weights: dict, buffers: dict, x: torch.Tensor) -> torch.Tensor:
        return functional_call(models[0], (weights, buffers), (x,))

    with _differentiable_attention():
        return _ascend(lambda x: torch.vmap(outputs)(*state, x).float(), start, classes, ascent)


@contextmanager
def _differentiable_attention() -> Iterator[None]:
    """Keep attention off its inference path, which has no gradient.

    PyTorch takes it where no tensor needs one, and inside `torch.vmap` none says that it does.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _ascend(
    outputs: Callable[[torch.Tensor], torch.Tensor],
    start: torch.Tensor,
    classes: torch.Tensor,
    ascent: Ascent,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of the classes, (…, k), and images.

    Args:
        outputs: Gives all logits, (…, k, classes), of images (…, k, channels, height, width).
        start: First images.
        classes: Which logit each image maximises, int64 (k,).
        ascent: How.
    """
    x = start.detach().to(memory_format=_layout(start), copy=True).requires_grad_()
    adam = Adam([x], lr=ascent.rate, betas=(0.9, 0.999), fused=True)
    with torch.no_grad():
        logits = outputs(x)
    wanted = F.one_hot(classes, logits.shape[-1]).to(logits).expand_as(logits).flatten()
    for _ in range(ascent.steps):
        ascent.check()
        # With respect to the images only: the models' own gradients are left alone. Of a sum, since
        # `grad` with gradients given imports SymPy, half a second for every run.
        (gradient,) = torch.autograd.grad(-torch.vdot(outputs(x).flatten(), wanted), [x])
        # A stacked convolution returns it in another memory layout, which fused Adam ignores.
        x.grad = gradient.contiguous(memory_format=_layout(start))
        x.grad.add_(x.detach(), alpha=2 * ascent.penalty)
        adam.step()
    with torch.no_grad():
        logits = outputs(x)
    of = classes.expand(logits.shape[:-1])[..., None]
    return logits.gather(-1, of)[..., 0], x.detach().contiguous()


def _layout(images: torch.Tensor) -> torch.memory_format:
    """Return how images lie in memory: channels last where convolutions on a CPU are faster so."""
    stacked = images.dim() > 4
    return torch.contiguous_format if images.is_cuda or stacked else torch.channels_last
