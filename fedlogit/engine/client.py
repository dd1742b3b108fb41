"""A client: a model whose parameters are views into one flat vector, and its share of the data.

The flat vector makes an optimizer step one fused kernel, and merging, sending and saving a model
one operation, whatever its architecture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from fedlogit.errors import FedlogitError
from fedlogit.optimizers import SGD, Adam, AdamW
from fedlogit.spec import Optimizer

__all__ = [
    "Client",
    "State",
    "attach_gradient",
    "clean_gradients",
    "flatten",
    "joint_optimizer",
    "make_optimizer",
]


@dataclass(frozen=True)
class State:
    """What a model has learnt.

    Attributes:
        vector: All parameters, flat, float32.
        buffers: Floating-point buffers (batch-norm statistics), flat, float32; may be empty.
        counters: Integer buffers (batches seen), flat, int64; may be empty.
    """

    vector: torch.Tensor
    buffers: torch.Tensor
    counters: torch.Tensor


class Client:
    """A participant with a model, an optimizer and indices of its private samples.

    Args:
        index: Its number, from 0; -1 for the server's model.
        model: Its network; the parameters are moved into a flat vector.
        architecture: A name equal for clients whose vectors may be averaged.
        private: Indices of its training samples, int64, on the device.
        validation: Indices of its held-out samples; empty if the method holds none out.
        optimizer: Its optimizer's settings.
    """

    def __init__(
        self,
        index: int,
        model: nn.Module,
        architecture: str,
        private: torch.Tensor,
        validation: torch.Tensor,
        optimizer: Optimizer,
    ) -> None:
        self.index = index
        self.role = ""  # what a model is that is not the client's own, such as a teacher
        self.model = model
        self.architecture = architecture
        self.private = private
        self.validation = validation
        self.settings = optimizer
        self.vector = flatten(model)
        self.optimizer = make_optimizer([self.vector], optimizer)

    @property
    def name(self) -> str:
        """What files call it: ``client0``, ``client1``, …, or ``server``."""
        return "server" if self.index < 0 else f"client{self.index}"

    @property
    def label(self) -> str:
        """What messages call it."""
        role = f" as {self.role}" if self.role else ""
        return "the server" if self.index < 0 else f"client {self.index}{role}"

    @property
    def samples(self) -> int:
        """Number of private training samples."""
        return len(self.private)

    def renew_optimizer(self) -> None:
        """Forget moments and step counts."""
        self.optimizer = make_optimizer([self.vector], self.settings)

    def set_rate(self, factor: float) -> None:
        """Set the learning rate to `factor` times the initial one."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.lr * factor

    @contextmanager
    def gradient(self, memory: torch.Tensor) -> Iterator[torch.Tensor]:
        """Accumulate gradients in a vector within a ``with``; afterwards there are none.

        Args:
            memory: As the client's vector; what is in it does not matter.
        """
        attach_gradient(self.model, self.vector, memory)
        try:
            yield memory
        finally:
            for p in (self.vector, *self.model.parameters()):
                p.grad = None

    def step(self) -> None:
        """Take one optimizer step, on the gradient as the settings clean and clip it."""
        gradient = self.vector.grad
        assert gradient is not None
        clean_gradients(gradient, self.settings)
        self.optimizer.step()

    def layers(self) -> dict[str, slice]:
        """Return where each parameter lies in the vector, by name, in order."""
        places: dict[str, slice] = {}
        start = 0
        for name, p in self.model.named_parameters():
            places[name] = slice(start, start + p.numel())
            start += p.numel()
        return places

    def head_mask(self) -> torch.Tensor:
        """Return which entries of the vector belong to the last layer, bool (parameters,)."""
        mask = torch.zeros(len(self.vector), dtype=torch.bool, device=self.vector.device)
        for _, place in self._head():
            mask[place] = True
        return mask

    def head_rows(self, vector: torch.Tensor) -> torch.Tensor:
        """Return the last layer of a vector like the model's: a class a row, its bias last.

        Args:
            vector: As the client's own, (parameters,).

        Returns:
            (classes, features + 1), or (classes, features) for a layer without bias.
        """
        shapes = {name: p.shape for name, p in self.model.named_parameters()}
        parts = [vector[place].view(shapes[name][0], -1) for name, place in self._head()]
        return torch.cat(parts, 1)

    def _head(self) -> list[tuple[str, slice]]:
        """Return the parameters of the last layer, weight before bias.

        Raises:
            FedlogitError: if the model does not say what its last layer is, or has no such layer.
        """
        head, layers = getattr(self.model, "head", None), list(self.layers().items())
        found = [(k, place) for k, place in layers if k.startswith(f"{head}.")]
        what = "no layer with parameters" if not found else "not the last layer"
        if not isinstance(head, str) or not found or found != layers[-len(found) :]:
            raise FedlogitError(
                f"model {type(self.model).__name__}: head = {head!r} is {what};"
                " set the attribute 'head' to the dotted name of the last layer"
            )
        return found

    def state(self) -> State:
        """Return a copy of the parameters and buffers."""
        buffers = list(self.model.buffers())
        device = self.vector.device
        return State(
            self.vector.detach().clone(),
            _join([b for b in buffers if b.is_floating_point()], torch.float32, device),
            _join([b for b in buffers if not b.is_floating_point()], torch.int64, device),
        )

    def load(self, state: State, keep: torch.Tensor | None = None) -> None:
        """Overwrite parameters and buffers; entries of the vector where `keep` is true stay."""
        with torch.no_grad():
            new = state.vector if keep is None else torch.where(keep, self.vector, state.vector)
            self.vector.copy_(new)
            buffers = list(self.model.buffers())
            _split(state.buffers, [b for b in buffers if b.is_floating_point()])
            _split(state.counters, [b for b in buffers if not b.is_floating_point()])


