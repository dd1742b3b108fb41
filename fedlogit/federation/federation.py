"""The verbs that methods are written in: train_private, logits, distil, merge, broadcast.

`Federation` hides how clients run, not what they do: the same method gives the same numbers
whether clients run one after another or side by side in threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import add

import numpy as np
import torch

from fedlogit.aggregation.logit_maximisation import (
    Ascent,
    maximise_logits,
    maximise_stacked,
    models_at_once,
)
from fedlogit.data import UNKNOWN
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation.client import Client, State
from fedlogit.federation.evaluation import Marks, Scores, mark, score
from fedlogit.federation.gradient_noise import gradient_variance
from fedlogit.federation.stacked import a_few, alike, stacked_logits, stacked_outputs
from fedlogit.federation.training import Training
from fedlogit.rng import rng

__all__ = ["Federation"]

_PART = 5  # forward passes on test samples that one worker scores at a time


class Federation(Training):
    """Clients, a public set, a server's memory, and a ledger; its attributes are `Training`'s."""

    # --- predictions --------------------------------------------------------------------------

    def logits(self, points: torch.Tensor, models: Sequence[Client] | None = None) -> torch.Tensor:
        """Return logits of every client, or of `models`, on the same samples.

        Returns:
            float32 (clients, n, classes), or (clients, n, T, classes) where each position has one;
            the same holds below.

        Raises:
            Diverged: here and below, naming a model with a logit that is not finite: its argmax
                would be a class all the same.
        """
        if self.given and self.given.answers and models is None and points is self.public:
            return self.given.answers.public.to(self.data.device)
        asked = self.clients if models is None else models
        if self.spec.kernel == "stacked" and len({c.architecture for c in asked}) == 1:
            found = stacked_logits(asked, self.data, points, self.spec.precision)
            return torch.stack([_finite(*pair) for pair in zip(asked, found, strict=True)])
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
        parts = (self.data.inputs(part) for part in points.split(self.data.batch))
        return self._infer(client, parts)

    def _infer(self, client: Client, batches: Iterable[torch.Tensor]) -> torch.Tensor:
        outputs = list(self._outputs(client, batches))
        if not outputs:
            return torch.empty(0, self.classes, device=self.data.device)
        return _finite(client, torch.cat(outputs))

    def _outputs(self, client: Client, batches: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        """Yield the logits of one batch after another."""
        client.model.eval()
        bf16 = self.spec.precision == "bf16"
        for x in batches:
            self._executor.check()
            with (
                torch.no_grad(),
                torch.autocast(self.data.device.type, torch.bfloat16, enabled=bf16),
            ):
                logits = client.model(x).float()
            yield logits

    def test_logits(self) -> torch.Tensor:
        """Return every client's logits on the test split, float32 (clients, n, classes)."""
        return torch.stack(self._map(self._test_logits, self.clients))

    def _test_logits(self, client: Client) -> torch.Tensor:
        parts = self._test_parts(0, len(self.data.x_test))
        return self._infer(client, (self.data.test_inputs(part) for part in parts))

    def _test_parts(self, first: int, last: int) -> list[slice]:
        """Return the test samples of each forward pass."""
        size = self.data.batch
        return [slice(s, min(s + size, last)) for s in range(first, last, size)]

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
        if _stacked_pays(self.data.device, [client.architecture for client in models]):
            together = models_at_once(networks[0], images[0])
            return maximise_stacked(networks, images, classes, ascent, together)
        found = self._map(
            lambda job: maximise_logits(*job, classes, ascent),
            list(zip(networks, images, strict=True)),
        )
        logits, final = zip(*found, strict=True)
        return torch.stack(logits), torch.stack(final)

    def evaluate(self) -> Scores:
        """Return the test scores of the global model, or of every honest client without one.

        Raises:
            Diverged: naming the first model whose cross-entropy is not finite.
        """
        honest = self.clients[: len(self.clients) - self.liars]
        tested = [self.server] if self.server else honest
        scores = score(self.marks(tested))
        for model, loss in zip(tested, scores.loss, strict=True):
            if not np.isfinite(loss):
                raise Diverged(f"cross-entropy of {model.label} on the test split is {loss}")
        return scores

    def marks(self, models: Sequence[Client]) -> list[Marks]:
        """Return what each model gets right on the test split."""
        if self.spec.kernel != "stacked":
            return self._marked_apart(models)
        found: dict[int, Marks] = {}
        for rows in alike(model.architecture for model in models):
            chosen = [models[i] for i in rows]
            several = self._marked_together if len(rows) > 1 else self._marked_apart
            found |= zip(rows, several(chosen), strict=True)
        return [found[i] for i in range(len(models))]

    def _marked_together(self, models: Sequence[Client]) -> list[Marks]:
        """Mark models of one architecture, a few of them in one pass."""
        parts = self._test_parts(0, len(self.data.x_test))
        marked: list[Marks] = []
        for few in a_few(models):
            batches = (self.data.test_inputs(part) for part in parts)
            sums: list[Marks] = []
            outputs = stacked_outputs(few, batches, self.spec.precision)
            for part, logits in zip(parts, outputs, strict=True):
                self._executor.check()
                labels = self.data.test_labels[part]
                found = [mark(rows, labels) for rows in logits]
                sums = list(map(add, sums, found)) if sums else found
            marked += sums
        return marked

    def _marked_apart(self, models: Sequence[Client]) -> list[Marks]:
        """Mark one model after another, or several side by side in threads."""
        n, size = len(self.data.x_test), _PART * self.data.batch
        parts = [self._test_parts(s, min(s + size, n)) for s in range(0, n, size)]

        def marked(job: tuple[Client, list[slice]]) -> Marks:
            model, slices = job
            logits = self._outputs(model, (self.data.test_inputs(part) for part in slices))
            labels = (self.data.test_labels[part] for part in slices)
            return reduce(add, map(mark, logits, labels))

        found = self._executor.map(marked, [(model, part) for model in models for part in parts])
        return [reduce(add, found[i : i + len(parts)]) for i in range(0, len(found), len(parts))]

    def gradient_variance(
        self, batches: Sequence[torch.Tensor], targets: Sequence[Sequence[torch.Tensor]]
    ) -> torch.Tensor:
        """Return how much each client's distillation gradient varies, float64 (clients, kinds).

        Args:
            batches: Sample indices of each batch.
            targets: For each kind of target, the distributions of each batch.
        """
        found = self._map(
            lambda client: gradient_variance(client, self.data, batches, targets), self.clients
        )
        return torch.tensor(found, dtype=torch.float64)

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
        """Return labels, int64 (n,) or (n, T); a method may use those of private samples only."""
        return self.data.labels[points]

    def probes(self, size: int, anchors: int = 0) -> torch.Tensor:
        """Return public samples of this round, the same for all clients, int64 (size,).

        Args:
            size: How many.
            anchors: How many of them shall have labels, where the public set is another data set's.
        """
        generator = rng(self.spec.seed, "probes", self.round)
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
        """Return how often the largest logit is the true class: (..., n, classes) -> (...).

        Where samples have several positions, the mean is over these too. Samples whose label nobody
        knows do not count; NaN if there are no others.
        """
        labels = self.data.labels[points]
        return (logits.argmax(-1) == labels)[..., labels != UNKNOWN].double().mean(-1)

    def accuracy_on_public(self, targets: torch.Tensor, known: torch.Tensor | None = None) -> float:
        """Return how often the largest target is the true class; for diagnostics only.

        Args:
            targets: (points, classes), or (points, T, classes).
            known: Count these only, bool (points,); None counts all.
        """
        right = (targets.argmax(-1) == self.data.labels[self.public]).float()
        return float(right.mean() if known is None else right[known].mean())

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


def _stacked_pays(device: torch.device, architectures: Sequence[str]) -> bool:
    """Return whether models are probed together: on a GPU, if they are of one architecture."""
    return device.type == "cuda" and len(set(architectures)) == 1


def _finite(model: Client, logits: torch.Tensor) -> torch.Tensor:
    """Return a model's logits as they are.

    Raises:
        Diverged: if one is not finite.
    """
    if not logits.isfinite().all():
        raise Diverged(f"logits of {model.label} are not finite")
    return logits


def _average(tensors: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    """Average in float64, so that the order of clients matters only in the last bit of float32."""
    total = torch.zeros_like(tensors[0], dtype=torch.float64)
    for tensor, weight in zip(tensors, weights, strict=True):
        total.add_(tensor, alpha=weight)
    return total.to(tensors[0].dtype)
