"""Whole runs: those of every method on the stacked engine agree with the loop to the last round.

So do those of `EACH_VERB` where clients are absent, and on the engine of compiled code. A vote or a
gradient's sign may turn with the last bit, so that runs come apart a little: columns by at most
`OF_A_COLUMN`, each tensor of a model by `OF_A_MODEL` of its length. Bytes are equal.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from support.every_method import ON_TEXT, VARIANTS, changes, with_absences
from support.outcomes import untimed_rows, weights
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
# No method sees an engine, which `test_conformance.py` gives every task with every model: together
# these do all that a federation can do with its clients' models and its server's.
EACH_VERB = [
    "average",
    "uwa(validation=0.2)",  # asks each client for other samples
    "meta_model(per_class=9)",
    "fully_informed",  # trains on public samples, too
    "fedavg",
    "celm(steps=5)",  # keeps heads, looks into the models
    "cffl",
    "cgsv",  # changes models by what it sends
    "feddf_fusion(warm_up=1)",  # the server learns as clients do
    "fedkt(teachers=2)",  # models that are not the clients'
    "fedol(iterations=2)",
    "tally_train(warm_up=1)",  # a single step on labels and soft targets
    "tally_train(signal='probabilities', warm_up=0, merge_every=2)",
]


def agree(reference: Path, other: Path, of_a_model: float = OF_A_MODEL) -> None:
    """Compare two runs: bytes, all other columns, and models."""
    for wanted, found in zip(untimed_rows(reference), untimed_rows(other), strict=True):
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            if name.startswith("bytes"):
                assert found[name] == value
            else:
                near = pytest.approx(float(value or "nan"), OF_A_COLUMN, OF_A_COLUMN, nan_ok=True)
                assert float(found[name] or "nan") == near, name
    wanted, found = weights(reference), weights(other)
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


@pytest.mark.parametrize("call", EACH_VERB)
def test_absent_clients_with_the_stacked_engine(reference, train, call):
    given = with_absences(call)
    agree(reference(**given), train(engine="stacked", **given))


@needs_compiler
@pytest.mark.parametrize("call", EACH_VERB)
def test_absent_clients_with_compiled_perceptrons(reference, train, call):
    given = with_absences(call) | PERCEPTRONS
    agree(reference(**given), train(engine="native", **given))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("call", EACH_VERB)
def test_compiled_perceptrons(reference, train, call):
    given = changes(call) | PERCEPTRONS
    agree(reference(**given), train(engine="native", **given))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("call", EACH_VERB)
def test_compiled_lenets(reference, train, digits, call):
    given = changes(call) | LENETS | {"data": enlarged(digits)}
    agree(reference(**given), train(engine="native", **given), OF_A_LENET)


@pytest.mark.parametrize("call", PROXIMAL)
def test_a_method_with_a_proximal_term_is_refused_by_the_native_engine(train, call):
    with refused("engine = 'native' needs a method without proximal term"):
        train(engine="native", **changes(call) | PERCEPTRONS)


def test_some_methods_have_a_proximal_term():
    assert {call.partition("(")[0] for call in PROXIMAL} == {"fedprox", "tally_train"}
