"""A run's spec, resolved: what a method needs of a run, and every default filled in."""

from __future__ import annotations

from collections.abc import Collection

from fedlogit import data, models, partition
from fedlogit.adversaries import Adversaries
from fedlogit.component import ComponentRef
from fedlogit.errors import FedlogitError, Unsupported
from fedlogit.methods.base import Method, get, number_of_adversaries
from fedlogit.participation import Participation
from fedlogit.quantization import Quantization
from fedlogit.spec import EXPORTS_OF_METHODS, EXPORTS_OF_RUNS, RunSpec, Server

__all__ = ["resolve"]

_MOST_CLIENTS = 10  # of exact Shapley values: all subsets are tested


def resolve(spec: RunSpec) -> RunSpec:
    """Return `spec` with every default of its components filled in: what is hashed and saved.

    Raises:
        Unsupported: if the method declares that it cannot do this.
        FedlogitError: if a component is unknown, a parameter is wrong, or parts do not fit.
    """
    method = get(spec.method)
    data.card(spec.dataset)  # an unknown name is told before all that depends on it
    for check in _CHECKS:
        check(spec, method)
    method.check(spec)
    adversaries = _adversaries(spec, method)
    participation = _participation(spec, method)
    quantization = _quantization(spec, method)
    part = partition.get(spec.partition)
    return spec.model_copy(
        update={
            "participation": participation,
            "adversaries": adversaries,
            "quantization": quantization,
            "partition": spec.partition.resolved(part),
            "models": tuple(_resolved_model(call) for call in spec.models),
            "server": _server(spec) if method.server_model else None,
            "method": spec.method.resolved(method),
            "export": () if spec.ledger_only else spec.export,
        }
    )


def _check_public(spec: RunSpec, method: Method) -> None:
    """Refuse a run without the public set that it needs, or with one of another data set."""
    if method.needs_public and spec.public is None:
        raise FedlogitError(
            f"method {spec.method.name} needs a public set; give public: {{size: n}}"
        )
    other = spec.public.dataset if spec.public else None
    if other is None:
        return
    if not method.supports_external_public:
        raise Unsupported(
            f"public.dataset = {other!r}",
            spec.method.name,
            f"needs public samples of {spec.dataset} itself",
        )
    data.check_probes(spec.dataset, other)


def _check_server(spec: RunSpec, method: Method) -> None:
    """Refuse a run without the server's model that the method trains."""
    if method.server_model and spec.server is None:
        raise FedlogitError(
            f"method {spec.method.name} trains a model of the server; give"
            " server: {model: …, epochs: n}"
        )


def _check_ledger(spec: RunSpec, method: Method) -> None:
    """Refuse to count messages alone where their size depends on what models learn."""
    if spec.ledger_only and not method.fixed_messages:
        raise FedlogitError(
            f"ledger_only = true: what method {spec.method.name} sends may depend on what its"
            " models learn; train it"
        )


def _check_text(spec: RunSpec, method: Method) -> None:
    """Refuse a text without settings, settings without a text, and methods that take images."""
    is_text = data.card(spec.dataset).kind == "text"
    if is_text and spec.text is None:
        raise FedlogitError(
            f"dataset {spec.dataset} is a text; give text: {{vocabulary: n, length: n}}"
        )
    if not is_text and spec.text is not None:
        raise FedlogitError(f"text is given, but dataset {spec.dataset} is not a text")
    if is_text and not method.supports_sequences:
        raise FedlogitError(
            f"method {spec.method.name} takes samples of one class; dataset {spec.dataset} has one"
            " at each position"
        )


def _check_exports(spec: RunSpec, method: Method) -> None:
    """Refuse an export that the method lacks, that takes for ever, or that needs a public set."""
    there = {*EXPORTS_OF_RUNS, *_exports_of(spec, method)}
    if lacking := sorted(set(spec.export) - there):
        known = lacking[0] in EXPORTS_OF_METHODS
        raise FedlogitError(
            f"export = {lacking[0]!r}: method {spec.method.name} has none to write"
            + ("" if known else f"; give some of {', '.join(sorted(there))}")
        )
    if "shapley" in spec.export and not (method.global_model and spec.clients <= _MOST_CLIENTS):
        raise FedlogitError(
            "export = 'shapley' tests an average of every subset of clients: it needs a method with"
            f" a global model and at most {_MOST_CLIENTS} clients, not {spec.method.name} with"
            f" {spec.clients}"
        )
    if {"logits", "aggregation"} & set(spec.export) and spec.public is None:
        raise FedlogitError("export of public logits needs a public set; give public: {size: n}")


def _exports_of(spec: RunSpec, method: Method) -> Collection[str]:
    """Return the exports of a method's own; a text would be taken for its letters."""
    named: object = method.exports
    if isinstance(named, set | frozenset) and all(isinstance(name, str) for name in named):
        return named
    raise FedlogitError(
        f"method {spec.method.name}: exports = {named!r}: should be a set of names, such as"
        " frozenset({'mine'})"
    )


