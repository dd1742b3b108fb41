"""What a run is: a frozen, typed tree that holds everything that can change a number.

A resolved spec is hashed in a canonical form; a run lives in a folder named by that hash.
Device, engine, number of workers and paths are not here, because they must not change a number
beyond the tolerance that the tests state; nor is the scale at which a paper asks for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from fedlogit import dotted_keys
from fedlogit.adversaries import Adversaries
from fedlogit.component import ComponentRef
from fedlogit.files import canonical_json
from fedlogit.frozen_config import (
    LARGEST,
    FrozenConfig,
    Name,
    NonNegativeInt,
    PositiveInt,
    Seed,
    refuse_unused,
)
from fedlogit.participation import Participation
from fedlogit.quantization import Quantization

__all__ = [
    "EXPORTS_OF_METHODS",
    "EXPORTS_OF_RUNS",
    "Evaluation",
    "LocalTraining",
    "Optimizer",
    "Public",
    "RunSpec",
    "Schedule",
    "Server",
    "SplitSpec",
    "Text",
]

EXPORTS_OF_RUNS = ("logits", "test_logits", "weights", "shapley")
"""Exports that are made of the final models, whatever the method."""
EXPORTS_OF_METHODS = ("aggregation", "evidence", "probes", "theory")
"""Exports of the papers' methods."""


