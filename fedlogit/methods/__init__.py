"""The algorithm boxes of the papers, one file each, found by name."""

from __future__ import annotations

from fedlogit import data, models, partition
from fedlogit.adversaries import Adversaries
from fedlogit.component import ComponentRef, find, instantiate
from fedlogit.errors import Cannot, FedlogitError
from fedlogit.methods.base import Method
from fedlogit.participation import Participation
from fedlogit.spec import RunSpec, Server

__all__ = ["Method", "complete", "get"]


def get(call: ComponentRef) -> Method:
    """Return the method a call names.

    Raises:
        FedlogitError: for an unknown name (with the nearest one) or a bad parameter.
    """
    base = Method
    cls = find("method", "fedlogit.methods", base, call.name)  # type: ignore[type-abstract]
    return instantiate("method", cls, call)


def complete(spec: RunSpec) -> RunSpec:
    """Return `spec` with every default of its components filled in: what is hashed and saved.

    Raises:
        Cannot: if the method declares that it cannot do this.
        FedlogitError: if a component is unknown, a parameter is wrong, or parts do not fit.
    """
    method = get(spec.method)
    card = data.card(spec.dataset)
    if method.needs_public and spec.public is None:
        raise FedlogitError(
            f"method {spec.method.name} needs a public set; give public: {{size: n}}"
        )
    if spec.public is not None and spec.public.dataset is not None:
        _check_foreign(spec, spec.public.dataset, method)
    if method.server_model and spec.server is None:
        raise FedlogitError(
            f"method {spec.method.name} teaches a model of the server; give"
            " server: {model: …, epochs: n}"
        )
    if spec.ledger_only and not method.fixed_messages:
        raise FedlogitError(
            f"ledger_only = true: what method {spec.method.name} sends may depend on what its"
            " models learn; train it"
        )
    _check_text(spec, method, is_text=card.kind == "text")
    _check_exports(spec, method)
    if spec.clients < method.min_clients:
        raise FedlogitError(
            f"clients = {spec.clients}: method {spec.method.name} needs {method.min_clients}"
            " or more"
        )
    if method.global_model and len(set(map(str, spec.models))) > 1:
        raise Cannot(
            f"method {spec.method.name} averages models, so all clients need one architecture;"
            f" models = {', '.join(map(str, spec.models))}"
        )
    if {"logits", "aggregation"} & set(spec.export) and spec.public is None:
        raise FedlogitError("export of public logits needs a public set; give public: {size: n}")
    taught = spec.server.augment if method.server_model and spec.server else "none"
    if "crop_flip" in (spec.augment, taught) and not card.shape:
        raise FedlogitError(f"augment = 'crop_flip': dataset {spec.dataset} has no images")
    method.check(spec)
    adversaries = _adversaries(spec, method)
    participation = _participation(spec, method)
    part = partition.get(spec.partition)
    return spec.model_copy(
        update={
            "participation": participation,
            "adversaries": adversaries,
            "partition": ComponentRef(name=spec.partition.name, params=part.params()),
            "models": tuple(models.complete(call) for call in spec.models),
            "server": _server(spec) if method.server_model else None,
            "method": ComponentRef(name=spec.method.name, params=method.params()),
            "export": () if spec.ledger_only else spec.export,
        }
    )


def _check_text(spec: RunSpec, method: Method, *, is_text: bool) -> None:
    """Refuse a text without settings, settings without a text, and methods that take images."""
    if is_text and spec.text is None:
        raise FedlogitError(
            f"dataset {spec.dataset} is a text; give text: {{vocabulary: n, length: n}}"
        )
    if not is_text and spec.text is not None:
        raise FedlogitError(f"text is given, but dataset {spec.dataset} is not a text")
    if is_text and not method.sequences:
        raise FedlogitError(
            f"method {spec.method.name} takes samples of one class; dataset {spec.dataset} has one"
            " at each position"
        )


def _check_foreign(spec: RunSpec, other: str, method: Method) -> None:
    """Refuse a public set of another data set where it does not fit."""
    if not method.foreign_public:
        raise Cannot(
            f"public.dataset = {other!r}: method {spec.method.name} needs public samples of"
            f" {spec.dataset} itself"
        )
    data.check_probes(spec.dataset, other)


def _adversaries(spec: RunSpec, method: Method) -> Adversaries | None:
    """Return who harms the others, or None if that is nobody."""
    who = spec.adversaries
    if who is None or not who.number(spec.clients):
        return None
    name = spec.method.name
    if method.adversarial_clients:
        raise FedlogitError(f"adversaries: method {name} has adversaries of its own; leave one out")
    if who.of_predictions and not method.sends_predictions:
        raise Cannot(
            f"adversaries.attack = {who.attack!r}: clients of method {name} send no predictions,"
            " or models beside them"
        )
    if not who.of_predictions and spec.text is not None:
        raise FedlogitError(
            "adversaries.attack = 'label_flips': is of samples of one class; dataset"
            f" {spec.dataset} has one at each position"
        )
    return who


def _participation(spec: RunSpec, method: Method) -> Participation | None:
    """Return who is there, or None if that is everybody in every round."""
    who = spec.participation
    if who is None:
        return None
    if who.schedule and spec.rounds == 1:
        raise Cannot(
            f"participation.schedule: method {spec.method.name} has a single round here, in which"
            " nobody can join or leave"
        )
    who.check(spec.clients, spec.rounds)
    round_, fewest = who.fewest(spec.clients, spec.rounds)
    if fewest == spec.clients:
        return None
    name = spec.method.name
    if not method.absences:
        raise Cannot(
            f"participation: method {name} does not say what it does without some of its clients;"
            " set its attribute absences = True once it does"
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
    of_spec = spec.adversaries.number(spec.clients) if spec.adversaries else 0
    _check_honest(who, spec, of_spec or method.adversarial_clients)
    return who if method.fixed_width else who.model_copy(update={"meta_model": "refit"})


def _check_honest(who: Participation, spec: RunSpec, adversaries: int) -> None:
    """Refuse a round in which only adversaries are there."""
    for round_ in range(1, spec.rounds + 1) if adversaries else ():
        if min(who.present(round_, spec.clients, spec.seed)) >= spec.clients - adversaries:
            raise FedlogitError(
                f"participation: of the clients in round {round_} all are adversaries"
            )


def _server(spec: RunSpec) -> Server:
    assert spec.server is not None
    return spec.server.model_copy(update={"model": models.complete(spec.server.model)})


_OF_METHODS = {"aggregation", "evidence", "probes", "theory"}
_MOST_PLAYERS = 10


def _check_exports(spec: RunSpec, method: Method) -> None:
    """Refuse an export that the method does not have, or that would take for ever."""
    lacking = sorted((set(spec.export) & _OF_METHODS) - method.exports)
    if lacking:
        raise FedlogitError(f"export = {lacking[0]!r}: method {spec.method.name} has none to write")
    if "shapley" in spec.export and not (method.global_model and spec.clients <= _MOST_PLAYERS):
        raise FedlogitError(
            "export = 'shapley' tests an average of every subset of clients: it needs a method with"
            f" a global model and at most {_MOST_PLAYERS} clients, not {spec.method.name} with"
            f" {spec.clients}"
        )
