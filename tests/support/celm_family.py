"""Small runs of CELM and its rivals on digits, and what they report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from fedlogit import methods
from fedlogit.federation import Federation
from fedlogit.methods import Method
from support.outcomes import rows
from support.rounds import go_on
from support.small import small_spec

FAMILY = {
    "clients": 5,
    "partition": "pls(2, 80, 5)",
    "public": None,
    "rounds": 4,
    "local": {"epochs": 1},
    "batch": 16,
    "optimizer": {"name": "sgd", "lr": 0.1, "reset_every": "round"},
    "same_init": True,
    "seed": 42,
}
CELM = "celm(steps=20, warm_up=0.5)"


def contributions(folder: Path) -> np.ndarray:
    """Return what a run says each client contributed, (rounds, clients)."""
    table = rows(folder)
    names = [k for k in table[0] if k.startswith("contribution_")]
    return np.array([[float(row[k]) for k in names] for row in table])


def family(
    federation: Callable[..., Federation], call: str, **changes: object
) -> tuple[Federation, Method]:
    """Return a small federation and the method that a call means."""
    given = FAMILY | {"method": call} | changes
    return federation(**given), methods.get(small_spec(**given).method)


def one_more(fed: Federation, method: Method) -> list[float]:
    """Do the next round; return what each client contributed."""
    log = go_on(fed, method).take_log()
    fed.log(**log)
    return [log[f"contribution_{i}"] for i in range(len(fed.clients))]


def vectors_after(fed: Federation, changes: torch.Tensor) -> None:
    """Let training change each client's parameters by its row of `changes`."""

    def train_private() -> None:
        fed.load_vectors(fed.vectors() + changes)

    fed.train_private = train_private
