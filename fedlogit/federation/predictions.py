"""Models' logits, one forward pass after another; those that are not finite are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import tee
from operator import add

import numpy as np
import torch

from fedlogit.engine.base import Engine
from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.evaluation import EvalCounts, Scores, count_correct, score
from fedlogit.engine.grouping import group_by
from fedlogit.engine.task import split_batches
from fedlogit.errors import Diverged

__all__ = ["Predictions", "finite_scores"]


class Predictions:
    """Predicts with models in evaluation mode, on samples without augmentation.

    Logits are float32 (n, classes), or (n, T, classes) where each position has one. All that
    returns some raises `Diverged`, naming the model, for a logit that is not finite: its argmax
    would be a class all the same.
    """

    def __init__(self, engine_of: Callable[[Client], Engine], data: DeviceData) -> None:
        """Predict with each model's own engine, on the samples of a data set."""
        self._engine_of = engine_of
        self._data = data

    def logits(self, models: Sequence[Client], indices: torch.Tensor) -> torch.Tensor:
        """Return logits of models on the same training samples, (models, n, classes)."""
        return self._stacked(models, self._inputs(indices), len(indices))

    def test_logits(self, models: Sequence[Client]) -> torch.Tensor:
        """Return logits of models on the test split, (models, n, classes)."""
        batches = (self._data.test_inputs(part) for part in self._test_parts())
        return self._stacked(models, batches, len(self._data.x_test))

    def logits_of(self, model: Client, indices: torch.Tensor) -> torch.Tensor:
        """Return one model's logits, (n, classes)."""
        parts = self._engine_of(model).predict_one(model, self._inputs(indices))
        return _finite(model, torch.cat(list(parts)))

    def test_counts(self, models: Sequence[Client]) -> list[EvalCounts]:
        """Return what each model gets right on the test split, finite or not."""
        parts = self._test_parts()
        batches = (self._data.test_inputs(part) for part in parts)
        return self._counts(models, batches, [self._data.test_labels[part] for part in parts])

    def counts(self, models: Sequence[Client], indices: torch.Tensor) -> list[EvalCounts]:
        """Return what each model gets right on training samples with labels, finite or not."""
        parts = split_batches(indices, self._data.batch)
        batches = (self._data.inputs(part) for part in parts)
        return self._counts(models, batches, [self._data.labels[part] for part in parts])

    def _counts(
        self,
        models: Sequence[Client],
        batches: Iterable[torch.Tensor],
        labels: Sequence[torch.Tensor],
    ) -> list[EvalCounts]:
        """Return sums over batches, so that no logits of all samples are kept."""
        sums: list[EvalCounts] = []
        for logits, true in zip(self._predict(models, batches), labels, strict=True):
            found = count_correct(logits, true)
            sums = list(map(add, sums, found)) if sums else found
        return sums

    def _predict(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yield logits as `Engine.predict`, each model's by its own engine."""
        engines = [self._engine_of(model) for model in models]
        groups = group_by(engines)
        if len(groups) == 1:  # not copied
            return engines[0].predict(models, batches)
        order = torch.tensor([i for rows in groups for i in rows]).argsort()
        found = [
            engines[rows[0]].predict([models[i] for i in rows], own)
            for rows, own in zip(groups, tee(batches, len(groups)), strict=True)
        ]
        return (torch.cat(parts)[order] for parts in zip(*found, strict=True))

    def _test_parts(self) -> list[slice]:
        """Return the test samples of each forward pass."""
        parts = split_batches(torch.arange(len(self._data.x_test)), self._data.batch)
        return [slice(int(part[0]), int(part[-1]) + 1) for part in parts]

    def _inputs(self, indices: torch.Tensor) -> Iterable[torch.Tensor]:
        """Return the samples of each forward pass."""
        return (self._data.inputs(part) for part in split_batches(indices, self._data.batch))

    def _stacked(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor], samples: int
    ) -> torch.Tensor:
        logits = torch.empty(len(models), samples, self._data.classes, device=self._data.device)
        start = 0
        # Not joined, which takes twice the memory.
        for rows in self._predict(models, batches):
            if not start:
                logits = rows.new_empty(len(models), samples, *rows.shape[2:])
            logits[:, start : start + rows.shape[1]] = rows
            start += rows.shape[1]
        for model, own in zip(models, logits, strict=True):
            _finite(model, own)
        return logits


def finite_scores(models: Sequence[Client], counts: list[EvalCounts]) -> Scores:
    """Return the scores of what each model got right.

    Raises:
        Diverged: naming the first model whose cross-entropy is not finite.
    """
    scores = score(counts)
    for model, loss in zip(models, scores.loss, strict=True):
        if not np.isfinite(loss):
            raise Diverged(f"cross-entropy of {model.label} on the test split is {loss}")
    return scores


def _finite(model: Client, logits: torch.Tensor) -> torch.Tensor:
    """Return a model's logits as they are.

    Raises:
        Diverged: if one is not finite.
    """
    if not logits.isfinite().all():
        raise Diverged(f"logits of {model.label} are not finite")
    return logits
