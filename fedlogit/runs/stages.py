"""A one-shot run in stages with files between: clients train, answer, are aggregated, teach.

Six methods of FedOL's Table I share one set of clients and their answers. Each stage can be a job
of its own; together they give the same bits as the run in one piece, because all that is random
has an address that does not know who asks.

``train_clients``: a folder with ``spec.json``, ``weights.safetensors`` and ``clients.json``.
``export_logits``: ``logits.npz`` and ``logits.json``.
``aggregate``: ``targets.npz``.
``train``: the run's folder.

Each file has a digest of what is in it and of what it was made of; who reads it checks both.

Where clients diverge, each file says why in place of what it would hold, so that every job succeeds
and the run's result is that it diverged, as it is in one piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlogit.aggregation.targets import Targets
from fedlogit.component import ComponentRef
from fedlogit.engine.client import Client
from fedlogit.errors import DataError, Diverged, FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import (
    array_digest,
    load_npz,
    read_sealed,
    remove_leftovers,
    save_npz,
    write_sealed,
)
from fedlogit.methods import Method, complete
from fedlogit.runs.client_files import (
    again,
    load_weights,
    read_part,
    save_part,
    saying,
    weights_digest,
)
from fedlogit.runs.provenance import code_version, differences
from fedlogit.runs.tensors import save_tensors, tensor_digest
from fedlogit.spec import Evaluation, RunSpec

__all__ = [
    "ClientLogits",
    "Precomputed",
    "check_public",
    "clients_spec",
    "continue_from",
    "export_logits",
    "in_stages",
    "load_answers",
    "load_precomputed",
    "load_targets",
    "pass_on_logits",
    "pass_on_targets",
    "restore",
    "save_targets",
    "train_clients",
]

_OF_CLIENTS = ("code_version", "own_code", "device", "engine", "wall_seconds", "started")
_TARGETS = ("distributions", "weights", "logits_digest", "method", "code_version")
_OF_DATA = ("dataset_digest", "tokenizer_digest", "probes_digest", "split_digest")


def in_stages(spec: RunSpec, method: Method) -> bool:
    """Return whether a run can be made in stages: its clients train once and then only answer.

    Logits in files are a row a sample, so a text's run is made in one piece; where nobody trains,
    there is nothing to share. Files are of all clients, so where some are absent it is in one, too;
    and of honest answers, so where some falsify theirs it is, too.
    """
    unlike_files = spec.text is not None or spec.ledger_only or spec.participation is not None
    false = spec.adversaries is not None and spec.adversaries.of_predictions
    return method.one_shot and spec.rounds == 1 and not unlike_files and not false


def clients_spec(spec: RunSpec) -> RunSpec:
    """Return the spec of the clients of a one-shot run: what all methods on them share.

    It is that of the method `local`, so a table's column "Local" is these clients, tested.

    Raises:
        FedlogitError: if clients are absent in the run, since all of them would be trained, or if
            some falsify their answers, since all of these would be honest.
    """
    if spec.participation is not None:
        raise FedlogitError(
            "participation: a run in which clients are absent is not made in stages; train it in"
            " one piece"
        )
    if spec.adversaries is not None and spec.adversaries.of_predictions:
        raise FedlogitError(
            f"adversaries.attack = {spec.adversaries.attack!r}: a run with false predictions is not"
            " made in stages; train it in one piece"
        )
    shared = {
        "method": ComponentRef(name="local"),
        "server": None,
        "export": (),
        "evaluation": Evaluation(),
    }
    return complete(spec.model_copy(update=shared))


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


@dataclass(frozen=True)
class Precomputed:
    """What earlier jobs did in a run's only round.

    Attributes:
        weights: Each client's trained model, by parameter name.
        answers: The clients' logits.
        targets: What the aggregator made of them; None for a method that teaches nobody.
        note: Where they come from, for the run's record.
        data: Digests of the data that the clients trained on, and of their division.
        diverged: Why there are neither weights nor answers, or "".
    """

    weights: list[dict[str, torch.Tensor]]
    answers: ClientLogits
    targets: Targets | None = None
    note: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    diverged: str = ""


def train_clients(fed: Federation, folder: Path) -> dict[str, str]:
    """Train every client in round 1 and write ``weights.safetensors``; go on where it stopped.

    Clients train as many at a time as there are workers, or all, as the engine says; each is saved
    when its group is done.

    Args:
        fed: A federation that has not begun.
        folder: Where to write.

    Returns:
        For the clients' record: the digest of all weights, as `weights_digest`; of clients that
        diverged, which leave none, of the reason, and the reason as ``diverged``.

    Raises:
        DataError: if a client that was saved is damaged, or was trained by other code or data.
    """
    parts = {c.index: folder / f"part-{c.index}.safetensors" for c in fed.clients}
    try:
        joined, told = _train(fed, parts), {}
    except Diverged as error:
        joined, told = {}, {"diverged": str(error)}
    digest = tensor_digest(joined, told.get("diverged", ""))
    header = {"spec": fed.spec.digest(), "digest": digest, **told}
    save_tensors(folder / "weights.safetensors", joined, header)
    for path in parts.values():
        path.unlink(missing_ok=True)
    remove_leftovers(folder)
    return {"weights_digest": digest, **told}


def _train(fed: Federation, parts: Mapping[int, Path]) -> dict[str, torch.Tensor]:
    """Train every client that was not saved into its part; return the tensors of all.

    Raises:
        Diverged: naming the first client whose loss or weights are not finite.
    """
    everybody = fed.clients
    fed.round = 1
    left = [c for c in everybody if not parts[c.index].exists()]
    size = fed.engine.clients_at_once
    if left and size is None:  # those that are left alone would not be trained to the same bits
        left = everybody
    size = size or len(everybody)
    for client in everybody:
        if client not in left:
            _load(client, read_part(parts[client.index], fed))
    for start in range(0, len(left), size):
        fed.clients = left[start : start + size]
        fed.train_private()
        for client in fed.clients:
            _check_finite(client)
            save_part(parts[client.index], _tensors(client), fed)
    fed.clients = everybody
    return {f"{c.name}/{key}": value for c in everybody for key, value in _tensors(c).items()}


def _check_finite(client: Client) -> None:
    """Refuse a model that its last step made useless, after a loss that was still finite.

    Raises:
        Diverged: as the run in one piece does when the client answers.
    """
    if not all(torch.isfinite(value).all() for value in client.model.state_dict().values()):
        raise Diverged(f"logits of {client.label} are not finite")


def export_logits(fed: Federation, weights: list[dict[str, torch.Tensor]], folder: Path) -> None:
    """Write what trained clients answer: ``logits.npz`` and, last, ``logits.json`` with digests.

    Arrays are ``points``, ``test_labels``, and of each client ``public_000``, ``test_000``, …,
    float32; if an answer is not finite, only ``diverged``, the reason.
    """
    restore(fed, weights)
    arrays = {"points": fed.public.cpu().numpy(), "test_labels": fed.data.test_labels.cpu().numpy()}
    digest = weights_digest(weights)
    try:
        for kind, logits in (("public", fed.logits(fed.public)), ("test", fed.test_logits())):
            arrays |= {f"{kind}_{i:03d}": row.cpu().numpy() for i, row in enumerate(logits)}
    except Diverged as error:
        pass_on_logits(fed.spec, str(error), digest, folder)
        return
    shape = [len(weights), len(fed.public), fed.classes]
    _save_logits(arrays, fed.spec, {"weights_digest": digest, "shape": shape}, folder)


def pass_on_logits(spec: RunSpec, diverged: str, weights_digest: str, folder: Path) -> None:
    """Write, in place of logits, why the clients have none.

    Args:
        spec: The clients', or that of a run on them.
        diverged: The reason.
        weights_digest: As the clients' record has it.
        folder: Where to write.
    """
    told = {"weights_digest": weights_digest, "diverged": diverged}
    _save_logits({"diverged": np.array(diverged)}, spec, told, folder)


def _save_logits(
    arrays: dict[str, np.ndarray], spec: RunSpec, about: dict[str, Any], folder: Path
) -> None:
    save_npz(folder / "logits.npz", arrays)
    made = {"spec_digest": spec.digest(), "code_version": code_version()}
    write_sealed(folder / "logits.json", {"logits_digest": _digest(arrays), **made, **about})


def load_answers(path: Path, classes: int | None = None) -> ClientLogits:
    """Read and check ``logits.npz``, ours or anybody's.

    Args:
        path: The file; ``logits.json`` beside it, if there is one, must have its digest.
        classes: Number of classes that every client must have; None asks only that they agree.

    Raises:
        DataError: naming the file and the client whose logits are missing, of the wrong shape or
            type, or not finite; or if the file is not the one that was exported.
        Diverged: if the clients did, so that the file says why in place of logits.
    """
    beside = path.with_name("logits.json")
    with saying(again(beside)) if beside.exists() else nullcontext():
        arrays = load_npz(path)
    if "diverged" in arrays:
        _exported_digest(path, arrays)
        raise Diverged(str(arrays["diverged"]))
    if "points" not in arrays or arrays["points"].ndim != 1:
        raise DataError(f"{path}: has no 'points' (indices of the public samples)")
    public = _stack(path, arrays, "public", len(arrays["points"]), classes)
    test = _stack(path, arrays, "test", None, public.shape[2])
    if len(test) not in (0, len(public)):
        raise DataError(f"{path}: {len(public)} clients answer in public, {len(test)} on the test")
    labels = arrays.get("test_labels", np.empty(0))
    if labels.ndim != 1 or len(labels) not in (0, test.shape[1]):
        raise DataError(f"{path}: test_labels have shape {labels.shape}, not ({test.shape[1]},)")
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
    digest, beside = _digest(arrays), path.with_name("logits.json")
    if beside.exists() and read_sealed(beside, again(beside)).get("logits_digest") != digest:
        raise DataError(
            f"{path} is not what {beside.name} describes: its digest differs; {again(beside)}"
        )
    return digest


def save_targets(targets: Targets, answers: ClientLogits, method: ComponentRef, path: Path) -> None:
    """Write ``targets.npz``: `distributions`, `weights`, what made them of what, and a digest.

    Args:
        targets: What the server shall predict.
        answers: The logits they are made of.
        method: What made them, with all of its parameters.
        path: The file.
    """
    arrays = {
        "distributions": targets.distributions.cpu().numpy(),
        "weights": targets.weights.cpu().numpy(),
        "logits_digest": np.array(answers.digest),
        "method": np.array(_canonical(method)),
        "code_version": np.array(code_version()),
    }
    save_npz(path, arrays | {"digest": np.array(_digest(arrays))})


def pass_on_targets(diverged: str, path: Path) -> None:
    """Write, in place of targets, why the clients have no logits to make them of."""
    save_npz(path, {"diverged": np.array(diverged), "code_version": np.array(code_version())})


def load_targets(
    path: Path, answers: ClientLogits, method: ComponentRef
) -> tuple[Targets, dict[str, str]]:
    """Read what `save_targets` wrote for these answers and this method.

    Returns:
        The targets, and where they come from, for the run's record.

    Raises:
        DataError: if the file is another thing, damaged, or made of other logits or by another
            method.
    """
    with saying(f"remove {path} and aggregate again"):
        arrays = load_npz(path)
        if {*_TARGETS, "digest"} - arrays.keys():
            raise DataError(f"{path}: not an aggregator's targets, or without a digest")
        digest = str(arrays.pop("digest"))
        if digest != _digest(arrays):
            raise DataError(f"{path} is damaged: its digest does not match")
        if str(arrays["logits_digest"]) != answers.digest:
            raise DataError(f"{path}: targets made of other logits than the run's")
        if str(arrays["method"]) != _canonical(method):
            raise DataError(f"{path}: targets made by {arrays['method']}, not by {method}")
    targets = Targets(
        torch.from_numpy(arrays["distributions"]), torch.from_numpy(arrays["weights"])
    )
    return targets, {
        "targets_digest": digest,
        "targets_code_version": str(arrays["code_version"]),
    }


def _canonical(method: ComponentRef) -> str:
    return json.dumps(method.model_dump(mode="json"), sort_keys=True)


def load_precomputed(
    spec: RunSpec, weights: Path, logits: Path, targets: Path | None
) -> Precomputed:
    """Read what the stages before the last one left; targets are not read if clients diverged.

    Raises:
        DataError: naming the file that does not fit.
    """
    digest = clients_spec(spec).digest()
    trained, answered = weights.with_name("clients.json"), logits.with_name("logits.json")
    models, answers, diverged = _clients_and_answers(spec, digest, weights, logits)
    clients = read_sealed(trained, again(trained))
    exported = read_sealed(answered, again(answered))
    specs = (digest, spec.digest())  # clients answer the same under that of any run on them
    # Clients that diverged have no weights; their record has the digest of the reason.
    of = weights_digest(models) if models else clients["weights_digest"]
    for path, record in ((trained, clients), (answered, exported)):
        if record["spec_digest"] not in specs or record["weights_digest"] != of:
            raise DataError(f"{path} is of other clients than {weights}; {again(path)}")
    made = None if diverged else targets
    taught, note = load_targets(made, answers, spec.method) if made else (None, {})
    note |= {f"clients_{key}": clients[key] for key in _OF_CLIENTS if key in clients}
    note |= {
        "logits_digest": exported["logits_digest"],
        "logits_code_version": exported["code_version"],
    }
    data = {k: clients[k] for k in _OF_DATA if k in clients}
    return Precomputed(models, answers, taught, note, data, diverged)


def _clients_and_answers(
    spec: RunSpec, digest: str, weights: Path, logits: Path
) -> tuple[list[dict[str, torch.Tensor]], ClientLogits, str]:
    """Return the clients' models, their answers and, if they diverged, why they lack any."""
    models: list[dict[str, torch.Tensor]] = []
    try:
        models = load_weights(weights, spec, {digest})
        return models, load_answers(logits), ""
    except Diverged as error:
        none = torch.empty(0)
        return models, ClientLogits(none, none, none, none, ""), str(error)


