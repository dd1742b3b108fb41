"""Clients in lock-step learn what they learn one after another."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from support.outcomes import rows
from support.small import TEXT

from fedlogit.data import Dataset
from fedlogit.engine.grouping import chunks, group_by

UNEVEN = {"partition": "dir_client(0.5)", "public": {"size": 60}, "train_size": 300}
SGD = {**UNEVEN, "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9}}
FEW = {**SGD, "local": {"steps": 2}}
KINDS = {
    "perceptrons, momentum": SGD,
    "decayed weights": {
        **UNEVEN,
        "optimizer": {"name": "adamw", "lr": 0.003, "weight_decay": 0.01},
    },
    "convolutions and pools": {**SGD, "models": ["lenet"]},
    "layers that normalise by the batch": {**FEW, "models": ["lenet_bn"]},
    "batch norm, crops and flips": {
        **FEW,
        "models": ["resnet_light(1)"],
        "augment": "crop_flip",
    },
    "a transformer of images": {**FEW, "models": ["vit_tiny(width=16, layers=1, patch=4)"]},
    "two architectures": {**SGD, "models": ["mlp(hidden=[16])", "mlp(hidden=[8])"]},
    "clipped gradients of a text": {**TEXT, "local": {"steps": 3}},
}


def doubled(digits: Dataset) -> Dataset:
    """Return the digits as images of 16 x 16, which is enough for LeNet."""
    train, test = (x.repeat(2, 1).repeat(2, 2) for x in (digits.x_train, digits.x_test))
    return replace(digits, x_train=train, x_test=test)


def phases(fed) -> list[Callable[[], None]]:
    """Return what methods do: private epochs, a proximal term, soft targets, a single step."""
    indices = fed.public[:24]
    said = fed.logits(indices).softmax(-1)
    return [
        fed.train_private,
        lambda: fed.train_private(proximal_mu=0.1),
        lambda: fed.distil(indices, said.mean(0), label_weight=0.5),
        lambda: fed.distil(indices, said, once=True),
    ]


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torchvision's attention
@pytest.mark.parametrize("kind", KINDS)
def test_stacked_clients_learn_the_same(federation, digits, kind):
    changes = KINDS[kind]
    data = doubled(digits) if {"lenet", "lenet_bn"} & {*changes.get("models", ())} else None
    plain, stacked = (federation(data=data, engine=k, **changes) for k in ("loop", "stacked"))
    plain.round = stacked.round = 1
    for one, other in zip(phases(plain), phases(stacked), strict=True):
        starts = [client.vector.detach().clone() for client in plain.clients]
        one()
        other()
        for start, a, b in zip(starts, plain.clients, stacked.clients, strict=True):
            assert (b.vector - a.vector).norm() < 0.02 * (a.vector - start).norm()
            torch.testing.assert_close(b.state().buffers, a.state().buffers, rtol=1e-4, atol=1e-4)
            assert torch.equal(b.state().counters, a.state().counters)
            b.load(a.state())  # what is left of another rounding would grow from phase to phase
        assert stacked.take_log() == pytest.approx(plain.take_log(), rel=1e-4)
    probes = plain.public[:7]
    torch.testing.assert_close(stacked.logits(probes), plain.logits(probes), rtol=1e-4, atol=1e-4)


def test_batch_statistics_are_those_of_the_reference(federation):
    """700 samples are batches of 500 and 200 for each of 4 clients, not of 125."""
    given = {"models": ["resnet_light(n=1, batch_stats=True)"], "partition": "iid(90)"}
    plain, stacked = (federation(engine=k, **given) for k in ("loop", "stacked"))
    indices = torch.arange(700)
    found, wanted = stacked.logits(indices), plain.logits(indices)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    other = torch.cat([plain.logits(part) for part in indices.split(125)], 1)
    assert (other - wanted).abs().max() > 0.01, "the batches matter"


@pytest.mark.parametrize(
    "changes",
    [
        {"clients": 6},  # more than go into a pass
        {"models": ["resnet_light(1, batch_stats=True)"], "test_size": 90},
        {"models": ["mlp(hidden=[16])", "mlp(hidden=[8])"]},
        TEXT,
    ],
    ids=["perceptrons", "a batch's own statistics", "two architectures", "a text"],
)
def test_stacked_clients_are_tested_alike(federation, monkeypatch, changes):
    monkeypatch.setattr("fedlogit.engine.stacked._MODELS_IN_A_PASS", 4)
    plain, stacked = (federation(engine=k, **changes) for k in ("loop", "stacked"))
    for fed in (plain, stacked):
        fed.data.batch = 40  # several passes, the last one smaller
    counts = (fed.test_counts(fed.clients) for fed in (plain, stacked))
    for one, other in zip(*counts, strict=True):
        assert torch.equal(other.totals, one.totals)
        assert (other.hits - one.hits).abs().sum() <= 2  # where two classes are as likely
        torch.testing.assert_close(other.loss, one.loss, rtol=1e-5, atol=1e-5)


def test_a_run_learns_the_same_round_by_round(train):
    def accuracy(engine: str) -> list[float]:
        folder = train(method="fedavg", engine=engine, rounds=5)
        return [float(row["accuracy"]) for row in rows(folder)]

    plain, stacked = accuracy("loop"), accuracy("stacked")
    assert stacked == pytest.approx(plain, abs=0.02)
    assert stacked[-1] > stacked[0]


def test_alike_things_are_put_together():
    assert group_by("abcab") == [[0, 3], [1, 4], [2]]


def test_a_sequence_is_cut_into_chunks_of_which_the_last_is_shorter():
    assert list(chunks("abcde", 2)) == [("a", "b"), ("c", "d"), ("e",)]
    assert list(chunks("", 2)) == []
