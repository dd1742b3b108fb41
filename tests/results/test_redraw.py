"""What differs from a fresh drawing is named, file by file; rounding is no difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from shutil import copy, rmtree

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml
from support.calls import script
from support.waiting import until
from support.workflow import Snakemake

from fedlogit.commands.redraw import not_here
from fedlogit.config import Settings
from fedlogit.errors import DataError
from fedlogit.papers import Plan, run_dir
from fedlogit.results.drawn_files import differences, orphans
from fedlogit.results.redraw import redraw

WORKFLOW = Path(__file__).parents[2] / "workflow"

FILES = {
    "tables/p/paper/t.csv": "method,accuracy\ncelm,0.5\n",
    "tables/p/paper/t.md": "| celm | 50.00 |\n",
    "summary/p/paper/metrics.json": json.dumps({"verdicts": {"reproduced": 1}, "gap": [0.1]}),
    "figures/p/paper/f.md": "Three seeds.\n",
    "record.csv": "paper,ours\np,0.5\n",
}


def write(root: Path, files: dict[str, str], height: float, width: float = 2) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    figure, axes = plt.subplots(figsize=(width, 2))
    axes.bar(["celm"], [height])
    axes.set_ylim(0, 1)
    figure.savefig(root / "figures/p/paper/f.png", metadata={"Software": str(root)})
    plt.close(figure)
    return root


def found(tmp_path: Path, height: float = 0.5, **changes: str | None) -> list[str]:
    files = {k: changes.get(k.rpartition("/")[2].replace(".", "_"), v) for k, v in FILES.items()}
    kept = {name: text for name, text in files.items() if text is not None}
    there, fresh = write(tmp_path / "a", kept, height), write(tmp_path / "b", FILES, 0.5)
    return [line.replace(str(there) + "/", "") for line in differences(there, fresh)]


def test_a_fresh_drawing_is_no_difference(tmp_path):
    assert found(tmp_path, t_csv="method,accuracy\ncelm,0.50000000000001\n") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tables/p/paper/t.csv", "method,accuracy\ncelm,0.5001\n"),
        ("tables/p/paper/t.csv", "method,accuracy\ncffl,0.5\n"),
        ("tables/p/paper/t.csv", "method,accuracy\ncelm,0.5\ncelm,0.5\n"),
        ("tables/p/paper/t.md", "| celm | 50.01 |\n"),
        ("figures/p/paper/f.md", "One seed.\n"),
        ("record.csv", "paper,ours\np,0.6\n"),
        ("summary/p/paper/metrics.json", '{"verdicts": {"reproduced": 2}, "gap": [0.1]}'),
        ("summary/p/paper/metrics.json", '{"verdicts": {"partly": 1}, "gap": [0.1]}'),
    ],
)
def test_a_changed_number_or_word_is_named(tmp_path, name, text):
    key = name.rpartition("/")[2].replace(".", "_")
    assert found(tmp_path, **{key: text}) == [f"{name}: the finished runs give something else"]


def test_a_changed_picture_is_named(tmp_path):
    assert found(tmp_path, height=0.55) == [
        "figures/p/paper/f.png: the finished runs give something else"
    ]


def test_a_picture_of_another_size_is_named(tmp_path):
    there, fresh = write(tmp_path / "a", FILES, 0.5), write(tmp_path / "b", FILES, 0.5, width=3)
    (line,) = differences(there, fresh)
    assert line.endswith("figures/p/paper/f.png: the finished runs give something else")


@pytest.mark.parametrize("name", [*FILES, "figures/p/paper/f.png"])
@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b"\xff\xfe{", lambda b: b[: len(b) // 2]]
)
def test_a_damaged_file_is_named(tmp_path, name, damage):
    there, fresh = write(tmp_path / "a", FILES, 0.5), write(tmp_path / "b", FILES, 0.5)
    (there / name).write_bytes(damage((there / name).read_bytes()))
    assert differences(there, fresh) == [f"{there / name}: the finished runs give something else"]


def test_a_picture_with_a_broken_part_is_named(tmp_path):
    there, fresh = write(tmp_path / "a", FILES, 0.5), write(tmp_path / "b", FILES, 0.5)
    path = there / "figures/p/paper/f.png"
    path.write_bytes(path.read_bytes().replace(b"IDAT", b"ID\x00T"))
    assert differences(there, fresh) == [f"{path}: the finished runs give something else"]


def test_files_that_are_missing_or_that_no_run_gives_are_named(tmp_path):
    old = tmp_path / "a/tables/p/paper/old.md"
    old.parent.mkdir(parents=True)
    old.write_text("| old |\n")
    assert found(tmp_path, t_md=None) == [
        "tables/p/paper/old.md: no finished run gives it",
        "tables/p/paper/t.md: is missing, but runs cover it",
    ]


def test_runs_that_were_published_and_not_pulled_are_counted(tmp_path):
    here, away, too = (f"runs/digits/iid/average/seed{i}-00000000" for i in range(3))
    digest = {"md5": f"{'0' * 32}.dir", "size": 1}
    outs = [{"path": path} | digest for path in (here, away, too)]
    (tmp_path / "runs.dvc").write_text(yaml.safe_dump({"outs": outs}))
    (tmp_path / here).mkdir(parents=True)
    (tmp_path / here / "result.json").write_text("{}")
    (tmp_path / away).mkdir()  # as an interrupted pull leaves it
    assert not_here(tmp_path) == 2
    assert not_here(tmp_path / "runs") == 0, "nothing was published there"


QUICK = Settings(papers=("celm",), scale="quick", frozen=True, partial=True)


@pytest.fixture
def finished(tmp_path, make_run) -> Path:
    """Where a run of a table of CELM at scale `quick` lies."""
    (first, *_) = Plan(QUICK, WORKFLOW / "papers", tmp_path).judged("celm", "quick")
    spec = first.left_out[0][1].spec
    run = make_run([0.5] * spec.rounds, axes={}, **spec.model_dump(mode="json"))
    place = tmp_path / "runs" / run_dir(spec)
    place.parent.mkdir(parents=True)
    return run.dir.rename(place)


def drawn_again(results: Path, papers: Path = WORKFLOW / "papers") -> pd.DataFrame:
    """Draw, and return the numbers of the record that runs are behind."""
    redraw(Plan(QUICK, papers, results), WORKFLOW / "reference", results)
    rows = pd.read_csv(results / "record.csv")
    return rows[rows["verdict"] != "not run"]


def recorded(results: Path, papers: Path):
    return script("record", "--results", str(results), "--papers", str(papers))


@pytest.fixture
def papers(tmp_path) -> Path:
    """A folder with CELM's file alone."""
    folder = tmp_path / "papers"
    folder.mkdir()
    copy(WORKFLOW / "papers/celm.yaml", folder)
    return folder