def continue_from(
    fed: Federation, method: Method, done: Precomputed
) -> Callable[[Federation, int], None]:
    """Give a federation what earlier jobs did; return what is left to do of its only round.

    Raises:
        FedlogitError: if it is another federation's.
    """
    if differ := differences(done.data, {k: fed.facts.get(k) for k in done.data}):
        raise FedlogitError(
            f"the run's clients were trained on other data: {differ}; remove their folder"
        )
    if done.diverged:
        return _diverging(done.diverged)
    check_public(fed, done.answers)
    restore(fed, done.weights)
    device = fed.data.device
    targets = done.targets and Targets(
        done.targets.distributions.to(device), done.targets.weights.to(device)
    )
    logits = done.answers.public.to(device)
    return lambda fed, _round: method.exchange(fed, logits, targets)


def _diverging(reason: str) -> Callable[[Federation, int], None]:
    def play(fed: Federation, round_: int) -> None:
        raise Diverged(reason)

    return play


def restore(fed: Federation, weights: list[dict[str, torch.Tensor]]) -> None:
    """Give every client its trained model.

    Raises:
        DataError: if a model has another architecture.
    """
    for client in fed.clients:
        _load(client, weights[client.index])


def _load(client: Client, tensors: dict[str, torch.Tensor]) -> None:
    try:
        client.model.load_state_dict(tensors)  # in place: parameters stay views of the vector
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"weights of {client.label} do not fit its model: {reason}") from None


