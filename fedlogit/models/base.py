"""How a model is chosen by name, built without touching the global generator, and described."""

from __future__ import annotations

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
            that draw random numbers or have no rule for their first weights.
    """
    config = get(call)
    config.check(shape)
    with Uninitialised():
        network = config.network(shape, classes)
    try:
        check_deterministic(network)
        initialise(network, generator)
    except FedlogitError as error:
        raise FedlogitError(f"model {config.name}: {error}") from None
    config.load(network)
    return network
