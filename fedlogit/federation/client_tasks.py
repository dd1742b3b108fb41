"""From what a phase is about to a task for each model that trains in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.targets import soften
from fedlogit.data import UNKNOWN
from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.task import ClientTask, minibatches
from fedlogit.errors import FedlogitError
from fedlogit.rng import torch_rng
from fedlogit.spec import RunSpec

__all__ = [
    "PHASES",
    "RoundContext",
    "batches",
    "distillation_tasks",
    "model_tasks",
    "private_tasks",
    "server_tasks",
]

PHASES = ("private", "distil", "teach", "server")
"""What comes first in the addresses of what is random about the clients and the server's model."""


@dataclass(frozen=True)
class RoundContext:
    """What the tasks of a round depend on besides models and samples.

    Attributes:
        spec: The run's settings.
        data: The data set on its device.
        round: The round, from 1.
        first_rounds: The first round in which a client is present, by its number; empty where all
            always are.
    """

    spec: RunSpec
    data: DeviceData
    round: int
    first_rounds: Mapping[int, int]


def private_tasks(
    context: RoundContext,
    clients: Sequence[Client],
    shared: torch.Tensor,
    centers: torch.Tensor | None,
    proximal_mu: float,
    part: int = 1,
) -> list[ClientTask]:
    """Return tasks on clients' private samples.

    Args:
        context: The round.
        clients: Who trains.
        shared: Samples that all learn besides, with their labels, int64 (n,); may be empty.
        centers: w_0 of each client, (clients, parameters); None takes where it starts.
        proximal_mu: μ of a proximal term μ/2 ‖w - w_0‖²; 0 for none.
        part: Which time it is in this round, from 1.
    """

    def center(i: int, client: Client) -> torch.Tensor:
        return client.vector.detach().clone() if centers is None else centers[i]

    def task(i: int, client: Client) -> ClientTask:
        indices = torch.cat([client.private, shared]) if len(shared) else client.private
        labels = context.data.labels[indices]
        return ClientTask(
            client=client,
            indices=indices,
            batches=batches(context, "private", client, len(indices), part),
            labels=labels,
            partly_known=context.data.some_unknown and _partly_known(labels),
            augment=_augmentation(context, client, part),
            prox_center=center(i, client) if proximal_mu else None,
            proximal_mu=proximal_mu,
            phase="private training",
        )

    return [task(i, client) for i, client in enumerate(clients)]


def distillation_tasks(
    context: RoundContext,
    learners: Sequence[Client],
    indices: torch.Tensor,
    targets: torch.Tensor | None,
    label_weight: float,
    once: bool,
    part: int = 1,
) -> list[ClientTask]:
    """Return tasks on the same samples, as long as `spec.local` says.

    Args:
        context: The round.
        learners: Who trains.
        indices: Which samples, int64 (n,).
        targets: Distributions (n, classes), the same for all, or (learners, n, classes); (n,
            T, classes) or (learners, n, T, classes) where each position has one. Rows of another
            sum weigh as much. None for none.
        label_weight: Weight of the cross-entropy with the samples' labels.
        once: Do a single step on all samples instead.
        part: Which time it is in this round, from 1.
    """
    temperature = context.spec.temperature
    soft = None if targets is None else soften(targets, temperature).to(torch.float32)
    whole = [torch.arange(len(indices))]
    shared = context.data.labels.dim() + 1  # axes of targets that are the same for all
    # A role ends with a number, so that this is not the address of another role.
    phases = [f"{client.role}/distil" if client.role else "distil" for client in learners]
    own = [soft] * len(learners) if soft is None or soft.dim() == shared else list(soft)
    labels = context.data.labels[indices] if label_weight else None
    unknown = context.data.some_unknown and labels is not None and _partly_known(labels)
    return [
        ClientTask(
            client=client,
            indices=indices,
            batches=whole if once else batches(context, phase, client, len(indices), part),
            labels=labels,
            partly_known=unknown,
            label_weight=label_weight,
            soft=of_client,
            temperature=temperature,
            phase="distillation",
        )
        for client, phase, of_client in zip(learners, phases, own, strict=True)
    ]


