"""Checks that every method must pass, also one from another package, in runs of a second."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stderr, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlogit import methods
from fedlogit.data import Dataset
from fedlogit.errors import FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import read_json
from fedlogit.methods import Method
from fedlogit.runs import layout
from fedlogit.runs.compare_runs import (
    approximate_difference,
    exact_difference,
    exported_weights,
    total_bytes,
)
from fedlogit.runs.context import RunOptions
from fedlogit.runs.run import run
from fedlogit.runs.setup import divide
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

__all__ = ["SMALL_SPEC", "Finding", "findings"]

SMALL_SPEC: dict[str, Any] = {
    "dataset": "digits",
    "partition": "k_classes(3, private_size=90)",
    "clients": 4,
    "public": {"size": 60},
    "models": ["mlp(hidden=[16])"],
    "server": {"model": "mlp(hidden=[24])", "epochs": 20},
    "rounds": 3,
    "local": {"epochs": 1, "first_epochs": 2},
    "batch": 32,
    "optimizer": {"name": "adam", "lr": 0.003},
    "seed": 0,
}
"""The spec of a run of a second on scikit-learn's digits; only the method is missing."""

_ENGINES = ("stacked", "native", "unpadded")
_STEPS = 5  # after so many at most it is stopped


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        check: What must be so.
        wrong: What is wrong, and what usually mends it; "" if nothing is.
        skipped: Why the check says nothing of this method or spec; "" if it does.
    """

    check: str
    wrong: str = ""
    skipped: str = ""


def findings(spec: RunSpec, dataset: Dataset, folder: Path) -> Iterator[Finding]:
    """Yield what each check of a method found; the others come only if its run finishes.

    Where a run of a check cannot be made, the error is what it found.

    Args:
        spec: A spec whose method is checked; a few rounds are enough.
        dataset: The data set it names.
        folder: Where runs are made. It must be empty, and is no longer needed afterwards.

    Raises:
        FedlogitError: if the method refuses the spec.
    """
    runs = _Runs(spec, dataset, folder)
    _seed_global_generators(0)
    whole = runs.make("whole")
    first = _finishes(whole)
    yield first
    if first.wrong:
        return
    for name, check in _CHECKS.items():
        try:
            found = check(name, runs, whole)
        except FedlogitError as error:
            found = Finding(name, str(error))
        yield found


class _Runs:
    """Makes runs of one spec, or of one that differs from it in some keys."""

    def __init__(self, spec: RunSpec, dataset: Dataset, folder: Path) -> None:
        self.spec = self._with(spec, export=["weights"])
        self._dataset, self._folder = dataset, folder
        self.method = methods.get(spec.method)

    @staticmethod
    def _with(spec: RunSpec, **changes: Any) -> RunSpec:
        given = spec.model_dump(mode="json") | changes
        return methods.resolve(RunSpec.read(given, "the spec"))

    def make(
        self,
        name: str,
        stop: int = 0,
        step: int = 0,
        workers: int = 1,
        engine: str = "loop",
        dataset: Dataset | None = None,
        **changes: Any,
    ) -> Path:
        """Make a run, or go on with it, and return its folder.

        Args:
            name: Of the folder.
            stop: The round after which it is stopped, as a cluster does; 0 lets it finish.
            step: The long step (`Federation.once`) after which it is stopped, of all rounds.
            workers: Threads.
            engine: What runs the clients.
            dataset: Other samples or labels, divided as the data set is; None is the data set.
            changes: Keys of the spec.
        """
        spec = self._with(self.spec, **changes) if changes else self.spec
        method = methods.get(spec.method)
        options = RunOptions(torch.device("cpu"), workers, engine, progress=False)
        folder, split = self._folder / name, divide(spec, self._dataset)
        with suppress(SystemExit) if stop or step else nullcontext():
            method = _stopping(method, stop, step) if stop or step else method
            run(spec, method, dataset or self._dataset, split, folder, options)
        return folder

    def with_other_test_split(self) -> Dataset:
        """Return the data set whose test split has negatives of images, or other tokens."""
        data, x = self._dataset, self._dataset.x_test
        others = 255 - x if x.dtype == np.uint8 else (x + 1) % data.classes
        return replace(data, x_test=others, y_test=(data.y_test + 1) % data.classes)

    def with_other_public_labels(self) -> Dataset:
        """Return the data set in which each public sample has the label of the next class."""
        labels, public = self._dataset.y_train.copy(), divide(self.spec, self._dataset).public
        own = labels[public]
        labels[public] = np.where(own < 0, own, (own + 1) % self._dataset.classes)
        return replace(self._dataset, y_train=labels)

    def resumed(self, name: str, whole: Path, **changes: Any) -> str:
        """Return what is wrong with runs that are stopped after each round and then finished."""
        for stop in range(1, self.spec.rounds):
            with redirect_stderr(StringIO()):  # both say so
                folder = self.make(f"{name}-{stop}", stop, **changes)
                self.make(folder.name, **changes)
            if wrong := exact_difference(whole, folder):
                return (
                    f"stopped after round {stop}: {wrong}; keep what the method remembers in"
                    " fed.server_state"
                )
        return ""


def _stopping(method: Method, stop: int, step: int) -> Method:
    """Return the same method, which asks for an end in a round or step, as a time limit would."""
    done = 0

    def after_step(save: Callable[[], None]) -> None:
        nonlocal done
        done += 1
        if done == step:
            signal.raise_signal(signal.SIGTERM)
        save()

    def round_(self: Method, fed: Federation, r: int) -> None:
        save = fed.steps.after_step
        fed.steps.after_step = partial(after_step, save)
        try:
            type(method).round(self, fed, r)
        finally:
            fed.steps.after_step = save
        if r == stop:
            signal.raise_signal(signal.SIGTERM)

    name = type(method).name
    kind = type(type(method).__name__, (type(method),), {"round": round_, "name": name})
    return kind.model_validate(method.model_dump())  # type: ignore[attr-defined]


def _seed_global_generators(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - which is what a method may not use
    torch.manual_seed(seed)


def _finishes(whole: Path) -> Finding:
    check = "a run finishes with finite numbers"
    result = read_json(whole / layout.RESULT)
    if result["status"] != "finished":
        return Finding(check, f"{result['status']}: {result['message']}")
    for name, value in exported_weights(whole).items():
        if not value.float().isfinite().all():
            return Finding(check, f"the final weights {name} are not finite")
    return Finding(check)


def _repeats(check: str, runs: _Runs, whole: Path) -> Finding:
    _seed_global_generators(1)
    wrong = exact_difference(whole, runs.make("again"))
    usual = "draw random numbers from fedlogit.rng, and keep state in fed.server_state alone"
    hint = f"{wrong}; {usual}" if wrong else ""
    return Finding(check, hint)


def _resumes(check: str, runs: _Runs, whole: Path) -> Finding:
    if runs.spec.rounds < 2:
        return Finding(check, skipped="the spec has one round")
    return Finding(check, runs.resumed("stopped", whole))


def _goes_on_within(check: str, runs: _Runs, whole: Path) -> Finding:
    for step in range(1, _STEPS + 1):
        with redirect_stderr(StringIO()):
            folder = runs.make(f"step-{step}", step=step)
            if (folder / layout.RESULT).exists():
                lacks = "the method has none (fed.once)" if step == 1 else ""
                return Finding(check, skipped=lacks)
            runs.make(folder.name)
        if wrong := exact_difference(whole, folder):
            usual = "change models and fed.server_state within steps, or after the last one"
            return Finding(check, f"stopped after step {step}: {wrong}; {usual}")
    return Finding(check)


def _threads(check: str, runs: _Runs, whole: Path) -> Finding:
    wrong = exact_difference(whole, runs.make("threads", workers=3))
    hint = f"{wrong}; clients run side by side, in any order" if wrong else ""
    return Finding(check, hint)


def _engines(_check: str, runs: _Runs, whole: Path) -> Finding:
    able = [engine for engine in _ENGINES if _can_run(engine, runs)]
    check = f"other engines agree with the loop ({', '.join(able) or '–'})"
    found = [f"{name}: {wrong}" for name in able if (wrong := _apart(name, runs, whole))]
    return Finding(check, "; ".join(found), "" if able else "none of them can run this spec")


def _can_run(engine: str, runs: _Runs) -> bool:
    """Return whether an engine says that it can run the spec, and here."""
    try:
        choose_engines(runs.spec, runs.method, "cpu", engine)
    except FedlogitError:
        return False
    return True


def _apart(engine: str, runs: _Runs, whole: Path) -> str:
    """Return in what a run on another engine differs, or how it fails; "" if nothing is wrong."""
    try:
        folder = runs.make(engine, engine=engine)
    except FedlogitError as error:
        return str(error)
    return _finishes(folder).wrong or approximate_difference(whole, folder)


def _sends(check: str, runs: _Runs, whole: Path) -> Finding:
    if total_bytes(whole).get("bytes_up"):
        return Finding(check)
    if not runs.method.needs_public:
        return Finding(check, skipped="the method need not send anything")
    return Finding(check, "no bytes are counted; what they send goes through fed.uplink")


def _test_split(check: str, runs: _Runs, whole: Path) -> Finding:
    folder = runs.make("other-test", dataset=runs.with_other_test_split())
    hint = "with other test samples, {}; take fed.logits of fed.public or of private samples"
    return Finding(check, _changed_weights(whole, folder, hint))


def _public_labels(check: str, runs: _Runs, whole: Path) -> Finding:
    if runs.spec.public is None:
        return Finding(check, skipped="the spec has no public samples")
    if runs.method.learns_public_labels:
        return Finding(check, skipped="the property learns_public_labels is True")
    folder = runs.make("other-labels", dataset=runs.with_other_public_labels())
    hint = "with other labels of public samples, {}; say so with learns_public_labels = True"
    return Finding(check, _changed_weights(whole, folder, hint))


def _changed_weights(whole: Path, folder: Path, hint: str) -> str:
    """Return a hint with the first tensor in which models of two runs differ, or ""."""
    before, after = exported_weights(whole), exported_weights(folder)
    name = next((name for name in before if not torch.equal(before[name], after[name])), None)
    return hint.format(f"the final weights {name} are others") if name else ""


def _counts(check: str, runs: _Runs, whole: Path) -> Finding:
    if not runs.method.fixed_messages:
        return Finding(check, skipped="the class does not say fixed_messages = True")
    trained = total_bytes(whole)
    counted = total_bytes(runs.make("counted", ledger_only=True, export=[]))
    apart = [k for k in trained | counted if trained.get(k) != counted.get(k)]
    return Finding(check, "; ".join(f"{k} {trained.get(k)} and {counted.get(k)}" for k in apart))


def _absences(check: str, runs: _Runs, _whole: Path) -> Finding:
    if not runs.method.supports_partial_participation:
        lacks = "the class does not say supports_partial_participation = True"
        return Finding(check, skipped=lacks)
    whole = runs.make("absences", participation=0.7)
    return Finding(check, runs.resumed("absences", whole, participation=0.7))


def _adversaries(check: str, runs: _Runs, whole: Path) -> Finding:
    if not runs.method.sends_predictions:
        return Finding(check, skipped="the property sends_predictions is False")
    if runs.spec.clients < 2:
        return Finding(check, skipped="the spec has one client")
    share = 1 - 1 / runs.spec.clients  # a method may be robust to one
    folder = runs.make("attacked", adversaries={"share": share, "attack": "random_logits"})
    return Finding(check, _finishes(folder).wrong or _unread(whole, folder))


def _quantization(check: str, runs: _Runs, whole: Path) -> Finding:
    if not runs.method.sends_soft_predictions:
        return Finding(check, skipped="the property sends_soft_predictions is False")
    folder = runs.make("rounded", quantization={"format": "uniform", "bits": 4})
    if wrong := _finishes(folder).wrong or _unread(whole, folder):
        return Finding(check, wrong)
    sent, before = (total_bytes(each)["bytes_up"] for each in (folder, whole))
    return Finding(check, "" if sent < before else f"{sent} bytes are sent, as float32 {before}")


def _unread(whole: Path, folder: Path) -> str:
    """Return that what was sent otherwise has not changed a model, or ""."""
    changed = _changed_weights(whole, folder, "{}")
    return "" if changed else "the models are the same; go on with what fed.uplink returns"


def _temperature(check: str, runs: _Runs, whole: Path) -> Finding:
    if not runs.method.distils_soft_targets:
        return Finding(check, skipped="the property distils_soft_targets is False")
    another = 1.0 if runs.spec.temperature >= 2 else 3.0
    folder = runs.make("softened", temperature=another)
    if wrong := _finishes(folder).wrong:
        return Finding(check, wrong)
    lacks = (
        f"the models are the same at temperature {another:g}; distil by fed.distil or"
        " fed.distil_server"
    )
    return Finding(check, "" if exact_difference(whole, folder) else lacks)


_CHECKS: dict[str, Callable[[str, _Runs, Path], Finding]] = {
    "a second run has the same bits, whatever global generators are seeded": _repeats,
    "a run that is stopped and resumed has the same bits": _resumes,
    "a run that is stopped within a round, after a long step, has the same bits": _goes_on_within,
    "three threads give the same bits as one": _threads,
    "other engines agree with the loop": _engines,
    "clients send something": _sends,
    "no model learns from the test split": _test_split,
    "no model learns from labels of public samples": _public_labels,
    "a run that only counts bytes counts the same (ledger_only)": _counts,
    "clients may be absent in a round": _absences,
    "predictions of adversaries are falsified": _adversaries,
    "predictions can be sent in fewer bits (quantization)": _quantization,
    "soft targets can be softened (temperature)": _temperature,
}
