"""How a model is chosen by name, built without touching the global generator, and described."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import nn

from fedlogit.component import Call, Component, find, instantiate
from fedlogit.errors import FedlogitError
from fedlogit.models.init import initialise

__all__ = ["ImageShape", "ModelConfig", "build", "complete", "get"]

ImageShape = tuple[int, int, int]
"""(channels, height, width)."""


class ModelConfig(Component, ABC):
    """An architecture with its parameters; a subclass is found by its name."""

    @abstractmethod
    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network; its attribute `head` names the last layer.

        Raises:
            FedlogitError: if it cannot take images of this shape.
        """

    def refuse(self, shape: ImageShape, wanted: str) -> FedlogitError:
        """Return the error for images of a shape that the architecture cannot take."""
        return FedlogitError(f"model {self.name} takes {wanted}, not images of shape {shape}")


def get(call: Call | str) -> ModelConfig:
    """Return the architecture a call names.

    Raises:
        FedlogitError: for an unknown name (with the nearest one) or a bad parameter.
    """
    call = Call.read(call, "model") if isinstance(call, str) else call
    return instantiate("model", find("model", "fedlogit.models", ModelConfig, call.name), call)


def complete(call: Call | str) -> Call:
    """Return the call with every parameter named and every default filled in."""
    config = get(call)
    name = call if isinstance(call, str) else call.name
    return Call(name=name.split("(")[0], params=config.params())


def build(
    call: Call | str, shape: ImageShape, classes: int, generator: torch.Generator
) -> nn.Module:
    """Return a network on the CPU in float32 with PyTorch's default initialisation.

    Args:
        call: An architecture, such as ``lenet`` or ``resnet18(stem='cifar')``.
        shape: Shape of one image, (channels, height, width).
        classes: Number of classes.
        generator: Source of the initial weights.
    """
    with torch.device("meta"):
        network = get(call).network(shape, classes)
    network.to_empty(device="cpu")
    initialise(network, generator)
    return network
