"""A method that cannot do a cell leaves it out by its own declaration, and the plan says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.calls import ROOT
from support.refusals import refused
from support.small import small_spec

from fedlogit.errors import Unsupported
from fedlogit.papers import expand, load_paper
from fedlogit.papers import resolved as module
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.resolved import ResolutionCache

MIXED = ["mlp(hidden=[8])", "mlp(hidden=[4])"]
ONCE = {"method": "feddf", "rounds": 1}


def study(folder: Path, **grid):
    """Return the only table of a paper whose grid has these axes more."""
    data = {
        "paper": "study",
        "title": "A study",
        "seeds": [0, 1],
        "defaults": {
            "clients": 4,
            "rounds": 10,
            "public": {"size": 100},
            "local": {"epochs": 1},
            "optimizer": {"name": "adam", "lr": 0.001},
            "models": ["mlp(hidden=[8])"],
            "server": {"model": "mlp", "epochs": 1},
        },
        "datasets": {"digits": {}},
        "partitions": {"iid": "iid"},
        "methods": {"fedavg": "fedavg", "average": "average", "once": ONCE},
        "labels": {"fedavg": "FedAvg", "average": "Average", "once": "FedDF"},
        "tables": {
            "t": {
                "title": "T",
                "grid": {"dataset": ["digits"], "partition": ["iid"], **grid},
                "rows": ["method", *grid.keys() - {"method"}],
                "columns": ["partition"],
            }
        },
        "scales": {"paper": {}},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    (found,) = expand(load_paper("study", folder), "paper")
    return found


def test_it_is_kept_with_its_place_and_its_reason_once_for_all_seeds(tmp_path):
    found = study(tmp_path, models=[MIXED[:1], MIXED], method=["fedavg", "average"])
    assert [(c.axes["method"], len(c.spec.models)) for c in found.cells[::2]] == [
        ("fedavg", 1),
        ("average", 1),
        ("average", 2),
    ]
    (place,) = found.cannot
    assert (place.before, place.axes["method"]) == (4, "fedavg")
    assert place.axes["models"] == json.dumps(MIXED)
    assert place.why == "averages models, so all clients need one architecture"


def test_the_plan_says_it_and_an_artefact_reads_it_in_order(tmp_path):
    planned = study(tmp_path, models=[MIXED, MIXED[:1]], method=["fedavg", "average"])
    data = planned.as_artefact("runs").plain()
    assert Artefact.model_validate(json.loads(json.dumps(data))) == planned.as_artefact("runs")
    assert data["cannot"][0]["axes"]["models"] == json.dumps(MIXED)
    artefact = Artefact.model_validate(data)
    assert artefact.in_order("method") == ["fedavg", "average"]
    (label,) = {artefact.label(unable.axes["method"]) for unable in artefact.cannot}
    assert artefact.why_cannot == (
        f"Not applicable (n/a): {label} (averages models, so all clients need one architecture)"
    )


def test_a_plan_in_which_everything_can_be_done_keeps_its_name(tmp_path):
    assert "cannot" not in study(tmp_path, method=["fedavg", "average"]).as_artefact("runs").plain()


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        ({"adversaries": [{"share": 0.5, "attack": "random_logits"}]}, "sends no predictions"),
        ({"public": [{"dataset": "photos8", "stratified": False}]}, "needs public samples of"),
    ],
)
def test_what_fedavg_cannot_do(tmp_path, axes, why):
    found = study(tmp_path, method=["fedavg", "average"], **axes)
    assert {cell.axes["method"] for cell in found.cells} == {"average"}
    assert why in found.cannot[0].why


def test_in_a_single_round_nobody_can_join_or_leave(tmp_path):
    late = {"schedule": [{"clients": [2, 3], "since": 6}]}
    found = study(tmp_path, method=["average", "once"], participation=[late, 0.5])
    assert [place.axes["method"] for place in found.cannot] == ["once"]
    assert "has a single round here" in found.cannot[0].why


def test_a_mistake_in_a_cell_is_still_a_mistake(tmp_path):
    with refused("public.size = 0"):
        study(tmp_path, method=["average"], **{"public.size": [0]})


def test_the_reason_is_remembered_too(tmp_path, monkeypatch):
    plain = small_spec().model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(plain | {"method": "fedavg", "models": MIXED})
    resolutions = ResolutionCache(tmp_path)
    with pytest.raises(Unsupported) as first:
        resolutions.resolve(text)
    resolutions.save()
    monkeypatch.setattr(module, "resolve_run", lambda text: pytest.fail("it was not remembered"))
    with pytest.raises(Unsupported, match=r"averages models") as again:
        ResolutionCache(tmp_path).resolve(text)
    assert str(again.value) == str(first.value)


@pytest.mark.parametrize(
    ("table", "more", "cannot"),
    [
        ("public_samples", 42, 0),
        ("public_content", 28, 0),
        ("quantization", 48, 0),
        ("temperature", 36, 0),
        ("adversaries", 120, 24),
        ("architectures", 20, 6),
        ("absences", 39, 3),
        ("densities", 12, 0),
        ("accuracy_cifar10", 45, 0),
        ("contribution", 72, 0),
    ],
)
def test_the_study_s_questions_take_so_many_runs_more_of_one_seed(table, more, cannot):
    paper = load_paper("comparison", ROOT / "workflow/papers")
    found = {artefact.id: artefact for artefact in expand(paper, "paper", seeds=(0,))}
    known = {cell.run for cell in found["accuracy"].cells}
    assert len({cell.run for cell in found[table].cells} - known) == more
    assert len(found[table].cannot) == cannot


def test_at_smoke_they_take_thirteen_runs_more():
    paper = load_paper("comparison", ROOT / "workflow/papers")
    found = expand(paper, "smoke")
    known = {cell.run for cell in found[0].cells}
    assert len({cell.run for artefact in found for cell in artefact.cells} - known) == 13