def test_a_run_that_is_gone_leaves_no_number_in_the_record(tmp_path, finished, papers):
    assert len(drawn_again(tmp_path)) > 0
    assert recorded(tmp_path, papers).returncode == 0
    rmtree(finished)
    done = recorded(tmp_path, papers)
    compared = tmp_path / "summary/celm/quick/compare.csv"
    run = finished.relative_to(tmp_path / "runs")
    said = f"error: {compared} is of runs that are gone, such as {run}; run make redraw\n"
    assert (done.returncode, done.stderr) == (2, said)
    out = {"path": f"runs/{run}", "md5": f"{'0' * 32}.dir", "size": 1}
    (tmp_path / "runs.dvc").write_text(yaml.safe_dump({"outs": [out]}))
    assert recorded(tmp_path, papers).returncode == 0, "it can be pulled"
    assert len(drawn_again(tmp_path)) == 0
    assert compared.exists()


def test_a_spec_that_has_changed_leaves_no_number_in_the_record(tmp_path, finished, papers):
    assert len(drawn_again(tmp_path, papers)) > 0
    data = yaml.safe_load((papers / "celm.yaml").read_text())
    data["scales"]["quick"]["overrides"] = data["scales"]["quick"].get("overrides", {})
    data["scales"]["quick"]["overrides"]["rounds"] = 7
    (papers / "celm.yaml").write_text(yaml.safe_dump(data))
    done = recorded(tmp_path, papers)
    assert done.returncode == 2
    assert "quick/compare.csv is of other runs than the paper's file plans now" in done.stderr
    assert done.stderr.endswith(f"{finished.name[-8:]}; run make redraw\n")
    assert len(drawn_again(tmp_path, papers)) == 0


