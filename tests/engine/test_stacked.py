"""Clients in lock-step learn what they learn one after another."""

import pytest
import torch
from support.small import TEXT

from fedlogit.engine.grouping import chunks, group_by


@pytest.mark.slow
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


def test_alike_things_are_put_together():
    assert group_by("abcab") == [[0, 3], [1, 4], [2]]


def test_a_sequence_is_cut_into_chunks_of_which_the_last_is_shorter():
    assert list(chunks("abcde", 2)) == [("a", "b"), ("c", "d"), ("e",)]
    assert list(chunks("", 2)) == []
