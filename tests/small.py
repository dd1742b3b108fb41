"""A spec of a second's work on real data (scikit-learn's digits), for any test to change."""

from __future__ import annotations

from fedlogit import methods
from fedlogit.spec import RunSpec

SMALL = {
    "dataset": "digits",
    "partition": "k_classes(3, private_size=90)",
    "clients": 4,
    "public": {"size": 60},
    "models": ["mlp(hidden=[16])"],
    "server": {"model": "mlp(hidden=[24])", "epochs": 20},
    "method": "average",
    "rounds": 3,
    "local": {"epochs": 1, "first_epochs": 2},
    "batch": 32,
    "optimizer": {"name": "adam", "lr": 0.003},
    "seed": 0,
}
# What turns it into a text: docstrings of scikit-learn, 300 tokens, sequences of 32.
TEXT = {
    "dataset": "sklearn_docs",
    "text": {"vocabulary": 300, "length": 32},
    "partition": "contiguous",
    "train_size": 300,
    "test_size": 20,
    "public": {"size": 40, "last": True},
    "models": ["tiny_gpt(layers=1, width=16, heads=2, context=32)"],
    "batch": 8,
    "optimizer": {"name": "adamw", "lr": 0.01, "clip": 1.0, "zero_nonfinite_grads": True},
}


def small_spec(**changes) -> RunSpec:
    """Return a resolved spec of a second's work on digits."""
    return methods.complete(RunSpec.read(SMALL | changes, "test spec"))
