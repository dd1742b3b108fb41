"""A one-shot run in stages, with files between them, that methods on the same clients share.

Six methods of FedOL's Table I share one set of clients and their logits. Each stage can be a job of
its own; together they give the same bits as the run in one piece, because every random number has
an address (`fedlogit.rng`) that does not depend on the stage that draws it.

``train_clients``: a folder with ``spec.json``, ``weights.safetensors`` and ``clients.json``.
``export_logits``: ``logits.npz`` and ``logits.json``.
``aggregate``: ``targets.npz``.
``train``: the run's folder.

Each file has a digest of its content and of what it was made from; its reader checks both
(`client_files`, `logit_files`, `target_files`).

Where clients diverge, each file says why in place of what it would hold, so that every job succeeds
and the run's result is that it diverged, as it is in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlogit.aggregation import Targets
from fedlogit.component import ComponentRef
from fedlogit.engine.client import Client
from fedlogit.engine.task import ClientTask
from fedlogit.errors import DataError, Diverged, FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import remove_leftovers
from fedlogit.methods import Method, get, resolve
from fedlogit.runs import layout
from fedlogit.runs.client_files import load_weights, read_part, save_part, weights_digest
from fedlogit.runs.hints import remake_hint
from fedlogit.runs.logit_files import ClientLogits, load_logits, save_diverged_logits, save_logits
from fedlogit.runs.provenance import differences, imported_own_code
from fedlogit.runs.stage_records import ClientsRecord, LogitsRecord, read_record
from fedlogit.runs.target_files import load_targets
from fedlogit.runs.tensors import model_tensors, save_tensors, tensor_digest
from fedlogit.spec import Evaluation, RunSpec

__all__ = [
    "Precomputed",
    "RoundFunction",
    "clients_spec",
    "continue_from",
    "export_logits",
    "in_stages",
    "load_precomputed",
    "remove_parts",
    "train_clients",
    "why_in_one_piece",
]

RoundFunction = Callable[[Federation, int], None]
"""What happens in a round of a federation, given its number from 1."""

_OF_CLIENTS = (
    "code_version", "own_code", "device", "engine", "compiler", "wall_seconds", "started",
)  # fmt: skip
_OF_DATA = ("dataset_digest", "tokenizer_digest", "probes_digest", "split_digest")


def in_stages(spec: RunSpec) -> bool:
    """Return whether a run can be made in stages: its clients train once and then only predict."""
    return not why_in_one_piece(spec)


def why_in_one_piece(spec: RunSpec) -> str:
    """Return what of a run's spec makes it one that is not made in stages, or "".

    Logits in files are a row a sample, so a text's run is made in one piece; where nobody trains,
    there is nothing to share. Files are of all clients, so where some are absent it is in one, too;
    and of honest answers, so where some falsify theirs it is, too.
    """
    method = get(spec.method)
    if not method.one_shot or spec.rounds != 1:
        return f"method {spec.method.name} with rounds = {spec.rounds}: a run that is not one-shot"
    if not method.shares_clients:
        return (
            f"method {spec.method.name}: a run whose clients keep samples back or do more than"
            " train before they predict"
        )
    if spec.text is not None:
        return "text: a run on a text"
    if spec.ledger_only:
        return "ledger_only = True: a run that trains nobody"
    if spec.participation is not None:
        return "participation: a run in which clients are absent"
    if spec.adversaries is not None and spec.adversaries.of_predictions:
        attack = spec.adversaries.attack
        return f"adversaries.attack = {attack!r}: a run with false predictions"
    if spec.quantization is not None:
        return f"quantization.format = {spec.quantization.format!r}: a run with rounded predictions"
    return ""


def clients_spec(spec: RunSpec) -> RunSpec:
    """Return the spec of the clients of a one-shot run: what all methods on them share.

    It is that of the method `local`, so a table's column "Local" is these clients, tested.

    Raises:
        FedlogitError: if the run is not made in stages (`in_stages`).
    """
    if reason := why_in_one_piece(spec):
        raise FedlogitError(f"{reason} is not made in stages; train it in one piece")
    shared = {
        "method": ComponentRef(name="local"),
        "server": None,
        "temperature": 1.0,  # nobody distils yet
        "export": (),
        "evaluation": Evaluation(),
    }
    return resolve(spec.model_copy(update=shared))


@dataclass(frozen=True)
class Precomputed:
    """What earlier jobs did in a run's only round.

    Attributes:
        weights: Each client's trained model, by parameter name.
        answers: The clients' logits.
        targets: What the aggregator made of them; None for a method without a server's model.
        note: Where they come from, for the run's record.
        data: Digests of the data that the clients trained on, and of their partition.
        diverged: Why there are neither weights nor answers, or "".
        loss_private: The clients' mean loss in training, for the round's row; None of clients whose
            record is older than this entry.
    """

    weights: list[dict[str, torch.Tensor]]
    answers: ClientLogits
    targets: Targets | None = None
    note: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    diverged: str = ""
    loss_private: float | None = None


def train_clients(fed: Federation, folder: Path) -> dict[str, Any]:
    """Train every client in round 1 and write ``weights.safetensors``; go on where it stopped.

    Each client is saved when it is done, in a part that stays until `remove_parts`: a job may be
    stopped before the weights count as kept.

    Args:
        fed: A federation that has not begun.
        folder: Where to write.

    Returns:
        For the clients' record: the digest of all weights, as `weights_digest`, and the mean loss
        of training, as ``loss_private``; of clients that diverged, which leave neither, the digest
        of the reason, and the reason as ``diverged``.

    Raises:
        DataError: if a client that was saved is damaged, or was trained by other code or data.
    """
    parts = _parts(len(fed.clients), folder)
    diverged = ""
    try:
        joined = _train(fed, parts)
    except Diverged as error:
        joined, diverged = {}, str(error)
    digest = tensor_digest(joined, diverged)
    reason = {"diverged": diverged} if diverged else {}
    header = {"spec": fed.spec.digest(), "digest": digest, **reason}
    save_tensors(folder / layout.WEIGHTS, joined, header)
    record: dict[str, Any] = reason or {"loss_private": _mean_loss(fed)}
    return {"weights_digest": digest, **record}


def remove_parts(clients: int, folder: Path) -> None:
    """Remove clients that were saved each for itself, once all of them are kept together."""
    parts = _parts(clients, folder).values()
    for path in parts:
        path.unlink(missing_ok=True)
    remove_leftovers(folder, [path.name for path in parts])


def _parts(clients: int, folder: Path) -> dict[int, Path]:
    return {index: folder / layout.part_of(index) for index in range(clients)}


def _mean_loss(fed: Federation) -> float:
    """Return what `Federation.train_private` of all clients at once logs, to the bit."""
    return float(np.mean([fed.private_losses[client.index] for client in fed.clients]))


def _train(fed: Federation, parts: Mapping[int, Path]) -> dict[str, torch.Tensor]:
    """Train every client that was not saved into its part; return the tensors of all.

    Raises:
        Diverged: naming the first client whose loss or weights are not finite.
    """
    everybody = fed.clients
    fed.start_round(1)
    left = [c for c in everybody if not parts[c.index].exists()]
    if left and fed.engine.trains_together:  # those that are left alone might round otherwise
        left = everybody
    for client in everybody:
        if client not in left:
            weights, fed.private_losses[client.index] = read_part(parts[client.index], fed)
            _load(client, weights)
    if left:
        with _saving(fed, parts), fed.restricted_to(left):
            fed.train_private()
    for client in left:
        if not _is_finite(client):  # the run in one piece notices when the client predicts
            raise Diverged(f"logits of {client.label} are not finite")
    return {
        f"{c.name}/{key}": value for c in everybody for key, value in model_tensors(c.model).items()
    }


@contextmanager
def _saving(fed: Federation, parts: Mapping[int, Path]) -> Iterator[None]:
    """Save each client that finishes its training within a ``with``, in the thread that did it."""
    told = fed.engine.on_task

    def save(task: ClientTask, loss: float) -> None:
        client = task.client
        if _is_finite(client):
            save_part(parts[client.index], model_tensors(client.model), fed, loss)
        told(task, loss)

    fed.engine.on_task = save
    try:
        yield
    finally:
        fed.engine.on_task = told


def _is_finite(client: Client) -> bool:
    """Return whether a client's last step, after a loss that was still finite, left it useful."""
    return all(bool(torch.isfinite(v).all()) for v in client.model.state_dict().values())


