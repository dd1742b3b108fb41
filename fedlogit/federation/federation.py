"""A federation and its verbs: train_private, logits, distil, merge, broadcast, uplink, downlink.

It hides how clients run, which is the engine's, and not what they do.
"""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import add
from typing import Any

import numpy as np
import torch

from fedlogit.aggregation.attacks import false_logits
from fedlogit.aggregation.targets import Targets
from fedlogit.data import UNKNOWN
from fedlogit.engine import Client, ClientTask, Engine, State
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.evaluation import EvalCounts, Scores, count_correct, score
from fedlogit.engine.task import cut, minibatches
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation.averaging import average_states, same_architecture
from fedlogit.federation.ledger import Ledger
from fedlogit.partition import Split
from fedlogit.rng import rng, torch_rng
from fedlogit.spec import RunSpec

__all__ = ["Federation"]

_PREDICTIONS = ("logits", "auxiliary_logits")  # kinds of messages that adversaries may falsify


class Federation:
    """Clients, a public set, a server's state, and a ledger.

    Attributes:
        spec: The run's settings.
        everybody: All clients that exist; `Client.index` is a client's number for good.
        clients: Those of them that are there in this round, in the same order: who trains, sends
            and receives. Without `spec.participation` it is `everybody`.
        server: The server's model, for a method that has one; else None.
        classes: Number of classes C.
        public: Indices of the public samples, int64 (points,); their labels stay with `data`.
        counts: Samples of each class at each client, int64 (clients, classes); for diagnostics.
        class_mask: Which classes each client holds, bool (clients, classes).
        roles: Rare classes and free riders of the partition; for diagnostics.
        ledger: Bytes sent.
        server_state: What a method remembers between rounds, by name; saved in checkpoints.
        exported: What a method wants exported, by file and array; the last value counts.
        round: The current round, from 1.
        adversaries: How many of the last clients that exist send what is false; they are not
            tested.
        private_losses: Mean loss over samples, in nats, of each client's last `train_private`, by
            its number.
        tested: What models of clients got right that have not been there since they were tested.
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
        engine: Engine,
        server: Client | None = None,
        server_engine: Engine | None = None,
    ) -> None:
        """Put a federation together.

        Args:
            spec: The run's settings.
            data: The data set on its device.
            split: Its partition.
            clients: The participants.
            engine: Runs the clients.
            server: The server's model.
            server_engine: Trains the server's model; None is `engine`, which predicts with it.
        """
        self.spec = spec
        self.data = data
        self.everybody = list(clients)
        self.clients = self.everybody
        self.server = server
        self.engine = engine
        self.server_engine = server_engine or engine
        self.classes = data.classes
        self.public = torch.as_tensor(split.public, dtype=torch.int64, device=data.device)
        self.counts = split.counts
        self.class_mask = split.counts > 0
        self.roles = split.roles
        self.ledger = Ledger()
        self.server_state: dict[str, torch.Tensor] = {}
        self.exported: dict[str, dict[str, np.ndarray]] = {}
        self.round = 0
        self.adversaries = 0
        self.private_losses: dict[int, float] = {}
        self.tested: dict[int, EvalCounts] = {}
        self.facts: dict[str, Any] = {}
        self.devices: list[str] = []
        self.private_samples = np.unique(np.concatenate(split.clients))
        self._log: dict[str, float] = {}
        self._falsified = 0  # the last round in which an adversary sent predictions
        who = spec.participation
        self._first = who.first_rounds(len(clients), spec.rounds, spec.seed) if who else {}

    @property
    def public_known(self) -> bool:
        """Whether the label of any public sample is known, so that answers can be called right."""
        return bool((self.data.labels[self.public] != UNKNOWN).any())

    @property
    def models(self) -> list[Client]:
        """All models there are: the clients', and the global one if there is one."""
        return self.everybody if self.server is None else [*self.everybody, self.server]

    # --- who is there -------------------------------------------------------------------------

    def start_round(self, round_: int) -> None:
        """Begin round `round_`: `clients` are who is there, and messages are booked under it."""
        self.round = round_
        self.ledger.start(round_)
        if (who := self.spec.participation) is None:
            return
        there = set(who.present(round_, len(self.everybody), self.spec.seed))
        self.clients = [client for client in self.everybody if client.index in there]
        for client in self.clients:
            self.tested.pop(client.index, None)
        self.log(present=len(self.clients))

    def end_rounds(self) -> None:
        """Be complete again, once the last round is done: everybody is tested and exported."""
        self.clients = self.everybody
        self.tested.clear()

    @property
    def present(self) -> torch.Tensor:
        """Return the places of `clients` among all that exist, int64 (clients,)."""
        places = {id(client): place for place, client in enumerate(self.everybody)}
        return torch.tensor([places[id(client)] for client in self.clients])

    def for_everybody(self, rows: torch.Tensor, absent: float) -> torch.Tensor:
        """Return rows of `clients` in their places among all that exist.

        Args:
            rows: (clients, …).
            absent: What rows of the absent are filled with.
        """
        placed = rows.new_full((len(self.everybody), *rows.shape[1:]), absent)
        placed[self.present] = rows
        return placed

    # --- training -----------------------------------------------------------------------------

    def train_private(
        self,
        *,
        with_public: bool = False,
        proximal_mu: float = 0.0,
        prox_centers: torch.Tensor | None = None,
    ) -> None:
        """Every client trains on its labelled private samples, as `spec.local` says.

        Args:
            with_public: Add the public samples, with their labels (the fully informed reference).
            proximal_mu: μ of a proximal term μ/2 ‖w - w_0‖² (FedProx).
            prox_centers: w_0 of each client, (clients, parameters); None takes where it starts.
        """
        if self.spec.optimizer.reset_every == "round":
            for client in self.clients:
                client.renew_optimizer()

        def task(i: int, client: Client) -> ClientTask:
            indices = torch.cat([client.private, self.public]) if with_public else client.private
            start = client.vector.detach() if prox_centers is None else prox_centers[i]
            return ClientTask(
                client=client,
                indices=indices,
                batches=self._batches("private", client, len(indices)),
                labels=self.data.labels[indices],
                augment=self._augmentation(client),
                prox_center=start.clone() if proximal_mu else None,
                proximal_mu=proximal_mu,
                phase="private training",
            )

        tasks = [task(i, client) for i, client in enumerate(self.clients)]
        losses = self._train(tasks, "loss_private")
        self.private_losses |= {c.index: loss for c, loss in zip(self.clients, losses, strict=True)}

    def distil(
        self,
        indices: torch.Tensor,
        targets: torch.Tensor | None,
        *,
        label_weight: float = 0.0,
        once: bool = False,
        learners: Sequence[Client] | None = None,
    ) -> None:
        """Every client trains on the samples `indices`, as long as `spec.local` says.

        Args:
            indices: Which samples, int64 (n,).
            targets: Distributions (n, classes), the same for everybody, or (learners, n, classes);
                (n, T, classes) or (learners, n, T, classes) where each position has one. Rows of
                another sum weigh as much. None for none.
            label_weight: Weight of the cross-entropy with the samples' labels.
            once: Do a single step on all samples instead.
            learners: Who trains, if not all clients.
        """
        soft = None if targets is None else targets.to(torch.float32)
        whole = [torch.arange(len(indices))]
        trained = self.clients if learners is None else learners
        shared = self.data.labels.dim() + 1  # axes of targets that are the same for everybody
        own = [soft] * len(trained) if soft is None or soft.dim() == shared else list(soft)
        tasks = [
            ClientTask(
                client=client,
                indices=indices,
                batches=whole if once else self._batches("distil", client, len(indices)),
                labels=self.data.labels[indices] if label_weight else None,
                label_weight=label_weight,
                soft=of_client,
                phase="distillation",
            )
            for client, of_client in zip(trained, own, strict=True)
        ]
        self._train(tasks, "loss_distil")

    def distil_server(self, targets: Targets, *, part: int = 1) -> None:
        """The server's model trains on the public samples, as `spec.server` says.

        Its optimizer is new. Samples with weight 0 are left out.

        Args:
            targets: What it shall predict on `public`.
            part: Which time it is in this round, if there are several.

        Raises:
            FedlogitError: if there is no target with a weight.
        """
        server, how = self.server, self.spec.server
        assert server is not None
        assert how is not None
        weighed = targets.weights > 0
        if not weighed.any():
            raise FedlogitError(
                f"method {self.spec.method.name}: no public sample has a target to learn from"
            )
        server.renew_optimizer()
        indices = self.public[weighed]
        task = ClientTask(
            client=server,
            indices=indices,
            batches=minibatches(
                len(indices),
                how.batch or self.spec.batch,
                self.torch_rng("batches/teach", self.round, part),
                epochs=how.epochs,
                steps=None,
            ),
            soft=targets.weighted()[weighed].to(self.data.device, torch.float32),
            augment=(
                None if how.augment == "none" else self.torch_rng("augment/teach", self.round, part)
            ),
            phase="distillation",
        )
        self._train([task], "loss_server", self.server_engine)

    def train_models(self, models: Sequence[Client], labels: Sequence[torch.Tensor]) -> None:
        """Train models that are not the clients' own, as long as `spec.local` says.

        Args:
            models: Each with its samples and a role, which is part of all its random addresses.
            labels: Each one's labels, int64 (its samples,).
        """
        tasks = [
            ClientTask(
                client=model,
                indices=model.private,
                batches=self._batches(model.role, model, model.samples),
                labels=given,
                augment=self._augmentation(model),
                phase="training",
            )
            for model, given in zip(models, labels, strict=True)
        ]
        self._train(tasks, "loss_private")

    def _batches(self, phase: str, client: Client, n: int) -> list[torch.Tensor]:
        local = self.spec.local
        generator = self.torch_rng(f"batches/{phase}", client.index, self.round)
        new = self._first.get(client.index) == self.round
        epochs = local.epochs_in(1 if new else self.round)
        return minibatches(n, self.spec.batch, generator, epochs=epochs, steps=local.steps)

    def _augmentation(self, client: Client) -> torch.Generator | None:
        if self.spec.augment == "none":
            return None
        purpose = f"augment/{client.role}" if client.role else "augment"
        return self.torch_rng(purpose, client.index, self.round)

    def _train(
        self, tasks: Sequence[ClientTask], column: str, engine: Engine | None = None
    ) -> list[float]:
        """Run tasks and log the mean of their losses as `column`; return each one's loss."""
        factor = self.spec.schedule.factor(self.round)
        for task in tasks:
            if self.spec.optimizer.reset_every == "phase":
                task.client.renew_optimizer()
            task.client.set_rate(factor)
        with nullcontext() if engine else self._clients_work():
            losses = (engine or self.engine).train(tasks)
        self.log(**{column: float(np.mean(losses))})
        return losses

    @contextmanager
    def _clients_work(self) -> Iterator[None]:
        """Add the time that clients' models train or predict to the round's `seconds_clients`."""
        start = time.perf_counter()
        yield
        before = self._log.get("seconds_clients", 0.0)
        self.log(seconds_clients=before + time.perf_counter() - start)

    # --- predictions --------------------------------------------------------------------------

    def logits(self, indices: torch.Tensor, models: Sequence[Client] | None = None) -> torch.Tensor:
        """Return logits of every client, or of `models`, on the same samples.

        Models run in evaluation mode on images without augmentation.

        Returns:
            float32 (clients, n, classes), or (clients, n, T, classes) where each position has one;
            the same holds below.

        Raises:
            Diverged: here and below, naming a model with a logit that is not finite: its argmax
                would be a class all the same.
        """
        asked = self.clients if models is None else models
        with self._clients_work():
            return self._answers(asked, self._inputs(indices), len(indices))

    def server_logits(self, indices: torch.Tensor) -> torch.Tensor:
        """Return the server's logits, float32 (n, classes)."""
        assert self.server is not None
        return _finite(self.server, self._joined(self.server, self._inputs(indices)))

    def own_logits(self, indices: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return each client's logits on its own list of samples, float32 (n_i, classes)."""
        own = {id(client): part for client, part in zip(self.clients, indices, strict=True)}

        def answer(client: Client) -> torch.Tensor:
            return _finite(client, self._joined(client, self._inputs(own[id(client)])))

        with self._clients_work():
            return self.engine.map(answer, self.clients)

    def test_logits(self) -> torch.Tensor:
        """Return every client's logits on the test split, float32 (clients, n, classes)."""
        batches = (self.data.test_inputs(part) for part in self._test_parts())
        return self._answers(self.clients, batches, len(self.data.x_test))

    def _answers(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor], samples: int
    ) -> torch.Tensor:
        logits = torch.empty(len(models), samples, self.classes, device=self.data.device)
        start = 0
        for rows in self.engine.predict(
            models, batches
        ):  # not joined, which takes twice the memory
            if not start:
                logits = rows.new_empty(len(models), samples, *rows.shape[2:])
            logits[:, start : start + rows.shape[1]] = rows
            start += rows.shape[1]
        for model, own in zip(models, logits, strict=True):
            _finite(model, own)
        return logits

    def _joined(self, model: Client, batches: Iterable[torch.Tensor]) -> torch.Tensor:
        outputs = list(self.engine.predict_one(model, batches))
        if not outputs:
            return torch.empty(0, self.classes, device=self.data.device)
        return torch.cat(outputs)

    def _inputs(self, indices: torch.Tensor) -> Iterable[torch.Tensor]:
        """Return the samples of each forward pass."""
        return (self.data.inputs(part) for part in cut(indices, self.data.batch))

    def _test_parts(self) -> list[slice]:
        """Return the test samples of each forward pass."""
        parts = cut(torch.arange(len(self.data.x_test)), self.data.batch)
        return [slice(int(part[0]), int(part[-1]) + 1) for part in parts]

    def evaluate(self) -> Scores:
        """Return the test scores of the global model, or of every honest client without one.

        Clients that are absent are tested, too, with the models that wait for them.

        Raises:
            Diverged: naming the first model whose cross-entropy is not finite.
        """
        honest = self.everybody[: len(self.everybody) - self.adversaries]
        tested = [self.server] if self.server else honest
        scores = score(self._counts_of_all(tested))
        for model, loss in zip(tested, scores.loss, strict=True):
            if not np.isfinite(loss):
                raise Diverged(f"cross-entropy of {model.label} on the test split is {loss}")
        if self.server is None and self.spec.participation is not None:
            there = np.isin([model.index for model in tested], self.present)
            self.log(accuracy_present=float(scores.per_client[there].mean()))
        return scores

    def _counts_of_all(self, models: Sequence[Client]) -> list[EvalCounts]:
        """Return what each model gets right; one that has waited since its last test, as then."""
        if self.server or self.spec.participation is None:
            return self.test_counts(models)
        left = [model for model in models if model.index not in self.tested]
        found = self.test_counts(left) if left else []
        self.tested |= {model.index: counts for model, counts in zip(left, found, strict=True)}
        return [self.tested[model.index] for model in models]

    def test_counts(self, models: Sequence[Client]) -> list[EvalCounts]:
        """Return what each model gets right on the test split."""
        parts = self._test_parts()
        batches = (self.data.test_inputs(part) for part in parts)
        sums: list[EvalCounts] = []
        for part, logits in zip(parts, self.engine.predict(models, batches), strict=True):
            found = count_correct(logits, self.data.test_labels[part])
            sums = list(map(add, sums, found)) if sums else found
        return sums

    # --- models -------------------------------------------------------------------------------

    def vectors(self) -> torch.Tensor:
        """Return a copy of all clients' parameters, float32 (clients, parameters).

        Raises:
            FedlogitError: if the clients' architectures differ.
        """
        same_architecture(self.clients, self.spec.method.name)
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
                from the first of `clients`.

        Raises:
            FedlogitError: if the clients' architectures differ, or the weights do not sum to 1.
        """
        same_architecture(self.clients, self.spec.method.name)
        return average_states([client.state() for client in self.clients], weights)

    def broadcast(self, state: State, *, backbone_only: bool = False) -> None:
        """Every client takes over `state`; with `backbone_only` it keeps its own last layer."""
        for client in self.clients:
            client.load(state, keep=client.head_mask() if backbone_only else None)

    # --- messages -----------------------------------------------------------------------------

    def uplink(self, kind: str, messages: torch.Tensor, *, bits: int | None = None) -> torch.Tensor:
        """Send a message of each client to the server, which is counted; return what it reads.

        Args:
            kind: What the message is: ``logits``, ``model``, ``votes``, … Of logits the server
                reads what clients claim (see `claimed`).
            messages: A row a client, (clients, …).
            bits: Bits that an element takes when sent, where that is not its dtype's size.
        """
        sent = self.claimed(messages, kind) if kind in _PREDICTIONS else messages
        self.ledger.up(kind, sent, bits=bits)
        return sent

    def claimed(self, logits: torch.Tensor, kind: str) -> torch.Tensor:
        """Return the clients' logits as they send them: false ones of adversaries that falsify.

        Args:
            logits: Of `clients`, (clients, n, classes), or (clients, n, T, classes).
            kind: What is sent, which is part of the address of what is random about it.

        Returns:
            Like `logits`, and `logits` itself where `spec.adversaries` falsifies no predictions.
        """
        how = self.spec.adversaries
        if how is None or not how.of_predictions:
            return logits
        sent, honest = logits.clone(), len(self.everybody) - self.adversaries
        for place, client in enumerate(self.clients):
            if client.index >= honest:
                self._falsified = self.round
                generator = self.torch_rng(f"false_logits/{kind}", client.index, self.round)
                sent[place] = false_logits(logits[place], how, generator)
        return sent

    def check_attack(self) -> None:
        """Refuse a round whose messages an attack on predictions passed by, once it is done.

        A method's first rounds may send nothing at all.

        Raises:
            FedlogitError: if clients sent messages, adversaries too, and none was of predictions.
        """
        how, honest = self.spec.adversaries, len(self.everybody) - self.adversaries
        if how is None or not how.of_predictions or self._falsified == self.round:
            return
        sent = sorted(self.ledger.sent_up(self.round))
        if sent and any(client.index >= honest for client in self.clients):
            raise FedlogitError(
                f"method {self.spec.method.name}: adversaries.attack = {how.attack!r} changed no"
                f" message of round {self.round}, in which clients sent {', '.join(sent)}; send"
                f" predictions as {' or '.join(_PREDICTIONS)}, or make messages of fed.claimed(…)"
            )

    def downlink(
        self,
        kind: str,
        message: torch.Tensor,
        *,
        bits: int | None = None,
        receivers: int | None = None,
    ) -> torch.Tensor:
        """Send a message of the server to every client, or to so many; return what they read.

        Args:
            kind: As for `uplink`.
            message: Its numbers, the same for all receivers.
            bits: As for `uplink`.
            receivers: How many clients it goes to; None is all of them.
        """
        to = len(self.clients) if receivers is None else receivers
        self.ledger.down(kind, message, clients=to, bits=bits)
        return message

    def exchange(
        self, kind: str, messages: torch.Tensor, *, links: int | None = None
    ) -> torch.Tensor:
        """Send a message of each client to other clients; return what these read.

        Args:
            kind: As for `uplink`.
            messages: A row a client, (clients, …).
            links: How many ordered pairs are connected; None connects everybody.
        """
        self.ledger.exchange(kind, messages, links=links)
        return messages

    # --- samples ------------------------------------------------------------------------------

    def labels(self, indices: torch.Tensor) -> torch.Tensor:
        """Return labels, int64 (n,) or (n, T); a method may use those of private samples only."""
        return self.data.labels[indices]

    def probes(self, size: int, anchors: int = 0) -> torch.Tensor:
        """Return public samples of this round, the same for all clients, int64 (size,).

        Args:
            size: How many.
            anchors: How many of them shall have labels, where the public set is another data set's.
        """
        generator = self.rng("probes", self.round)
        if not anchors:
            return self._drawn(self.public, size, generator)
        known = self.data.labels[self.public] != UNKNOWN
        return torch.cat(
            [
                self._drawn(self.public[known], anchors, generator),
                self._drawn(self.public[~known], size - anchors, generator),
            ]
        )

    def _drawn(self, pool: torch.Tensor, size: int, generator: np.random.Generator) -> torch.Tensor:
        chosen = generator.choice(len(pool), size, replace=False)
        return pool[torch.as_tensor(chosen, device=pool.device)]

    def rng(self, purpose: str, *ids: int) -> np.random.Generator:
        """Return the run's generator for a purpose (see `fedlogit.rng`)."""
        return rng(self.spec.seed, purpose, *ids)

    def torch_rng(self, purpose: str, *ids: int) -> torch.Generator:
        """Return the run's PyTorch generator for a purpose."""
        return torch_rng(self.spec.seed, purpose, *ids)

    # --- records ------------------------------------------------------------------------------

    def accuracy(self, logits: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """Return how often the largest logit is the true class: (..., n, classes) -> (...).

        Where samples have several positions, the mean is over these too. Samples whose label nobody
        knows do not count; NaN if there are no others.
        """
        labels = self.data.labels[indices]
        return (logits.argmax(-1) == labels)[..., labels != UNKNOWN].double().mean(-1)

    def accuracy_on_public(self, targets: torch.Tensor, known: torch.Tensor | None = None) -> float:
        """Return how often the largest target is the true class; for diagnostics only.

        Args:
            targets: (points, classes), or (points, T, classes).
            known: Count these only, bool (points,); None counts all. Those whose label nobody
                knows never count; NaN if there are no others.
        """
        labels = self.data.labels[self.public]
        right, labelled = (targets.argmax(-1) == labels).float(), labels != UNKNOWN
        if not labelled.all():
            known = labelled if known is None else known & labelled
        return float(right.mean() if known is None else right[known].mean())

    def log(self, **values: float) -> None:
        """Add columns to this round's row of `rounds.csv`.

        Raises:
            FedlogitError: for a value that is no number.
        """
        for name, value in values.items():
            if not isinstance(value, numbers.Real):
                raise FedlogitError(
                    f"method {self.spec.method.name}: log({name}=…) got a {type(value).__name__};"
                    " give a number"
                )
        self._log.update(values)

    def contribute(self, shares: Sequence[float]) -> None:
        """Record how much each client contributed: columns ``contribution_0``, … of the round.

        Args:
            shares: Of `clients`; the absent contribute 0.
        """
        of_all = self.for_everybody(torch.tensor(shares, dtype=torch.float64), absent=0)
        self.log(**{f"contribution_{i}": share for i, share in enumerate(of_all.tolist())})

    def export(self, name: str, **arrays: torch.Tensor) -> None:
        """Remember arrays for ``exports/<name>.npz``, written at the end if the spec asks."""
        known = self.exported.setdefault(name, {})
        known.update({key: value.cpu().numpy() for key, value in arrays.items()})

    def take_log(self) -> dict[str, float]:
        """Return and clear this round's columns; none where nobody trains or predicts."""
        log, self._log = self._log, {}
        return {} if self.spec.ledger_only else log


def _finite(model: Client, logits: torch.Tensor) -> torch.Tensor:
    """Return a model's logits as they are.

    Raises:
        Diverged: if one is not finite.
    """
    if not logits.isfinite().all():
        raise Diverged(f"logits of {model.label} are not finite")
    return logits
