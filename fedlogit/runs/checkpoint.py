"""Checkpoints: a run that was stopped goes on from one, and ends with the same bits.

A checkpoint is one safetensors file: every client's parameters, buffers and optimizer state, the
method's memory and what it exported, what long steps of a round that is not over returned, and, in
its header, the rows so far, the facts that decide the bits, and a digest of all of it. The one
before is kept, so that a file damaged on disk costs a few rounds and not the run. A run goes on
only with the code, data, libraries and kind of device that it began with.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlogit.engine.client import State
from fedlogit.engine.evaluation import EvalCounts
from fedlogit.errors import DataError, FedlogitError
from fedlogit.federation import Federation
from fedlogit.federation.round_steps import StepRecord
from fedlogit.files import link_or_copy
from fedlogit.runs import layout
from fedlogit.runs.provenance import check_facts
from fedlogit.runs.tensors import read_tensors, save_tensors, tensor_digest

__all__ = ["check_memory", "load_checkpoint", "remove_checkpoints", "save_checkpoint"]

_COUNTS = [field.name for field in fields(EvalCounts)]


def check_memory(fed: Federation) -> None:
    """Refuse a method's memory that no checkpoint could save, before one is due.

    Raises:
        FedlogitError: naming what is no tensor.
    """
    for name, value in fed.server_state.items():
        if wrong := _unsaved(value):
            raise FedlogitError(
                f"method {fed.spec.method.name}: server_state[{name!r}] is {wrong}, which a"
                " checkpoint can save"
            )


def _unsaved(value: object) -> str:
    """Return why a checkpoint cannot save a value, and what to give instead; "" if it can."""
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}; give a tensor"
    if value.layout is not torch.strided:
        return "a sparse tensor; give a dense one"
    try:
        torch.empty(0, dtype=value.dtype).numpy()
    except TypeError:
        return f"of {value.dtype}; give float32, or another type that NumPy has"
    return ""


def save_checkpoint(folder: Path, fed: Federation, rows: list[dict[str, Any]]) -> None:
    """Save the state after `fed.round`, or after the last step of it, keeping the one before."""
    tensors = _tensors(fed)
    over = fed.round - bool(fed.steps.done)
    note = {
        "spec": fed.spec.digest(),
        "round": over,
        "rows": rows,
        "ledger": {str(r): book for r, book in fed.ledger.rounds.items() if r <= over},
        "steps": {name: _step_note(step) for name, step in fed.steps.done.items()},
        "seconds": fed.steps.seconds if fed.steps.done else 0.0,
        "facts": fed.facts,
        "devices": fed.devices,
        "private_losses": {str(i): loss for i, loss in fed.private_losses.items()},
        "exported": {name: list(arrays) for name, arrays in _wanted_exports(fed).items()},
    }
    header = {
        "spec": fed.spec.digest(),  # for people; the digest covers the note's
        "note": json.dumps(note),
        "digest": tensor_digest(tensors, json.dumps(note)),
    }
    newest, previous = folder / layout.CHECKPOINT, folder / layout.CHECKPOINT_BEFORE
    if newest.exists():
        link_or_copy(newest, previous)  # so that there is a whole checkpoint at every moment
    save_tensors(newest, tensors, header)


def load_checkpoint(folder: Path, fed: Federation) -> list[dict[str, Any]]:
    """Restore the newest sound checkpoint into `fed`; return its rows, or [] if there is none.

    Where that is the one before, the newest, which is damaged, is removed.

    Raises:
        DataError: if a checkpoint belongs to another spec, or was made by other facts.
    """
    newest, previous = folder / layout.CHECKPOINT, folder / layout.CHECKPOINT_BEFORE
    for path in (newest, previous):
        if not path.exists():
            continue
        try:
            tensors, header = _read(path)
        except DataError as error:
            earlier = path == newest and previous.exists()
            rest = "trying the one before" if earlier else "the run starts anew"
            warnings.warn(f"{error}; {rest}", stacklevel=2)
            continue
        rows = _go_on(fed, path, tensors, json.loads(header["note"]))
        if path == previous:  # else the next save would put the damaged one in its place
            newest.unlink(missing_ok=True)
        return rows
    return []


def _go_on(
    fed: Federation, path: Path, tensors: dict[str, torch.Tensor], note: dict[str, Any]
) -> list[dict[str, Any]]:
    """Restore a checkpoint that is sound, if it is this run's; return its rows."""
    owner = note["spec"]
    if owner != fed.spec.digest():
        raise DataError(f"{path} belongs to another spec ({owner[:8]}); remove it")
    check_facts(
        path, note.get("facts"), fed.facts,
        f"remove {path.parent}/{layout.CHECKPOINTS} (or give train --restart)",
    )  # fmt: skip
    _restore(fed, tensors)
    for export, keys in note["exported"].items():
        fed.exported[export] = _arrays(tensors, export, keys)
    fed.round = note["round"]
    fed.steps.restored = {
        name: _restored_step(name, step, tensors, fed.data.device)
        for name, step in note["steps"].items()
    }
    fed.steps.seconds_before = note["seconds"]
    fed.private_losses = {int(i): loss for i, loss in note["private_losses"].items()}
    fed.ledger.rounds = {int(r): book for r, book in note["ledger"].items()}
    before = note["devices"]
    fed.devices = before if before[-1:] == fed.devices else before + fed.devices
    rows: list[dict[str, Any]] = note["rows"]
    return rows


