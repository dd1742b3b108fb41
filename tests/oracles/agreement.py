"""Runs a method of the library and its second version side by side, round by round.

``ORACLE_RECORD=FILE`` appends a line of JSON for each comparison; `make oracles` turns them into
docs/second-versions.md.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from oracles.world import World
from torch.nn.utils import parameters_to_vector

from fedlogit import methods, models, partition
from fedlogit.engine.client import Client
from fedlogit.engine.task import minibatches
from fedlogit.federation import Federation
from fedlogit.federation.topology import adjacency
from fedlogit.rng import derive, rng, torch_rng
from fedlogit.spec import RunSpec

__all__ = ["Comparison", "compare", "compare_partition", "world_of"]

Rounds = Callable[..., Iterator[dict[str, object]]]


@dataclass(frozen=True)
class Comparison:
    """A method's call, and what of its run the second version is compared with.

    Attributes:
        method: The method's name as the papers have it.
        call: What is run, with the switches that are on: ``cffl(feedback=True)``.
        rounds: How many rounds are compared.
        seeds: With which seeds.
        tolerance: Largest absolute difference; 0 for what must be the same.
        changes: What else of the small spec differs (see tests/support/small.py).
        settings: What the second version is told.
        engine: What runs the clients.
    """

    method: str
    call: str
    rounds: int = 3
    seeds: Sequence[int] = (0, 1)
    tolerance: float = 1e-5
    changes: tuple[tuple[str, Any], ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()
    engine: str = "loop"

    def __str__(self) -> str:
        named = (("engine", self.engine),) if self.engine != "loop" else ()
        changed = ", ".join(f"{key}={_plain(value)}" for key, value in self.changes + named)
        return self.call + (f" [{changed}]" if changed else "")


def _plain(value: Any) -> str:
    """Return a setting as one would write it: ``sgd(lr=0.1)`` for a dict with a name."""
    if not isinstance(value, dict):
        return str(value)
    inside = ", ".join(f"{key}={_plain(v)}" for key, v in value.items() if key != "name")
    return f"{value.get('name', '')}({inside})"


def compare(
    case: Comparison, second: Rounds, federation: Callable[..., Federation]
) -> dict[str, float]:
    """Compare every round with every seed; return the largest difference of each quantity.

    Args:
        case: What to run.
        second: The second version: yields, round by round, what is to agree. ``server``, the flat
            weights of the server's model; ``clients``, those of each client; anything else is a
            column of `rounds.csv`, ``contributions`` being one a client, ``memory/<name>`` what the
            server remembers under this name, and ``kept/<file>/<array>`` what it exports;
            ``test_logits``, what all clients say of the test split.
        federation: From a spec's changes to a federation.

    Raises:
        AssertionError: naming the first round and quantity that differ by more than the tolerance.
    """
    largest: dict[str, float] = {}
    compared = 0
    for seed in case.seeds:
        given = dict(case.changes) | {"seed": seed, "rounds": case.rounds, "engine": case.engine}
        fed = federation(method=case.call, **given)
        method = methods.get(fed.spec.method)
        expected = second(world_of(fed), **dict(case.settings))
        method.init(fed)
        for r, theirs in enumerate(islice(expected, case.rounds), start=1):
            row = play(fed, method, r)
            for name, value in theirs.items():
                gap = _gap(_ours(fed, row, name), value)
                where = f"{case}, seed {seed}, round {r}: {name} differs by {gap}"
                assert gap <= max(case.tolerance, _one_sample(fed, name)), where
                largest[name] = max(largest.get(name, 0.0), gap)
            compared += 1
    assert compared == case.rounds * len(case.seeds), f"{case}: the second version ended early"
    assert largest, f"{case}: nothing was compared"
    _record(case, second, largest)
    return largest


def _one_sample(fed: Federation, name: str) -> float:
    """Return what a test sample is of a mean accuracy: rounding may tip one that is undecided."""
    if name not in ("accuracy", "accuracy_std"):
        return 0.0
    return 1.01 / (len(fed.data.test_labels) * len(fed.models))


def compare_partition(
    case: Comparison, second: Callable[..., list[list[int]]], labels: np.ndarray, clients: int
) -> None:
    """Compare who holds which samples with every seed; there is no tolerance.

    Args:
        case: The partition as a call, its seeds, and what its second version is told.
        second: From labels, clients, classes, seed and addressed generators to each one's samples.
        labels: Class of each sample, (n,).
        clients: Number of clients.

    Raises:
        AssertionError: naming the first seed and client with other samples.
    """
    classes = int(labels.max()) + 1
    for seed in case.seeds:
        ours = partition.get(case.call).split(labels, clients, classes, seed)
        numbers = partial(rng, seed)
        theirs = second(labels, clients, classes, seed, numbers, **dict(case.settings))
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert mine.tolist() == sorted(other), f"{case}, seed {seed}: client {i}"
    _record(case, second, {"samples": 0})


def play(fed: Federation, method: methods.Method, r: int) -> dict[str, float]:
    """Do round `r` as a run does; return its row."""
    fed.start_round(r)
    method.round(fed, r)
    return fed.evaluate().row() | fed.take_log() | fed.ledger.of_round(r)


def world_of(fed: Federation) -> World:
    """Return a federation's problem, as it is before the first round."""
    spec, data = fed.spec, fed.data
    seed, local, server = spec.seed, spec.local, fed.server

    def batches(phase: str, client: int, round_: int, n: int) -> list[torch.Tensor]:
        source = torch_rng(seed, f"batches/{phase}", client, round_)
        epochs = local.epochs_in(round_)
        return minibatches(n, spec.batch, source, epochs=epochs, steps=local.steps)

    def server_batches(round_: int, part: int, n: int) -> list[torch.Tensor]:
        assert spec.server is not None
        source = torch_rng(seed, "batches/teach", round_, part)
        size = spec.server.batch or spec.batch
        return minibatches(n, size, source, epochs=spec.server.epochs, steps=None)

    def probes(round_: int, size: int) -> torch.Tensor:
        chosen = rng(seed, "probes", round_).choice(len(fed.public), size, replace=False)
        return fed.public[torch.as_tensor(chosen)]

    def build_client(role: str, client: int, number: int) -> torch.Tensor:
        call = spec.models[client % len(spec.models)]
        source = torch_rng(seed, f"init/{role}", client, number)
        model = models.build(call, data.shape, data.classes, source)
        return parameters_to_vector(model.parameters()).detach()

    everything = torch.arange(len(data.x))
    return World(
        x=data.inputs(everything).flatten(1),
        y=data.labels.clone(),
        shape=data.shape,
        black=-data.mean[0] / data.std[0] if data.mean else math.nan,
        augmented=_augmented(spec),
        x_test=data.test_inputs(slice(None)).flatten(1),
        y_test=data.test_labels.clone(),
        classes=fed.classes,
        private=[client.private.clone() for client in fed.clients],
        validation=[client.validation.clone() for client in fed.clients],
        public=fed.public.clone(),
        counts=np.array(fed.counts),
        units=[_units(client) for client in fed.clients],
        build_client=build_client,
        first=[client.vector.detach().clone() for client in fed.clients],
        server_units=_units(server) if server else [],
        first_server=server.vector.detach().clone() if server else torch.empty(0),
        batch=spec.batch,
        rate=spec.optimizer.lr,
        optimizer=spec.optimizer.model_dump(),
        server_optimizer=(server.settings if server else spec.optimizer).model_dump(),
        rounds=spec.rounds,
        epochs=local.epochs or 0,
        server_epochs=spec.server.epochs if spec.server else 0,
        batches=batches,
        server_batches=server_batches,
        probes=probes,
        numbers=lambda purpose, *ids: rng(seed, purpose, *ids),
        noise=lambda purpose, *ids: torch_rng(seed, purpose, *ids),
        seed=seed,
        address=derive,
        graph=lambda degree: adjacency("regular", len(fed.clients), degree, seed),
    )


