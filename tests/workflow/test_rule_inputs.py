"""What each rule of the workflow reads, without Snakemake."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.refusals import refused

from fedlogit.config import Settings
from fedlogit.errors import FedlogitError
from fedlogit.papers import Plan, PlanWriter, run_dir, split_dir
from fedlogit.runs.paths import stage_options
from fedlogit.workflow import RuleInputs
from fedlogit.yaml_files import load_yaml

PAPERS = Path(__file__).resolve().parents[2] / "workflow" / "papers"
REFERENCES = str(PAPERS.parent / "reference")


@pytest.fixture
def planned(tmp_path) -> Callable[..., tuple[Plan, RuleInputs]]:
    """Return a function from settings, and folders to be forced, to a plan and rules' inputs."""

    def make(paper: str, forced: tuple[str, ...] = (), **settings) -> tuple[Plan, RuleInputs]:
        given = {"papers": paper, "scale": "smoke", **settings}
        plan = Plan(Settings.load(given, "options"), PAPERS, tmp_path)
        folders = {str(tmp_path / folder) for folder in forced}

        def asked(files: list[str]) -> bool:
            return not folders.isdisjoint(str(Path(file).parents[4]) for file in files)

        return plan, RuleInputs(plan, REFERENCES, asked)

    return make


def run_of(plan: Plan, method: str) -> str:
    """Return the first run of a method."""
    cells = (cell for artefact in plan.artefacts for cell in artefact.cells)
    return next(str(run_dir(cell.spec)) for cell in cells if cell.spec.method.name == method)


def outputs(rules: str, folder: str) -> list[str]:
    """Return the names of what a file of rules makes in a kind of folder, in their order."""
    text = (PAPERS.parent / "rules" / rules).read_text()
    return list(dict.fromkeys(re.findall(rf'"results/{folder}/{{\w+}}/([^/"]+)"', text)))


def summary(results: Path, scale: str) -> list[str]:
    """Return the files of a paper's comparison."""
    names = ["summary.md", "compare.csv", "compare.md", "orders.csv", "claims.csv", "claims.md",
             "metrics.json", "numbers.json"]  # fmt: skip
    return [f"{results}/summary/who_to_trust/{scale}/{name}" for name in names]


def touch(*path: object) -> None:
    Path(*map(str, path)).parent.mkdir(parents=True, exist_ok=True)
    Path(*map(str, path)).write_text("{}")


def test_a_run_needs_its_spec_the_data_and_their_division(planned, tmp_path):
    plan, inputs = planned("celm", data="elsewhere")
    run = run_of(plan, "fedavg")
    asked = inputs.train(run)
    assert asked == {
        "spec": f"{tmp_path}/plan/runs/{run}.json",
        "data": ["elsewhere/prepared/digits.json", "elsewhere/prepared/digits.npz"],
        "split": f"{tmp_path}/partitions/{split_dir(plan.spec_of_run(run))}/indices.npz",
    }
    assert Path(asked["spec"]).exists()
    assert inputs.split_of(run) == asked["split"]


def test_a_finished_run_needs_nothing_unless_it_is_forced(planned, tmp_path):
    plan, inputs = planned("celm")
    run = run_of(plan, "fedavg")
    touch(tmp_path, "runs", run, "result.json")
    assert inputs.train(run) == {}
    _, forced = planned("celm", forced=("runs",))
    assert forced.train(run).keys() == {"spec", "data", "split"}
    _, other = planned("celm", forced=("clients",))
    assert other.train(run) == {}


def test_a_run_in_stages_needs_the_answers_of_its_clients_and_targets_of_them(planned, tmp_path):
    plan, inputs = planned("fedol")
    run = run_of(plan, "feddf")
    clients = run_of(plan, "local")
    assert inputs.train(run) == {
        "spec": f"{tmp_path}/plan/runs/{run}.json",
        "logits": f"{tmp_path}/clients/{clients}/logits.json",
        "targets": f"{tmp_path}/targets/{run}/targets.npz",
    }
    assert inputs.aggregate(run) == {"logits": f"{tmp_path}/clients/{clients}/logits.npz"}
    assert inputs.train(clients).keys() == {"spec", "logits"}  # `local` teaches nobody


