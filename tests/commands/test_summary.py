"""What `summary` says where little was made, and of a study without published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.calls import ROOT, script
from support.comparisons import HEAD
from support.refusals import refused

from fedlogit.commands._settings import of_finished_runs
from fedlogit.config import Settings
from fedlogit.files import write_json
from fedlogit.papers import Plan
from fedlogit.results.formatting import write_text
from fedlogit.yaml_files import load_yaml

PAPERS = ROOT / "workflow/papers"

CLAIMS = "id,text,result,reason,run,agree,data"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Papers: FedOL, and a study with two of its scales that has no published numbers."""
    data = load_yaml(PAPERS / "fedol.yaml")
    scales = {key: data["scales"][key] for key in ("smoke", "quick")}
    labels = {key: text for key, text in data["labels"].items() if key in data["methods"]}
    study = data | {"paper": "study", "title": "A study", "scales": scales, "labels": labels}
    for own in (data, study):
        write_text(tmp_path / "papers" / f"{own['paper']}.yaml", yaml.safe_dump(own))
    (tmp_path / "results").mkdir()
    return tmp_path


def finish(folder: Path, paper: str, scale: str, only: str = "", **others: Any) -> None:
    """Give each run of a paper's tables and figures a result, or of one of them."""
    settings = Settings(papers=(paper,), scale=scale, **others)
    plan = Plan(settings, folder / "papers", folder / "results")
    for artefact in plan.artefacts:
        for run in plan.runs(artefact) if only in ("", artefact.id) else ():
            write_json(folder / "results/runs" / run / "result.json", {})


def compare(folder: Path, paper: str, scale: str) -> None:
    write_text(folder / "results/summary" / paper / scale / "compare.csv", HEAD)


def summary(folder: Path, *given: str):
    places = ("--papers-folder", f"{folder}/papers", "--results", f"{folder}/results")
    return script("summary", *places, *given)


def test_in_a_fresh_clone_one_line_says_what_makes_something(folder):
    done = summary(folder)
    assert done.returncode == 0
    assert done.stdout == (
        "Nothing was made here yet: make figures pulls finished runs and draws them, make reproduce"
        " trains the quick scale\n"
    )


def test_a_folder_of_results_that_is_not_there_is_refused_and_not_made(folder):
    (folder / "results").rmdir()
    for given in ([], ["--scale", "quick", "fedol"]):
        done = summary(folder, *given)
        said = f"error: --results {folder}/results is no folder; give the one that has runs/\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
        assert not (folder / "results").exists()


def test_scales_without_a_comparison_are_left_out(folder):
    """As when one table of a scale was asked for by its path."""
    finish(folder, "fedol", "smoke", only="table1")
    done = summary(folder)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.startswith("No paper was compared at any scale yet: snakemake --cores all")
    finish(folder, "study", "quick")
    compare(folder, "study", "quick")
    said = summary(folder).stdout.splitlines()
    assert said[0].startswith("Made at scale quick: ")
    assert "A study" in said[0]


@pytest.mark.parametrize(
    ("scales", "where"), [(["quick"], "study/quick"), (["smoke", "quick"], "study/*")]
)
def test_the_numbers_of_a_study_without_a_row_in_the_record_are_in_its_summary(
    folder, scales, where
):
    for scale in scales:
        finish(folder, "study", scale)
        compare(folder, "study", scale)
    results = folder / "results"
    write_text(results / "record.csv", "paper,table\nfedol,table1")
    for given in ([], ["study"]):
        said = summary(folder, *given).stdout
        assert f"Every number: {results}/summary/{where}/summary.md; " in said
    write_text(results / "record.csv", "paper,table\nstudy,table1")
    assert f"Every number: {results}/record.md; " in summary(folder, "study").stdout


def test_papers_that_lack_the_scale_are_told_and_left_out(folder):
    finish(folder, "fedol", "extended")
    compare(folder, "fedol", "extended")
    write_text(folder / "results/summary/fedol/extended/claims.csv", CLAIMS)
    done = summary(folder, "--scale", "extended")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "left out: study (has no scale extended, but quick, smoke)\n"
    assert done.stdout.startswith("Made at scale extended: ")
    assert "study" not in (folder / "results/summary.md").read_text()


@pytest.mark.parametrize("others", [{"seeds": (7,)}, {"precision": "bf16"}])
def test_seeds_and_precision_of_the_configuration_say_which_runs_there_are(folder, others):
    finish(folder, "study", "quick", **others)
    compare(folder, "study", "quick")
    write_text(folder / "results/summary/study/quick/claims.csv", CLAIMS)
    asked = {"papers": ["study"], "scale": "quick"} | {
        key: list(value) if isinstance(value, tuple) else value for key, value in others.items()
    }
    config = write_text(folder / "config.yaml", yaml.safe_dump(asked))
    runs = len(list((folder / "results/runs").rglob("result.json")))
    said = summary(folder, "--config", str(config)).stdout.splitlines()[0]
    assert said.endswith(f" of A study, from {runs} finished runs.")
    if "seeds" in others:
        said = summary(folder, "--scale", "quick", "--seeds", "7", "--", "study").stdout
        assert f", from {runs} finished runs." in said
        other = summary(folder, "--config", str(config), "--seeds", "8", "--", "study").stdout
        assert ", from 0 finished runs." in other


def test_seeds_without_a_scale_are_refused(folder):
    done = summary(folder, "--seeds", "0")
    assert (done.returncode, done.stderr) == (2, "error: seeds: give a scale, too\n")


def test_a_mistake_in_an_option_does_not_name_the_papers_files(folder):
    with refused("options: seeds.0 = -1: "):
        of_finished_runs(folder / "papers", seeds=[-1])
