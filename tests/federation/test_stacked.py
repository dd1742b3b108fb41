"""Clients in lock-step learn what they learn one after another."""

import csv
from dataclasses import replace

import pytest
import torch
from small import TEXT

from fedlogit.data import Dataset
from fedlogit.errors import Diverged
from fedlogit.federation.checkpoint import load_checkpoint, save_checkpoint
from fedlogit.federation.stacked import alike

UNEVEN = {"partition": "dir_client(0.5)", "public": {"size": 60}}
SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9}
KINDS = {
    "perceptrons, momentum": {**UNEVEN, "optimizer": SGD},
    "convolutions and pools": {**UNEVEN, "models": ["lenet"]},
    "decayed weights": {
        **UNEVEN,
        "optimizer": {"name": "adamw", "lr": 0.003, "weight_decay": 0.01},
    },
    "batch norm": {**UNEVEN, "models": ["resnet_light(1)"], "optimizer": SGD},
    "batch norm without memory": {
        **UNEVEN,
        "models": ["resnet_light(1, batch_stats=True)"],
        "optimizer": SGD,
    },
    "crops and flips": {**UNEVEN, "models": ["resnet_light(1)"], "augment": "crop_flip"},
    "a transformer of images": {**UNEVEN, "models": ["vit_tiny(width=16, layers=1, patch=4)"]},
    "two architectures": {**UNEVEN, "models": ["mlp(hidden=[16])", "mlp(hidden=[8])"]},
    "clipped gradients of a text": TEXT,
}


def doubled(digits: Dataset) -> Dataset:
    """Return the digits as images of 16 x 16, which is enough for LeNet."""
    train, test = (x.repeat(2, 1).repeat(2, 2) for x in (digits.x_train, digits.x_test))
    return replace(digits, x_train=train, x_test=test)


def work_through(fed) -> None:
    """Do what methods do: private epochs, a pull, soft targets with labels, a single step."""
    for fed.round in (1, 2):
        fed.train_private(pull=0.1 * (fed.round - 1))
        points = fed.public[:24]
        said = fed.logits(points)
        fed.distil(points, said.softmax(-1).mean(0), label_weight=0.5)
        fed.distil(points, said.softmax(-1), once=True)


@pytest.mark.parametrize("kind", KINDS)
def test_stacked_clients_learn_the_same(federation, digits, kind):
    changes = KINDS[kind]
    data = doubled(digits) if "lenet" in changes.get("models", ()) else None
    plain, stacked = (federation(data=data, kernel=k, **changes) for k in ("autograd", "stacked"))
    start = plain.clients[0].vector.detach().clone()
    for fed in (plain, stacked):
        work_through(fed)
    for a, b in zip(plain.clients, stacked.clients, strict=True):
        torch.testing.assert_close(a.vector, b.vector, rtol=1e-3, atol=2e-4)
        torch.testing.assert_close(a.state().buffers, b.state().buffers, rtol=1e-3, atol=1e-3)
        assert torch.equal(a.state().counters, b.state().counters)
    assert (plain.clients[0].vector - start).abs().max() > 0.01  # far beyond the tolerance
    told, kept = plain.take_log(), stacked.take_log()
    assert kept == pytest.approx(told, rel=1e-3)
    probes = plain.public[:7]
    torch.testing.assert_close(
        plain.logits(probes), stacked.logits(probes), rtol=1e-2, atol=2e-3
    )


def test_a_checkpoint_in_between_changes_no_bit(federation, tmp_path):
    settings = {**UNEVEN, "optimizer": {"name": "adam", "lr": 0.003}, "kernel": "stacked"}
    whole, first, second = (federation(**settings) for _ in range(3))
    for whole.round in (1, 2):
        whole.train_private()
    first.round = 1
    first.train_private()
    save_checkpoint(tmp_path, first, [])
    load_checkpoint(tmp_path, second)
    second.round = 2
    second.train_private()
    assert torch.equal(whole.vectors(), second.vectors())


def test_the_client_that_diverged_is_named(federation):
    fed = federation(kernel="stacked")
    with torch.no_grad():
        fed.clients[2].vector[0] = torch.nan
    with pytest.raises(Diverged, match="client 2 in private training"):
        fed.train_private()


def test_a_run_is_told_apart_and_learns(train):
    with open(train(method="fedavg", kernel="stacked", rounds=5) / "rounds.csv") as file:
        stacked = [float(row["accuracy"]) for row in csv.DictReader(file)]
    with open(train(method="fedavg", rounds=5) / "rounds.csv") as file:
        plain = [float(row["accuracy"]) for row in csv.DictReader(file)]
    assert stacked == pytest.approx(plain, abs=0.02)
    assert stacked[-1] > stacked[0]


def test_alike_by_hand():
    assert alike("abcab") == [[0, 3], [1, 4], [2]]
