"""Run directories as training would leave them, with made numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from support.sealed import seal

from fedlogit.coalitions import coalitions
from fedlogit.files import read_json, save_npz, write_json
from fedlogit.papers.artefact import Artefact, RunRef
from fedlogit.spec import RunSpec

SPEC = {
    "dataset": "mnist",
    "partition": "k_classes(2)",
    "clients": 4,
    "public": {"size": 60},
    "models": ["lenet"],
    "method": "average",
    "rounds": 3,
    "local": {"epochs": 1},
    "optimizer": {"name": "adam", "lr": 0.001},
    "seed": 0,
}


def _axes(changes: dict) -> dict:
    axes = {key: (SPEC | changes)[key] for key in ("dataset", "partition", "method", "seed")}
    return axes | {f"public.{key}": value for key, value in changes.get("public", {}).items()}


@pytest.fixture
def make_run(tmp_path):
    """Return a function that writes a run directory and returns the reference to it.

    `accuracy` is the final accuracy, or one per round; None in a list is a round without
    evaluation. Bytes are 400 up and 200 down for each round, all clients together.
    """

    def make(
        accuracy=0.5,
        *,
        status="finished",
        note="",
        axes=None,
        rows=None,
        classes=10,
        **changes,
    ) -> RunRef:
        curve = accuracy if isinstance(accuracy, list) else [accuracy] * 3
        spec = RunSpec.read(SPEC | {"rounds": len(curve)} | changes, "test spec")
        folder = tmp_path / "runs" / f"seed{spec.seed}-{spec.digest()[:8]}"
        write_json(folder / "spec.json", spec.model_dump(mode="json"))
        _write_rounds(folder / "rounds.csv", curve[: len(curve) if rows is None else rows])
        final = {"accuracy": curve[-1], "accuracy_std": 0.1, "balanced_accuracy": curve[-1]}
        final |= {"per_class": [curve[-1]] * classes}
        sent = {"up": {"logits": 300 * len(curve), "densities": 100 * len(curve)}}
        result = {
            "status": status,
            "message": "",
            "final": final if status == "finished" else {},
            "split": {"counts": [[10] * classes] * spec.clients},
            "bytes": sent | {"down": {"logits": 200 * len(curve)}},
            "provenance": {
                "spec_digest": spec.digest(),
                "code_version": "0.1.0+abc",
                "device": "CPU test",
                "engine": "loop",
                "precision": "f32",
                "dataset_note": note,
                "dataset_digest": "of the data",
                "split_digest": "of their division",
                "wall_seconds": 12.5,
                "finished": "2026-01-02T03:04:05+00:00",
                "command": "python -m fedlogit train",
                "torch": "2.0.0",
                "peak_memory_bytes": 700_000_000,
            },
        }
        write_json(folder / "result.json", result)
        seal(folder)
        return RunRef(
            dir=folder, digest=spec.digest(), axes=_axes(changes) if axes is None else axes
        )

    return make


def _write_rounds(path: Path, curve: list) -> None:
    columns = ["round", "accuracy", "bytes_up", "bytes_down", "seconds"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns if curve else ["seconds"])
        writer.writeheader()
        for i, accuracy in enumerate(curve, start=1):
            row = [i, "" if accuracy is None else accuracy, 400, 200, 1.5]
            writer.writerow(dict(zip(columns, row, strict=True)))


@pytest.fixture
def make_artefact():
    """Return a function from runs to an artefact, by default a table by method and partition."""

    def make(*runs: RunRef, **changes) -> Artefact:
        given = {
            "paper": "who_to_trust",
            "id": "table1",
            "title": "Table 1",
            "kind": "table",
            "scale": "paper",
            "caption": "A caption.",
            "rows": ["dataset", "method"],
            "columns": ["partition"],
            "labels": {"average": "Average", "uwa": "UWA", "k_classes(2)": "2 classes"},
            "runs": [run.model_dump(mode="json") for run in runs],
        }
        return Artefact.model_validate(given | changes)

    return make


@pytest.fixture
def two_methods(make_run) -> list[RunRef]:
    """Average, with an accuracy of 0.6, and UWA, with 0.9, two seeds each."""
    return [
        make_run(accuracy, method=method, seed=seed)
        for method, accuracy in (("average", 0.6), ("uwa", 0.9))
        for seed in (0, 1)
    ]


@pytest.fixture
def make_tested(make_run):
    """Return a function that makes a run whose models have these test accuracies.

    The run stands at `condition` on the axis `axis` of the spec, None at "all".
    """

    def make(
        *per_client: float,
        axis="participation",
        condition=None,
        method="average",
        seed=0,
        **changes,
    ) -> RunRef:
        shown = json.dumps(condition) if isinstance(condition, dict) else condition or "all"
        axes = {"dataset": "mnist", "partition": "k_classes(2)", "method": method, axis: shown}
        changes |= {axis: condition, "method": method, "seed": seed}
        run = make_run(sum(per_client) / len(per_client), axes=axes, **changes)
        result = read_json(run.dir / "result.json")
        result["final"]["per_client"] = list(per_client)
        write_json(run.dir / "result.json", result)
        seal(run.dir)
        return run

    return make


@pytest.fixture
def make_coalitions(make_run):
    """Return a function that makes a run of FedAvg for each coalition of the clients.

    A coalition is worth `alone`, summed over its clients, more than chance, which is 0.1. With all
    clients there, contributions are `shares`.
    """

    def make(alone, shares, *, seed=0) -> list[RunRef]:
        n = len(alone)
        axes = {"dataset": "mnist", "partition": "k_classes(2)", "method": "fedavg"}
        found = []
        for members in coalitions(n)[1:]:
            absent = [i for i in range(n) if i not in members]
            never = {"schedule": [{"clients": absent, "until": 0}]} if absent else None
            run = make_run(
                0.1 + sum(alone[i] for i in members), axes=axes, method="fedavg", clients=n,
                seed=seed, participation=never,
            )  # fmt: skip
            found.append(run if absent else contribute(run, shares))
        return found

    return make


def contribute(run: RunRef, shares) -> RunRef:
    """Write these contributions into every round of a run."""
    head, *rows = (run.dir / "rounds.csv").read_text().splitlines()
    head += "," + ",".join(f"contribution_{i}" for i in range(len(shares)))
    rows = [f"{row},{','.join(map(str, shares))}" for row in rows]
    (run.dir / "rounds.csv").write_text("\n".join([head, *rows]) + "\n")
    seal(run.dir)
    return run


@pytest.fixture
def make_celm(make_run):
    """Return a function that makes a run of the CELM family: counts, roles, contributions, exports.

    Client 0 alone holds class 0, client 3 rides free; contributions are .4, .3, .2, .1 throughout.
    """

    def make(accuracy=0.5, *, method="celm(steps=5, rate=0.1)", seed=0, **changes) -> RunRef:
        axes = {"dataset": "mnist", "partition": "frm", "method": method.partition("(")[0]}
        run = make_run(
            accuracy,
            method=method,
            partition="frm",
            seed=seed,
            axes=axes | {"seed": seed},
            **changes,
        )
        counts = np.array([[60, 0, 0], [0, 20, 20], [0, 20, 20], [0, 3, 3]])
        result = read_json(run.dir / "result.json")
        result["final"]["per_class"] = [0.2, 0.7, 0.9]
        result["split"] = {"counts": counts.tolist(), "rare_classes": [0], "free_riders": [3]}
        write_json(run.dir / "result.json", result)
        shares = [0.4, 0.3, 0.2, 0.1]
        head, *rows = (run.dir / "rounds.csv").read_text().splitlines()
        head += "," + ",".join(f"contribution_{i}" for i in range(4)) + ",seconds_probe"
        probed = ["0.5", "0.25", ""]
        rows = [f"{r},{','.join(map(str, shares))},{p}" for r, p in zip(rows, probed, strict=True)]
        (run.dir / "rounds.csv").write_text("\n".join([head, *rows]) + "\n")
        seal(run.dir)
        evidence = np.stack([np.ones((4, 3)), counts + 1.0])
        save_npz(run.dir / "exports" / "evidence.npz", {"evidence": evidence})
        images = np.random.default_rng(seed).normal(size=(5, 3, 1, 8, 8)).astype(np.float32)
        save_npz(run.dir / "exports" / "probes.npz", {"images": images, "owned": counts > 0})
        save_npz(run.dir / "exports" / "shapley.npz", {"values": np.array([0.1, 0.3, 0.2, 0.0])})
        return run

    return make


@pytest.fixture
def make_tally(make_run):
    """Return a function that makes a run of TallyTrain: bands of peers, §3.3's columns, bytes."""

    def make(curve=(0.1, 0.3, 0.5), *, sent=None, variance=(0.2, 0.2, 0.1), **changes) -> RunRef:
        run = make_run(list(curve), **changes)
        columns = {
            "accuracy_std": [0.04] * len(curve),
            "accuracy_min": [a - 0.05 for a in curve],
            "accuracy_max": [a + 0.1 for a in curve],
            "theory_disagreement": [0.9, 0.5, 0.2],
            "theory_vote_accuracy": [0.3, 0.6, 0.8],
            "theory_peer_least": [0.2, 0.4, 0.6],
            "theory_bound": ["", "", 0.3],
            "theory_variance_hard": [0.5, 0.4, 0.3],
            "theory_variance_soft": variance,
        }
        head, *rows = (run.dir / "rounds.csv").read_text().splitlines()
        added = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        lines = [f"{head},{','.join(columns)}"]
        lines += [f"{row},{more}" for row, more in zip(rows, added, strict=True)]
        (run.dir / "rounds.csv").write_text("\n".join(lines) + "\n")
        if sent is not None:
            result = read_json(run.dir / "result.json")
            result["bytes"] = {"up": sent, "down": {}}
            write_json(run.dir / "result.json", result)
        seal(run.dir)
        return run

    return make