def export_logits(fed: Federation, weights: list[dict[str, torch.Tensor]], folder: Path) -> str:
    """Write trained clients' logits: ``logits.npz`` and, last, ``logits.json`` with digests.

    Arrays are ``points``, ``test_labels``, and of each client ``public_000``, ``test_000``, …,
    float32; if a logit is not finite, only ``diverged``, the reason.

    Returns:
        That reason; "" if there is none.
    """
    _restore(fed, weights)
    arrays = {"points": fed.public.cpu().numpy(), "test_labels": fed.data.test_labels.cpu().numpy()}
    digest = weights_digest(weights)
    try:
        for kind, logits in (("public", fed.logits(fed.public)), ("test", fed.test_logits())):
            arrays |= {f"{kind}_{i:03d}": row.cpu().numpy() for i, row in enumerate(logits)}
    except Diverged as error:
        save_diverged_logits(fed.spec, str(error), digest, folder)
        return str(error)
    shape = [len(weights), len(fed.public), fed.classes]
    save_logits(arrays, fed.spec, {"weights_digest": digest, "shape": shape}, folder)
    return ""


def load_precomputed(
    spec: RunSpec, weights: Path, logits: Path, targets: Path | None
) -> Precomputed:
    """Read what the stages before the last one left; targets are not read if clients diverged.

    Raises:
        DataError: naming the file that does not fit.
    """
    digest = clients_spec(spec).digest()
    trained, answered = weights.with_name(layout.CLIENTS), logits.with_name(layout.LOGITS_RECORD)
    models, answers, diverged = _clients_and_answers(spec, digest, weights, logits)
    clients = read_record(ClientsRecord, trained)
    exported = read_record(LogitsRecord, answered)
    specs = (digest, spec.digest())  # clients predict the same under that of any run on them
    # Clients that diverged have no weights; their record has the digest of the reason.
    of = weights_digest(models) if models else clients.weights_digest
    records: tuple[tuple[Path, ClientsRecord | LogitsRecord], ...]
    records = ((trained, clients), (answered, exported))
    for path, record in records:
        if record.spec_digest not in specs or record.weights_digest != of:
            raise DataError(f"{path} is of other clients than {weights}; {remake_hint(path)}")
    _check_models(spec, clients, trained)
    made = None if diverged else targets
    taught, note = load_targets(made, answers, spec.method) if made else (None, {})
    note |= {f"clients_{key}": value for key, value in clients.given(_OF_CLIENTS).items()}
    note |= {
        "logits_digest": exported.logits_digest,
        "logits_code_version": exported.code_version,
    }
    data = clients.given(_OF_DATA)
    return Precomputed(models, answers, taught, note, data, diverged, clients.loss_private)