def test_clients_are_trained_once(planned, tmp_path):
    plan, inputs = planned("fedol")
    clients = run_of(plan, "local")
    asked = inputs.train_clients(clients)
    assert asked["spec"] == f"{tmp_path}/plan/clients/{clients}.json"
    assert inputs.split_of(clients) == asked["split"]
    for output in outputs("one_shot.smk", "clients"):
        assert inputs.train_clients(clients) == asked
        touch(tmp_path, "clients", clients, output)
    assert inputs.train_clients(clients) == {}


def test_a_run_in_one_piece_has_no_targets(planned):
    plan, inputs = planned("celm")
    with refused("is not made in stages; it has no file of targets"):
        inputs.aggregate(run_of(plan, "fedavg"))


def test_clients_of_a_run_that_keeps_its_weights_answer(planned, tmp_path):
    plan, inputs = planned("who_to_trust")
    (run,) = plan.runs(plan.artefact("who_to_trust", "smoke", "ensembles"))
    asked = inputs.export_logits(run)
    assert asked["note"] == f"{tmp_path}/runs/{run}/result.json"
    assert asked["split"] == inputs.split_of(run)
    with refused("keeps no weights"):
        inputs.export_logits(run_of(plan, "uwa"))


def test_foreign_public_samples_and_tokens_are_prepared_too(planned):
    plan, inputs = planned("tally_train")
    specs = {r: plan.spec_of_run(r) for a in plan.artefacts for r in plan.runs(a)}
    foreign = next(r for r, spec in specs.items() if spec.public and spec.public.dataset)
    text = next(run for run, spec in specs.items() if spec.text)

    def stems(run: str) -> set[str]:
        return {Path(path).stem for path in inputs.train(run)["data"]}

    assert stems(foreign) == {specs[foreign].dataset, specs[foreign].public.dataset}
    vocabulary = specs[text].text.vocabulary
    assert stems(text) == {specs[text].dataset, f"{specs[text].dataset}.bpe{vocabulary}"}


def test_a_division_that_was_pulled_needs_no_data(planned, tmp_path):
    plan, inputs = planned("celm")
    (split, *_) = plan.splits()
    for output in outputs("partition.smk", "partitions"):  # if one is missing, the rule runs
        assert inputs.partition(split).keys() == {"spec", "data"}
        touch(tmp_path, "partitions", split, output)
    assert inputs.partition(split) == {}


def test_a_division_is_checked_for_the_most_samples_that_its_runs_validate_on(tmp_path):
    data = load_yaml(PAPERS / "fedol.yaml")
    for method, size in (("feddf", 50), ("fedkt", 70)):
        given = data["methods"][method]
        given = {"method": given} if isinstance(given, str) else given
        data["methods"][method] = given | {"evaluation": {"validation": size}}
    (tmp_path / "fedol.yaml").write_text(yaml.safe_dump(data))
    plan = Plan(Settings.load({"papers": "fedol", "scale": "smoke"}, "o"), tmp_path, tmp_path)
    (split,) = {plan.split_of(run_of(plan, method)) for method in ("feddf", "fedkt", "local")}
    assert RuleInputs(plan, REFERENCES).validation(split) == ["--validation", "70"]
    assert RuleInputs(plan, REFERENCES).validation("another/split") == []


def test_a_drawing_needs_its_plan_and_each_of_its_runs_once(planned, tmp_path):
    plan, inputs = planned("who_to_trust")
    asked = inputs.table("who_to_trust", "smoke", "table1")
    artefact = plan.artefact("who_to_trust", "smoke", "table1")
    assert asked["artefact"] == PlanWriter(plan).artefact_file(artefact)
    assert asked["runs"] == [f"{tmp_path}/runs/{run}/result.json" for run in plan.runs(artefact)]
    assert len(asked["runs"]) == len({*asked["runs"]})


def test_a_figure_asked_for_as_a_table_is_refused_before_its_runs_are_trained(planned, tmp_path):
    _, inputs = planned("who_to_trust")
    place = f"{tmp_path}/figures/who_to_trust/smoke/uwa_weights.md"
    with pytest.raises(
        FedlogitError, match=f"uwa_weights is no table but a figure; ask for {place}"
    ):
        inputs.table("who_to_trust", "smoke", "uwa_weights")
    with pytest.raises(FedlogitError, match="table1 is no figure but a table"):
        inputs.figure("who_to_trust", "smoke", "table1")


