"""What every method must keep; a new file in `fedlogit.methods` is tested unasked."""

import pytest
import torch
from support.every_method import METHODS, ON_TEXT, VARIANTS, changes
from support.outcomes import exported_weights, outcome, rows, same
from support.refusals import refused
from support.resuming import rounds_done, stop_after
from support.rounds import play
from support.small import small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods
from fedlogit.component import ComponentRef, catalogue
from fedlogit.files import load_npz, read_json
from fedlogit.methods import Method


@pytest.mark.parametrize("call", first_of_each(VARIANTS + ON_TEXT, method_of))
def test_every_method(reference, call):
    folder = reference(**changes(call))
    result = read_json(folder / "result.json")
    table, models = outcome(folder)
    assert result["status"] == "finished"
    assert len(table) == 3
    for row in table:
        assert 0 <= float(row["accuracy_min"]) <= float(row["accuracy"]) <= 1
    if call in VARIANTS:
        assert float(table[-1]["accuracy"]) > 0.15, "chance is 0.1"
    else:
        first, *_, last = (float(row["perplexity"]) for row in table)
        assert last < first
    assert all(torch.isfinite(value.float()).all() for value in models.values())

    for row in rows(folder):
        assert 0 < float(row["seconds_clients"]) <= float(row["seconds"])
        assert (row["accuracy"] != "") == (row["seconds_test"] != "")

    # Bytes: the total of each direction is the sum over kinds and rounds.
    for way in ("up", "down"):
        total = sum(int(row[f"bytes_{way}"]) for row in table)
        assert total == sum(result["bytes"][way].values())
    method = methods.get(small_spec(**changes(call)).method)
    if method.needs_public and method.name != "fully_informed":
        assert result["bytes"]["up"], "a method that uses the public set sends something"


@pytest.mark.parametrize("call", first_of_each([*VARIANTS, ON_TEXT[-1]], method_of))
def test_resumed_is_uninterrupted_whatever_the_workers(reference, train, monkeypatch, call):
    given = changes(call) | {"export": ["weights", *exports_of(call)]}
    with stop_after(1, monkeypatch):
        train(workers=3, every=0, **given)
    whole = reference(**given)
    with rounds_done(monkeypatch) as done:
        resumed = train(workers=2, **given)
    assert done == [2, 3]
    assert same(outcome(resumed), outcome(whole))
    one, other = (read_json(folder / "result.json") for folder in (whole, resumed))
    assert one["bytes"] == other["bytes"]
    assert one["exports"] == other["exports"], "digests of all files"


def exports_of(call: str) -> list[str]:
    """Return what a method of its own exports: of a text TallyTrain has no theory."""
    own = methods.get(small_spec(**changes(call)).method).exports
    return sorted(own - {"theory"} if call.startswith("text: ") else own)


class EarlyExports(Method):
    """Exports in `init` and in round 1, and never again."""

    supports_partial_participation = True
    exports = frozenset({"aggregation"})

    def init(self, fed):
        fed.export("aggregation", scale=torch.tensor(0.1, dtype=torch.float64), empty=torch.ones(0))

    def round(self, fed, r):
        fed.train_private()
        if r == 1:
            fed.export(
                "aggregation",
                weights=torch.arange(6.0).view(2, 3).T,
                half=torch.tensor([0.1], dtype=torch.float16),
                marks=torch.tensor([True, False]),
                points=torch.arange(3, dtype=torch.uint8),
            )


def test_what_a_method_exported_early_is_there_after_a_resume(train, tmp_path, monkeypatch):
    given = {"method": f"{__name__}:EarlyExports", "export": ["aggregation"]}
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    train(whole, **given)
    with stop_after(2, monkeypatch):
        train(resumed, every=0, **given)
    train(resumed, **given)
    one, other = (load_npz(path / "exports" / "aggregation.npz") for path in (whole, resumed))
    early = ["scale", "empty", "weights", "half", "marks", "points"]
    assert list(one) == list(other) == [*early, "owned"]
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        assert array.tobytes() == other[name].tobytes(), name
        assert array.shape == other[name].shape, name


@pytest.mark.parametrize("call", first_of_each([*VARIANTS, ON_TEXT[-1]], method_of))
def test_clients_in_another_order_send_the_same(reference, federation, call):
    """A federation is a set: dealing the same clients in reverse changes no sum over them."""
    given = changes(call)
    straight, reverse = reference(**given), federation(**given)
    reverse.clients.reverse()
    play(reverse, methods.get(reverse.spec.method), 3)
    sent = read_json(straight / "result.json")["bytes"]
    rounded = call.startswith("cgsv")  # so many entries of a reward, from a sum over clients
    for way, kinds in reverse.ledger.totals().items():
        assert kinds == pytest.approx(sent[way], rel=1e-3 if rounded else 0, abs=0)
    if call.startswith("meta_model"):
        return  # its features are ordered by client, so the trained aggregator differs
    wanted = exported_weights(straight)
    for client in reverse.clients:
        for name, value in client.model.state_dict().items():
            apart = (value - wanted[f"{client.name}/{name}"]).abs() > 1e-4
            assert apart.sum() <= (4 if rounded else 0), name


@pytest.mark.parametrize("name", METHODS)
def test_methods_describe_themselves(name):
    cls = catalogue("fedlogit.methods", Method)[name]
    assert cls.__doc__
    said = "".join(base.__doc__ or "" for base in cls.__mro__ if issubclass(base, Method))
    for field in cls.model_fields:
        assert f"{field}:" in said, f"{name} does not document {field}"
    assert methods.get(ComponentRef(name=name)).params() is not None


def test_a_method_from_outside_is_found_by_path(train, tmp_path, monkeypatch):
    (tmp_path / "outside.py").write_text(
        "from fedlogit.methods import LogitFederation\n"
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


@pytest.mark.parametrize(
    ("called", "name"),
    [("Median", "median"), ("MetaModel", "meta_model"), ("DSFL", "dsfl"), ("DSFLTwo", "dsfl_two")],
)
def test_a_class_without_a_name_has_its_own_in_snake_case(called, name):
    assert type(called, (EarlyExports,), {"__module__": __name__}).name == name


def test_a_wrong_parameter_names_the_method():
    with refused("method uwa: unknown key 'fitt'; did you mean 'fit'"):
        methods.get(ComponentRef(name="uwa", params={"fitt": "em"}))
