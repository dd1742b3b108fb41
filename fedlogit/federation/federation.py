"""A federation and its operations: train_private, logits, distil, merge, broadcast, and messages.

Messages go by uplink and downlink between clients and server, and by exchange between peers. How
clients are run is left to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.targets import as_targets
from fedlogit.data import UNKNOWN
from fedlogit.engine.base import Engine
from fedlogit.engine.build import build_client
from fedlogit.engine.client import Client, State
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.evaluation import EvalCounts, Scores, personalized_accuracy, score
from fedlogit.engine.grouping import group_by
from fedlogit.engine.task import ClientTask
from fedlogit.errors import FedlogitError
from fedlogit.federation.averaging import average_states, same_architecture
from fedlogit.federation.channel import Channel, Senders
from fedlogit.federation.client_tasks import (
    PHASES,
    RoundContext,
    distillation_tasks,
    model_tasks,
    private_tasks,
    server_tasks,
)
from fedlogit.federation.predictions import Predictions, finite_scores
from fedlogit.federation.probes import accuracy, draw_probes
from fedlogit.federation.round_log import RoundLog
from fedlogit.federation.round_steps import RoundSteps
from fedlogit.federation.shape_checks import check_soft_targets
from fedlogit.partition import Split
from fedlogit.rng import rng, torch_rng
from fedlogit.spec import RunSpec

__all__ = ["Federation"]

R = TypeVar("R")


class Federation:
    """Clients, a public set, a server's state, and a ledger.

    Attributes:
        spec: The run's settings.
        all_clients: All clients that exist; `Client.index` is a client's number for good.
        clients: Those present in this round, in the same order: they train, send and receive.
            Without `spec.participation` it is `all_clients`.
        server: The server's model, for a method that has one; else None.
        classes: Number of classes C.
        data: The data set on its device.
        public: Indices of the public samples, int64 (points,); their labels stay with `data`.
        private_samples: Indices of all samples that any client has, each once, sorted.
        validation: Indices of the training samples that ``validation_accuracy`` is measured on,
            int64; empty if the spec wants none beside the test split.
        counts: Samples of each class at each client, int64 (clients, classes); for diagnostics.
        class_mask: Which classes each client holds, bool (clients, classes).
        roles: Rare classes and free riders of the partition; for diagnostics.
        ledger: Bytes sent.
        server_state: What a method remembers between rounds, by name; saved in checkpoints.
        exported: What a method wants exported, by file and array; the last value counts.
        round: The current round, from 1.
        adversaries: How many of the last of `all_clients` send false messages; they are not tested.
        private_losses: Mean loss over samples, in nats, of each client's last `train_private`, by
            its number.
        tested: Test counts of clients that have been absent since they were tested, by number.
        facts: What decides the bits besides the state (`Provenance.decisive`); a checkpoint and a
            client's part carry it, and go on only where it is the same.
        devices: Models of the devices that computed so far, in order; saved in checkpoints.
        steps: The long steps of the round that is going on (`once`); saved in checkpoints.
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
        adversaries: int = 0,
        validation: np.ndarray | None = None,
    ) -> None:
        """Put a federation together.

        Args:
            spec: The run's settings.
            data: The data set on its device.
            split: Its partition.
            clients: The participants.
            engine: Runs the clients.
            server: The server's model.
            server_engine: Trains the server's model and predicts with it; None is `engine`.
            adversaries: How many of the last clients send false messages.
            validation: Training samples to validate on beside the test split; None is none.
        """
        self.spec = spec
        self.data = data
        self.all_clients = self.clients = list(clients)
        self.server = server
        self.engine = engine
        self.server_engine = server_engine or engine
        self.classes = data.classes
        self.public = torch.as_tensor(split.public, dtype=torch.int64, device=data.device)
        held_out = split.public[:0] if validation is None else validation
        self.validation = torch.as_tensor(held_out, dtype=torch.int64, device=data.device)
        self.counts = split.counts
        self.class_mask = split.counts > 0
        self.roles = split.roles
        self.server_state: dict[str, torch.Tensor] = {}
        self.round = 0
        self.adversaries = adversaries
        self.private_losses: dict[int, float] = {}
        self.tested: dict[int, EvalCounts] = {}
        self.facts: dict[str, Any] = {}
        self.devices: list[str] = []
        self.private_samples = np.unique(np.concatenate(split.clients))
        self._first_rounds: dict[int, int] = {}
        if spec.participation is not None:
            first_rounds = spec.participation.first_rounds
            self._first_rounds = first_rounds(len(clients), spec.rounds, spec.seed)
        self._log = RoundLog(spec.method.name)
        self._channel = Channel(spec)
        self._predictions = Predictions(self.engine_of, data)
        self.ledger, self.exported = self._channel.ledger, self._log.exported
        self.steps = RoundSteps(spec.method.name, self.ledger, self._log)

    @property
    def public_known(self) -> bool:
        """Whether the label of any public sample is known, so that accuracy on them is defined."""
        return bool((self.data.labels[self.public] != UNKNOWN).any())

    @property
    def models(self) -> list[Client]:
        """All models there are: the clients', and the global one if there is one."""
        return self.all_clients if self.server is None else [*self.all_clients, self.server]

    def engine_of(self, model: Client) -> Engine:
        """Return what trains a model and predicts with it: a server's may not suit the clients'."""
        return self.server_engine if model is self.server else self.engine

    @property
    def context(self) -> RoundContext:
        """What this round's tasks depend on besides models and samples."""
        return RoundContext(self.spec, self.data, self.round, self._first_rounds)

    # --- which clients are present ------------------------------------------------------------

    @property
    def present_indices(self) -> torch.Tensor:
        """The places of `clients` in `all_clients`, int64 (clients,), on the CPU."""
        places = {id(client): place for place, client in enumerate(self.all_clients)}
        return torch.tensor([places[id(client)] for client in self.clients])

    def start_round(self, round_: int) -> None:
        """Begin round `round_`: who is present, under which round messages are booked.

        With ``optimizer.reset_every: round``, the clients that are present forget their optimizers'
        states, but not in a round that goes on where it was stopped.
        """
        self.round = round_
        goes_on = self.steps.begin()
        self.ledger.start(round_)
        if self.spec.participation is not None:
            everybody = len(self.all_clients)
            present = self.spec.participation.present(round_, everybody, self.spec.seed)
            self.clients = [self.all_clients[i] for i in present]
            for client in self.clients:
                self.tested.pop(client.index, None)
            self.log(present=len(self.clients))
        if self.spec.optimizer.reset_every == "round" and not goes_on:
            for client in self.clients:
                client.renew_optimizer()

    def end_rounds(self) -> None:
        """Make all clients present after the last round, so that all are tested and exported."""
        self.clients = self.all_clients
        self.tested.clear()

    @contextmanager
    def restricted_to(self, clients: Sequence[Client]) -> Iterator[None]:
        """Make only these clients present within a ``with``, also if it ends by an exception."""
        before, self.clients = self.clients, list(clients)
        try:
            yield
        finally:
            self.clients = before

    def scatter_rows(self, rows: torch.Tensor, absent: float) -> torch.Tensor:
        """Return rows of `clients` in their places among all that exist.

        Args:
            rows: (clients, …).
            absent: What rows of the absent are filled with.

        Returns:
            (clients that exist, …), of the dtype and on the device of `rows`.
        """
        placed = rows.new_full((len(self.all_clients), *rows.shape[1:]), absent)
        placed[self.present_indices] = rows
        return placed

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows of `clients` from those of all that exist; a view where all are there.

        Args:
            rows: (clients that exist, …).
        """
        complete = len(self.clients) == len(self.all_clients)
        return rows if complete else rows[self.present_indices]

    # --- training -----------------------------------------------------------------------------

    def train_private(
        self,
        *,
        with_public: bool = False,
        proximal_mu: float = 0.0,
        prox_centers: torch.Tensor | None = None,
        part: int = 1,
    ) -> None:
        """Every client trains on its labelled private samples, as `spec.local` says.

        Args:
            with_public: Add the public samples, with their labels (the fully informed reference).
            proximal_mu: μ of a proximal term μ/2 ‖w - w_0‖² (FedProx).
            prox_centers: w_0 of each client, (clients, parameters); None takes where it starts.
            part: Which time it is in this round, from 1, if they train several times: each draws
                minibatches and crops of its own.

        Raises:
            Diverged: if a client's loss is no longer finite.
        """
        shared = self.public if with_public else self.public[:0]
        tasks = private_tasks(self.context, self.clients, shared, prox_centers, proximal_mu, part)
        losses = self._train(tasks)
        self.log(loss_private=float(np.mean(losses)))
        self.private_losses |= {c.index: loss for c, loss in zip(self.clients, losses, strict=True)}

    def distil(
        self,
        indices: torch.Tensor,
        targets: torch.Tensor | None,
        *,
        label_weight: float = 0.0,
        once: bool = False,
        learners: Sequence[Client] | None = None,
        part: int = 1,
    ) -> None:
        """All clients, or `learners`, train on the same samples, as long as `spec.local` says.

        The mean of their losses over samples, in nats, is the round's column ``loss_distil``;
        of several calls in a round, the last one's.

        Args:
            indices: The samples, int64 (n,).
            targets: What they shall predict: probabilities, (n, classes), the same for all, or
                (learners, n, classes), each its own; (n, T, classes) or (learners, n, T, classes)
                where each of T positions has one. A row that does not sum to 1 weighs as much as it
                sums to. None: only labels are learned.
            label_weight: Weight of the cross-entropy with the samples' labels, beside that with
                `targets`; 0 looks at no label.
            once: Do a single step on all samples together instead.
            learners: Who trains, models of any architectures; None is `clients`.
            part: Which time it is in this round, from 1, if they are distilled several times: each
                draws minibatches of its own.

        Raises:
            FedlogitError: if there are no samples, or targets that are no distributions on them.
            Diverged: if a learner's loss is no longer finite.
        """
        if not len(indices):
            raise FedlogitError(
                f"method {self.spec.method.name} distils on no samples; give public: {{size: …}}"
                " (a method of yours may say needs_public = True)"
            )
        trained = self.clients if learners is None else learners
        if targets is not None:
            check_soft_targets(targets, self._call("distil"), self._shape(indices), len(trained))
        tasks = distillation_tasks(
            self.context, trained, indices, targets, label_weight, once, part
        )
        self.log(loss_distil=float(np.mean(self._train(tasks))))

    def distil_server(self, targets: Targets | torch.Tensor, *, part: int = 1) -> None:
        """The server's model trains on `public` with a new optimizer, as `spec.server` says.

        The mean of its losses over samples, in nats, is the round's column ``loss_server``;
        of several calls in a round, the last one's.

        Args:
            targets: What it shall predict on the public samples, a row a sample in the order of
                `public`; those with weight 0 are left out. Distributions alone, (points, classes)
                or (points, T, classes), all weigh 1.
            part: Which time it is in this round, from 1, if it learns several times.

        Raises:
            FedlogitError: if the server has no model of its own, if targets are no distributions on
                the public samples, or if none has a weight.
            Diverged: if its loss is no longer finite.
        """
        if self.server is None or self.spec.server is None:
            raise FedlogitError(
                f"{self._call('distil_server')} needs server_model = True, and a server in the spec"
            )
        given = self._server_targets(targets)
        tasks = server_tasks(self.context, self.server, self.public, given, part)
        self.server.renew_optimizer()
        self.log(loss_server=float(np.mean(self._train(tasks))))

    def _server_targets(self, targets: Targets | torch.Tensor) -> Targets:
        """Return targets on the public samples, if that is what they are."""
        call, shape = self._call("distil_server"), self._shape(self.public)
        rows = targets.distributions if isinstance(targets, Targets) else targets
        check_soft_targets(rows, call, shape)
        if not isinstance(targets, Targets):
            return as_targets(targets, targets[None], self.spec.method.name)
        if targets.weights.shape != shape[:1]:
            raise FedlogitError(
                f"{call} got weights of shape {tuple(targets.weights.shape)}; give {shape[:1]}"
            )
        return targets

    def _shape(self, samples: torch.Tensor) -> tuple[int, ...]:
        """Return the shape of one model's predictions: (n, classes), or (n, T, classes)."""
        return len(samples), *self.data.labels.shape[1:], self.classes

    def train_models(
        self, models: Sequence[Client], labels: Sequence[torch.Tensor], *, part: int = 1
    ) -> list[float]:
        """Train models that are not the clients' own, as long as `spec.local` says of round 1.

        Args:
            models: Of `new_models`, each with its samples.
            labels: Each one's labels of its samples, int64 (its samples,).
            part: Which time it is in this round, from 1, if the same are trained several times:
                each draws minibatches and crops of its own.

        Returns:
            The mean loss of each, in nats. It is not logged, as models differ in what they learn.

        Raises:
            Diverged: if the loss of one is no longer finite.
        """
        return self._train(model_tasks(self.context, models, labels, part))

    def new_models(self, owner: Client, role: str, samples: Sequence[torch.Tensor]) -> list[Client]:
        """Return untrained models of a client's architecture, one for each list of samples.

        Args:
            owner: The client whose models they are.
            role: What they are; part of the address of all that is random about them.
            samples: What each trains on, int64 indices.

        Raises:
            FedlogitError: if the role is a phase's name, whose random numbers theirs would be.
        """
        if role in PHASES:
            raise FedlogitError(
                f"{self._call('new_models')}: role = {role!r} is the name of a phase; give another"
            )
        architecture = self.spec.models[owner.index % len(self.spec.models)]
        models = []
        for i, indices in enumerate(samples):
            weights = self.torch_rng(f"init/{role}", owner.index, i)
            model = build_client(
                architecture, self.data, owner.index, weights, indices, self.spec.optimizer
            )
            model.role = f"{role}/{i}"
            models.append(model)
        return models

    def for_each(self, models: Sequence[Client], function: Callable[[Client], R]) -> list[R]:
        """Return ``[function(model) for model in models]``, several side by side in threads.

        Args:
            models: Of any architectures.
            function: It may change its own model only, and calls `leave_if_cancelled` now and then
                if it takes long.
        """
        return self.engine.map(function, models)

    def leave_if_cancelled(self) -> None:
        """Leave a function of `for_each` early, by an exception, where another one has failed."""
        self.engine.pool.check()

    def _train(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run tasks, each on its model's engine; return the mean loss of each."""
        factor = self.spec.schedule.factor(self.round)
        for task in tasks:
            if self.spec.optimizer.reset_every == "phase":
                task.client.renew_optimizer()
            task.client.set_rate(factor)
        losses = [0.0] * len(tasks)
        for rows in group_by(self.engine_of(task.client) for task in tasks):
            found = self._train_together([tasks[i] for i in rows])
            for i, loss in zip(rows, found, strict=True):
                losses[i] = loss
        return losses

    def _train_together(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run tasks of models of one engine; time that the server's own take is not clients'."""
        of_clients = any(task.client is not self.server for task in tasks)
        with self._log.clients_work() if of_clients else nullcontext():
            return self.engine_of(tasks[0].client).train(tasks)

    # --- predictions: all of them float32, and all raise `Diverged` as `Predictions` does -------

    def logits(self, indices: torch.Tensor, models: Sequence[Client] | None = None) -> torch.Tensor:
        """Return logits of every client, or of `models`, on the same samples.

        Returns:
            (clients, n, classes), or (clients, n, T, classes) where each position has one; the same
            holds below.
        """
        with self._log.clients_work():
            return self._predictions.logits(self.clients if models is None else models, indices)

    def server_logits(self, indices: torch.Tensor) -> torch.Tensor:
        """Return the server's logits, (n, classes).

        Raises:
            FedlogitError: if the server has no model.
        """
        if self.server is None:
            raise FedlogitError(
                f"{self._call('server_logits')} needs server_model = True, and a server in the"
                " spec; or global_model = True"
            )
        return self._predictions.logits_of(self.server, indices)

    def own_logits(self, indices: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return each client's logits on its own list of samples, (n_i, classes)."""
        own = {id(client): part for client, part in zip(self.clients, indices, strict=True)}
        with self._log.clients_work():
            return self.engine.map(
                lambda client: self._predictions.logits_of(client, own[id(client)]), self.clients
            )

    def test_logits(self) -> torch.Tensor:
        """Return every client's logits on the test split, (clients, n, classes)."""
        return self._predictions.test_logits(self.clients)

    def test_counts(self, models: Sequence[Client]) -> list[EvalCounts]:
        """Return what each model gets right on the test split."""
        return self._predictions.test_counts(models)

    def evaluate(self) -> Scores:
        """Return the test scores of the global model, or of every honest client without one.

        Clients that are absent are tested, too, with the models that wait for them. Logs the
        columns that need more than a model's scores: ``personalized_accuracy`` of all honest
        clients, but for texts; ``validation_accuracy`` with `evaluation.with_test`; and
        ``accuracy_present`` where some may be absent.

        Raises:
            Diverged: naming the first model whose cross-entropy is not finite.
        """
        honest = self.all_clients[: len(self.all_clients) - self.adversaries]
        tested = [self.server] if self.server else honest
        scores = finite_scores(tested, self._counts_of_all(tested))
        if self.spec.text is None:
            counts = self.counts[[client.index for client in honest]]
            self.log(personalized_accuracy=personalized_accuracy(scores.recall, counts))
        if len(self.validation):
            validated = score(self._predictions.counts(tested, self.validation))
            self.log(validation_accuracy=float(validated.per_client.mean()))
        if self.server is None and self.spec.participation is not None:
            there = np.isin([model.index for model in tested], self.present_indices)
            self.log(accuracy_present=float(scores.per_client[there].mean()))
        return scores

    def _counts_of_all(self, models: Sequence[Client]) -> list[EvalCounts]:
        """Return what each model gets right; one absent since its last test is not tested again."""
        if self.server or self.spec.participation is None:
            return self.test_counts(models)
        left = [model for model in models if model.index not in self.tested]
        found = self.test_counts(left) if left else []
        self.tested |= {model.index: counts for model, counts in zip(left, found, strict=True)}
        return [self.tested[model.index] for model in models]

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
        """Every client takes over a model; nothing is sent (see `downlink`).

        Args:
            state: Parameters and buffers of the clients' architecture, as from `merge`.
            backbone_only: Each client keeps its own last layer.
        """
        for client in self.clients:
            client.load(state, keep=client.head_mask() if backbone_only else None)

    # --- messages, as `Channel` sends them: counted, and predictions falsified or rounded ---------

    def uplink(self, kind: str, messages: torch.Tensor, *, bits: int | None = None) -> torch.Tensor:
        """Send a message of each client to the server.

        Args:
            kind: What the message is: ``logits``, ``model``, ``votes``, …; its bytes are in the
                column ``bytes_up.<kind>``. Of ``logits`` and ``auxiliary_logits`` the server reads
                what clients claim (see `claimed`). With `spec.quantization` these and
                ``probabilities`` are rounded.
            messages: A row for each sender, (clients, …), of any dtype. Of predictions, which are
                ``logits``, ``auxiliary_logits`` and ``probabilities``, that is each of `clients`.
            bits: Bits that an element takes when sent, where a message is packed; None is the size
                of its dtype. A message takes whole bytes. What a method packs itself is not
                rounded.

        Returns:
            What the server reads, like `messages`; `messages` itself where nothing changes it.

        Raises:
            FedlogitError: if they are no tensor, or predictions without a row for each client.
        """
        return self._channel.uplink(kind, messages, self._senders, bits)

    def claimed(self, logits: torch.Tensor, kind: str) -> torch.Tensor:
        """Return the clients' logits as they send them: false ones of adversaries that falsify.

        Args:
            logits: A row for each of `clients`, (clients, n, classes) or (clients, n, T, classes).
            kind: What is made of them; part of the address of what is random about false ones.

        Returns:
            Like `logits`; `logits` itself where nobody falsifies any.

        Raises:
            FedlogitError: if there is not a row for each of them.
        """
        return self._channel.claimed(logits, kind, self._senders)

    def downlink(
        self,
        kind: str,
        message: torch.Tensor,
        *,
        bits: int | None = None,
        receivers: int | None = None,
        distributions: bool = False,
    ) -> torch.Tensor:
        """Send one message to every client, or to so many of them.

        Args:
            kind: As for `uplink`; its bytes are in the column ``bytes_down.<kind>``.
            message: What each of them gets, of any shape and dtype: it has no axis of clients.
                Predictions are (points, classes), or (points, T, classes).
            bits: As for `uplink`.
            receivers: How many clients get it; None is all of `clients`. Where each gets a message
                of its own, send it to 1.
            distributions: Its rows sum to 1, or to what they weigh in the loss; where they are
                rounded, what clients read is scaled to the same sums.

        Returns:
            What they read, like `message`; `message` itself where nothing is rounded.

        Raises:
            FedlogitError: if it is no tensor, or predictions that have an axis more and go to all.
        """
        present = len(self.clients)
        return self._channel.downlink(kind, message, present, receivers, bits, distributions)

    def exchange(
        self, kind: str, messages: torch.Tensor, *, links: int | None = None
    ) -> torch.Tensor:
        """Send a message of each client to other clients, without a server.

        Args:
            kind: As for `uplink`. Bytes count as sent and as received: the columns
                ``bytes_up.<kind>`` and ``bytes_down.<kind>``.
            messages: A row for each sender, (clients, …), of any dtype; its elements take the size
                of their dtype.
            links: How many ordered pairs of clients are connected; None is all of them, where each
                of the N clients sends its row to the N - 1 others.

        Returns:
            What the others read, like `messages`; `messages` itself where nothing is rounded.
            Adversaries' rows are not falsified here.

        Raises:
            FedlogitError: as for `uplink`.
        """
        return self._channel.exchange(kind, messages, self._senders, links)

    def send_alike(self, name: str, step: Callable[[], None]) -> None:
        """Do a step whose messages are as long in every round; `ledger_only` does it once.

        Args:
            name: Tells a method's steps apart.
            step: Sends the messages.
        """
        step()

    def once(
        self, name: str, step: Callable[[], Mapping[str, torch.Tensor]]
    ) -> dict[str, torch.Tensor]:
        """Do a long step of the round, which a run that is stopped after it does not repeat.

        A run that goes on within a round does the round anew, from models as the last step left
        them, and gets what each step had returned, sent and logged in place of doing it. So models
        and `server_state` are changed in steps alone, or by what comes after the last one; what is
        outside may be done twice.

        Args:
            name: Tells the round's steps apart.
            step: Does it; returns tensors by name, which are all that the rest of the round may
                take from it, besides models.

        Returns:
            What the step returned.

        Raises:
            FedlogitError: for a name twice in a round, or a step within another.
        """
        return self.steps.once(name, step)

    def check_round(self) -> None:
        """Refuse a round that is done if an attack or quantization passed its messages by.

        Raises:
            FedlogitError: naming the setting, and the kinds of the messages that were sent.
        """
        self._channel.check_round(self._senders)

    def _call(self, operation: str) -> str:
        """Return which method calls an operation, as errors name it."""
        return f"method {self.spec.method.name}: fed.{operation}"

    @property
    def _senders(self) -> Senders:
        return Senders(self.clients, len(self.all_clients) - self.adversaries, self.round)

    # --- samples ------------------------------------------------------------------------------

    def labels(self, indices: torch.Tensor) -> torch.Tensor:
        """Return labels, int64 (n,) or (n, T).

        A method may use those of public samples only if it says so (`learns_public_labels`).
        """
        return self.data.labels[indices]

    def probes(self, size: int, anchors: int = 0) -> torch.Tensor:
        """Return public samples of this round, the same for all clients, int64 (size,).

        Args:
            size: How many.
            anchors: How many of them shall have labels, where the public set is another data set's.

        Raises:
            FedlogitError: if there are fewer.
        """
        labels = self.data.labels[self.public]
        return draw_probes(self.public, labels, size, anchors, self.rng("probes", self.round))

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
        return accuracy(logits, self.data.labels[indices])

    def accuracy_on_public(self, targets: torch.Tensor, known: torch.Tensor | None = None) -> float:
        """Return how often the largest target is the true class; for diagnostics only.

        Args:
            targets: (points, classes), or (points, T, classes).
            known: Count these only, bool (points,); None counts all. Those whose label nobody
                knows never count; NaN if there are no others.
        """
        points = self.public
        if known is not None:
            targets, points = targets[known], points[known]
        return float(self.accuracy(targets, points))

    def log(self, **values: float) -> None:
        """Add columns, numbers, to this round's row of `rounds.csv`; see `RoundLog.log`."""
        self._log.log(**values)

    def contribute(self, shares: Sequence[float] | torch.Tensor) -> None:
        """Record how much each client contributed: columns ``contribution_0``, … of the round.

        Args:
            shares: Of `clients`; the absent contribute 0.

        Raises:
            FedlogitError: if there is not one for each of them.
        """
        own = torch.as_tensor(shares, dtype=torch.float64)
        if own.shape != (len(self.clients),):
            raise FedlogitError(
                f"method {self.spec.method.name}: contribute() needs a number for each of the"
                f" {len(self.clients)} clients that are present, not shape {tuple(own.shape)}"
            )
        of_all = self.scatter_rows(own, absent=0)
        self.log(**{f"contribution_{i}": share for i, share in enumerate(of_all.tolist())})

    def export(self, name: str, **arrays: torch.Tensor) -> None:
        """Remember arrays for ``exports/<name>.npz``, written at the end if the spec asks."""
        self._log.export(name, **arrays)

    def take_log(self) -> dict[str, float]:
        """Return and clear this round's columns."""
        return self._log.take_log()
