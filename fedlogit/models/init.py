"""First weights as in PyTorch and torchvision, drawn from a generator that the caller owns.

PyTorch draws initial weights from its global generator. Models here are built without that, and
then filled layer by layer from a generator.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

from fedlogit.errors import FedlogitError

__all__ = ["Uninitialised", "check_deterministic", "initialise", "uniform_layer"]

_DRAWS = {"kaiming_uniform_", "normal_", "uniform_"}

_KNOWN = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}
_ATTENTION = {"in_proj_weight", "in_proj_bias"}
_RANDOM = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)


class Uninitialised(TorchFunctionMode):
    """Lets layers be built with zeros where they would draw values.

    On the meta device nothing is drawn, either, but PyTorch imports its compiler and SymPy there,
    which takes every run a second or two.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.__name__ not in _DRAWS:
            return func(*args, **(kwargs or {}))
        tensor: torch.Tensor = args[0] if args else (kwargs or {})["tensor"]
        with torch.no_grad():
            return tensor.zero_()


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Fill all parameters and buffers of `module` in place, in the order of its submodules.

    Layers get what PyTorch gives them. One without a rule here draws it by its own method
    `reset_parameters`, as PyTorch's layers have one. If the module's attribute `fan_out_normal` is
    true, its convolutions are normal with variance 2 / fan_out, as in torchvision's residual
    networks.

    Raises:
        FedlogitError: for a layer with parameters that has neither; its memory would stay
            uninitialised.
    """
    fan_out_normal = getattr(module, "fan_out_normal", False)
    for name, layer in module.named_modules():
        own = {key for key, _ in layer.named_parameters(recurse=False)}
        own |= {key for key, _ in layer.named_buffers(recurse=False)}
        if not own:
            continue
        if isinstance(layer, nn.Conv2d) and fan_out_normal and own == {"weight"}:
            nn.init.kaiming_normal_(
                layer.weight, mode="fan_out", nonlinearity="relu", generator=generator
            )
        elif isinstance(layer, (nn.Linear, nn.Conv2d)) and own <= _KNOWN:
            uniform_layer(layer, generator)
        elif isinstance(layer, _NORMS) and own <= _KNOWN:
            layer.reset_parameters()  # ones and zeros: nothing is drawn
        elif isinstance(layer, nn.MultiheadAttention) and own <= _ATTENTION:
            nn.init.xavier_uniform_(layer.in_proj_weight, generator=generator)
            nn.init.zeros_(layer.in_proj_bias)
        elif own <= {"class_token", "pos_embedding"}:  # of a vision transformer
            for parameter in layer.parameters(recurse=False):
                nn.init.normal_(parameter, std=0.02, generator=generator)
        elif isinstance(layer, nn.Embedding) and layer.padding_idx is None:
            nn.init.normal_(layer.weight, generator=generator)
        elif left := _reset(layer, generator):
            raise FedlogitError(
                f"layer {name!r} ({type(layer).__name__}) has no rule for its first"
                f" {', '.join(left)}; give its class a method reset_parameters that sets them"
            )


def _reset(layer: nn.Module, generator: torch.Generator) -> list[str]:
    """Let a layer draw its own first weights; return the names of those that it leaves as they are.

    It draws from PyTorch's global generator, whose seed is drawn from `generator`, and whose state
    is then as before.
    """
    own = dict(layer.named_parameters(recurse=False))
    with torch.no_grad():
        for parameter in own.values():
            parameter.fill_(math.nan)
    if callable(reset := getattr(layer, "reset_parameters", None)):
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            reset()
    return sorted(name for name, parameter in own.items() if parameter.isnan().any())


def check_deterministic(module: nn.Module) -> None:
    """Refuse layers that draw random numbers in training, such as dropout.

    They draw from PyTorch's global generator, which no seed of a run decides and which threads
    share, so that a run could not be repeated.

    Raises:
        FedlogitError: naming the first such layer.
    """
    for name, layer in module.named_modules():
        share = layer.p if isinstance(layer, _DropoutNd) else getattr(layer, "dropout", 0.0)
        draws = isinstance(layer, _RANDOM) or (isinstance(share, float) and share > 0)
        if draws:
            raise FedlogitError(
                f"layer {name!r} ({type(layer).__name__}) draws random numbers that no seed of the"
                " run decides; leave it out (dropout of 0 is allowed)"
            )


def uniform_layer(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> None:
    """Fill weights and biases, uniform in ±1/sqrt(fan_in), as `reset_parameters` has them."""
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    if layer.bias is not None:
        bound = 1 / math.sqrt(layer.weight[0].numel())
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
