"""What every method must keep; a new file in `fedlogit.methods` is tested unasked."""

from functools import partial

import pytest
import torch
from support.every_method import METHODS, ON_TEXT, VARIANTS, changes
from support.outcomes import outcome, same
from support.resuming import played_and_resumed
from support.rounds import play
from support.small import small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods
from fedlogit.component import ComponentRef, catalogue
from fedlogit.files import load_npz, read_json
from fedlogit.methods import Method


@pytest.mark.parametrize("call", first_of_each(VARIANTS + ON_TEXT, method_of))
def test_every_method(train, tmp_path, call):
    folder = train(tmp_path / "one", **changes(call))
    result = read_json(folder / "result.json")
    one = outcome(folder)
    assert result["status"] == "finished"
    assert len(one[0]) == 3
    for row in one[0]:
        assert 0 <= float(row["accuracy_min"]) <= float(row["accuracy"]) <= 1
    if call in VARIANTS:
        assert float(one[0][-1]["accuracy"]) > 0.15, "chance is 0.1"
    else:
        first, *_, last = (float(row["perplexity"]) for row in one[0])
        assert last < first
    assert all(torch.isfinite(value.float()).all() for value in one[1].values())

    # Bytes: the total of each direction is the sum over kinds and rounds.
    for way in ("up", "down"):
        total = sum(int(row[f"bytes_{way}"]) for row in one[0])
        assert total == sum(result["bytes"][way].values())
    method = methods.get(small_spec(**changes(call)).method)
    if method.needs_public:
        assert result["bytes"]["up"], "a method that uses the public set sends something"

    assert same(one, outcome(train(tmp_path / "again", **changes(call)))), "same spec, same bits"
    three = outcome(train(tmp_path / "three", workers=3, **changes(call)))
    assert same(one, three), "workers change nothing"


@pytest.mark.slow
@pytest.mark.parametrize("call", [*VARIANTS, ON_TEXT[-1]])
def test_resumed_is_uninterrupted(federation, tmp_path, call):
    given = changes(call)
    method = methods.get(small_spec(**given).method)

    whole, resumed = played_and_resumed(partial(federation, **given), method, tmp_path)
    assert resumed.ledger.totals() == whole.ledger.totals()
    for a, b in zip(whole.models, resumed.models, strict=True):
        assert torch.equal(a.vector, b.vector)


@pytest.mark.parametrize("call", first_of_each([*VARIANTS, ON_TEXT[-1]], method_of))
def test_clients_in_another_order_send_the_same(federation, call):
    """A federation is a set: dealing the same clients in reverse changes no sum over them."""
    given = changes(call)
    method = methods.get(small_spec(**given).method)
    straight, reverse = federation(**given), federation(**given)
    reverse.clients.reverse()
    for fed in (straight, reverse):
        play(fed, method)
    assert straight.ledger.totals() == reverse.ledger.totals()
    if call.startswith("meta_model"):
        return  # its features are ordered by client, so the trained aggregator differs
    for a, b in zip(straight.clients, reversed(reverse.clients), strict=True):
        assert torch.allclose(a.vector, b.vector, atol=2e-4)


@pytest.mark.parametrize("name", METHODS)
def test_methods_describe_themselves(name):
    cls = catalogue("fedlogit.methods", Method)[name]
    assert cls.__doc__
    for field in cls.model_fields:
        assert f"{field}:" in cls.__doc__, f"{name} does not document {field}"
    assert methods.get(ComponentRef(name=name)).params() is not None


def test_a_method_from_outside_is_found_by_path(train, tmp_path, monkeypatch):
    (tmp_path / "outside.py").write_text(
        "from fedlogit.methods.logit_federation import LogitFederation\n"
        "class Median(LogitFederation):\n"
        "    def aggregate(self, fed, logits):\n"
        "        return logits.median(0).values.softmax(1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = train(method="outside:Median")
    assert read_json(folder / "spec.json")["method"]["name"] == "outside:Median"
    assert read_json(folder / "result.json")["status"] == "finished"


def test_uwa_on_the_paper_s_edge_keeps_weights_that_sum_to_one(train):
    folder = train(method="uwa(0.1)", export=["aggregation"])
    kept = load_npz(folder / "exports" / "aggregation.npz")
    assert kept["weights"].sum(0) == pytest.approx(1, abs=1e-6)
    assert set(kept["labels"]) <= set(range(10))
