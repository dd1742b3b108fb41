"""The workloads as data: what a round of each is, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["WORKLOADS", "Workload"]


@dataclass(frozen=True)
class Workload:
    """A workload.

    Attributes:
        title: What tables call it.
        spec: A run as fedlogit describes it.
        peers: Why other frameworks are left out; empty if they are not.
        without: Why one of them is, by its name.
    """

    title: str
    spec: dict[str, Any]
    peers: str = ""
    without: Mapping[str, str] = field(default_factory=dict)


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
    "W2": Workload(
        "Who to Trust?'s clients, MNIST: 20 clients of two classes, LeNet, Adam; local epoch and"
        " aggregation",
        _COMMON | {
            "dataset": "mnist", "train_size": 12_000, "clients": 20, "partition": "k_classes(2)",
            "seed": 0, "batch": 32, "method": "fedavg(weighting='samples')", "models": ["lenet"],
            "same_init": True, "optimizer": {"name": "adam", "lr": 0.001, "reset_every": "round"},
        },
        without={"FedJAX": "its script here has the perceptron alone"},
    ),
    "W3": Workload(
        "CELM, CIFAR-10: 5 clients, CNN, Dir(0.1), crops and flips; local epoch and aggregation",
        _COMMON | {
            "dataset": "cifar10", "train_size": 10_000, "clients": 5,
            "partition": "dir_client(0.1)", "seed": 42,
            "method": "fedavg(weighting='samples')", "models": ["tf_cnn"],
            "same_init": True, "augment": "crop_flip",
            "optimizer": {"name": "sgd", "lr": 0.01, "reset_every": "round"},
        },
        peers="left out: its clients train and crop in PyTorch, as the plain loops do",
    ),
}  # fmt: skip
