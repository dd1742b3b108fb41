"""Files of clients' logits: written with a digest, and read only if whole and finite."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlogit.errors import DataError, Diverged, FedlogitError
from fedlogit.files import arrays_digest, load_npz, read_sealed, save_npz, write_sealed
from fedlogit.runs import layout
from fedlogit.runs.hints import adding_hint, remake_hint
from fedlogit.runs.library_code import imported_code_version
from fedlogit.runs.stage_records import LogitsRecord, read_record
from fedlogit.spec import RunSpec

__all__ = [
    "ClientLogits",
    "load_logits",
    "logits_exported",
    "save_diverged_logits",
    "save_logits",
]


@dataclass(frozen=True)
class ClientLogits:
    """Clients' logits, as exported.

    Attributes:
        public: On the public set, float32 (clients, points, classes).
        points: Indices of the public samples in the training split, int64 (points,).
        test: On the test split, float32 (clients, samples, classes); of a file without, no clients.
        labels: True classes of the test split, int64 (samples,); of a file without, empty.
        digest: SHA-256 over the arrays.
    """

    public: torch.Tensor
    points: torch.Tensor
    test: torch.Tensor
    labels: torch.Tensor
    digest: str


def save_logits(
    arrays: dict[str, np.ndarray], spec: RunSpec, about: dict[str, Any], folder: Path
) -> None:
    """Write ``logits.npz`` and, last, ``logits.json``, with the digest of the first.

    Args:
        arrays: ``points``, ``test_labels``, and of each client ``public_000``, ``test_000``, ….
        spec: The clients', or that of a run on them.
        about: What else the record has: the digest of the clients' weights among it.
        folder: Where to write.
    """
    save_npz(folder / layout.LOGITS, arrays)
    made = {"spec_digest": spec.digest(), "code_version": imported_code_version()}
    write_sealed(
        folder / layout.LOGITS_RECORD, {"logits_digest": arrays_digest(arrays), **made, **about}
    )


def save_diverged_logits(spec: RunSpec, diverged: str, weights_digest: str, folder: Path) -> None:
    """Write, in place of logits, why the clients have none.

    Args:
        spec: The clients', or that of a run on them.
        diverged: The reason.
        weights_digest: As the clients' record has it.
        folder: Where to write.
    """
    about = {"weights_digest": weights_digest, "diverged": diverged}
    save_logits({"diverged": np.array(diverged)}, spec, about, folder)


def logits_exported(folder: Path, specs: Collection[str], weights_digest: str) -> bool:
    """Return whether a folder has the logits of these weights, whole.

    Whoever asks holds the folder (`folder_lock`): they are two files, and match only when both are
    written.

    Args:
        folder: Where they would be.
        specs: Digests of the specs under which these clients predict the same.
        weights_digest: Of the clients' weights.

    Raises:
        FedlogitError: if it has whole logits of another spec's clients: they are not overwritten.
    """
    logits, beside = folder / layout.LOGITS, folder / layout.LOGITS_RECORD
    if not beside.exists():
        return False
    try:
        record = read_record(LogitsRecord, beside)
        whole = arrays_digest(load_npz(logits)) == record.logits_digest
    except DataError:
        return False  # damaged or half replaced: made again
    same_weights, same_spec = record.weights_digest == weights_digest, record.spec_digest in specs
    if whole and not same_weights and not same_spec:
        raise FedlogitError(
            f"{folder} holds logits of other clients (spec {record.spec_digest[:8]}); give another"
            " folder, or remove it"
        )
    return whole and same_weights and same_spec


def load_logits(path: Path) -> ClientLogits:
    """Read and check ``logits.npz``, ours or anybody's.

    Args:
        path: The file; ``logits.json`` beside it, if there is one, must have its digest.

    Raises:
        DataError: naming the file and the client whose logits are missing, of the wrong shape or
            type, or not finite; or if the file is not the one that was exported.
        Diverged: if the clients did, so that the file says why in place of logits.
    """
    beside = path.with_name(layout.LOGITS_RECORD)
    of_record = beside.exists() and path.name == layout.LOGITS
    with adding_hint(remake_hint(beside)) if of_record else nullcontext():
        arrays = load_npz(path)
    if "diverged" in arrays:
        _exported_digest(path, arrays)
        raise Diverged(str(arrays["diverged"]))
    if "points" not in arrays or not _are_integers(arrays["points"]):
        raise DataError(f"{path}: has no 'points' (indices of the public samples, from 0)")
    public = _stack(path, arrays, "public", len(arrays["points"]), None)
    test = _stack(path, arrays, "test", None, public.shape[2])
    if len(test) not in (0, len(public)):
        raise DataError(
            f"{path}: has public logits of {len(public)} clients, test logits of {len(test)}"
        )
    labels = arrays.get("test_labels", np.empty(0))
    if labels.ndim != 1 or len(labels) not in (0, test.shape[1]):
        raise DataError(f"{path}: test_labels have shape {labels.shape}, not ({test.shape[1]},)")
    if len(labels) and not (_are_integers(labels) and labels.max() < test.shape[2]):
        raise DataError(
            f"{path}: test_labels should be classes, integers from 0 to {test.shape[2] - 1}"
        )
    digest = _exported_digest(path, arrays)
    return ClientLogits(
        torch.from_numpy(public),
        torch.from_numpy(arrays["points"].astype(np.int64)),
        torch.from_numpy(test),
        torch.from_numpy(labels.astype(np.int64)),
        digest,
    )


def _exported_digest(path: Path, arrays: dict[str, np.ndarray]) -> str:
    """Return the digest of exported arrays.

    Raises:
        DataError: if the record beside the file, if there is one, has another.
    """
    digest, beside = arrays_digest(arrays), path.with_name(layout.LOGITS_RECORD)
    if beside.exists() and read_sealed(beside, remake_hint(beside)).get("logits_digest") != digest:
        raise DataError(
            f"{path} is not what {beside.name} describes: its digest differs; {remake_hint(beside)}"
        )
    return digest


def _are_integers(array: np.ndarray) -> bool:
    """Return whether an array has one axis, of integers from 0 that int64 can hold."""
    if array.ndim != 1 or not len(array):
        return array.ndim == 1
    return array.dtype.kind in "iu" and 0 <= int(array.min()) <= int(array.max()) < 2**63


def _stack(
    path: Path, arrays: dict[str, np.ndarray], kind: str, rows: int | None, classes: int | None
) -> np.ndarray:
    """Return one array of all clients' logits, after checking each."""
    if kind == "public" and "logits" in arrays and arrays["logits"].ndim == 3:  # a run's export
        arrays = {f"public_{i:03}": own for i, own in enumerate(arrays["logits"])}
    found = [
        (int(m[1]), name) for name in arrays if (m := re.fullmatch(rf"{kind}_([0-9]{{1,9}})", name))
    ]
    of = dict(found)
    if len(of) < len(found):
        raise DataError(f"{path}: has {kind} logits of a client twice")
    names = [of[number] for number in sorted(of)]
    if not names:
        if kind == "public":
            raise DataError(f"{path}: has no logits (arrays public_000, public_001, …)")
        return np.empty((0, 0, classes or 0), np.float32)
    answers: list[np.ndarray] = []
    for number, name in enumerate(names):
        if number not in of:
            raise DataError(f"{path}: has no {kind} logits of client {number}")
        logits = arrays[name]
        who = f"{path}: client {number}: {kind} logits"
        if logits.ndim != 2 or not logits.shape[1] or not np.issubdtype(logits.dtype, np.floating):
            raise DataError(f"{who} have shape {logits.shape} of {logits.dtype}, not (n, classes)")
        rows = len(logits) if rows is None else rows
        classes = logits.shape[1] if classes is None else classes
        if len(logits) != rows:
            raise DataError(f"{who} are {len(logits)} rows, not {rows}")
        if logits.shape[1] != classes:
            raise DataError(f"{who} have {logits.shape[1]} classes, not {classes}")
        with np.errstate(over="ignore"):  # which the next line refuses
            answers.append(logits.astype(np.float32))
        bad = ~np.isfinite(answers[-1])
        if bad.any():
            raise DataError(f"{who} are not finite float32 in row {int(bad.any(1).argmax())}")
    return np.stack(answers)