def test_all_who_need_runs_that_cannot_be_had_are_refused(planned):
    plan, inputs = planned("who_to_trust", frozen=True)
    for ask in (
        lambda: inputs.table("who_to_trust", "smoke", "table1"),
        lambda: inputs.compare("who_to_trust", "smoke"),
        lambda: inputs.drawn(plan.artefacts),
        lambda: inputs.papers(["who_to_trust"]),
    ):
        with pytest.raises(FedlogitError, match="frozen = true, but"):
            ask()


def test_a_paper_has_drawings_a_summary_a_page_and_its_runs(planned, tmp_path):
    plan, inputs = planned("who_to_trust")
    asked = inputs.papers(["who_to_trust"])
    drawn = inputs.drawn(plan.artefacts)
    assert asked[: len(drawn)] == drawn
    others = [*summary(tmp_path, "smoke"), f"{tmp_path}/report/who_to_trust/smoke.html"]
    results = asked[len(drawn) + len(others) :]
    assert asked[len(drawn) : -len(results)] == others
    runs = {run for artefact in plan.artefacts for run in plan.runs(artefact)}
    assert results == list(dict.fromkeys(results))
    assert {*results} == {f"{tmp_path}/runs/{run}/result.json" for run in runs}


def test_with_partial_and_no_finished_run_nothing_is_made_again(planned):
    """What is committed would be written over with "nothing was run"."""
    plan, inputs = planned("who_to_trust", partial=True)
    assert inputs.papers(["who_to_trust"]) == []
    assert plan.unfinished() == (
        "partial = true, but no run of who_to_trust at scale smoke has finished here, so nothing of"
        " it is drawn; make pull may bring some, and without partial = true they are trained"
    )
    with refused("partial = true, but no run of who_to_trust at scale smoke has finished here"):
        inputs.page("who_to_trust", "smoke")


def test_with_partial_the_page_of_a_study_with_an_unfinished_method_shows_what_is_drawn(
    planned, tmp_path
):
    """A page that `papers` asks for and that has nothing to show would be an error."""
    plan, _ = planned("who_to_trust")
    (run, *_) = plan.runs(plan.artefact("who_to_trust", "smoke", "table1"))
    touch(tmp_path, "runs", run, "result.json")
    here, inputs = planned("who_to_trust", partial=True)
    assert here.covered() == []
    asked = inputs.papers(["who_to_trust"])
    assert f"{tmp_path}/report/who_to_trust/smoke.html" in asked
    page = inputs.page("who_to_trust", "smoke")
    assert len(page["artefacts"]) == len(here.artefacts) > 0
    assert page["drawn"] == inputs.drawn(here.artefacts)
    assert {*page["drawn"], *page["summary"]} < {*asked}
    assert here.unfinished() == planned("celm")[0].unfinished() == ""


def test_what_finished_runs_cover_is_not_drawn_with_training(planned):
    _, inputs = planned("who_to_trust")
    with refused("covered draws what finished runs cover, so it needs partial = true"):
        inputs.covered()


def test_a_table_is_three_files_and_so_is_a_figure(planned, tmp_path):
    plan, inputs = planned("who_to_trust")
    chosen = [plan.artefact("who_to_trust", "smoke", name) for name in ("table1", "uwa_weights")]
    place = "who_to_trust/smoke"
    assert inputs.drawn(chosen) == [
        *(f"{tmp_path}/tables/{place}/table1.{suffix}" for suffix in ("csv", "md", "tex")),
        *(f"{tmp_path}/figures/{place}/uwa_weights.{suffix}" for suffix in ("png", "pdf", "md")),
    ]


def test_a_page_shows_what_finished_runs_cover_where_that_is_asked_for(planned, tmp_path):
    plan, inputs = planned("who_to_trust")
    (run,) = plan.runs(plan.artefact("who_to_trust", "smoke", "uwa_weights"))
    touch(tmp_path, "runs", run, "result.json")
    whole = inputs.page("who_to_trust", "smoke")
    assert len(whole["artefacts"]) == len(plan.artefacts)
    assert whole["summary"] == summary(tmp_path, "smoke")
    _, partial = planned("who_to_trust", partial=True)
    covered = partial.page("who_to_trust", "smoke")
    assert [Path(path).name.partition(".")[0] for path in covered["artefacts"]] == ["uwa_weights"]
    assert covered["summary"] == []  # of tables, and there is none
    report = partial.report()
    assert report == {"pages": [f"{tmp_path}/report/who_to_trust/smoke.html"], "record": []}
    assert partial.covered() == [*covered["drawn"], f"{tmp_path}/report.html"]


