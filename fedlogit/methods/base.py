"""What a method is: frozen hyper-parameters and what happens in a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from fedlogit.aggregation import Targets
from fedlogit.component import Component, ComponentRef, catalogue
from fedlogit.errors import FedlogitError
from fedlogit.federation import Federation
from fedlogit.spec import RunSpec

__all__ = ["NAMES_IN_PAPERS", "Method", "get", "number_of_adversaries"]

NAMES_IN_PAPERS = {
    "fedmd": "tally_train(signal='probabilities')",
    "rc_fd": "tally_train(signal='top_k')",
    "no_consensus": "tally_train(signal='none', label_weight=1.0)",
    "uwa_em": "uwa(fit='em')",
    "meta_model_forest": "meta_model(aggregator='forest')",
    "meta_model_boosting": "meta_model(aggregator='boosting')",
}
"""Methods that are calls of another: their short names in the papers' files, and the calls."""


class Method(Component, ABC):
    """A method of the papers, composed of the operations of `Federation`.

    A new method is one module in `fedlogit.methods` (or anywhere importable, as
    ``package.module:Class``) and one line in a paper's YAML.

    Attributes:
        needs_public: The spec must have a public set.
        supports_external_public: The public set may come from another data set, of unknown labels.
        exports: What `spec.export` may name besides what every method has.
        global_model: There is a global model, `fed.server`, and it is what is tested; clients have
            its architecture.
        server_model: There is a server's model of its own, `spec.server`, which learns from
            predictions; it is what is tested, and clients may have any architectures.
        one_shot: In a run of one round its clients only train and predict, as those of other such
            methods do, so that these stages can be shared where `shares_clients`; what follows is
            `exchange`.
        supports_sequences: It also works where a sample has a class at each of its positions, as a
            text's tokens have, and logits are (clients, n, T, classes).
        fixed_messages: The size of its messages does not depend on what models learn, so that a run
            with `spec.ledger_only` can count them.
        min_clients: The least number of clients it makes sense with, in every round.
        supports_partial_participation: Clients may be absent in a round (`spec.participation`): it
            takes `fed.clients` for those present, and finds what it remembers of each by its number
            (`fed.present_indices`), since they change from round to round.
        fixed_width: It has an input for each client that exists, so that
            `spec.participation.meta_model` says what it does without one.
    """

    needs_public: ClassVar[bool] = False
    supports_external_public: ClassVar[bool] = False
    exports: ClassVar[frozenset[str]] = frozenset()
    global_model: ClassVar[bool] = False
    server_model: ClassVar[bool] = False
    one_shot: ClassVar[bool] = False
    supports_sequences: ClassVar[bool] = False
    fixed_messages: ClassVar[bool] = False
    min_clients: ClassVar[int] = 1
    supports_partial_participation: ClassVar[bool] = False
    fixed_width: ClassVar[bool] = False

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse what a method would remember of its own: a run that resumes would not have it."""
        if name.startswith("_"):  # pydantic's private attributes
            super().__setattr__(name, value)
            return
        raise FedlogitError(
            f"method {self.name}: self.{name} cannot be set, as a checkpoint would lack it; keep"
            f" what is needed in a later round in fed.server_state[{name!r}], a tensor"
        )

    @property
    def holdout(self) -> float:
        """Share of each client's private samples that it keeps for validation."""
        return 0.0

    @property
    def shares_clients(self) -> bool:
        """Whether clients of a run of one round are those of the method `local` until they predict.

        Then their training is a stage of its own, which methods share (`fedlogit.runs.stages`). A
        `one_shot` method is made in one piece where its clients keep samples back, or where `init`
        may change them. One that does more before they predict overrides this.
        """
        return self.one_shot and not self.holdout and type(self).init is Method.init

    @property
    def adversarial_clients(self) -> int:
        """How many of the last clients send false predictions; their models are not tested."""
        return 0

    @property
    def sends_predictions(self) -> bool:
        """Whether clients send predictions and no models, so that adversaries can falsify them.

        They go through `fed.uplink` of logits, or through `fed.claimed` (see `spec.adversaries`).
        """
        return False

    @property
    def sends_soft_predictions(self) -> bool:
        """Whether clients send logits or probabilities, so that `spec.quantization` rounds them.

        They are sent as ``logits``, ``auxiliary_logits`` or ``probabilities``.
        """
        return self.sends_predictions

    @property
    def distils_soft_targets(self) -> bool:
        """Whether all targets that it distils are soft, so that `spec.temperature` softens them.

        Hard labels, and mixtures with them, have no temperature.
        """
        return False

    @property
    def learns_public_labels(self) -> bool:
        """Whether models learn the labels of public samples, which need not be known otherwise."""
        return False

    @property
    def uses_proximal_term(self) -> bool:
        """Whether clients' losses have a proximal term."""
        return False

    def check(self, spec: RunSpec) -> None:
        """Refuse a run that the method's settings do not fit, with a `FedlogitError`."""

    def init(self, fed: Federation) -> None:
        """Do what comes before the first round; not called again when a run resumes."""

    @abstractmethod
    def round(self, fed: Federation, r: int) -> None:
        """Do communication round `r`, counted from 1."""

    def exchange(self, fed: Federation, logits: torch.Tensor, targets: Targets | None) -> None:
        """Do what follows once trained clients have predicted, for a method that is `one_shot`.

        Args:
            fed: The federation, its clients trained.
            logits: The clients', on the public set, (clients, points, classes).
            targets: What was made of them before; None makes it now.
        """
        raise NotImplementedError

    def finish(self, fed: Federation) -> None:
        """Do what comes after the last round."""


def number_of_adversaries(spec: RunSpec, method: Method) -> int:
    """Return how many of the last clients harm the others: the spec's, or the method's own.

    Raises:
        FedlogitError: as `Adversaries.number`.
    """
    of_spec = spec.adversaries.number(spec.clients) if spec.adversaries else 0
    return of_spec or method.adversarial_clients


def get(call: ComponentRef | str) -> Method:
    """Return the method a call names.

    Raises:
        FedlogitError: for an unknown name (with the nearest one, or the call that the papers' files
            have for it) or a bad parameter.
    """
    name = (call if isinstance(call, str) else call.name).partition("(")[0].strip()
    if name in NAMES_IN_PAPERS and name not in catalogue("fedlogit.methods", Method):
        raise FedlogitError(
            f"unknown method {name!r}: only papers' files call it so; give {NAMES_IN_PAPERS[name]}"
        )
    return Method.from_call("method", "fedlogit.methods", call)
