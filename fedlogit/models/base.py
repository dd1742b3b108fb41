"""How a model is chosen by name, built without touching the global generator, and described."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import nn

from fedlogit.component import Component, ComponentRef
from fedlogit.errors import FedlogitError
from fedlogit.models.init import Uninitialised, check_deterministic, initialise

__all__ = ["ImageShape", "ModelConfig", "Shape", "build", "get"]

ImageShape = tuple[int, int, int]
"""(channels, height, width)."""

Shape = tuple[int, ...]
"""Of one sample: `ImageShape`, or (length,) of a sequence of tokens."""


class ModelConfig(Component, ABC):
    """An architecture with its parameters; a subclass is found by its name.

    Attributes:
        smallest: Least height and width of an image that leaves something after the last layer.
    """

    smallest: ClassVar[int] = 1

    @abstractmethod
    def network(self, shape: Any, classes: int) -> nn.Module:
        """Return the network; its attribute `head` is the dotted name of the last layer.

        It takes a batch of samples to logits, (n, classes), or (n, T, classes) for sequences.

        Args:
            shape: Shape of one sample, one that `check` lets pass.
            classes: Number of classes.
        """

    def load(self, network: nn.Module) -> None:
        """Overwrite initial weights with pretrained ones, where the architecture has such."""

    def check(self, shape: Shape) -> None:
        """Refuse an input shape that the architecture cannot take.

        Raises:
            FedlogitError: naming the model, the shape and what would be right.
        """
        size = self.smallest
        if len(shape) != 3 or min(shape) < 1 or min(shape[1:]) < size:
            raise FedlogitError(
                f"model {self.name} takes images of at least {size} x {size}, not of shape"
                f" {tuple(shape)} (channels, height, width)"
            )


def get(call: ComponentRef | str) -> ModelConfig:
    """Return the architecture a call names.

    Raises:
        FedlogitError: for an unknown name (with the nearest one) or a bad parameter.
    """
    return ModelConfig.from_call("model", "fedlogit.models", call)


def build(
    call: ComponentRef | str, shape: Shape, classes: int, generator: torch.Generator
) -> nn.Module:
    """Return a network on the CPU in float32 with PyTorch's default initialisation.

    Args:
        call: An architecture, such as ``lenet`` or ``resnet18(stem='cifar')``.
        shape: Shape of one image, (channels, height, width), or (length,) of a sequence.
        classes: Number of classes.
        generator: Source of the initial weights, on the CPU; PyTorch's global one is not touched.

    Raises:
        FedlogitError: as `get` does, for samples that the architecture cannot take, and for layers
            that draw random numbers or have no rule for their first weights; also for a network of
            one's own that gives no logits of the classes.
    """
    config = get(call)
    config.check(shape)
    with Uninitialised():
        network = config.network(shape, classes)
    try:
        if not isinstance(network, nn.Module):
            raise FedlogitError(f"network returned {type(network).__name__}; give a nn.Module")
        check_deterministic(network)
        initialise(network, generator)
        if not type(config).__module__.startswith("fedlogit.models."):
            _check_output(network, shape, classes)
    except FedlogitError as error:
        raise FedlogitError(f"model {config.name}: {error}") from None
    config.load(network)
    return network


def _check_output(network: nn.Module, shape: Shape, classes: int) -> None:
    """Refuse a network, of one's own, that does not turn samples into logits of the classes."""
    kind = torch.float32 if len(shape) == 3 else torch.int64
    batch = torch.zeros(2, *shape, dtype=kind)
    wanted = (2, *(shape if len(shape) == 1 else ()), classes)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            found = copy.deepcopy(network).eval()(batch)  # the network stays as it is
    except RuntimeError as error:
        said = str(error).partition("\n")[0]
        raise FedlogitError(f"takes no batch of shape {tuple(batch.shape)}: {said}") from None
    if not isinstance(found, torch.Tensor) or tuple(found.shape) != wanted:
        shown = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise FedlogitError(
            f"turns a batch of shape {tuple(batch.shape)} into {shown}; give logits of shape"
            f" {wanted}"
        )
