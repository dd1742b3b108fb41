"""The workloads as data: what a repetition of each is, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["WORKLOADS", "Kind", "Workload", "chosen"]

Kind = Literal["average", "distil", "vote", "test", "maximise"]


@dataclass(frozen=True)
class Workload:
    """A workload.

    Attributes:
        title: What tables call it.
        kind: What a repetition is: a round that ends with an average of models, one in which
            clients distil the mean of their logits, one in which peers vote on probes, a test of
            all models, or logit maximisation.
        spec: A run as fedlogit describes it.
        engines: Of fedlogit, which there are for it.
        ways: How plain loops get their samples (`plain.py`).
        peers: Other frameworks that can do it, by folder.
        reason: Why the others do not.
    """

    title: str
    kind: Kind
    spec: dict[str, Any]
    engines: tuple[str, ...] = ("native", "loop")
    ways: tuple[str, ...] = ("tensors",)
    peers: tuple[str, ...] = ()
    reason: str = "it has no such round as it comes"


_COMMON: dict[str, Any] = {
    "batch": 128, "local": {"epochs": 1}, "rounds": 1000, "seed": 42, "same_init": True,
}  # fmt: skip
_SGD = {"name": "sgd", "lr": 0.1, "reset_every": "round"}
_ADAM = {"name": "adam", "lr": 0.001}
_PEERS = ("fedjax", "flower", "pfl", "fedlab", "fluke")
# Peers weigh clients by their samples, as FedAvg does; so do we here, though CELM §5 does not.
_FEDAVG = "fedavg(weighting='samples')"
_RESNET = "resnet18(stem='imagenet', batch_stats=True)"


def _tested(dataset: str, model: str, images: int, *engines: str) -> Workload:
    """Return the test of ten models."""
    spec = _COMMON | {
        "dataset": dataset, "models": [model], "clients": 10, "partition": "iid(100)",
        "method": "local", "same_init": False, "test_size": images,
        "optimizer": _ADAM if model == "lenet" else _SGD,  # what compiled LeNet trains with
    }  # fmt: skip
    name = model.partition("(")[0]
    title = f"testing {name}: ten models on {images:,} images of {dataset}"
    return Workload(title, "test", spec, engines, reason="PyTorch's own forward pass is its test")


def _maximised(dataset: str, model: str) -> Workload:
    """Return the logit maximisation of CELM's server: its model and those of five clients."""
    spec = _COMMON | {
        "dataset": dataset, "models": [model], "clients": 5, "partition": "dir_client(0.05)",
        "method": "celm(warm_up=1.0, warm_start=False)", "optimizer": _SGD, "test_size": 100,
    }  # fmt: skip
    return Workload(
        f"logit maximisation, {model}: 6 models × 10 classes × 200 steps", "maximise", spec,
        engines=("loop",),
    )  # fmt: skip


def _voted(name: str, model: str, engine: str) -> Workload:
    """Return a round of TallyTrain: the paper's model, or the one of the reduced scales."""
    spec = _COMMON | {
        "dataset": "cifar10", "clients": 10, "partition": "dir_class(0.5, min_size=10)",
        "batch": 32, "local": {"steps": 5}, "models": [model], "augment": "crop_flip",
        "optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 5e-4},
        "public": {"size": 2000, "stratified": False}, "same_init": False,
        "method": "tally_train(warm_up=0)", "test_size": 500,
    }  # fmt: skip
    return Workload(
        f"TallyTrain, CIFAR-10: ten {name}, five steps of 32 with crops and flips, a vote on 16"
        " probes", "vote", spec, engines=(engine, "loop"),
    )  # fmt: skip