def _as_set(entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sort entries whose order changes no number, but would change the run's hash.

    Raises:
        ValueError: if one is given twice.
    """
    if twice := [entry for entry in entries if entries.count(entry) > 1]:
        raise ValueError(f"{twice[0]!r} is given twice; give it once")
    return tuple(sorted(entries))


class LocalTraining(FrozenConfig):
    """How much a client works in a phase of a round: whole epochs, or a number of minibatches.

    Attributes:
        epochs: Passes over the client's data; give this or `steps`.
        first_epochs: Passes in round 1, where it differs (Who to Trust A.1: 10, later 1). Of a
            client that is absent then, in the first round in which it is there; of models that are
            new in every round, as FedKT's teachers, in every round.
        steps: Minibatches per phase (TallyTrain's K).
    """

    form: ClassVar[str] = "a mapping such as {epochs: 1}"

    epochs: PositiveInt | None = None
    first_epochs: PositiveInt | None = None
    steps: PositiveInt | None = None

    @field_validator("epochs", "first_epochs", mode="before")
    @classmethod
    def _are_whole(cls, value: Any) -> Any:
        if isinstance(value, float):
            raise ValueError("should be a whole number; for a part of an epoch, give local.steps")
        return value

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.first_epochs is not None and self.epochs is None:
            raise ValueError("first_epochs needs epochs")
        return self

    def epochs_in(self, round_: int) -> int | None:
        """Return the epochs of a phase in round `round_` (from 1), or None if steps count."""
        return self.first_epochs if round_ == 1 and self.first_epochs else self.epochs


class Optimizer(FrozenConfig):
    """The clients' optimizer.

    Attributes:
        name: ``sgd``, ``adam``, or ``adamw``, whose weight decay is not part of the gradient.
        lr: Learning rate.
        momentum: Of SGD.
        weight_decay: Of all three.
        beta1: Decay of Adam's first moment.
        beta2: Decay of its second moment.
        eps: Added to the root of its second moment.
        reset_every: How often its state starts anew: with every ``run`` only (Who to Trust,
            TallyTrain); with every ``round`` (the CELM family); or with every ``phase`` of a round,
            as where a training function makes its own optimizer.
        clip: Scale a client's gradient down to this norm where it is longer; None never does.
        zero_nonfinite_grads: Set entries of a gradient that are not finite to 0, before clipping
            (TallyTrain appendix I); a phase then diverges only if no minibatch has a finite loss.
    """

    renamed: ClassVar[Mapping[str, str]] = {
        "lifetime": "reset_every",
        "scrub": "zero_nonfinite_grads",
    }

    form: ClassVar[str] = "a mapping such as {name: adam, lr: 0.001}"

    name: Literal["sgd", "adam", "adamw"]
    lr: Annotated[float, Field(gt=0)]
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    eps: Annotated[float, Field(gt=0)] = 1e-8
    reset_every: Literal["run", "round", "phase"] = "run"
    clip: Annotated[float, Field(gt=0)] | None = None
    zero_nonfinite_grads: bool = False

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        # A setting that changes no number would all the same change a run's hash.
        idle = ("beta1", "beta2", "eps") if self.name == "sgd" else ("momentum",)
        refuse_unused(self, idle, f"has no effect with name = {self.name!r}")
        return self


class Schedule(FrozenConfig):
    """Step decay on the round counter: the rate is ``lr * gamma ** ((round - 1) // every)``.

    Attributes:
        every: Rounds between decays; None never decays.
        gamma: What the rate is multiplied by at a decay.
        once: Decay a single time, after `every` rounds (the reading of CELM §5 that
            its scale ``paper`` takes for 200 rounds).
    """

    every: PositiveInt | None = None
    gamma: Annotated[float, Field(gt=0, le=1)] = 0.1
    once: bool = False

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if self.every is None:
            refuse_unused(self, ("gamma", "once"), "has no effect without every")
        return self

    def factor(self, round_: int) -> float:
        """Return the multiplier of the learning rate in round `round_` (from 1)."""
        if self.every is None:
            return 1.0
        decays = (round_ - 1) // self.every
        return self.gamma ** (min(decays, 1) if self.once else decays)


class Public(FrozenConfig):
    """The public set that clients exchange logits on; it is taken from the training split.

    Attributes:
        size: Number of samples, without anchors.
        stratified: Equal numbers of each class (as far as they exist), else uniformly at random.
        classes: Only these classes, to study coverage; None takes all.
        overlap: Leave the public images in the pool that private sets are drawn from.
        last: Take the last samples of the training split instead of drawing, whatever their class;
            `stratified` then means nothing (a text's last tokens, TallyTrain appendix I).
        dataset: Take them, uniformly at random, from the training images of this data set instead;
            nobody knows their labels (TallyTrain §4.5).
        anchors: With `dataset`, add so many of the last images of the own training split, whose
            labels are known (TallyTrain appendix K, arm C).
    """

    form: ClassVar[str] = "a mapping such as {size: 100}"

    size: PositiveInt
    stratified: bool = True
    classes: Annotated[tuple[int, ...], AfterValidator(_as_set)] | None = None
    overlap: bool = False
    last: bool = False
    dataset: Name | None = None
    anchors: NonNegativeInt = 0

    @model_validator(mode="after")
    def _last_of_all_classes(self) -> Self:
        if self.last and self.classes is not None:
            raise ValueError(
                "last takes the last samples, whatever their class; give either last or classes"
            )
        return self

    @model_validator(mode="after")
    def _labels_exist(self) -> Self:
        if self.dataset is None and self.anchors:
            raise ValueError("anchors go with images of another data set; give dataset")
        own = self.stratified or self.classes or self.overlap or self.last
        if self.dataset is not None and own:
            raise ValueError(
                "nobody knows the labels of another data set's images, and no private set has them;"
                " give stratified: false, and neither classes, overlap nor last"
            )
        return self


class Text(FrozenConfig):
    """How a text becomes samples: tokens, cut into sequences with the next token at each position.

    Attributes:
        vocabulary: Tokens of the byte-pair encoding, which is trained on the training split only;
            256 of them are the bytes. It is the number of classes.
        length: Tokens of a sample, T.
        evaluation_split: The split that test scores are measured on (TallyTrain §4.6: ``valid``).
    """

    renamed: ClassVar[Mapping[str, str]] = {"tested_on": "evaluation_split"}

    vocabulary: Annotated[int, Field(ge=257, le=LARGEST)]
    length: PositiveInt
    evaluation_split: Literal["valid", "test"] = "valid"

    @property
    def samples(self) -> str:
        """Which samples the scores are of, ``test`` or ``validation``."""
        return "validation" if self.evaluation_split == "valid" else "test"


class Server(FrozenConfig):
    """The model that a server trains on what clients predict, and how long.

    Attributes:
        model: Its architecture; it may be larger than any client's.
        epochs: Passes over the public set each time it is trained.
        batch: Minibatch size; None takes the clients'.
        optimizer: None takes the clients' settings. Its state is new each time it is trained, so
            that `reset_every` has no effect.
        augment: As `RunSpec.augment`, on the public images that it learns from; the targets are
            those of the image as it is.
    """

    model: ComponentRef
    epochs: PositiveInt
    batch: PositiveInt | None = None
    optimizer: Optimizer | None = None
    augment: Literal["none", "crop_flip"] = "none"

    @field_validator("optimizer")
    @classmethod
    def _has_effect(cls, value: Optimizer | None) -> Optimizer | None:
        if value is not None:
            why = (
                "has no effect on a server's model, whose optimizer is new each time it is trained"
            )
            refuse_unused(value, ("reset_every",), why)
        return value


class Evaluation(FrozenConfig):
    """When accuracy is measured: every `every` rounds, in `rounds`, and in the last one; on what.

    Attributes:
        every: Rounds from one test to the next.
        rounds: Further rounds with a test. Those after the last round are passed over, so that one
            list serves a paper's runs of every length.
        tail: How many of the last rounds are all tested; metrics of the tail are means over them
            (TallyTrain §4: 100). All rounds, if there are fewer.
        validation: Measure on so many samples of the training split that are neither a client's nor
            public, with the class proportions of all that are left, instead of on the test split:
            to choose a method's settings, for which the test split must not be used.
        with_test: Measure on the test split, too: accuracy on validation samples is then the column
            ``validation_accuracy`` and all other scores are of the test split, so that the round
            can be chosen whose test accuracy counts.
    """

    every: PositiveInt = 1
    rounds: Annotated[tuple[PositiveInt, ...], AfterValidator(_as_set)] = ()
    tail: NonNegativeInt = 0
    validation: PositiveInt | None = None
    with_test: bool = False

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if self.validation is None:
            refuse_unused(self, ("with_test",), "has no effect without validation")
        return self


class SplitSpec(FrozenConfig):
    """What the partition of the data depends on; each field means what it does in `RunSpec`."""

    dataset: Name
    train_size: PositiveInt | None = None
    partition: ComponentRef
    clients: PositiveInt
    public: Public | None = None
    seed: Seed
    text: Text | None = None


class RunSpec(FrozenConfig):
    """One training run of one method with one seed.

    Attributes:
        format: Version of the spec's meaning.
        dataset: A name from `fedlogit.data`.
        train_size: Use a stratified subsample of the training split of this size; None uses all.
        test_size: The same for the test split.
        text: How a text is tokenised and cut into samples; for data sets that are texts.
        augment: ``crop_flip`` is RandomCrop(size, 4) and a horizontal flip on what clients train
            on: private batches, and the public ones of FedKT's students and of the reference.
        partition: How the training split is divided; a call such as ``dir_client(0.05)``.
        clients: Number of clients N.
        participation: Who is there in a round; None is everybody in every round. See
            `fedlogit.participation`.
        adversaries: Clients that harm the others; None has none. See `fedlogit.adversaries`.
        quantization: How logits and probabilities are rounded when they are sent; None sends them
            as float32. See `fedlogit.quantization`.
        temperature: T of distillation (Hinton et al. 2015, §2): soft targets softmax(z) become
            softmax(z / T), who learns them divides its logits by T, too, and the loss is multiplied
            by T². See `fedlogit.aggregation.targets.soften`.
        public: The public set, if the method uses one.
        models: Architectures, given to clients in turn: client i has ``models[i % len(models)]``.
        server: The server's own model, for a method that trains one; dropped for others.
        same_init: All clients (of one architecture) start from the same weights.
        method: A call such as ``uwa(variance_floor=0.001)``.
        rounds: Number of communication rounds.
        local: How much a client trains, and distils, in a round.
        optimizer: The clients' optimizer, with its learning rate.
        schedule: How the learning rate falls over rounds.
        evaluation: In which rounds models are tested, and on what.
        batch: Minibatch size; the last batch of an epoch may be smaller.
        precision: ``f32``, or ``bf16`` for autocast matrix products with f32 weights.
        seed: Everything random in the run derives from it.
        export: What to keep besides metrics: ``logits`` (public, last round), ``test_logits``,
            ``weights`` (model parameters), ``aggregation`` (a method's weights on public samples),
            ``evidence`` and ``probes`` (CELM's evidence by round and final images), ``shapley``
            (Shapley values of the clients' final models), ``theory`` (columns ``theory_…`` of
            tested rounds: what TallyTrain §3.3 proves); or what a method of your own names in its
            `exports`.
        ledger_only: Make and count every message, but train no model and predict nothing: the
            bytes are those of the whole run, and there is no accuracy (see
            `fedlogit.engine.ledger_only`). `export` is dropped.
    """

    renamed: ClassVar[Mapping[str, str]] = {
        "kernel": "engine, which is no part of a run but how it is computed, like device",
        "scale": "no part of a run: it says how a run was asked for, not what it is",
    }

    format: Literal[1] = 1
    dataset: Name
    train_size: PositiveInt | None = None
    test_size: PositiveInt | None = None
    text: Text | None = None
    augment: Literal["none", "crop_flip"] = "none"
    partition: ComponentRef
    clients: PositiveInt
    participation: Participation | None = None
    adversaries: Adversaries | None = None
    quantization: Quantization | None = None
    temperature: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    public: Public | None = None
    models: tuple[ComponentRef, ...] = Field(min_length=1)
    server: Server | None = None
    same_init: bool = False
    method: ComponentRef
    rounds: PositiveInt
    local: LocalTraining
    batch: PositiveInt = 128
    optimizer: Optimizer
    schedule: Schedule = Schedule()
    precision: Literal["f32", "bf16"] = "f32"
    seed: Seed
    evaluation: Evaluation = Evaluation()
    export: Annotated[tuple[Name, ...], AfterValidator(_as_set)] = ()
    ledger_only: bool = False

    @model_validator(mode="after")
    def _one_set_to_score(self) -> Self:
        when = self.evaluation
        if when.validation is not None and not when.with_test and self.test_size is not None:
            raise ValueError(
                "give either test_size or evaluation.validation, or both and evaluation.with_test"
            )
        return self

    def canonical(self) -> str:
        """Return what is hashed: JSON with sorted keys, no spaces, and no field at its default.

        Leaving defaults out means that a new field does not make old runs stale. The defaults of
        the fields of this class must therefore never change; a change of meaning is a new
        `format`. Parameters of components are always written out, so theirs may.
        """
        data = self.model_dump(mode="json", exclude_defaults=True) | {"format": self.format}
        return canonical_json(data)

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON, as hex."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def setting(self, key: str) -> Any:
        """Return the value of a dotted key as plain data; ``method.x`` is the method's parameter x.

        It is None where there is no such part, such as ``public.size`` of a run without public set.
        """
        first, _, rest = key.partition(".")
        if first == "method" and rest:
            return self.method.name if rest == "name" else self.method.params.get(rest)
        return dotted_keys.get(self.model_dump(mode="json"), key)

    @property
    def samples(self) -> str:
        """Which samples the scores are of, ``test`` or ``validation``."""
        when = self.evaluation
        if when.validation is not None and not when.with_test:
            return "validation"
        return "test" if self.text is None else self.text.samples

    def tests_in(self, round_: int) -> bool:
        """Return whether test accuracy is measured after round `round_` (from 1)."""
        when = self.evaluation
        if self.ledger_only or not 1 <= round_ <= self.rounds:
            return False
        last = round_ == self.rounds or round_ > self.rounds - when.tail
        return round_ % when.every == 0 or round_ in when.rounds or last

    def split_spec(self) -> SplitSpec:
        """Return what the partition of the data depends on (see `fedlogit.partition.divide`)."""
        return SplitSpec(**{key: getattr(self, key) for key in SplitSpec.model_fields})

    def split_key(self) -> dict[str, Any]:
        """Return `split_spec` as plain data, whose digest names the partition."""
        found = self.split_spec().model_dump(mode="json")
        # Later fields are left out where they say nothing, so that partitions keep their names.
        if self.text is None:
            del found["text"]
        if self.public is not None:
            if not self.public.last:
                del found["public"]["last"]
            if self.public.dataset is None:
                del found["public"]["dataset"], found["public"]["anchors"]
        return found
