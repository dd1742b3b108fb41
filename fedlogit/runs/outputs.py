"""Writes what a finished run leaves in its folder: rounds, exports and, last, the result."""

from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path
from typing import Any

from fedlogit.engine.evaluation import Scores
from fedlogit.errors import Diverged
from fedlogit.federation import Federation
from fedlogit.federation.shapley import shapley
from fedlogit.files import file_digest, save_npz, write_atomic, write_sealed
from fedlogit.runs import layout
from fedlogit.runs.finishing import hidden
from fedlogit.runs.provenance import Provenance
from fedlogit.runs.tensors import model_tensors, save_tensors, tensor_digest

__all__ = ["write_outputs"]


def write_outputs(
    fed: Federation,
    folder: Path,
    rows: list[dict[str, Any]],
    diverged: str,
    provenance: Provenance,
    scores: Scores | None,
) -> None:
    """Write rounds, exports and, last, the result, under its hidden name until all else is done.

    Args:
        fed: The federation after its last round.
        folder: The run's folder.
        rows: A row a round.
        diverged: Why training stopped early, or "".
        provenance: Where the result comes from.
        scores: Of the last test, if the models are still those that were tested.
    """
    _write_rows(folder / layout.ROUNDS, rows)
    final: dict[str, Any] = {}
    exports: dict[str, str] = {}
    if not diverged and not fed.spec.ledger_only:
        try:
            final, exports = _last_test(fed, scores), _exported(fed, folder / layout.EXPORTS)
        except Diverged as error:  # of a model that predicts only now
            diverged = f"after round {fed.round}: {error}"
    result = {
        "status": "diverged" if diverged else "finished",
        "message": diverged,
        "final": final,
        "split": {
            "counts": fed.counts.tolist(),
            "rare_classes": list(fed.roles.rare_classes),
            "free_riders": list(fed.roles.free_riders),
        },
        "bytes": fed.ledger.totals(),
        "provenance": provenance.record(sum(row["seconds"] for row in rows)),
        "rounds_digest": file_digest(folder / layout.ROUNDS),
        "exports": exports,
    }
    write_sealed(hidden(folder / layout.RESULT), result)


def _last_test(fed: Federation, scores: Scores | None) -> dict[str, Any]:
    """Return what the last test gives: metrics, and the accuracy by class and by client."""
    scores = fed.evaluate() if scores is None else scores
    return scores.row() | {
        "per_class": [None if math.isnan(v) else v for v in scores.per_class.tolist()],
        "per_client": scores.per_client.tolist(),
    }


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a row a round: columns in the order they first appear, `seconds` last."""
    seen = dict.fromkeys(key for row in rows for key in row)
    columns = [key for key in seen if key != "seconds"] + ["seconds"]
    with (
        write_atomic(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _exported(fed: Federation, folder: Path) -> dict[str, str]:
    """Write what `spec.export` asks for; return a digest of each file by its name.

    Raises:
        Diverged: if a model's logits are not finite; then nothing is left.
    """
    try:
        _export(fed, folder)
    except Diverged:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return {path.name: file_digest(path) for path in sorted(folder.glob("[!.]*"))}


def _export(fed: Federation, folder: Path) -> None:
    wanted = set(fed.spec.export)
    public = {"points": fed.public.cpu().numpy(), "labels": fed.labels(fed.public).cpu().numpy()}
    for name in sorted(wanted & fed.exported.keys()):
        save_npz(folder / f"{name}.npz", {**fed.exported[name], "owned": fed.class_mask})
    if "shapley" in wanted:
        save_npz(folder / "shapley.npz", shapley(fed))
    if "logits" in wanted:
        save_npz(folder / layout.LOGITS, {"logits": fed.logits(fed.public).cpu().numpy(), **public})
    if "test_logits" in wanted:
        labels = fed.data.test_labels.cpu().numpy()
        logits = fed.test_logits().cpu().numpy()
        save_npz(folder / "test_logits.npz", {"logits": logits, "labels": labels})
    if "weights" in wanted:
        _export_weights(fed, folder / layout.WEIGHTS)


def _export_weights(fed: Federation, path: Path) -> None:
    """Write every model's state dict under ``client<i>/<name>``, the global one's ``server/``."""
    tensors = {
        f"{client.name}/{name}": value
        for client in fed.models
        for name, value in model_tensors(client.model).items()
    }
    save_tensors(path, tensors, {"digest": tensor_digest(tensors)})
