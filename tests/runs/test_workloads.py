"""What the choice of an engine may depend on is read from a spec, for clients and a server."""

from __future__ import annotations

import pytest
from support.small import small_spec

from fedlogit import methods
from fedlogit.engine.base import Workload
from fedlogit.runs import workloads
from fedlogit.runs.workloads import choose_engines, client_workloads
from fedlogit.spec import RunSpec

SGD = {"name": "sgd", "lr": 0.1}


def of_clients(spec: RunSpec) -> list[Workload]:
    return client_workloads(spec, methods.get(spec.method), "cpu")


def test_each_architecture_of_the_clients_once():
    spec = small_spec(models=["mlp([16])", "resnet_light(1)", "mlp([8])"])
    plain = Workload("mlp", "cpu", spec.optimizer)
    assert [found.model for found in of_clients(spec)] == ["mlp", "resnet_light"]
    assert of_clients(spec)[0] == plain


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"augment": "crop_flip"}, "augment"),
        ({"method": "fedprox(mu=0.1)"}, "proximal"),
        (
            {
                "method": "tally_train(warm_up=0, label_weight=0.0)",
                "public": {"size": 60, "stratified": False, "dataset": "photos8"},
            },
            "unlabelled",
        ),
    ],
)
def test_what_makes_training_special(changes, field):
    special = ("augment", "proximal", "unlabelled")
    (found,) = of_clients(small_spec(**changes))
    assert [name for name in special if getattr(found, name)] == [field]


def test_the_precision_is_the_runs():
    assert of_clients(small_spec(precision="bf16"))[0].precision == "bf16"


@pytest.mark.parametrize("given", [{}, {"optimizer": SGD}, {"augment": "crop_flip"}])
def test_a_servers_model_has_settings_of_its_own_or_the_clients(monkeypatch, given):
    asked = []

    def chosen(name, given):
        asked.append(given)
        return choose(name, given)

    choose = workloads.choose_engine
    monkeypatch.setattr(workloads, "choose_engine", chosen)
    server = {"model": "mlp_net", "epochs": 1} | given
    spec = small_spec(method="feddf", server=server, augment="crop_flip")
    choose_engines(spec, methods.get(spec.method), "cpu", "auto")
    assert asked == [
        of_clients(spec),
        [
            Workload(
                "mlp_net",
                "cpu",
                spec.server.optimizer or spec.optimizer,
                augment="augment" in given,
            )
        ],
    ]