def server_tasks(
    context: RoundContext, server: Client, public: torch.Tensor, targets: Targets, part: int
) -> list[ClientTask]:
    """Return the task of the server's model on public samples, as `spec.server` says.

    Args:
        context: The round.
        server: The model.
        public: Indices of all public samples, int64 (points,).
        targets: What it shall predict on them. Samples with weight 0 are left out.
        part: Which time it is in this round, if there are several.

    Raises:
        FedlogitError: if there is no target with a weight.
    """
    spec, how = context.spec, context.spec.server
    assert how is not None
    weighed = targets.weights > 0
    if not weighed.any():
        raise FedlogitError(
            f"method {spec.method.name}: no public sample has a target to learn from"
        )
    indices = public[weighed]
    order = torch_rng(context.spec.seed, "batches/teach", context.round, part)
    crops = torch_rng(context.spec.seed, "augment/teach", context.round, part)
    soft = soften(targets.weighted()[weighed], spec.temperature)
    task = ClientTask(
        client=server,
        indices=indices,
        batches=minibatches(
            len(indices), how.batch or spec.batch, order, epochs=how.epochs, steps=None
        ),
        soft=soft.to(context.data.device, torch.float32),
        temperature=spec.temperature,
        augment=None if how.augment == "none" else crops,
        phase="distillation",
    )
    return [task]


def model_tasks(
    context: RoundContext,
    models: Sequence[Client],
    labels: Sequence[torch.Tensor],
    part: int = 1,
) -> list[ClientTask]:
    """Return tasks of models that are not the clients' own, as long as `spec.local` says.

    Args:
        context: The round.
        models: Each with its samples and a role, which is part of all its random addresses.
        labels: Each one's labels, int64 (its samples,).
        part: Which time it is in this round, from 1.
    """
    return [
        ClientTask(
            client=model,
            indices=model.private,
            batches=batches(context, model.role, model, model.samples, part),
            labels=given,
            partly_known=_partly_known(given),
            augment=_augmentation(context, model, part),
            phase="training",
        )
        for model, given in zip(models, labels, strict=True)
    ]


def batches(
    context: RoundContext, phase: str, client: Client, n: int, part: int = 1
) -> list[torch.Tensor]:
    """Return positions of the minibatches of n samples, as `spec.local` says.

    Args:
        context: The round. A client that is new in it trains as long as all do in round 1, and so
            does a model with a role, which no round inherits from another.
        phase: Part of the address of the order.
        client: Whose minibatches they are.
        n: How many samples there are.
        part: Which time it is in this round, from 1.
    """
    local = context.spec.local
    generator = _generator(context, f"batches/{phase}", client, part)
    new = bool(client.role) or context.first_rounds.get(client.index) == context.round
    epochs = local.epochs_in(1 if new else context.round)
    return minibatches(n, context.spec.batch, generator, epochs=epochs, steps=local.steps)


def _partly_known(labels: torch.Tensor) -> bool:
    """Return whether some labels are known and others not; to ask is to wait for a GPU, once."""
    known = labels != UNKNOWN
    return bool(known.any() & ~known.all())


def _augmentation(context: RoundContext, client: Client, part: int) -> torch.Generator | None:
    if context.spec.augment == "none":
        return None
    purpose = f"augment/{client.role}" if client.role else "augment"
    return _generator(context, purpose, client, part)


def _generator(context: RoundContext, purpose: str, client: Client, part: int) -> torch.Generator:
    """Return a client's generator of this round; of a part after the first, one of its own."""
    ids = (client.index, context.round) if part == 1 else (client.index, context.round, part)
    return torch_rng(context.spec.seed, purpose, *ids)
