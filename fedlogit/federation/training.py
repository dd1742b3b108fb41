"""The verbs that train: train_private, distil, teach, and models beside the clients' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from fedlogit.aggregation.targets import Targets
from fedlogit.errors import FedlogitError
from fedlogit.federation.client import Client
from fedlogit.federation.device_data import DeviceData
from fedlogit.federation.executor import Executor
from fedlogit.federation.ledger import Ledger
from fedlogit.federation.native.stage import run_native
from fedlogit.federation.newcomers import newcomer
from fedlogit.federation.stacked import alike, run_stacked
from fedlogit.federation.work import Work, minibatches, run_work
from fedlogit.partition import Split
from fedlogit.rng import torch_rng
from fedlogit.spec import RunSpec

if TYPE_CHECKING:
    from fedlogit.federation.stages import Given

__all__ = ["Training"]

T = TypeVar("T")
R = TypeVar("R")


class Training:
    """What a federation is made of, and how its models learn.

    Attributes:
        spec: The run's settings.
        clients: The participants.
        server: The server's model, for a method that has one; else None.
        classes: Number of classes C.
        public: Indices of the public samples, int64 (points,); their labels stay with `data`.
        counts: Samples of each class at each client, int64 (clients, classes); for diagnostics.
        owned: Which classes each client holds, bool (clients, classes).
        roles: Rare classes and free riders of the partition; for diagnostics.
        ledger: Bytes sent.
        memory: What a method remembers between rounds, by name; saved in checkpoints.
        kept: What a method wants exported, by file and array; the last value counts.
        round: The current round, from 1.
        given: What earlier jobs did in round 1, if it is made in stages.
        liars: How many of the last clients lie about what they predict; they are not tested.
        facts: What decides the bits besides the state (`Provenance.decisive`); a checkpoint and a
            client's part carry it, and go on only where it is the same.
        devices: Models of the devices that computed so far, in order; saved in checkpoints.
    """

    def __init__(
        self,
        spec: RunSpec,
        data: DeviceData,
        split: Split,
        clients: Sequence[Client],
        executor: Executor,
        server: Client | None = None,
        on_task: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec = spec
        self.data = data
        self.clients = list(clients)
        self.server = server
        self.classes = data.classes
        self.public = torch.as_tensor(split.public, dtype=torch.int64, device=data.device)
        self.counts = split.counts
        self.owned = split.counts > 0
        self.roles = split.roles
        self.ledger = Ledger()
        self.memory: dict[str, torch.Tensor] = {}
        self.kept: dict[str, dict[str, np.ndarray]] = {}
        self.round = 0
        self.given: Given | None = None
        self.liars = 0
        self.facts: dict[str, Any] = {}
        self.devices: list[str] = []
        self._split = split
        self._executor = executor
        self._on_task = on_task
        self._log: dict[str, float] = {}

    @property
    def models(self) -> list[Client]:
        """All models there are: the clients', and the global one if there is one."""
        return self.clients if self.server is None else [*self.clients, self.server]

    @property
    def workers(self) -> int:
        """How many clients train at a time."""
        return self._executor.workers

    def train_private(
        self,
        *,
        with_public: bool = False,
        pull: float = 0.0,
        anchors: torch.Tensor | None = None,
    ) -> None:
        """Every client trains on its labelled private samples, as `spec.local` says.

        Args:
            with_public: Add the public samples, with their labels (the fully informed reference).
            pull: μ of a proximal term that holds each client near its anchor (FedProx).
            anchors: A vector a client, (clients, parameters); None takes where each starts from.

        If an earlier job did it (`given`), its models are there already.
        """
        if self.given is not None:
            return
        if self.spec.optimizer.lifetime == "round":
            for client in self.clients:
                client.renew_optimizer()

        def work(i: int, client: Client) -> Work:
            points = torch.cat([client.private, self.public]) if with_public else client.private
            start = client.vector.detach() if anchors is None else anchors[i]
            return Work(
                client=client,
                points=points,
                batches=self._batches("private", client, len(points)),
                labels=self.data.labels[points],
                augment=self._augmentation(client),
                anchor=start.clone() if pull else None,
                pull=pull,
                stage="private training",
            )

        self._train([work(i, c) for i, c in enumerate(self.clients)], "loss_private")

    def distil(
        self,
        points: torch.Tensor,
        targets: torch.Tensor | None,
        *,
        label_weight: float = 0.0,
        once: bool = False,
        learners: Sequence[Client] | None = None,
    ) -> None:
        """Every client trains on `points`, as long as `spec.local` says.

        Args:
            points: Sample indices, int64 (n,).
            targets: Distributions (n, classes), the same for everybody, or (learners, n, classes);
                (n, T, classes) or (learners, n, T, classes) where each position has one. Rows of
                another sum weigh as much. None for none.
            label_weight: Weight of the cross-entropy with the points' labels.
            once: Do a single step on all points instead.
            learners: Who trains, if not all clients.
        """
        soft = None if targets is None else targets.to(torch.float32)
        whole = [torch.arange(len(points))]
        students = self.clients if learners is None else learners
        shared = self.data.labels.dim() + 1  # axes of targets that are the same for everybody
        own = [soft] * len(students) if soft is None or soft.dim() == shared else list(soft)
        works = [
            Work(
                client=client,
                points=points,
                batches=whole if once else self._batches("distil", client, len(points)),
                labels=self.data.labels[points] if label_weight else None,
                label_weight=label_weight,
                soft=lesson,
                stage="distillation",
            )
            for client, lesson in zip(students, own, strict=True)
        ]
        self._train(works, "loss_distil")

    def teach(self, targets: Targets, *, part: int = 1) -> None:
        """The server's model trains on the public samples, as `spec.server` says.

        Its optimizer is new. Samples with weight 0 are left out.

        Args:
            targets: What it shall predict on `public`.
            part: Number of this lesson in the round, if there are several.

        Raises:
            FedlogitError: if there is no target with a weight.
        """
        server, how = self.server, self.spec.server
        assert server is not None
        assert how is not None
        spoken = targets.weights > 0
        if not spoken.any():
            raise FedlogitError(
                f"method {self.spec.method.name}: no public sample has a target to learn from"
            )
        server.renew_optimizer()
        points = self.public[spoken]
        seed, where = self.spec.seed, (self.round, part)
        work = Work(
            client=server,
            points=points,
            batches=minibatches(
                len(points),
                how.batch or self.spec.batch,
                torch_rng(seed, "batches/teach", *where),
                epochs=how.epochs,
                steps=None,
            ),
            soft=targets.weighted()[spoken].to(self.data.device, torch.float32),
            augment=None if how.augment == "none" else torch_rng(seed, "augment/teach", *where),
            stage="distillation",
        )
        self._train([work], "loss_server", kernel=run_work)

    def given_targets(self) -> Targets | None:
        """Return what an earlier job's aggregator made of the clients' logits, if there was one."""
        if self.given is None or self.given.targets is None:
            return None
        found, device = self.given.targets, self.data.device
        return Targets(found.distributions.to(device), found.weights.to(device))

    def recruits(self, owner: Client, role: str, samples: Sequence[torch.Tensor]) -> list[Client]:
        """Return new models of a client's architecture, one for each list of samples.

        Args:
            owner: Whose models they are.
            role: What they are; part of the address of all that is random about them.
            samples: What each trains on, int64 indices.
        """
        call = self.spec.models[owner.index % len(self.spec.models)]
        recruits = []
        for i, points in enumerate(samples):
            weights = torch_rng(self.spec.seed, f"init/{role}", owner.index, i)
            recruit = newcomer(self.spec, self.data, owner.index, call, weights, points)
            recruit.role = f"{role}/{i}"
            recruits.append(recruit)
        return recruits

    def fit(self, recruits: Sequence[Client], labels: Sequence[torch.Tensor]) -> None:
        """Train each recruit on its samples with the given labels, as long as `spec.local` says.

        Args:
            recruits: From `recruits`.
            labels: Each one's labels, int64 (its samples,).
        """
        works = [
            Work(
                client=recruit,
                points=recruit.private,
                batches=self._batches(recruit.role, recruit, recruit.samples),
                labels=given,
                augment=self._augmentation(recruit),
                stage="training",
            )
            for recruit, given in zip(recruits, labels, strict=True)
        ]
        self._train(works, "loss_private")

    def _batches(self, stage: str, client: Client, n: int) -> list[torch.Tensor]:
        local = self.spec.local
        generator = torch_rng(self.spec.seed, f"batches/{stage}", client.index, self.round)
        epochs = local.epochs_in(self.round)
        return minibatches(n, self.spec.batch, generator, epochs=epochs, steps=local.steps)

    def _augmentation(self, client: Client) -> torch.Generator | None:
        if self.spec.augment == "none":
            return None
        purpose = f"augment/{client.role}" if client.role else "augment"
        return torch_rng(self.spec.seed, purpose, client.index, self.round)

    def _train(
        self, works: Sequence[Work], name: str, kernel: Callable[..., float] | None = None
    ) -> None:
        factor = self.spec.schedule.factor(self.round)
        for work in works:
            if self.spec.optimizer.lifetime == "stage":
                work.client.renew_optimizer()
            work.client.set_rate(factor)
        how: dict[str, Any] = {
            "data": self.data,
            "executor": self._executor,
            "precision": self.spec.precision,
        }
        if kernel is None and self.spec.kernel == "stacked":
            losses = self._train_stacked(works, how)
        else:
            chosen = run_native if self.spec.kernel == "native" else run_work
            losses = self._map(partial(kernel or chosen, **how), works, Work.cost)
        self.log(**{name: float(np.mean(losses))})

    def _train_stacked(self, works: Sequence[Work], how: dict[str, Any]) -> list[float]:
        losses = [0.0] * len(works)
        for rows in alike(work.client.architecture for work in works):
            found = run_stacked([works[i] for i in rows], **how)
            for i, loss in zip(rows, found, strict=True):
                losses[i] = loss
                self._on_task()
        return losses

    def _map(
        self, task: Callable[[T], R], items: Sequence[T], cost: Callable[[T], float] | None = None
    ) -> list[R]:
        def counted(item: T) -> R:
            result = task(item)
            self._on_task()
            return result

        return self._executor.map(counted, items, cost)

    def log(self, **values: float) -> None:
        """Add columns to this round's row of `rounds.csv`."""
        self._log.update(values)
