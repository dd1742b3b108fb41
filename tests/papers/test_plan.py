"""What a workflow asks of a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.refusals import refused

from fedlogit.config import Settings
from fedlogit.errors import FedlogitError
from fedlogit.papers import Plan, PlanWriter, run_dir, split_dir
from fedlogit.papers.earlier_code import made_by_earlier_code
from fedlogit.papers.run_checks import refuse_missing, refuse_unfit
from fedlogit.runs.external_code import external_code
from fedlogit.yaml_files import load_yaml

OWN_AVERAGE = """
from fedlogit.methods.average import Average


class OwnAverage(Average):
    "The same, elsewhere."
"""
PAPERS = Path(__file__).resolve().parents[2] / "workflow" / "papers"


def plan(results: Path, folder: Path = PAPERS, **settings) -> Plan:
    return Plan(Settings.load({"scale": "smoke", **settings}, "options"), folder, results)


@pytest.fixture
def studies(tmp_path) -> Path:
    """A folder of papers: FedOL, and two studies of its methods that have few scales."""
    data = load_yaml(PAPERS / "fedol.yaml")
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "fedol.yaml").write_text(yaml.safe_dump(data))
    for name, scales in (("study", ["paper"]), ("trial", ["paper", "heavy"])):
        kept = {key: scale for key, scale in data["scales"].items() if key in scales}
        labels = {key: text for key, text in data["labels"].items() if key in data["methods"]}
        own = data | {"paper": name, "scales": kept, "labels": labels}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(own))
    return folder


def finish(results: Path, run: str) -> None:
    path = results / "runs" / run / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")


def test_finished_runs_whose_own_module_changed_are_named(tmp_path, own_modules):
    """They are drawn as they are, so somebody should know."""
    data = load_yaml(PAPERS / "who_to_trust.yaml")
    data["methods"]["average"] = "own_average:OwnAverage"
    (tmp_path / "who_to_trust.yaml").write_text(yaml.safe_dump(data))
    module = tmp_path / "own_average.py"
    module.write_text(OWN_AVERAGE)
    here = plan(tmp_path, tmp_path, papers=["who_to_trust"])
    own = [run for run, it in here.known.runs.items() if "own_average" in it.spec.method.name]
    first, *others = sorted(own)
    for run in (*own, *(run for run in here.known.runs if run not in own)):
        finish(tmp_path, run)
    for run in own:
        made = {"provenance": {"own_code": external_code(here.known.runs[run].spec.model_dump())}}
        here.layout.result(run).write_text(json.dumps(made))
    assert len(others) > 2
    assert made_by_earlier_code(here) == ""
    here.layout.result(first).unlink()
    module.write_text(f"{OWN_AVERAGE}\n    x = 1\n")
    said = made_by_earlier_code(plan(tmp_path, tmp_path, papers=["who_to_trust"]))
    assert said.startswith(
        f"own_average changed after {len(others)} finished runs were made with it"
    )
    assert said.endswith(f" and {len(others) - 2} more")
    assert str(here.layout.run(first)) not in said
    for run in others[1:]:
        here.layout.result(run).write_text("not JSON")
    said = made_by_earlier_code(plan(tmp_path, tmp_path, papers=["who_to_trust"]))
    assert said.startswith("own_average changed after a finished run was made with it")
    assert said.endswith(f" anew, remove {here.layout.run(others[0])}")
    targets = here.layout.targets(others[0])
    targets.parent.mkdir(parents=True)
    targets.touch()
    said = made_by_earlier_code(plan(tmp_path, tmp_path, papers=["who_to_trust"]))
    assert said.endswith(f" anew, remove {here.layout.run(others[0])}, and {targets.parent}")


def test_clients_whose_own_model_changed_are_named_with_their_runs(tmp_path, own_modules):
    """Runs in stages would be made of them again."""
    data = load_yaml(PAPERS / "fedol.yaml")
    for models in data["datasets"].values():
        models["models"] = ["own_net:Net(hidden=[16])"]
    (tmp_path / "fedol.yaml").write_text(yaml.safe_dump(data))
    module = tmp_path / "own_net.py"
    module.write_text("from fedlogit.models.mlp import Mlp\n\n\nclass Net(Mlp):\n    pass\n")
    here = plan(tmp_path, tmp_path, papers=["fedol"])
    run = next(run for a in here.artefacts for run in here.runs(a) if here.clients_of(run))
    clients = here.layout.clients(here.clients_of(run))
    finish(tmp_path, run)
    clients.mkdir(parents=True)
    made = {"own_code": external_code({"models": "own_net:Net"})}
    here.layout.result(run).write_text(json.dumps({"provenance": made}))
    (clients / "clients.json").write_text(json.dumps(made))
    here.layout.targets(run).parent.mkdir(parents=True)
    here.layout.targets(run).touch()
    module.write_text(f"{module.read_text()}# now with tanh\n")
    said = made_by_earlier_code(plan(tmp_path, tmp_path, papers=["fedol"]))
    assert said.endswith(f" anew, remove {here.layout.run(run)}, and {clients}")
    again = {"own_code": external_code({"models": "own_net:Net"})}
    (clients / "clients.json").write_text(json.dumps(again))
    said = made_by_earlier_code(plan(tmp_path, tmp_path, papers=["fedol"]))
    assert said.endswith(f" anew, remove {here.layout.run(run)}")


@pytest.mark.slow
def test_paths_lead_back_to_specs_at_any_scale(tmp_path):
    here = plan(tmp_path)
    spec = here.artefacts[0].cells[0].spec
    assert here.spec_of_run(str(run_dir(spec))) == spec
    assert here.spec_of_split(str(split_dir(spec))).split_key() == spec.split_key()
    other = plan(tmp_path, scale="quick").artefacts[0].cells[0].spec
    assert here.spec_of_run(str(run_dir(other))) == other
    with pytest.raises(FedlogitError, match=r"a/b is no run of who_to_trust.* at any scale"):
        here.spec_of_run("a/b")


def test_methods_of_one_round_share_clients_at_every_scale(tmp_path):
    """Also at a scale that nobody has asked about before."""
    here = plan(tmp_path, papers=["fedol"])
    runs = [run_dir(c.spec) for a in plan(tmp_path, papers=["fedol"], scale="quick").artefacts
            for c in a.cells if c.spec.method.name == "feddf"]  # fmt: skip
    clients = here.clients_of(str(runs[0]))
    assert here.spec_of_clients(clients).method.name == "local"
    assert here.spec_of_clients(clients).split_key() == here.spec_of_run(str(runs[0])).split_key()


def test_a_run_of_several_rounds_is_made_in_one_piece(tmp_path):
    here = plan(tmp_path, papers=["celm"])
    assert {here.clients_of(run) for a in here.artefacts for run in here.runs(a)} == {None}
    with refused("a/b is no run of celm"):
        here.clients_of("a/b")


def test_asked_for_what_is_not_there(tmp_path):
    here = plan(tmp_path)
    with pytest.raises(FedlogitError, match="did you mean 'table1'"):
        here.artefact("who_to_trust", "smoke", "tabel1")
    with pytest.raises(FedlogitError, match="did you mean 'smoke'"):
        here.artefact("who_to_trust", "smok", "table1")
    with pytest.raises(FedlogitError, match="did you mean 'who_to_trust'"):
        here.artefact("who_to_thrust", "smoke", "table1")


def test_a_table_none_of_whose_runs_is_here_is_no_unknown_one(tmp_path):
    here = plan(tmp_path, papers=["celm"], scale="paper", partial=True)
    with refused("partial = true, but no run of table1 of celm at scale paper has finished here"):
        here.artefact("celm", "paper", "table1")
    with refused("'tabel1'; did you mean 'table1'?"):
        here.artefact("celm", "paper", "tabel1")
    table = next(a for a in plan(tmp_path, papers=["celm"], scale="paper").artefacts
                 if {cell.spec.dataset for cell in a.cells} == {"cifar10"})  # fmt: skip
    other = plan(tmp_path, papers=["celm"], scale="paper", datasets=["fashion_mnist"])
    with refused(f"{table.id} of celm at scale paper has no run on fashion_mnist; give other data"):
        other.artefact("celm", "paper", table.id)


def test_files_are_written_once(tmp_path):
    here = plan(tmp_path)
    artefact = here.artefacts[0]
    run = here.runs(artefact)[0]
    split = str(split_dir(artefact.cells[0].spec))
    writer = PlanWriter(here)
    written = [Path(f) for f in (writer.artefact_file(artefact), writer.spec_file(run))]
    written.append(Path(writer.split_file(split)))
    before = [path.stat().st_mtime_ns for path in written]
    writer.artefact_file(artefact), writer.spec_file(run), writer.split_file(split)
    assert [path.stat().st_mtime_ns for path in written] == before
    assert json.loads(written[1].read_text())["dataset"] == "digits"
    assert set(json.loads(written[2].read_text())) >= {"dataset", "partition", "clients", "seed"}
    written[1].write_text("{}")
    PlanWriter(plan(tmp_path)).spec_file(run)
    assert json.loads(written[1].read_text()) != {}


def test_other_settings_leave_a_plan_as_it_is(tmp_path):
    """Planning is no job: nothing that another call reads may change."""
    both, first = (plan(tmp_path, seeds=seeds) for seeds in ([0, 1], [0]))
    path = Path(PlanWriter(both).artefact_file(both.artefacts[0]))
    before = path.read_bytes()
    other = Path(PlanWriter(first).artefact_file(first.artefacts[0]))
    assert (path.parent, path.read_bytes()) == (other.parent, before)
    assert len(json.loads(before)["runs"]) == 2 * len(json.loads(other.read_text())["runs"])
    again = plan(tmp_path, seeds=[0, 1])
    assert PlanWriter(again).artefact_file(again.artefacts[0]) == str(path)


def test_frozen_names_what_is_missing(tmp_path):
    here = plan(tmp_path, frozen=True)
    artefact = next(a for a in here.artefacts if a.id == "uwa_weights")
    (run,) = {str(run_dir(cell.spec)) for cell in artefact.cells}
    with pytest.raises(FedlogitError) as caught:
        refuse_missing(here, [artefact])
    assert "frozen = true, but 1 of 1 runs are missing" in str(caught.value)
    assert f"{run}  for who_to_trust/smoke/uwa_weights" in str(caught.value)
    finish(tmp_path, run)
    refuse_missing(here, [artefact])


def test_what_a_named_engine_cannot_train_is_refused_when_planned(tmp_path):
    """At scale `paper` the native engine can train all runs on MNIST, and none on CIFAR-10."""

    def runs(*datasets, **settings):
        here = plan(tmp_path, papers=["who_to_trust"], scale="paper", datasets=datasets, **settings)
        trained = [a for a in here.artefacts if a.id != "messages"]
        return here, [run for artefact in trained for run in here.runs(artefact)]

    here, mnist = runs("mnist", device="cuda:1", engine="native")
    wanted = len({*mnist})
    why = "engine = 'native' needs device = cpu; or use engine = 'auto'"
    with refused(f"engine = 'native' does not fit: {wanted} of {wanted} runs: {why}"):
        refuse_unfit(here, mnist)
    finish(tmp_path, mnist[0])
    with refused(f"{wanted - 1} of {wanted - 1} runs: "):
        refuse_unfit(here, mnist)
    both, all_ = runs("mnist", "cifar10", engine="native")
    missing = len({*all_}) - 1
    with refused(f"{missing - wanted + 1} of {missing} runs: engine = 'native' needs models = len"):
        refuse_unfit(both, all_)


@pytest.mark.parametrize(
    "settings",
    [
        {"device": "auto", "engine": "native"},
        {"device": "cpu", "engine": "native"},
        {"device": "cuda", "engine": "stacked"},
        {"device": "cuda"},
    ],
    ids=str,
)
def test_what_an_engine_can_train_is_planned(tmp_path, settings):
    here = plan(tmp_path, papers=["who_to_trust"], scale="paper", datasets=["mnist"], **settings)
    refuse_unfit(here, (run for artefact in here.artefacts for run in here.runs(artefact)))


def test_runs_that_only_count_fit_any_engine_and_take_no_gpu(tmp_path):
    here = plan(tmp_path, papers=["fedol"], scale="paper", engine="native", device="cuda")
    table2 = next(artefact for artefact in here.artefacts if artefact.id == "table2")
    refuse_unfit(here, here.runs(table2))
    here = plan(tmp_path, papers=["fedol"], scale="paper", device="cuda")
    assert not any(here.on_gpu(cell.spec) for cell in table2.cells)
    assert all(here.on_gpu(cell.spec, grouped=True) for cell in table2.cells)


def test_a_run_holds_a_gpu_only_if_it_trains_on_one(tmp_path):
    def on_gpu(**settings):
        here = plan(tmp_path, papers=["who_to_trust"], scale="paper", seeds=[0], **settings)
        specs = [cell.spec for artefact in here.artefacts for cell in artefact.cells]
        return {here.on_gpu(spec) for spec in specs if not spec.ledger_only}

    assert on_gpu(device="auto") == {True}
    assert on_gpu(device="cuda", engine="stacked") == {True}
    assert on_gpu(device="cpu") == {False}
    assert on_gpu(device="auto", engine="native") == {False}
    assert on_gpu(device="auto", engine="unpadded") == {False}


def test_partial_leaves_out_what_is_missing_and_says_so(tmp_path):
    whole = plan(tmp_path).artefacts[0]
    run, *others = plan(tmp_path).runs(whole)
    finish(tmp_path, run)
    here = plan(tmp_path, partial=True)
    assert {str(run_dir(c.spec)) for a in here.artefacts for c in a.cells} == {run}
    assert all(artefact.cells for artefact in here.artefacts)
    kept = json.loads(Path(PlanWriter(here).artefact_file(here.artefacts[0])).read_text())
    assert (kept["id"], len(kept["runs"])) == (whole.id, 1)
    assert kept["left_out"] == {"digits": [len(others), len(others) + 1]}
    # Runs follow the one that is there, in the grid's order.
    file = PlanWriter(plan(tmp_path / "b")).artefact_file(whole)
    planned = json.loads(Path(file).read_text())["runs"]
    axes = [planned_run["axes"] for planned_run in planned]
    assert kept["runs"][0]["axes"] == axes[0]
    assert [missing["before"] for missing in kept["missing"]] == [1] * (len(axes) - 1)
    for missing, place in zip(kept["missing"], axes[1:], strict=True):
        assert missing["axes"] == {"partition": missing["axes"]["partition"]} | place


def test_the_runs_of_one_seed_cover_a_table_and_all_but_one_do_not(tmp_path):
    settings = {"papers": ["who_to_trust"], "seeds": [0, 1]}
    whole = next(a for a in plan(tmp_path, **settings).artefacts if a.id == "table1")
    last, *others = dict.fromkeys(cell.run for cell in whole.cells if cell.spec.seed == 0)
    for run in others:
        finish(tmp_path, run)
    here = plan(tmp_path, partial=True, **settings)
    assert "table1" not in {artefact.id for artefact in here.covered()}
    finish(tmp_path, last)
    assert "table1" in {artefact.id for artefact in here.covered()}


def test_cells_of_data_sets_that_were_not_asked_for_are_planned(tmp_path):
    def table1(**settings):
        here = plan(tmp_path, papers=["who_to_trust"], scale="quick", **settings)
        made = here.judged("who_to_trust", "quick")
        return next(artefact for artefact in made if artefact.id == "table1")

    whole, mnist = table1(), table1(datasets=["mnist"])
    assert [cell for cell, _ in mnist.planned()] == [cell for cell, _ in whole.planned()]
    assert {cell.spec.dataset for cell in mnist.cells} == {"mnist"}
    assert {cell.spec.dataset for _, cell in mnist.left_out} == {"cifar10"}
    assert table1(datasets=["mnist"], partial=True).cells == ()


def test_a_summary_rests_on_tables_without_runs_and_figures_with_claims(tmp_path):
    here = plan(tmp_path, papers=["fedol"], scale="smoke", partial=True)
    judged = here.judged("fedol", "smoke")
    assert {"table1", "figure2"} <= {artefact.id for artefact in judged}
    assert "knowledge" not in {artefact.id for artefact in judged}
    assert here.drawable_of("fedol", "smoke") == []
    kept = json.loads(Path(PlanWriter(here).artefact_file(judged[0])).read_text())
    assert (kept["runs"], kept["missing"][0]["before"]) == ([], 0)


def test_settings_reach_the_runs(tmp_path):
    here = plan(tmp_path, seeds=[4], precision="bf16")
    specs = [cell.spec for artefact in here.artefacts for cell in artefact.cells]
    assert {(spec.seed, spec.precision) for spec in specs} == {(4, "bf16")}
    with refused("unknown dataset of celm, fedol 'digit'; did you mean 'digits'?"):
        plan(tmp_path, papers=["celm", "fedol"], datasets=["digit"])


@pytest.mark.slow
def test_papers_without_the_data_sets_asked_for_are_left_out(tmp_path):
    here = plan(tmp_path, scale="paper", seeds=[0], datasets=["mnist"])
    assert {(a.paper.paper, c.spec.dataset) for a in here.artefacts for c in a.cells} == {
        ("who_to_trust", "mnist")
    }
    assert here.chosen == ["who_to_trust"]
    assert (
        here.left_out()
        == "left out: celm, tally_train, fedol, comparison (no run on mnist at scale paper)"
    )
    both = plan(tmp_path, scale="paper", datasets=["mnist", "fashion_mnist"])
    assert both.chosen == ["who_to_trust", "celm", "comparison"]
    assert plan(tmp_path, scale="paper").left_out() == ""


def test_papers_without_the_scale_asked_for_are_left_out(tmp_path, studies):
    here = plan(tmp_path, studies, papers=["study", "fedol", "trial"])
    assert here.chosen == ["fedol"]
    assert {artefact.paper.paper for artefact in here.artefacts} == {"fedol"}
    assert here.left_out() == (
        "left out: study (has no scale smoke, but paper);"
        " trial (has no scale smoke, but heavy, paper)"
    )
    assert here.drawable_of("study", "paper")  # which a path may ask for
    with refused("unknown scale of paper study 'smoke' (one of: paper)"):
        here.judged("study", "smoke")
    drawn = plan(tmp_path, studies, papers=["study", "fedol"], partial=True)
    assert drawn.left_out() == ""  # drawn at every scale
    both = plan(tmp_path, studies, papers=["study", "fedol"], scale="paper")
    assert both.left_out() == ""


def test_a_scale_that_no_paper_has_is_an_error_that_names_what_each_has(tmp_path, studies):
    with refused("unknown scale of paper study 'smoke' (one of: paper)"):
        plan(tmp_path, studies, papers=["study"])
    with refused(
        "unknown scale 'papr'; did you mean 'paper'? (study has paper; trial has heavy, paper)"
    ):
        plan(tmp_path, studies, papers=["study", "trial"], scale="papr")
    with refused("unknown scale of paper study 'smoke'"):
        plan(tmp_path, studies, papers=["study"], partial=True)
    finished = {"partial": True, "frozen": True}
    with refused("unknown scale of paper study 'papr'; did you mean 'paper'?"):
        plan(tmp_path, studies, papers=["study"], scale="papr", **finished)


def test_a_scale_that_only_papers_have_which_are_not_chosen_names_these(tmp_path, studies):
    (studies / "broken.yaml").write_text("paper: another\n")
    with refused(
        "(one of: paper); fedol, trial have it, but config.yaml's 'papers' not: add them there, or"
        " give --config 'papers=[fedol,trial]'"
    ):
        plan(tmp_path, studies, papers=["study"], scale="heavy")
    (studies / "fedol.yaml").unlink()
    with refused("; trial has it, but config.yaml's 'papers' not: add it there, or give"):
        plan(tmp_path, studies, papers=["study"], scale="heavy")


def test_what_finished_runs_cover_is_drawn_of_papers_without_the_judged_scale(tmp_path, studies):
    file = studies / "study.yaml"
    data = yaml.safe_load(file.read_text())
    data["scales"] = {"heavy": data["scales"]["paper"]}
    file.write_text(yaml.safe_dump(data))
    here = plan(tmp_path, studies, papers=["study"], scale="paper", partial=True, frozen=True)
    planned = plan(tmp_path, studies, papers=["study"], scale="heavy")
    finish(tmp_path, planned.runs(planned.artefacts[0])[0])
    assert {artefact.scale for artefact in here.at_every_scale()} == {"heavy"}


def test_a_path_of_a_paper_that_is_not_configured_says_how_to_add_it(tmp_path, studies):
    here = plan(tmp_path, studies, papers=["fedol"])
    with refused(
        "unknown paper in config.yaml's 'papers' 'study' (one of: fedol); add it there, or give"
        " --config 'papers=[study]'"
    ):
        here.artefact("study", "paper", "table1")
    with refused("'stuy' (one of: fedol)") as error:
        here.artefact("stuy", "paper", "table1")
    assert "add it there" not in str(error.value)


def test_a_scale_without_the_data_set_is_told_apart(tmp_path):
    """Every paper names digits, for `smoke`; none uses it at `paper`."""
    with refused(
        "no run of celm at scale paper is on digits; give other datasets or another scale"
    ):
        plan(tmp_path, papers=["celm"], scale="paper", datasets=["digits"])
    # What is drawn from finished runs is drawn at every scale.
    here = plan(tmp_path, papers=["celm"], scale="paper", datasets=["digits"], partial=True)
    assert here.drawable_of("celm", "paper") == []