def flatten(model: nn.Module) -> nn.Parameter:
    """Move a model's parameters into a flat vector that they become views of."""
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    vector = nn.Parameter(flat)
    for p, values in zip(model.parameters(), _views(model, vector.data), strict=True):
        p.data = values
    return vector


def attach_gradient(model: nn.Module, vector: torch.Tensor, memory: torch.Tensor) -> None:
    """Make `memory` the gradient of a flattened model's vector, and its parts the parameters'."""
    vector.grad = memory
    for p, values in zip(model.parameters(), _views(model, memory), strict=True):
        p.grad = values


def _views(model: nn.Module, flat: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the parts of a flat vector in the shapes of a model's parameters."""
    start = 0
    for p in model.parameters():
        yield flat[start : start + p.numel()].view(p.shape)
        start += p.numel()


def make_optimizer(vectors: Sequence[torch.Tensor], o: Optimizer) -> torch.optim.Optimizer:
    """Return the optimizer of the settings for flat vectors, with PyTorch's fused step."""
    if o.name == "sgd":
        return SGD(vectors, o.lr, momentum=o.momentum, weight_decay=o.weight_decay, fused=True)
    kind = Adam if o.name == "adam" else AdamW
    return kind(
        vectors, o.lr, (o.beta1, o.beta2), eps=o.eps, weight_decay=o.weight_decay, fused=True
    )


def clean_gradients(gradients: torch.Tensor, o: Optimizer) -> None:
    """Zero what is not finite and clip, in place, as the settings say.

    Args:
        gradients: (parameters,), or (clients, parameters), each clipped by its own norm.
        o: The settings.
    """
    if o.zero_nonfinite_grads:
        gradients.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    if o.clip is not None:
        # As `torch.nn.utils.clip_grad_norm_`, on the one flat vector.
        norms = torch.linalg.vector_norm(gradients, dim=-1, keepdim=True)
        gradients.mul_((o.clip / (norms + 1e-6)).clamp(max=1.0))


def joint_optimizer(
    clients: Sequence[Client], vectors: Sequence[torch.Tensor]
) -> torch.optim.Optimizer:
    """Return one optimizer that steps several clients at once, on moments that stay their own.

    Args:
        clients: With the same settings and learning rate.
        vectors: What to step in place of each client's own vector.
    """
    joint = make_optimizer(vectors, clients[0].settings)
    joint.param_groups[0]["lr"] = clients[0].optimizer.param_groups[0]["lr"]
    for client, vector in zip(clients, vectors, strict=True):
        joint.state[vector] = client.optimizer.state[client.vector]
    if any(state.get("momentum_buffer") is not None for state in joint.state.values()):
        # PyTorch's SGD has all of them or none. The first step of who was absent is one from 0.
        for vector, state in joint.state.items():
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(vector)
    return joint


def _join(tensors: list[torch.Tensor], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if not tensors:
        return torch.empty(0, dtype=dtype, device=device)
    return torch.cat([t.detach().reshape(-1).to(dtype) for t in tensors])


def _split(flat: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    start = 0
    for t in tensors:
        t.copy_(flat[start : start + t.numel()].view(t.shape))
        start += t.numel()