def test_a_comparison_that_does_not_say_of_which_runs_it_is_is_refused(tmp_path, finished, papers):
    drawn_again(tmp_path)
    path = tmp_path / "summary/celm/quick/compare.csv"
    pd.read_csv(path).drop(columns="runs").to_csv(path, index=False)
    done = recorded(tmp_path, papers)
    said = f"error: {path}: column 'runs' is missing; run make redraw\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_the_users_own_seeds_are_planned_where_they_are_given(tmp_path, make_run, papers):
    settings = QUICK.model_copy(update={"seeds": (77,)})
    (first, *_) = Plan(settings, papers, tmp_path).judged("celm", "quick")
    spec = first.left_out[0][1].spec
    run = make_run([0.5] * spec.rounds, axes={}, **spec.model_dump(mode="json"))
    place = tmp_path / "runs" / run_dir(spec)
    place.parent.mkdir(parents=True)
    run.dir.rename(place)
    redraw(Plan(settings, papers, tmp_path), WORKFLOW / "reference", tmp_path)
    assert recorded(tmp_path, papers).returncode == 2
    own = ("--results", str(tmp_path), "--papers", str(papers), "--seeds", "77")
    assert script("record", *own).returncode == 0


def test_claims_on_tables_that_nobody_ran_are_drawn_as_not_run(tmp_path, finished):
    plan = Plan(QUICK, WORKFLOW / "papers", tmp_path)
    stale = tmp_path / "summary/celm/quick/agreement.md"
    stale.parent.mkdir(parents=True)
    stale.write_text("A file that an older version wrote.\n")
    drawn = redraw(plan, WORKFLOW / "reference", tmp_path)
    assert tmp_path / "record.csv" in drawn
    assert all(path.is_file() for path in drawn)
    assert orphans(tmp_path, drawn, plan.papers) == [stale]
    claims = pd.read_csv(tmp_path / "summary/celm/quick/claims.csv", index_col="id")
    assert claims["result"]["free_riders"] == "not run"  # of table3, which has no run at all


def test_several_processes_draw_the_same_in_the_same_order(tmp_path, finished, papers):
    one, two = tmp_path / "one", tmp_path / "two"
    plan = Plan(QUICK, papers, tmp_path)
    first = redraw(plan, WORKFLOW / "reference", one)
    second = redraw(plan, WORKFLOW / "reference", two, jobs=2)
    assert [two / path.relative_to(one) for path in first] == second
    assert differences(one, two) == []
    (finished / "rounds.csv").write_text("no table")
    with pytest.raises(DataError, match=r"rounds\.csv"):
        redraw(plan, WORKFLOW / "reference", two, jobs=2)


def test_processes_that_draw_end_with_a_caller_that_is_killed(tmp_path):
    # A shell's parent is the process that draws.
    code = (
        "import os; from functools import partial; from fedlogit.results.redraw import _all_of;"
        "_all_of([partial(os.system, f'echo $PPID > {name}; exec sleep 30') for name in 'ab'], 2)"
    )
    environment = os.environ | {"PYTHONPATH": str(WORKFLOW.parent)}
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    drawing = [until(partial(text_of, tmp_path / name)) for name in "ab"]
    caller.kill()
    caller.wait()
    until(lambda: not any(is_running(pid) for pid in drawing))


def text_of(path: Path) -> str:
    """Return what a file says, which is nothing before it is there."""
    return path.read_text().strip() if path.exists() else ""