def remove_checkpoints(folder: Path) -> None:
    """Remove a run's checkpoints: it has finished, or is to start anew."""
    for name in (layout.CHECKPOINT, layout.CHECKPOINT_BEFORE):
        (folder / name).unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    tensors, header = read_tensors(path, "checkpoint")
    if "note" not in header:
        raise DataError(f"{path} is no checkpoint: it has no note")
    if header.get("digest") != tensor_digest(tensors, header.get("note", "")):
        raise DataError(f"{path} is damaged: its digest does not match")
    return tensors, header


def _tensors(fed: Federation) -> dict[str, torch.Tensor]:
    tensors = {f"memory/{name}": value for name, value in fed.server_state.items()}
    for name, arrays in _wanted_exports(fed).items():
        tensors |= {f"exported/{name}/{key}": torch.as_tensor(a) for key, a in arrays.items()}
    for step, record in fed.steps.done.items():
        tensors |= {f"steps/{step}/{key}": value for key, value in record.returned.items()}
    for client in fed.models:
        at = client.name
        moments = client.optimizer.state_dict()["state"].get(0, {})
        tensors |= {f"{at}/optimizer/{k}": v for k, v in moments.items() if v is not None}
        if counts := fed.tested.get(client.index):
            tensors |= {f"{at}/tested/{name}": getattr(counts, name) for name in _COUNTS}
    copies = {name: value.detach().contiguous().clone() for name, value in tensors.items()}
    for client in fed.models:
        state, at = client.state(), client.name  # a copy itself
        copies |= {f"{at}/vector": state.vector}
        copies |= {f"{at}/buffers": state.buffers, f"{at}/counters": state.counters}
    return {name: value.cpu() for name, value in copies.items()}


def _step_note(step: StepRecord) -> dict[str, Any]:
    """Return a step for a checkpoint's header, which names its tensors."""
    return {
        "returned": list(step.returned),
        "on_cpu": [key for key, value in step.returned.items() if value.device.type == "cpu"],
        "sent": step.sent,
        "columns": step.columns,
    }


def _restored_step(
    name: str, note: dict[str, Any], tensors: dict[str, torch.Tensor], device: torch.device
) -> StepRecord:
    """Return a step whose tensors are on the device, or on the CPU, as they were."""
    saved = {key: tensors[f"steps/{name}/{key}"] for key in note["returned"]}
    returned = {k: v if k in note["on_cpu"] else v.to(device) for k, v in saved.items()}
    sent = [(direction, kind, size) for direction, kind, size in note["sent"]]
    return StepRecord(returned, sent, note["columns"])


def _wanted_exports(fed: Federation) -> dict[str, dict[str, np.ndarray]]:
    """Return the exported arrays that the spec wants written at the end."""
    return {name: arrays for name, arrays in fed.exported.items() if name in fed.spec.export}


def _restore(fed: Federation, tensors: dict[str, torch.Tensor]) -> None:
    device = fed.data.device
    fed.server_state = {
        name.removeprefix("memory/"): value.to(device)
        for name, value in tensors.items()
        if name.startswith("memory/")
    }
    for client in fed.models:
        at = f"{client.name}/"
        own = {k.removeprefix(at): v.to(device) for k, v in tensors.items() if k.startswith(at)}
        client.load(State(own["vector"], own["buffers"], own["counters"]))
        state = client.optimizer.state_dict()
        moments = {
            k.removeprefix("optimizer/"): v for k, v in own.items() if k.startswith("optimizer/")
        }
        state["state"] = {0: moments} if moments else {}
        client.optimizer.load_state_dict(state)
    fed.tested = {
        client.index: EvalCounts(**{name: tensors[f"{at}/{name}"].to(device) for name in _COUNTS})
        for client in fed.all_clients
        if f"{(at := f'{client.name}/tested')}/{_COUNTS[0]}" in tensors
    }


def _arrays(tensors: dict[str, torch.Tensor], name: str, keys: list[str]) -> dict[str, np.ndarray]:
    """Return what was exported as `name`, in the same order, which decides a file's bytes."""
    return {key: tensors[f"exported/{name}/{key}"].numpy() for key in keys}
