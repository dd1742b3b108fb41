"""What training took, table by table, and the two commands for each on a paper's page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from support.refusals import refused
from support.sealed import seal

from fedlogit.config import Settings
from fedlogit.errors import DataError
from fedlogit.files import read_json, write_json
from fedlogit.papers import Plan, load_paper, run_dir
from fedlogit.results.drawn_files import differences
from fedlogit.results.pages.commands import commands, memory
from fedlogit.results.provenance import recorded
from fedlogit.results.training_costs import read_training, training_table, write_training

PAPERS = Path(__file__).parents[2] / "workflow/papers"
SETTINGS = Settings(papers=("celm",), scale="quick", frozen=True, partial=True)


@pytest.fixture
def train(tmp_path, make_run):
    """Return a function that finishes some runs of CELM's Table 1 at `quick`, as these say."""

    def finish(*provenances: dict) -> Plan:
        cells = Plan(SETTINGS, PAPERS, tmp_path).unfiltered_of("celm", "quick")[0].cells
        for cell, facts in zip(cells, provenances, strict=False):
            spec = cell.spec
            run = make_run([0.5] * spec.rounds, axes={}, **spec.model_dump(mode="json"))
            result = read_json(run.dir / "result.json")
            result["provenance"] |= facts
            write_json(run.dir / "result.json", result)
            seal(run.dir)
            place = tmp_path / "runs" / run_dir(spec)
            place.parent.mkdir(parents=True, exist_ok=True)
            run.dir.rename(place)
        return Plan(SETTINGS, PAPERS, tmp_path)

    return finish


def of_table1(plan: Plan) -> dict:
    rows = training_table(plan)
    return rows[(rows["scale"] == "quick") & (rows["id"] == "table1")].to_dict("records")[0]


def test_hours_and_peaks_are_of_the_finished_runs_and_a_gpus_are_apart(train):
    plan = train(
        {"wall_seconds": 3600, "peak_memory_bytes": 700_000_000},
        {"wall_seconds": 1800, "peak_memory_bytes": 900_000_000},
        {"wall_seconds": 900, "peak_memory_bytes": 5e8, "device_type": "cuda", "device": "A GPU"},
    )
    row = of_table1(plan)
    assert (row["finished"], row["cpu_hours"], row["gpu_hours"]) == (3, 1.5, 0.25)
    assert (row["cpu_mb"], row["gpu_mb"]) == (900, 500)
    assert row["devices"] == "A GPU, CPU test"
    assert row["runs"] == len(plan.runs(plan.unfiltered_of("celm", "quick")[0])) > 3


def test_the_last_row_has_each_run_once(train):
    """Table 1's runs are Figure 5's, too."""
    rows = training_table(train({"wall_seconds": 3600}, {"wall_seconds": 1800}))
    *others, total = rows.to_dict("records")
    assert [total[key] for key in ("paper", "scale", "id")] == ["all"] * 3
    assert (total["finished"], total["cpu_hours"]) == (2, 1.5)
    assert sum(row["finished"] for row in others) > 2
    assert max(row["runs"] for row in others) < total["runs"] < sum(row["runs"] for row in others)


@pytest.mark.parametrize("fact", ["wall_seconds", "device", "peak_memory_bytes"])
def test_a_result_without_a_fact_that_every_run_records_is_named(make_run, fact):
    folder = make_run().dir
    result = read_json(folder / "result.json")
    del result["provenance"][fact]
    write_json(folder / "result.json", result)
    with refused(f"{folder / 'result.json'}: key 'provenance.{fact}' is missing"):
        recorded(folder)


def test_a_result_without_a_kind_of_device_is_of_a_cpu(make_run):
    assert recorded(make_run().dir)["device_type"] == "cpu"


def test_tables_without_a_finished_run_have_a_row_and_smoke_has_none(train):
    rows = training_table(train())
    assert set(rows["scale"]) == {*load_paper("celm", PAPERS).scales, "all"} - {"smoke"}
    assert (rows["runs"] > 0).all()
    assert not rows[["finished", "cpu_hours", "cpu_mb", "gpu_hours", "gpu_mb"]].any(axis=None)


def row_of(page: str, scale: str) -> list[str]:
    """Return the cells of Table 1 at a scale."""
    found = [[c.strip() for c in line.strip("|").split("|")] for line in page.splitlines()]
    return next(
        cells
        for cells in found
        if cells[0].startswith("Table 1: ") and cells[1].strip("[").startswith(scale)
    )


def test_the_command_of_a_committed_table_trains_nothing(train, tmp_path):
    plan = train({"wall_seconds": 5400, "peak_memory_bytes": 700_000_000})
    write_training(plan, tmp_path)
    table = tmp_path / "tables/celm/quick/table1.md"
    table.parent.mkdir(parents=True)
    table.write_text("| a |\n")
    paper = plan.papers["celm"]
    cells = row_of(commands(paper, tmp_path), "quick")
    target = "papers=celm scale=quick -- results/tables/celm/quick/table1.csv`"
    assert cells[2:5] == [f"1 of {of_table1(plan)['runs']}", "1.50", "0.7 GB"]
    assert cells[5] == f"`snakemake --cores all --config frozen=true partial=true {target}"
    others = row_of(commands(paper, tmp_path), "paper")
    assert others[3:5] == ["–"] * 2
    assert "frozen" not in others[5], "nothing is committed, so nothing can be drawn again"


def test_before_anything_is_drawn_the_page_has_the_commands_that_train(tmp_path):
    cells = row_of(commands(load_paper("celm", PAPERS), tmp_path), "quick")
    assert cells[2:5] == ["–"] * 3
    assert cells[5].startswith("`snakemake --cores all --config papers=celm scale=quick -- ")


def test_hours_on_a_gpu_are_named_as_such(train, tmp_path):
    facts = {"wall_seconds": 900, "peak_memory_bytes": 500_000_000, "device_type": "cuda"}
    plan = train({"wall_seconds": 3600, "peak_memory_bytes": 700_000_000}, facts)
    write_training(plan, tmp_path)
    cells = row_of(commands(plan.papers["celm"], tmp_path), "quick")
    assert cells[3:5] == ["1.00 + 0.25 GPU", "0.7 GB, GPU 0.5 GB"]


def test_the_memory_of_a_scale_is_the_largest_of_its_tables(train, tmp_path):
    paper = train().papers["celm"]
    assert memory(paper, tmp_path, "quick") == "–", "nothing is drawn"
    plan = train({"peak_memory_bytes": 700_000_000}, {"peak_memory_bytes": 1_250_000_001})
    write_training(plan, tmp_path)
    assert memory(paper, tmp_path, "quick") == "1.3 GB"
    assert memory(paper, tmp_path, "extended") == "–"


def test_a_changed_file_of_hours_is_no_fresh_drawing(train, tmp_path):
    there, fresh = tmp_path / "there", tmp_path / "fresh"
    plan = train()
    write_training(plan, there)
    write_training(plan, fresh)
    assert differences(there, fresh) == []
    rows = pd.read_csv(there / "training.csv")
    rows.assign(runs=1).to_csv(there / "training.csv", index=False)
    (line,) = differences(there, fresh)
    assert line == f"{there / 'training.csv'}: the finished runs give something else"


def test_a_damaged_file_of_hours_is_named(tmp_path):
    path = tmp_path / "training.csv"
    path.write_text("paper,scale\n")
    with pytest.raises(DataError, match=r"cannot read .*training\.csv: .*make redraw"):
        read_training(path)
