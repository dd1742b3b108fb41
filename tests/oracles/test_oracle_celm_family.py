"""Methods that federate models beside their second versions: FedAvg, FedProx and CELM's rivals."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles import celm, cffl, cgsv, fedavg, fedprox, shapfed
from oracles.agreement import Comparison, compare
from support.tiers import first_of_each, method_of

SGD = {"name": "sgd", "lr": 0.1}
MOMENTUM = SGD | {"momentum": 0.9, "weight_decay": 0.01}
SKEWED = {"partition": "dir_client(0.5)"}


def case(method, name, told=None, /, rounds=3, sgd=SGD, tolerance=1e-5, **changes):
    """Return a comparison; what the method is told, its second version is told, too."""
    told = told or {}
    call = f"{name}({', '.join(f'{key}={value!r}' for key, value in told.items())})"
    changes = {"optimizer": sgd} | changes
    return Comparison(
        method,
        call if told else name,
        rounds,
        tolerance=tolerance,
        changes=tuple(changes.items()),
        settings=tuple(told.items()),
    )


FEDAVG = [
    case("FedAvg", "fedavg"),
    case("FedAvg", "fedavg", {"weighting": "samples"}, **SKEWED),
]
# How an optimizer lives and how its rate falls; the second version is told in its own words.
RESETS = [
    (case("FedAvg", "fedavg", sgd=MOMENTUM), {}),
    (case("FedAvg", "fedavg", sgd=MOMENTUM | {"reset_every": "round"}), {"reset_every": "round"}),
    (case("FedAvg", "fedavg", sgd=MOMENTUM | {"reset_every": "phase"}), {"reset_every": "phase"}),
    (case("FedAvg", "fedavg", rounds=5, schedule={"every": 2}), {"every": 2}),
    (
        case("FedAvg", "fedavg", rounds=5, schedule={"every": 2, "once": True}),
        {"every": 2, "once": True},
    ),
]
FEDPROX = [
    case("FedProx", "fedprox", **SKEWED),
    case("FedProx", "fedprox", {"mu": 1.0, "weighting": "uniform"}, **SKEWED),
]
CFFL = [
    case("CFFL", "cffl"),
    case("CFFL", "cffl", {"alpha": 10.0, "smoothing": 0.5}, **SKEWED),
    case("CFFL", "cffl", {"server_weights": "uniform"}),
    case("CFFL", "cffl", {"feedback": True}, rounds=6),
    case("CFFL", "cffl", {"feedback": True, "removal": True}, rounds=6),
    case("CFFL", "cffl", {"removal": True, "server_weights": "uniform", "alpha": 15.0}, rounds=5),
    case("CFFL", "cffl", {"scored_on": "own"}, **SKEWED),
    case("CFFL", "cffl", {"server_weights": "reputation_samples", "scored_on": "own"}, **SKEWED),
]
# Which entries are the largest: compared on images without constant pixels, see `speckled`.
SPARSE = [
    case("CFFL", "cffl", {"sparse": True, "upload": 0.3, "clip": 10.0}),
    case("CFFL", "cffl", {"sparse": True, "server_weights": "sum", "clip": 0.1, "upload": 0.5}),
    case("CFFL", "cffl", {"sparse": True}, rounds=4),  # most entries are as large as the bound
]
CGSV = [
    case("CGSV", "cgsv", rounds=5),
    case("CGSV", "cgsv", {"norm": 1.5, "normalise": "above"}, rounds=5, **SKEWED),
    case("CGSV", "cgsv", {"altruism": 1e7, "smoothing": 0.5}),
    case("CGSV", "cgsv", {"smoothing": 0.0}, rounds=4),
    case("CGSV", "cgsv", {"restore": False, "normalise": "above"}, rounds=4),
]
SHAPFED = [
    case("ShapFed", "shapfed", rounds=4),
    case("ShapFed", "shapfed", {"smoothing": 0.5, "rewards": True}, rounds=4),
    case("ShapFed", "shapfed", {"cosine": "raw", "smoothing": 0.0}, rounds=4),
    case("ShapFed", "shapfed", {"cosine": "raw", "rewards": True, "smoothing": 0.0}, **SKEWED),
]
# Updates are lost in rounding, so that no cosine is positive.
NOBODY = case("ShapFed", "shapfed", {"cosine": "raw"}, sgd=SGD | {"lr": 1e-15})
CELM = [
    case("CELM", "celm", {"steps": 10, "warm_up": 0.5}, rounds=5, tolerance=1e-4),
    case("CELM", "celm", {"steps": 5, "warm_up": 1.0, "smoothing": 0.0}, tolerance=1e-4),
    case("CELM", "celm", {"steps": 5, "rate": 0.1, "local_heads": False, "debias": False}),
    case("CELM", "celm", {"steps": 5, "warm_start": False, "warm_up": 1.0, "penalty": 0.1}),
    case("CELM", "celm", {"steps": 5, "classes_per_round": 4, "warm_up": 0.7}, rounds=4),
    case("CELM", "celm", {"steps": 40}, rounds=2, tolerance=1e-4),
]
VERSIONS = {
    "fedavg": fedavg, "fedprox": fedprox, "cffl": cffl, "cgsv": cgsv, "shapfed": shapfed,
    "celm": celm,
}  # fmt: skip
RESETS = [replace(comparison, settings=tuple(told.items())) for comparison, told in RESETS]
CASES = [*FEDAVG, *RESETS, *FEDPROX, *CFFL, *SPARSE, *CGSV, *SHAPFED, NOBODY, *CELM]


@pytest.fixture
def speckled(federation, digits):
    """Digits with noise: weights of a pixel that is always 0 get updates that are equal.

    Which of them is among the largest would be a matter of rounding.
    """
    noise = np.random.default_rng(0).integers(0, 64, digits.x_train.shape)
    images = np.minimum(digits.x_train + noise, 255).astype(np.uint8)
    return partial(federation, data=replace(digits, x_train=images))


@pytest.mark.parametrize("case", first_of_each(CASES, method_of), ids=str)
def test_rounds_agree(case, federation, speckled):
    build = speckled if case in [*SPARSE, *CGSV] else federation
    compare(case, VERSIONS[case.call.partition("(")[0]].rounds, build)