def _augmented(spec: RunSpec) -> list[str]:
    """Return the addresses of what the run crops."""
    taught = spec.server.augment if spec.server else "none"
    given = {"augment": spec.augment, "augment/teach": taught}
    return [address for address, how in given.items() if how != "none"]


def _units(client: Client) -> list[int]:
    """Return the units of a perceptron's layers, from the shapes of its weights."""
    shapes = [p.shape for p in client.model.parameters() if p.dim() == 2]
    return [shapes[0][1], *(shape[0] for shape in shapes)]


def _ours(fed: Federation, row: dict[str, float], name: str) -> object:
    """Return what the library has under a name."""
    if name == "server":
        assert fed.server is not None
        return fed.server.vector
    if name == "clients":
        return torch.cat([client.vector.detach() for client in fed.clients])
    if name.startswith("memory/"):
        return fed.server_state[name.removeprefix("memory/")]
    if name.startswith("kept/"):
        _, file, array = name.split("/")
        return fed.exported[file][array]
    if name == "test_logits":
        return fed.test_logits()
    if name == "contributions":
        return [row[f"contribution_{i}"] for i in range(len(fed.clients))]
    return row[name]


def _gap(ours: object, theirs: object) -> float:
    """Return the largest absolute difference; NaN agrees with NaN only."""
    a, b = (_flat(value) for value in (ours, theirs))
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    both = np.isnan(a) & np.isnan(b)
    return float(np.where(both, 0.0, np.abs(a - b)).max(initial=0.0))


def _flat(value: object) -> np.ndarray:
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        value = torch.cat([part.detach().flatten() for part in value])
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float64).ravel()


def _record(case: Comparison, second: Rounds, largest: dict[str, float]) -> None:
    path = os.environ.get("ORACLE_RECORD")
    if path:
        module = sys.modules[second.__module__]
        about = {"file": Path(str(module.__file__)).name, "source": _first_paragraph(module)}
        told = asdict(case) | about | {"text": str(case), "largest": largest}
        with Path(path).open("a") as file:
            file.write(json.dumps(told) + "\n")


def _first_paragraph(module: object) -> str:
    return " ".join((module.__doc__ or "").partition("\n\n")[0].split())
