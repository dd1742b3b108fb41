"""The verbs that methods are written in: train_private, logits, distil, merge, broadcast.

`Federation` hides how clients run, not what they do: the same method gives the same numbers
whether clients run one after another or side by side in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from fedlogit.aggregation.logit_maximisation import Ascent, maximise_logits, maximise_stacked
from fedlogit.aggregation.targets import Targets
from fedlogit.errors import FedlogitError
from fedlogit.federation.client import Client, State
from fedlogit.federation.device_data import DeviceData
from fedlogit.federation.evaluation import Scores, confusion, score
from fedlogit.federation.executor import Executor
from fedlogit.federation.ledger import Ledger
from fedlogit.federation.native.stage import run_native
from fedlogit.federation.newcomers import newcomer
from fedlogit.federation.work import Work, minibatches, run_work
from fedlogit.partition import Split
from fedlogit.rng import rng, torch_rng
from fedlogit.spec import RunSpec

if TYPE_CHECKING:
    from fedlogit.federation.stages import Given

__all__ = ["Federation"]

T = TypeVar("T")
R = TypeVar("R")

_BATCH = 500  # images in a forward pass without gradients
_PART = 5 * _BATCH  # test images that one worker scores at a time


class Federation:
    """Clients, a public set, a server's memory, and a ledger.

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

    # --- training -----------------------------------------------------------------------------

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
            targets: Distributions (n, classes), the same for everybody; rows of another sum weigh
                as much. None for none.
            label_weight: Weight of the cross-entropy with the points' labels.
            once: Do a single step on all points instead.
            learners: Who trains, if not all clients.
        """
        soft = None if targets is None else targets.to(torch.float32)
        whole = [torch.arange(len(points))]
        works = [
            Work(
                client=client,
                points=points,
                batches=whole if once else self._batches("distil", client, len(points)),
                labels=self.data.labels[points] if label_weight else None,
                label_weight=label_weight,
                soft=soft,
                stage="distillation",
            )
            for client in (self.clients if learners is None else learners)
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
                stage=f"training as {recruit.role}",
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
        if kernel is None:
            kernel = run_native if self.spec.kernel == "native" else run_work
        run = partial(
            kernel, data=self.data, executor=self._executor, precision=self.spec.precision
        )
        losses = self._map(run, works, Work.cost)
        self.log(**{name: float(np.mean(losses))})

    def _map(
        self, task: Callable[[T], R], items: Sequence[T], cost: Callable[[T], float] | None = None
    ) -> list[R]:
        def counted(item: T) -> R:
            result = task(item)
            self._on_task()
            return result

        return self._executor.map(counted, items, cost)

    # --- predictions --------------------------------------------------------------------------

    def logits(self, points: torch.Tensor, models: Sequence[Client] | None = None) -> torch.Tensor:
        """Return logits of every client, or of `models`, on the same samples.

        Returns:
            float32 (clients, n, classes).
        """
        if self.given and self.given.answers and models is None and points is self.public:
            return self.given.answers.public.to(self.data.device)
        asked = self.clients if models is None else models
        return torch.stack(self._map(lambda model: self._forward(model, points), asked))

    def server_logits(self, points: torch.Tensor) -> torch.Tensor:
        """Return the server's logits, float32 (n, classes)."""
        assert self.server is not None
        return self._forward(self.server, points)

    def own_logits(self, points: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return each client's logits on its own list of samples, float32 (n_i, classes).

        Models run in evaluation mode on images without augmentation.
        """
        return self._map(
            lambda job: self._forward(*job), list(zip(self.clients, points, strict=True))
        )

    def _forward(self, client: Client, points: torch.Tensor) -> torch.Tensor:
        parts = (self.data.images(part) for part in points.split(_BATCH))
        return self._infer(client, parts)

    def _infer(self, client: Client, batches: Iterable[torch.Tensor]) -> torch.Tensor:
        client.model.eval()
        bf16 = self.spec.precision == "bf16"
        outputs = []
        with torch.no_grad(), torch.autocast(self.data.device.type, torch.bfloat16, enabled=bf16):
            for x in batches:
                self._executor.check()
                outputs.append(client.model(x).float())
        if not outputs:
            return torch.empty(0, self.classes, device=self.data.device)
        return torch.cat(outputs)

    def test_logits(self) -> torch.Tensor:
        """Return every client's logits on the test split, float32 (clients, n, classes)."""
        return torch.stack(self._map(self._test_logits, self.clients))

    def _test_logits(self, client: Client, part: slice = slice(None)) -> torch.Tensor:
        first, last, _ = part.indices(len(self.data.x_test))
        bounds = ((s, min(s + _BATCH, last)) for s in range(first, last, _BATCH))
        return self._infer(client, (self.data.test_images(slice(*b)) for b in bounds))

    def maximise_logits(
        self,
        models: Sequence[Client],
        images: torch.Tensor,
        classes: torch.Tensor,
        *,
        steps: int,
        rate: float,
        penalty: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Ascend the logits of `classes` of every model from its own images (CELM's LMProbe).

        Args:
            models: Models to probe.
            images: Start images, normalised, (models, k, channels, height, width).
            classes: int64 (k,).
            steps: Adam steps.
            rate: Adam's learning rate.
            penalty: λ of the squared norm of an image.

        Returns:
            Final logits (models, k) and final images.
        """
        ascent = Ascent(steps, rate, penalty, self._executor.check)
        networks = [client.model for client in models]
        one_kind = len({client.architecture for client in models}) == 1
        if self.data.device.type == "cuda" and one_kind:
            return maximise_stacked(networks, images, classes, ascent)
        found = self._map(
            lambda job: maximise_logits(*job, classes, ascent),
            list(zip(networks, images, strict=True)),
        )
        logits, final = zip(*found, strict=True)
        return torch.stack(logits), torch.stack(final)

    def evaluate(self) -> Scores:
        """Return the test scores of the global model, or of every client if there is none."""
        return score(self.confusions([self.server] if self.server else self.clients))

    def confusions(self, models: Sequence[Client]) -> np.ndarray:
        """Return confusion matrices on the test split, int64 (models, true, predicted)."""
        starts = range(0, len(self.data.x_test), _PART)
        parts = [(model, slice(s, s + _PART)) for model in models for s in starts]

        def table(job: tuple[Client, slice]) -> np.ndarray:
            model, part = job
            predicted = self._test_logits(model, part).argmax(1)
            return confusion(predicted, self.data.test_labels[part], self.classes)

        tables = np.stack(self._executor.map(table, parts))
        return tables.reshape(len(models), len(starts), self.classes, self.classes).sum(1)

    # --- models -------------------------------------------------------------------------------

    def vectors(self) -> torch.Tensor:
        """Return a copy of all clients' parameters, float32 (clients, parameters).

        Raises:
            FedlogitError: if the clients' architectures differ.
        """
        self._one_architecture()
        return torch.stack([c.vector.detach() for c in self.clients])

    def load_vectors(self, vectors: torch.Tensor) -> None:
        """Give every client its row of (clients, parameters); buffers stay."""
        with torch.no_grad():
            for client, vector in zip(self.clients, vectors, strict=True):
                client.vector.copy_(vector)

    def merge(self, weights: Sequence[float] | None = None) -> State:
        """Return the weighted average of all clients' parameters and floating buffers.

        Args:
            weights: One per client, summing to 1; None averages uniformly. Integer buffers come
                from client 0.

        Raises:
            FedlogitError: if the clients' architectures differ.
        """
        self._one_architecture()
        n = len(self.clients)
        shares = [1 / n] * n if weights is None else list(weights)
        if len(shares) != n or abs(sum(shares) - 1) > 1e-6:
            raise FedlogitError(f"merge weights must be {n} numbers that sum to 1, not {shares}")
        states = [c.state() for c in self.clients]
        return State(
            _average([s.vector for s in states], shares),
            _average([s.buffers for s in states], shares),
            states[0].counters,
        )

    def _one_architecture(self) -> None:
        kinds = {c.architecture for c in self.clients}
        if len(kinds) > 1:
            raise FedlogitError(
                f"method {self.spec.method.name}: cannot average different architectures "
                f"({', '.join(sorted(kinds))}); give all clients one model"
            )

    def broadcast(self, state: State, *, backbone_only: bool = False) -> None:
        """Every client takes over `state`; with `backbone_only` it keeps its own last layer."""
        for client in self.clients:
            client.load(state, keep=client.head_mask() if backbone_only else None)

    # --- samples ------------------------------------------------------------------------------

    def labels(self, points: torch.Tensor) -> torch.Tensor:
        """Return true labels, int64 (n,). A method may use those of private samples only."""
        return self.data.labels[points]

    def probes(self, size: int) -> torch.Tensor:
        """Return public samples of this round, the same for all clients, int64 (size,)."""
        generator = rng(self.spec.seed, "probes", self.round)
        chosen = generator.choice(len(self.public), size, replace=False)
        return self.public[torch.as_tensor(chosen, device=self.public.device)]

    def from_private(self, per_class: int) -> torch.Tensor:
        """Return up to `per_class` samples of each class from the union of the private sets."""
        union = np.unique(np.concatenate(self._split.clients))
        labels = self.data.labels.cpu().numpy()[union]
        generator = rng(self.spec.seed, "auxiliary")
        chosen = []
        for c in range(self.classes):
            members = union[labels == c]
            chosen.append(generator.permutation(members)[:per_class])
        return torch.as_tensor(np.concatenate(chosen), dtype=torch.int64, device=self.data.device)

    # --- notes --------------------------------------------------------------------------------

    def accuracy(self, logits: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Return how often the largest logit is the true class: (..., n, classes) -> (...)."""
        return (logits.argmax(-1) == self.data.labels[points]).double().mean(-1)

    def accuracy_on_public(self, targets: torch.Tensor, known: torch.Tensor | None = None) -> float:
        """Return how often the largest target is the true class; for diagnostics only.

        Args:
            targets: (points, classes).
            known: Count these only, bool (points,); None counts all.
        """
        right = (targets.argmax(-1) == self.data.labels[self.public]).float()
        return float(right.mean() if known is None else right[known].mean())

    def log(self, **values: float) -> None:
        """Add columns to this round's row of `rounds.csv`."""
        self._log.update(values)

    def contribute(self, shares: Sequence[float]) -> None:
        """Note how much each client contributed: columns ``contribution_0``, … of the round."""
        self.log(**{f"contribution_{i}": float(c) for i, c in enumerate(shares)})

    def keep(self, export: str, **arrays: torch.Tensor) -> None:
        """Remember arrays for ``exports/<export>.npz``, written at the end if the spec asks."""
        known = self.kept.setdefault(export, {})
        known.update({name: value.cpu().numpy() for name, value in arrays.items()})

    def take_log(self) -> dict[str, float]:
        """Return and clear this round's columns."""
        log, self._log = self._log, {}
        return log


def _average(tensors: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    """Average in float64, so that the order of clients matters only in the last bit of float32."""
    total = torch.zeros_like(tensors[0], dtype=torch.float64)
    for tensor, weight in zip(tensors, weights, strict=True):
        total.add_(tensor, alpha=weight)
    return total.to(tensors[0].dtype)