@pytest.fixture
def make_fedol(make_run):
    """Return a function that makes a run with three iterations of pseudo-labels."""

    def make(*, method="fedol(iterations=3)", seed=0, **changes) -> RunRef:
        run = make_run(method=method, seed=seed, **changes)
        series = {
            "pseudo_share": [0.2, 0.5, 0.8],
            "pseudo_accuracy": [0.9, 0.8, 0.7],
            "server_public_accuracy": [0.3, 0.4, 0.6],
        }
        columns = {f"{k}_{i}": v for k, row in series.items() for i, v in enumerate(row, start=1)}
        columns |= {"client_public_accuracy": 0.3, "target_accuracy": 0.5, "oracle_accuracy": 0.9}
        head, *rows = (run.dir / "rounds.csv").read_text().splitlines()
        lines = [f"{head},{','.join(columns)}"]
        lines += [
            f"{row},{','.join(str(v + seed / 100) for v in columns.values())}" for row in rows
        ]
        (run.dir / "rounds.csv").write_text("\n".join(lines) + "\n")
        seal(run.dir)
        return run

    return make


@pytest.fixture
def export_weights():
    """Return a function that gives a run an `aggregation.npz`: peaked weights, Gaussian logits."""

    def export(run: RunRef, clients=4, classes=10, points=300, peak=4.0, seed=0) -> RunRef:
        rng = np.random.default_rng(seed)
        owned = np.zeros((clients, classes), bool)
        for client in range(clients):
            owned[client, [(2 * client) % classes, (2 * client + 1) % classes]] = True
        labels = rng.integers(0, classes, points)
        scores = peak * owned[:, labels] + rng.normal(size=(clients, points))
        weights = np.exp(scores) / np.exp(scores).sum(0)
        arrays = {"weights": weights.astype(np.float32), "labels": labels, "owned": owned}
        held_out = {
            "held_out_logits": rng.normal(size=(clients * 30, classes)).astype(np.float32),
            "held_out_labels": np.repeat([2 * i % classes for i in range(clients)], 30),
            "held_out_clients": np.repeat(np.arange(clients), 30),
        }
        save_npz(run.dir / "exports" / "aggregation.npz", arrays | held_out)
        return run

    return export
