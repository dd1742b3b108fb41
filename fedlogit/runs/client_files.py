"""Files of clients' weights: read only if whole, of the right clients, and finite."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

import torch

from fedlogit.errors import DataError, Diverged
from fedlogit.federation import Federation
from fedlogit.runs import layout
from fedlogit.runs.hints import adding_hint, remake_hint
from fedlogit.runs.provenance import check_facts
from fedlogit.runs.tensors import read_tensors, save_tensors, tensor_digest
from fedlogit.spec import RunSpec

__all__ = ["load_weights", "read_part", "save_part", "weights_digest"]

_CLIENT = re.compile(r"client(\d+)/(.+)")


def load_weights(
    path: Path, spec: RunSpec, digests: Collection[str] | None = None, *, exported: bool = False
) -> list[dict[str, torch.Tensor]]:
    """Read every client's model, by parameter name.

    Args:
        path: ``weights.safetensors`` of `train_clients`, or a run's exported weights.
        spec: How many clients there should be.
        digests: Of specs that the clients may have been trained by; None takes any.
        exported: Also take a run's exported weights, which do not name their spec.

    Raises:
        DataError: if the file is damaged, is of other clients, or has a weight that is not finite.
        Diverged: if the clients did, so that the file says why in their place.
    """
    tensors, diverged = _read_weights(path, digests, exported)
    if diverged:
        raise Diverged(diverged)
    found: list[dict[str, torch.Tensor]] = [{} for _ in range(spec.clients)]
    for name, tensor in tensors.items():
        match = _CLIENT.fullmatch(name)
        if match and int(match[1]) >= spec.clients:
            raise DataError(f"{path}: has weights of client {match[1]} (of {spec.clients})")
        if match:
            found[int(match[1])][match[2]] = tensor
            if not torch.isfinite(tensor).all():
                raise DataError(f"{path}: weight {name} is not finite; {remake_hint(path)}")
    missing = [i for i, tensors in enumerate(found) if not tensors]
    if missing:
        raise DataError(f"{path}: has no weights of client {missing[0]} (of {spec.clients})")
    return found


def weights_digest(weights: list[dict[str, torch.Tensor]]) -> str:
    """Return the SHA-256 over every client's model, as hex."""
    named = {f"client{i}/{key}": v for i, own in enumerate(weights) for key, v in own.items()}
    return tensor_digest(named)


def save_part(path: Path, tensors: dict[str, torch.Tensor], fed: Federation, loss: float) -> None:
    """Save one client's model and its private loss, with the facts that decided their bits."""
    note = json.dumps({"spec": fed.spec.digest(), "facts": fed.facts, "loss": loss})
    save_tensors(path, tensors, {"note": note, "digest": tensor_digest(tensors, note)})


def read_part(path: Path, fed: Federation) -> tuple[dict[str, torch.Tensor], float]:
    """Read one client's model and private loss that this job, before it was stopped, has saved.

    Raises:
        DataError: if it is damaged, or was made by another spec, other code or other data.
    """
    hint = f"remove {path.parent}/{layout.PARTS}"
    with adding_hint(f"to train its client again, {hint}"):
        tensors, header = read_tensors(path, "client's part")
        note = header.get("note", "")
        if header.get("digest") != tensor_digest(tensors, note):
            raise DataError(f"{path} is damaged, or has no digest")
    found = json.loads(note)
    check_facts(path, found["facts"], fed.facts, hint)
    if found["spec"] != fed.spec.digest():
        raise DataError(f"{path} belongs to another spec; {hint}")
    return tensors, found["loss"]


def _check_there(path: Path) -> None:
    """Refuse weights that are not there, unless a record beside them says that they were.

    Raises:
        DataError: naming the run's exports, if the weights are among them.
    """
    if path.is_file() or (path.parent / layout.CLIENTS).exists():
        return
    exported = path.parent / layout.EXPORTS / path.name
    meant = f"; did you mean {exported}?" if exported.is_file() else ""
    raise DataError(f"{path} does not exist{meant}")


def _read_weights(
    path: Path, digests: Collection[str] | None, exported: bool
) -> tuple[dict[str, torch.Tensor], str]:
    """Return every client's tensors, and why there are none if the clients diverged, else ""."""
    _check_there(path)
    with adding_hint(remake_hint(path)):
        tensors, header = read_tensors(path, "file of weights")
        # Exports had no header before there were digests; all else that is written here has one.
        diverged = header.get("diverged", "")
        if header and header.get("digest") != tensor_digest(tensors, diverged):
            raise DataError(f"{path} is damaged: its digest does not match")
        unnamed = exported and "spec" not in header
        if digests is not None and header.get("spec") not in digests and not unnamed:
            raise DataError(f"{path} belongs to another spec")
    return tensors, diverged