def _check_clients(spec: RunSpec, method: Method) -> None:
    """Refuse fewer clients than the method needs or than models, and models that differ."""
    if spec.clients < method.min_clients:
        raise FedlogitError(
            f"clients = {spec.clients}: method {spec.method.name} needs {method.min_clients}"
            " or more"
        )
    if len(spec.models) > spec.clients:  # the last would be nobody's, and change the hash
        raise FedlogitError(
            f"models = {', '.join(map(str, spec.models))}: with clients = {spec.clients} give at"
            f" most {spec.clients}"
        )
    if method.global_model and len(set(map(str, spec.models))) > 1:
        raise Unsupported(
            f"models = {', '.join(map(str, spec.models))}",
            spec.method.name,
            "averages models, so all clients need one architecture",
        )


def _check_augmentation(spec: RunSpec, method: Method) -> None:
    """Refuse to crop and flip what is no image, at clients or at a server that is trained."""
    server = spec.server.augment if method.server_model and spec.server else "none"
    if "crop_flip" in (spec.augment, server) and not data.card(spec.dataset).shape:
        raise FedlogitError(f"augment = 'crop_flip': dataset {spec.dataset} has no images")


def _check_temperature(spec: RunSpec, method: Method) -> None:
    """Refuse a temperature where there are no soft targets, or hard labels among them."""
    if spec.temperature != 1 and not method.distils_soft_targets:
        raise Unsupported(
            f"temperature = {spec.temperature:g}",
            spec.method.name,
            "distils no soft targets, or mixes them with hard labels",
        )


_CHECKS = (  # of several things that are wrong, the first is told
    _check_public,
    _check_server,
    _check_ledger,
    _check_text,
    _check_exports,
    _check_clients,
    _check_augmentation,
    _check_temperature,
)


def _adversaries(spec: RunSpec, method: Method) -> Adversaries | None:
    """Return who harms the others, or None if that is nobody."""
    adversaries = spec.adversaries
    if adversaries is None or not adversaries.number(spec.clients):
        return None
    name = spec.method.name
    if method.adversarial_clients:
        raise FedlogitError(f"adversaries: method {name} has adversaries of its own; leave one out")
    if adversaries.of_predictions and not method.sends_predictions:
        raise Unsupported(
            f"adversaries.attack = {adversaries.attack!r}",
            name,
            "sends no predictions, or models beside them",
        )
    if not adversaries.of_predictions and spec.text is not None:
        raise FedlogitError(
            "adversaries.attack = 'label_flips' needs one class a sample; dataset"
            f" {spec.dataset} is a text, with a target at each position"
        )
    return adversaries


def _quantization(spec: RunSpec, method: Method) -> Quantization | None:
    """Return how predictions are rounded, of a method that sends some."""
    if spec.quantization is not None and not method.sends_soft_predictions:
        raise Unsupported("quantization", spec.method.name, "sends no logits or probabilities")
    return spec.quantization


def _participation(spec: RunSpec, method: Method) -> Participation | None:
    """Return which clients are present, or None if all are in every round."""
    participation = spec.participation
    if participation is None:
        return None
    if participation.schedule and spec.rounds == 1:
        raise Unsupported(
            "participation.schedule",
            spec.method.name,
            "has a single round here, in which nobody can join or leave",
        )
    participation.check(spec.clients, spec.rounds)
    if participation.fewest(spec.clients, spec.rounds)[1] == spec.clients:
        return None
    _check_absences(participation, spec, method)
    _check_honest(participation, spec, method)
    if method.fixed_width:
        return participation
    return participation.model_copy(update={"meta_model": "refit"})


def _check_absences(participation: Participation, spec: RunSpec, method: Method) -> None:
    """Refuse absent clients where the method, or what is exported, needs them."""
    name = spec.method.name
    round_, fewest = participation.fewest(spec.clients, spec.rounds)
    if not method.supports_partial_participation:
        raise Unsupported(
            "participation",
            name,
            "does not say what it does without some of its clients; set its attribute"
            " supports_partial_participation = True once it does",
        )
    if fewest < method.min_clients:
        raise FedlogitError(
            f"participation: method {name} needs {method.min_clients} clients or more, and in"
            f" round {round_} there are {fewest}"
        )
    if "shapley" in spec.export:
        raise FedlogitError(
            "export = 'shapley' needs all clients' models of the last round; give no participation"
        )


def _check_honest(participation: Participation, spec: RunSpec, method: Method) -> None:
    """Refuse a round in which only adversaries are there."""
    adversaries = number_of_adversaries(spec, method)
    honest = spec.clients - adversaries
    for round_ in range(1, spec.rounds + 1) if adversaries else ():
        if min(participation.present(round_, spec.clients, spec.seed)) >= honest:
            raise FedlogitError(
                f"participation: in round {round_} every client that is present is an adversary"
            )


def _server(spec: RunSpec) -> Server:
    """Return the server's settings with its model's defaults filled in."""
    assert spec.server is not None
    return spec.server.model_copy(update={"model": _resolved_model(spec.server.model)})


def _resolved_model(call: ComponentRef) -> ComponentRef:
    return call.resolved(models.get(call))