def _check_models(spec: RunSpec, clients: ClientsRecord, path: Path) -> None:
    """Refuse clients whose models' code, from outside the library, is not that of now.

    Weights say nothing of it: they fit whatever has parameters of the same shapes.

    Raises:
        DataError: naming the modules that differ.
    """
    now = imported_own_code([model.model_dump(mode="json") for model in spec.models])
    before = {name: clients.own_code[name] for name in now if name in clients.own_code}
    if differ := differences(before, now):
        raise DataError(f"{path}: the models are of other code: {differ}; {remake_hint(path)}")


def _clients_and_answers(
    spec: RunSpec, digest: str, weights: Path, logits: Path
) -> tuple[list[dict[str, torch.Tensor]], ClientLogits, str]:
    """Return the clients' models, their answers and, if they diverged, why they lack any."""
    models: list[dict[str, torch.Tensor]] = []
    try:
        models = load_weights(weights, spec, {digest})
        return models, load_logits(logits), ""
    except Diverged as error:
        none = torch.empty(0)
        return models, ClientLogits(none, none, none, none, ""), str(error)


def continue_from(fed: Federation, method: Method, done: Precomputed) -> RoundFunction:
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
    _check_answers(fed, done.answers)
    _restore(fed, done.weights)
    device = fed.data.device
    targets = done.targets and Targets(
        done.targets.distributions.to(device), done.targets.weights.to(device)
    )
    logits = done.answers.public.to(device)

    def run_round(fed: Federation, round_: int) -> None:
        if done.loss_private is not None:
            fed.log(loss_private=done.loss_private)
        method.exchange(fed, logits, targets)

    return run_round


def _diverging(reason: str) -> RoundFunction:
    def run_round(fed: Federation, round_: int) -> None:
        raise Diverged(reason)

    return run_round


def _restore(fed: Federation, weights: list[dict[str, torch.Tensor]]) -> None:
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


def _check_answers(fed: Federation, answers: ClientLogits) -> None:
    """Refuse logits of other clients, or on other public samples.

    Raises:
        FedlogitError: saying what differs.
    """
    found, wanted = tuple(answers.public.shape), (len(fed.clients), len(fed.public), fed.classes)
    if found != wanted:
        raise FedlogitError(f"logits have shape {found}; the run's clients would give {wanted}")
    if not torch.equal(answers.points, fed.public.cpu()):
        raise FedlogitError("logits are of other public samples than the run's")