def _tensors(client: Client) -> dict[str, torch.Tensor]:
    state = client.model.state_dict()
    return {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}


def _stack(
    path: Path, arrays: dict[str, np.ndarray], kind: str, rows: int | None, classes: int | None
) -> np.ndarray:
    """Return one array of all clients' logits, after checking each."""
    of = {int(m[1]): name for name in arrays if (m := re.fullmatch(rf"{kind}_(\d+)", name))}
    names = [of[number] for number in sorted(of)]
    if not names:
        if kind == "public":
            raise DataError(f"{path}: has no logits (arrays public_000, public_001, …)")
        return np.empty((0, 0, classes or 0), np.float32)
    for number, name in enumerate(names):
        if number not in of:
            raise DataError(f"{path}: has no {kind} logits of client {number}")
        logits = arrays[name]
        who = f"{path}: client {number}: {kind} logits"
        if logits.ndim != 2 or not np.issubdtype(logits.dtype, np.floating):
            raise DataError(f"{who} have shape {logits.shape} of {logits.dtype}, not (n, classes)")
        rows = len(logits) if rows is None else rows
        classes = logits.shape[1] if classes is None else classes
        if len(logits) != rows:
            raise DataError(f"{who} are {len(logits)} rows, not {rows}")
        if logits.shape[1] != classes:
            raise DataError(f"{who} have {logits.shape[1]} classes, not {classes}")
        bad = ~np.isfinite(logits)
        if bad.any():
            raise DataError(f"{who} are not finite in row {int(bad.any(1).argmax())}")
    return np.stack([arrays[name].astype(np.float32) for name in names])


def _digest(arrays: dict[str, np.ndarray]) -> str:
    return array_digest(*(arrays[name] for name in sorted(arrays)))


def check_public(fed: Federation, answers: ClientLogits) -> None:
    """Refuse answers of other clients, or to other questions.

    Raises:
        FedlogitError: saying what differs.
    """
    found, wanted = tuple(answers.public.shape), (len(fed.clients), len(fed.public), fed.classes)
    if found != wanted:
        raise FedlogitError(f"logits have shape {found}; the run's clients would give {wanted}")
    if not torch.equal(answers.points, fed.public.cpu()):
        raise FedlogitError("logits are of other public samples than the run's")
