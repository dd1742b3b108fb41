"""The workloads as data: what a round of each is, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["WORKLOADS", "Workload"]


@dataclass(frozen=True)
class Workload:
    """A workload.

    Attributes:
        title: What tables call it.
        spec: A run as fedlogit describes it.
        peers: Why other frameworks cannot do it as they come; empty if they can.
    """

    title: str
    spec: dict[str, Any]
    peers: str = ""


_COMMON: dict[str, Any] = {"batch": 128, "local": {"epochs": 1}, "rounds": 1000}

# Peers weigh clients by their samples, as FedAvg does; so do we here, though CELM §5 does not.
WORKLOADS = {
    "W1": Workload(
        "CELM, Fashion-MNIST: 5 clients, MLP, Dir(0.05); local epoch and aggregation",
        _COMMON | {
            "dataset": "fashion_mnist", "clients": 5, "partition": "dir_client(0.05)", "seed": 42,
            "method": "fedavg(weighting='samples')", "models": ["mlp_net"], "same_init": True,
            "optimizer": {"name": "sgd", "lr": 0.1, "reset_every": "round"},
        },
    ),
}  # fmt: skip