def is_running(pid: str) -> bool:
    """Return whether a process has not ended; what nobody reaps, as in a container, has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("name", ["redraw", "record"])
def test_a_folder_of_results_that_is_not_there_is_refused_and_not_made(tmp_path, name):
    folder = tmp_path / "nosuch"
    done = script(name, "--results", str(folder), "--papers", str(WORKFLOW / "papers"))
    said = f"error: --results {folder} is no folder; give the one that has runs/\n"
    assert (done.returncode, done.stderr, folder.exists()) == (2, said, False)


@pytest.mark.parametrize("there", [True, False])
def test_without_published_numbers_the_record_is_one_line(tmp_path, papers, there):
    """Also where an older record lies, whose counts would be told."""
    (tmp_path / "record.counts.md").write_text("Of 9 published numbers, all have a verdict.\n")
    folder = tmp_path / "numbers"
    if there:
        folder.mkdir()
    places = ("--results", str(tmp_path), "--papers", str(papers))
    done = script("record", *places, "--references", str(folder))
    if there:
        said = f"no record was written: {folder} has numbers of no paper in {papers}\n"
        assert (done.stdout, done.stderr) == (said, "")
    else:
        said = f"error: --references {folder} is no folder; give the one that has PAPER.csv\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.fixture
def study(tmp_path) -> Path:
    """A folder with a study alone, which has no published numbers."""
    folder = tmp_path / "studies"
    folder.mkdir()
    data = yaml.safe_load((WORKFLOW / "papers/celm.yaml").read_text())
    (folder / "study.yaml").write_text(yaml.safe_dump(data | {"paper": "study"}))
    return folder


def test_what_is_being_written_is_no_orphan(tmp_path):
    drawn = tmp_path / "tables/p/paper"
    drawn.mkdir(parents=True)
    for name in ("old.md", ".t.12345.csv"):
        (drawn / name).touch()
    assert orphans(tmp_path, [], ["p"]) == [drawn / "old.md"]


def pruned(results: Path, papers: Path):
    return script("redraw", "--prune", "--results", str(results), "--papers", str(papers))


def test_pruning_removes_the_report_on_scales_that_a_paper_no_longer_has(
    tmp_path, finished, papers
):
    kept, gone, others = (
        tmp_path / f"report/{name}.html" for name in ("celm/quick", "celm/half", "lab/half")
    )
    for page in (kept, gone, others):
        page.parent.mkdir(parents=True, exist_ok=True)
        page.touch()
    assert pruned(tmp_path, papers).returncode == 0
    assert [page.exists() for page in (kept, gone, others)] == [True, False, True]


def test_pruning_leaves_other_folders_papers_alone(tmp_path, finished, papers, study):
    assert pruned(tmp_path, papers).returncode == 0
    theirs = {path for kind in ("tables", "summary") for path in (tmp_path / kind).rglob("*.*")}
    theirs |= {*tmp_path.glob("record.*")}
    assert len(theirs) > 5
    rmtree(finished)
    stale = tmp_path / "tables/study/quick/old.md"
    stale.parent.mkdir(parents=True)
    stale.write_text("| old |\n")
    done = pruned(tmp_path, study)
    assert done.returncode == 0
    assert not stale.exists()
    assert all(path.exists() for path in theirs)
    assert f"left alone, as {study} has no such paper: celm\n" in done.stderr
    done = pruned(tmp_path, papers)
    assert (done.stderr, list((tmp_path / "tables").rglob("*.*"))) == ("", [])


def test_what_was_redrawn_is_out_of_date_for_other_settings(tmp_path, make_run, python):
    """Snakemake remembers what it made a table from, not that something else has made it since."""
    results, snakemake = tmp_path / "results", Snakemake(python)
    smoke = Settings(papers=("tally_train",), scale="smoke", frozen=True, partial=True)
    planned = Plan(smoke, WORKFLOW / "papers", results).unfiltered_of("tally_train", "smoke")
    (spec,) = (cell.spec for table in planned if table.id == "byzantine" for cell in table.cells)
    run = make_run([0.5] * spec.rounds, axes={}, **spec.model_dump(mode="json"))
    place = results / "runs" / run_dir(spec)
    place.parent.mkdir(parents=True)
    run.dir.rename(place)
    seeds = f"seeds=[{spec.seed},77]"
    own = ("papers=[tally_train]", "scale=smoke", seeds, "partial=true", "frozen=true")
    table, summary = (
        "tables/tally_train/smoke/byzantine.csv",
        "summary/tally_train/smoke/summary.md",
    )
    targets = (f"results/{table}", f"results/{summary}")
    done = snakemake(tmp_path, *targets, config=own)
    assert done.returncode == 0, done.stdout
    assert snakemake.dry(tmp_path, *targets, config=own) == {}
    redraw(Plan(smoke, WORKFLOW / "papers", results), WORKFLOW / "reference", results)
    assert snakemake.dry(tmp_path, *targets, config=own) == {"table": 1, "compare": 1}
    assert snakemake(tmp_path, *targets, config=own).returncode == 0
    assert snakemake.dry(tmp_path, *targets, config=own) == {}