def test_the_record_rests_on_the_summaries_of_what_is_covered(planned, tmp_path):
    plan, _ = planned("who_to_trust", scale="quick")
    for run in plan.runs(plan.artefact("who_to_trust", "quick", "table1")):
        touch(tmp_path, "runs", run, "result.json")
    _, inputs = planned("who_to_trust", partial=True)
    assert inputs.record() == summary(tmp_path, "quick")
    suffixes = ("csv", "md", "orders.csv", "counts.md", "papers.md", "png", "pdf")
    record = [f"{tmp_path}/record.{suffix}" for suffix in suffixes]
    assert inputs.covered()[-8:] == [*record, f"{tmp_path}/report.html"]
    assert inputs.report()["record"] == [f"{tmp_path}/record.png"]  # which the report shows
    assert f"{REFERENCES}/notes.yaml" in inputs.references()


def test_a_study_may_have_no_published_numbers(planned):
    _, inputs = planned("celm")
    assert inputs.reference("celm") == [f"{REFERENCES}/celm.csv"]
    assert inputs.reference("study") == []


@pytest.mark.parametrize(
    ("found", "options"),
    [
        ({"spec": "s", "data": ["d"], "split": "i"}, ""),
        ({"spec": "s", "logits": "a/logits.json"}, "--clients a --logits a/logits.npz"),
        ({"logits": "a/logits.json", "targets": "t.npz"},
         "--clients a --logits a/logits.npz --targets t.npz"),
    ],
)  # fmt: skip
def test_what_earlier_stages_left_are_options_of_train(found, options):
    assert stage_options(found) == options.split()


def test_published_numbers_that_cannot_be_are_refused_when_planned(planned, tmp_path):
    plan, _ = planned("who_to_trust")
    path = tmp_path / "who_to_trust.csv"
    head = "table,dataset,partition,method,metric,mean,std"
    for row, said in (
        (
            "tabel1,mnist,,average,accuracy,0.5,",
            "column table: unknown table 'tabel1'; did you mea",
        ),
        ("table1,mnist,,average,accuracy,0.5,abc", "column std: 'abc' must be a number from 0, or"),
    ):
        path.write_text(f"{head}\n{row}\n")
        with refused(f"{path}, row 2, {said}"):
            RuleInputs(plan, str(tmp_path))
    path.write_text(f"{head}\ntable1,mnist,,average,accuracy,0.5,\n")
    assert RuleInputs(plan, str(tmp_path)).reference("who_to_trust") == [str(path)]


def test_what_stands_for_a_number_that_is_not_published_is_refused(tmp_path):
    data = load_yaml(PAPERS / "who_to_trust.yaml")
    own = data["scales"]["quick"].setdefault("artefacts", {}).setdefault("table1", {})
    own["stands_for"] = {"axes": {"method": {"avrage": "average"}}}
    (tmp_path / "who_to_trust.yaml").write_text(yaml.safe_dump(data))
    plan = Plan(Settings.load({"papers": "who_to_trust"}, "options"), tmp_path, tmp_path)
    key = "who_to_trust.yaml: scales.quick.artefacts.table1.stands_for.axes.method"
    with refused(f"{key}: unknown published value 'avrage'; did you mean 'average'"):
        RuleInputs(plan, REFERENCES)


def test_a_paper_without_a_table_at_the_scale_has_no_summary(tmp_path):
    data = load_yaml(PAPERS / "fedol.yaml")
    figures = list(data["figures"])
    data["scales"] = {"smoke": data["scales"]["smoke"] | {"include": figures, "claims": {}}}
    data["labels"] = {key: data["labels"][key] for key in data["methods"]}
    del data["claims"]
    (tmp_path / "fedol.yaml").write_text(yaml.safe_dump(data))
    settings = Settings.load({"papers": "fedol", "scale": "smoke"}, "options")
    plan = Plan(settings, tmp_path, tmp_path)
    inputs = RuleInputs(plan, REFERENCES)
    assert [a.kind for a in plan.artefacts] == ["figure"] * len(figures)
    asked = inputs.papers(["fedol"])
    assert f"{tmp_path}/report/fedol/smoke.html" in asked
    assert not [path for path in asked if "/summary/" in path]
    with refused("fedol has no table at scale smoke, so there is no summary of it"):
        inputs.compare("fedol", "smoke")
