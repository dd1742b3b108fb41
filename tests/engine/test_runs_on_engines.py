"""Whole runs of every method: each engine that supports one agrees with the loop to the last round.

A vote or a gradient's sign may turn with the last bit, so that runs come apart a little: columns by
at most `OF_A_COLUMN`, each tensor of a model by `OF_A_MODEL` of its length. Bytes are equal, but
where a client sends the entries of an update that are large enough.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from support.every_method import CALLS, METHODS, ON_TEXT, VARIANTS, changes, with_absences
from support.outcomes import exported_weights, untimed_rows
from support.refusals import refused
from support.small import enlarged, small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods

OF_A_COLUMN = 0.02
OF_A_MODEL = 0.005
OF_A_LENET = 0.02  # Adam's first steps divide gradients by their own size: rounding grows
PERCEPTRONS = {"optimizer": {"name": "sgd", "lr": 0.05}}
LENETS = {"models": ["lenet"], "local": {"epochs": 1}, "rounds": 2}
needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
PROXIMAL = [v for v in VARIANTS if methods.get(small_spec(**changes(v)).method).uses_proximal_term]
ONE_OF_EACH = [CALLS.get(name, [name])[0] for name in METHODS]
OTHERS = [call for call in VARIANTS if call not in PROXIMAL]


def agree(
    reference: Path, other: Path, sparse: bool = False, of_a_model: float = OF_A_MODEL
) -> None:
    """Compare two runs: bytes, all other columns, and models."""
    for wanted, found in zip(untimed_rows(reference), untimed_rows(other), strict=True):
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            if name.startswith("bytes") and not sparse:
                assert found[name] == value
            else:
                near = pytest.approx(float(value or "nan"), OF_A_COLUMN, OF_A_COLUMN, nan_ok=True)
                assert float(found[name] or "nan") == near, name
    wanted, found = exported_weights(reference), exported_weights(other)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if value.is_floating_point():
            assert (found[name] - value).norm() <= of_a_model * value.norm() + of_a_model, name
        else:
            assert torch.equal(found[name], value)


@pytest.mark.parametrize("call", first_of_each(VARIANTS + ON_TEXT, method_of))
def test_every_method_with_the_stacked_engine(reference, train, call):
    given = changes(call)
    agree(reference(**given), train(engine="stacked", **given))


@pytest.mark.parametrize("call", ONE_OF_EACH)
def test_every_method_with_absent_clients_and_the_stacked_engine(reference, train, call):
    given = with_absences(call)
    agree(reference(**given), train(engine="stacked", **given))


def test_who_comes_late_has_its_first_momentum_beside_those_who_have_some(reference, train):
    sgd = {"name": "sgd", "lr": 0.05, "momentum": 0.9}
    late = {"schedule": [{"clients": [0], "since": 2}]}
    given = {"optimizer": sgd, "participation": late, "export": ["weights"]}
    agree(reference(**given), train(engine="stacked", **given))


@needs_compiler
@pytest.mark.parametrize("call", [call for call in ONE_OF_EACH if call in OTHERS])
def test_every_method_with_absent_clients_and_compiled_perceptrons(reference, train, call):
    given = with_absences(call) | PERCEPTRONS
    agree(reference(**given), train(engine="native", **given))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("call", OTHERS)
def test_every_method_with_compiled_perceptrons(reference, train, call):
    given = changes(call) | PERCEPTRONS
    agree(reference(**given), train(engine="native", **given), "sparse" in call)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("call", [call for call in ONE_OF_EACH if call in OTHERS])
def test_every_method_with_compiled_lenets(reference, train, digits, call):
    given = changes(call) | LENETS | {"data": enlarged(digits)}
    agree(reference(**given), train(engine="native", **given), of_a_model=OF_A_LENET)


@pytest.mark.parametrize("call", PROXIMAL)
def test_a_method_with_a_proximal_term_is_refused_by_the_native_engine(train, call):
    with refused("engine = 'native' needs a method without proximal term"):
        train(engine="native", **changes(call) | PERCEPTRONS)


def test_some_methods_have_a_proximal_term():
    assert {call.partition("(")[0] for call in PROXIMAL} == {"fedprox", "tally_train"}