WORKLOADS = {
    "W1": Workload(
        "CELM, Fashion-MNIST: 5 clients, MLP, Dir(0.05); local epoch and aggregation", "average",
        _COMMON | {
            "dataset": "fashion_mnist", "clients": 5, "partition": "dir_client(0.05)",
            "method": _FEDAVG, "models": ["mlp_net"], "optimizer": _SGD,
        },
        ways=("tensors", "dataloader", "transforms"), peers=_PEERS,
    ),
    "W2": Workload(
        "Who to Trust, MNIST: 20 clients with two classes each, LeNet; local epoch, 5,000 logits,"
        " distillation", "distil",
        _COMMON | {
            "dataset": "mnist", "train_size": 17_000, "clients": 20, "partition": "k_classes(2)",
            "public": {"size": 5000}, "method": "average", "models": ["lenet"],
            "optimizer": _ADAM, "same_init": False,
        },
        reason="it has no distillation as it comes; W2 epoch is the rest",
    ),
    "W2 epoch": Workload(
        "Who to Trust, local epoch: the same clients, with an average of models instead of logits",
        "average",
        _COMMON | {
            "dataset": "mnist", "train_size": 12_000, "clients": 20, "partition": "k_classes(2)",
            "method": _FEDAVG, "models": ["lenet"],
            "optimizer": _ADAM | {"reset_every": "round"},
        },
        peers=_PEERS,
    ),
    "W3": Workload(
        "CELM, CIFAR-10: 10,000 images, 5 clients, tf_cnn, crops and flips, Dir(0.1); local"
        " epoch and aggregation", "average",
        _COMMON | {
            "dataset": "cifar10", "train_size": 10_000, "clients": 5, "augment": "crop_flip",
            "partition": "dir_client(0.1)", "method": _FEDAVG, "models": ["tf_cnn"],
            "optimizer": _SGD | {"lr": 0.05},
        },
        peers=_PEERS,
    ),
    "W4": _voted("ResNet-18", _RESNET, "unpadded"),
    "W4 LeNet": _voted("LeNet with batch norm", "lenet_bn", "native"),
    "W5 MLP": _maximised("fashion_mnist", "mlp_net"),
    "W5 CNN": _maximised("cifar10", "tf_cnn"),
    "W6": Workload(
        "CIFAR-10 as pfl-research's benchmark: 1,000 users with 50 images, 50 of them a round,"
        " batches of 10; tf_cnn", "average",
        _COMMON | {
            "dataset": "cifar10", "clients": 1000, "participation": {"number": 50}, "batch": 10,
            "partition": "iid(50)", "method": _FEDAVG, "models": ["tf_cnn"], "optimizer": _SGD,
        },
        peers=_PEERS,
    ),
    "W7": Workload(
        "TallyTrain, docstrings: eight TinyGPT, two steps of 8 × 256 tokens, a vote on 8 probes",
        "vote",
        _COMMON | {
            "dataset": "sklearn_docs", "text": {"vocabulary": 2048, "length": 256}, "clients": 8,
            "partition": "contiguous", "batch": 8, "local": {"steps": 2}, "models": ["tiny_gpt"],
            "optimizer": {"name": "adamw", "lr": 3e-4, "weight_decay": 0.01},
            "public": {"size": 47, "last": True, "stratified": False}, "same_init": False,
            "method": "tally_train(warm_up=0, probes_per_round=8)", "test_size": 16,
        },
        engines=("loop",),
    ),
    "W8 MLP": _tested("fashion_mnist", "mlp_net", 10_000, "native"),
    "W8 LeNet": _tested("mnist", "lenet", 10_000, "native", "loop"),
    "W8 CNN": _tested("cifar10", "tf_cnn", 10_000, "native", "loop"),
    "W8 ResNet": _tested("cifar10", _RESNET, 1_000, "unpadded", "loop"),
    "W9": Workload(
        "FedOL, CIFAR-10: 10,000 images, ten clients, LeNet, crops and flips, Dir(0.05); local"
        " epoch, with an average of models instead of the server's distillation", "average",
        _COMMON | {
            "dataset": "cifar10", "train_size": 10_000, "clients": 10, "augment": "crop_flip",
            "partition": "dir_class(0.05, balance=True, min_size=10)", "batch": 64,
            "method": _FEDAVG, "models": ["lenet"], "optimizer": _ADAM | {"reset_every": "round"},
        },
        peers=_PEERS,
    ),
}  # fmt: skip


def chosen(names: str) -> list[str]:
    """Return the workloads that a list such as ``W1,W8`` names; ``W8`` is all of W8.

    Raises:
        ValueError: naming what is not known.
    """
    asked = names.split(",")
    known = {name: {name, name.split()[0]} for name in WORKLOADS}
    if unknown := set(asked) - set().union(*known.values()):
        raise ValueError(f"{', '.join(sorted(unknown))}: known are {', '.join(WORKLOADS)}")
    return [name for name, also in known.items() if also & set(asked)]
