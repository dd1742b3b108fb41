"""The whole DAG through the real Snakemake, on embedded data at scale smoke."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.image import imread
from snakemake_executor_plugin_slurm.utils import set_gres_string
from support.workflow import ALL, PAPERS, REPOSITORY, SMOKE, Snakemake

from fedlogit.papers import expand, load_paper, run_dir

# All use one folder in which everything was made.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def dry(snakemake):
    return snakemake.dry


@pytest.fixture
def copy(made, tmp_path) -> Path:
    """The same folder, to break; times of files are kept."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    return folder


def plan(*papers: str) -> list:
    folder = REPOSITORY / "workflow" / "papers"
    return [a for paper in papers for a in expand(load_paper(paper, folder), "smoke")]


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_is_made(made, paper):
    for artefact in plan(paper):
        suffixes = ("csv", "md", "tex") if artefact.kind == "table" else ("png", "pdf")
        for suffix in suffixes:
            path = made / f"results/{artefact.kind}s/{paper}/smoke/{artefact.id}.{suffix}"
            assert path.stat().st_size > 100
    summary = made / f"results/summary/{paper}/smoke/summary.md"
    assert "Reported and reproduced" in summary.read_text()


def test_every_job_leaves_its_log_and_what_it_took(made):
    def names(folder: str, suffix: str) -> set[str]:
        files = (made / folder).rglob(f"*{suffix}")
        return {path.relative_to(made / folder).as_posix().removesuffix(suffix) for path in files}

    took = names("benchmarks/jobs", ".tsv")
    assert took == names("logs", ".log")
    rules = {name.partition("/")[0] for name in took}
    assert rules >= {"download", "partition", "export_logits", "aggregate", "table", "compare"}
    columns = (made / "benchmarks/jobs/report.tsv").read_text().splitlines()[0].split("\t")
    assert {"s", "max_rss", "cpu_time"} <= {*columns}


def test_runs_lie_where_their_hash_says(made):
    specs = {run_dir(c.spec): c.spec for artefact in plan(*PAPERS) for c in artefact.cells}
    found = {p.parent.relative_to(made / "results/runs") for p in made.rglob("result.json")}
    assert {str(path) for path in found} == {str(path) for path in specs}
    for path, spec in specs.items():
        result = json.loads((made / "results/runs" / path / "result.json").read_text())
        assert result["status"] == "finished"
        assert result["provenance"]["spec_digest"] == spec.digest()


def browse(page: Path, profile: Path) -> tuple[Path, str]:
    """Open a page in Chromium; return a screenshot and what the page wrote to the console."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here; apt-get install chromium")
    picture = profile.with_suffix(".png")
    flags = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={profile}", "--enable-logging=stderr", "--virtual-time-budget=5000"),
        *("--window-size=1200,1600", f"--screenshot={picture}"),
    ]
    done = subprocess.run(
        [chromium, *flags, page.as_uri()], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return picture, "\n".join(said)


def test_report_holds_every_paper_and_needs_no_other_file(made):
    text = (made / "results/report.html").read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", text)
    for paper in PAPERS:
        for artefact in plan(paper):
            assert f'id="{paper}-smoke-{artefact.id}"' in text
            for cell in artefact.cells:
                assert f"results/runs/{run_dir(cell.spec)}" in text
    assert "Scale: smoke; 1 seed; device: CPU" in text


def test_snakemakes_own_report_has_it_too(snakemake, made, tmp_path):
    path = tmp_path / "provenance.html"
    done = snakemake.run("--directory", str(made), "--report", str(path), "--config", *SMOKE)
    assert done.returncode == 0, done.stdout
    assert "results/report.html" in path.read_text()


@pytest.mark.parametrize("mistake", ["console.error('told')", "undefined_name()"])
def test_a_page_with_a_mistake_is_noticed(tmp_path, mistake):
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><p>text</p><script>{mistake}</script>")
    _, console = browse(page, tmp_path / "profile")
    assert "told" in console or "Uncaught ReferenceError" in console


@pytest.mark.parametrize("which", ["report.html", "report/who_to_trust/smoke.html"])
def test_pages_open_in_a_browser(made, tmp_path, which):
    picture, console = browse(made / "results" / which, tmp_path / "profile")
    image = imread(picture)[..., :3]
    assert image.shape[:2] == (1600, 1200)
    assert image.std() > 0.05  # not a blank page
    assert console == ""  # Chromium gives errors, too, as INFO


def test_second_call_does_nothing_also_on_another_device(dry, made):
    assert dry(made, "all", config=(ALL, "scale=smoke", "workers=2", "device=cuda:1")) == {}


def test_finished_runs_survive_newer_files_and_missing_data(dry, copy):
    # What a clone with pulled results looks like: no memory of how files were made, any times.
    shutil.rmtree(copy / ".snakemake")
    shutil.rmtree(copy / "data")
    shutil.rmtree(copy / "results/partitions")
    shutil.rmtree(copy / "results/plan")
    for number, path in enumerate(sorted(copy.rglob("*"))):  # any order, as git checkout has it
        os.utime(path, (1.7e9 + number, 1.7e9 + number))
    jobs = dry(copy, "all")
    assert set(jobs) <= {"all", "table", "figure", "compare", "page", "report"}
    assert dry(copy, "all", config=(ALL, "scale=smoke", "frozen=true")) == jobs


def test_one_missing_run_is_one_training(snakemake, dry, copy):
    (artefact, *_) = plan("who_to_trust")
    run = run_dir(artefact.cells[0].spec)
    shutil.rmtree(copy / "results/runs" / run)
    shutil.rmtree(copy / "data")
    jobs = dry(copy, "all")
    assert (jobs["train"], jobs["download"], jobs["prepare"]) == (1, 1, 1)
    done = snakemake(copy, "all", config=(ALL, "scale=smoke", "frozen=true"))
    assert done.returncode == 1
    assert "frozen = true, but 1 of" in done.stdout
    assert str(run) in done.stdout
    kept = dry(copy, "all", config=(ALL, "scale=smoke", "partial=true"))
    assert "train" not in kept
    assert kept["table"] >= 1


def test_a_dry_run_with_other_settings_changes_no_plan(dry, copy):
    before = {path: path.read_bytes() for path in copy.glob("results/plan/*/*/*.json")}
    assert before
    assert dry(copy, "all", config=(*SMOKE, "seeds=[1]"))["train"] > 0
    assert {path: path.read_bytes() for path in before} == before
    assert dry(copy, "all") == {}


def test_a_table_follows_its_plan_there_and_back(snakemake, dry, copy):
    (artefact, *_) = plan("who_to_trust")
    table = f"results/tables/who_to_trust/smoke/{artefact.id}.csv"
    run = copy / "results/runs" / run_dir(artefact.cells[0].spec)
    partial = (*SMOKE, "partial=true")
    aside = run.rename(copy / "aside")
    done = snakemake(copy, table, config=partial)
    assert done.returncode == 0, done.stdout
    aside.rename(run)  # its times are those of before
    assert dry(copy, table, config=partial) == {"table": 1}
    aside = run.rename(copy / "aside")
    assert dry(copy, table, config=partial) == {}


def test_forced_training_asks_for_its_inputs(dry, copy):
    shutil.rmtree(copy / "data")
    run = run_dir(plan("who_to_trust")[0].cells[0].spec)
    jobs = dry(copy, f"results/runs/{run}/result.json", options=("--forcerun", "train"))
    assert jobs["train"] == 1
    assert jobs["prepare"] == 1


FORCED = [("--force",), ("--forcerun", "{}"), ("--forcerun", "./{}"), ("--forcerun", "train")]


@pytest.mark.parametrize("how", FORCED, ids=" ".join)
def test_a_run_that_is_forced_in_any_way_asks_for_its_inputs(dry, tmp_path, how):
    """Without them, its file would be deleted, and `train` would find no spec."""
    file = f"results/runs/{run_dir(plan('who_to_trust')[0].cells[0].spec)}/result.json"
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("{}")
    assert dry(tmp_path, file) == {}
    jobs = dry(tmp_path, file, options=tuple(part.format(file) for part in how))
    assert jobs == {"train": 1, "partition": 1, "prepare": 1, "download": 1}


def test_methods_of_one_round_share_their_clients(dry, made, copy):
    """Six methods and Local are made of one set of clients; a new aggregator trains none anew."""
    split = "digits/pathological-classes_per_client3"
    assert len(list(made.glob(f"results/clients/{split}/**/clients.json"))) == 1
    # FedOL in two variants and with a smaller server's model, FedHKT with two budgets.
    assert len(list(made.glob(f"results/targets/{split}/**/targets.npz"))) == 9
    (mine,) = copy.glob(f"results/runs/{split}/mine/*/result.json")
    (targets,) = copy.glob(f"results/targets/{split}/mine/*/targets.npz")
    mine.unlink()
    targets.unlink()
    jobs = dry(copy, f"results/runs/{mine.relative_to(copy / 'results/runs')}")
    assert jobs == {"aggregate": 1, "train": 1}


def test_final_models_of_another_paper_answer_and_are_scored_together(snakemake, dry, copy):
    """Who to Trust's final models through the rules of one-shot runs: no training."""
    (run,) = (run_dir(c.spec) for a in plan("who_to_trust") if a.id == "ensembles" for c in a.cells)
    target = f"results/ensembles/{run}/fedlogit.aggregation.average:average_probabilities.json"
    assert dry(copy, target) == {"export_logits": 1, "ensemble": 1}
    done = snakemake(copy, target)
    assert done.returncode == 0, done.stdout
    found = json.loads((copy / target).read_text())
    result = json.loads((copy / "results/runs" / run / "result.json").read_text())
    alone = found["client_accuracy"]
    assert sum(alone) / len(alone) == pytest.approx(result["final"]["accuracy"], abs=1e-6)
    assert max(found["accuracy"], *alone) <= found["oracle_accuracy"]


@pytest.fixture
def project(python, tmp_path) -> Snakemake:
    """Snakemake with files of the project that a test may change."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("Snakefile", "config.yaml", "fedlogit", "profiles", "scripts", "workflow"):
        path = REPOSITORY / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / name)
    return Snakemake(python, folder)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


STUDY = """
paper: study
title: A study
seeds: [0]
defaults: {clients: 3, rounds: 1, batch: 64, local: {epochs: 1}, optimizer: {name: adam, lr: 0.003}}
datasets:
  digits: {models: ["mlp(hidden=[8])"]}
partitions: {k: k_classes, large: dir_equal(size=5000)}
methods: {fedavg: fedavg}
labels: {fedavg: FedAvg}
tables:
  t:
    title: T
    metric: accuracy
    grid: {dataset: [digits], partition: [k(2), k(3), k(4), large(1.0)], method: [fedavg]}
    rows: [method]
    columns: [partition]
scales:
  smoke: {summary: The study.}
"""


def test_a_partition_that_cannot_be_is_told_before_anything_trains(project, tmp_path):
    (project.project / "workflow/papers/study.yaml").write_text(STUDY)
    config = ("papers=study", "scale=smoke", "workers=1", "device=cpu")
    done = project.run("--cores", "1", "--directory", str(tmp_path), "--config", *config)
    assert done.returncode == 1
    before, first, after = done.stdout.partition("Run 1 of 4")
    assert first, done.stdout  # what can be trained is
    assert before.count(": partition digits/") == 3, done.stdout
    assert "error: partition dir_equal: size = 5000: at most 479" in before
    assert ": partition digits/" not in after


def test_one_changed_hyper_parameter_trains_its_runs_only(project, copy):
    papers = project.project / "workflow/papers"
    line = "uwa: {method: uwa, export: [aggregation]}"
    changed = line.replace("method: uwa", "method: uwa(variance_floor=0.02)")
    replace(papers / "who_to_trust.yaml", line, changed)
    cells = [c for a in expand(load_paper("who_to_trust", papers), "smoke") for c in a.cells]
    new = {run_dir(c.spec): c.spec.method.name for c in cells}
    new = {run: name for run, name in new.items() if not (copy / "results/runs" / run).exists()}
    assert new
    assert set(new.values()) == {"uwa"}
    jobs = project.dry(copy, "who_to_trust")
    assert jobs["train"] == len(new)
    assert not {"download", "prepare", "partition"} & set(jobs)


CAPTION = ("Mean test accuracy over all clients", "Accuracy, the mean over all clients,")
MADE_AGAIN = [
    ("workflow/papers/who_to_trust.yaml", CAPTION, {"table": 1, "compare": 1, "page": 1}),
    ("workflow/reference/who_to_trust.csv", (",0.8188,", ",0.8189,"),
     {"figure": 5, "compare": 1, "page": 1}),  # figures may show published numbers
    # How something is made, or was prepared, is no reason to make again what is there.
    ("fedlogit/results/tables.py", ("import", "import  "), {}),
    ("data/prepared/digits.json", ("{", "{ "), {}),
    # What somebody edits counts as newer; `redraw --check` notices it.
    ("results/tables/who_to_trust/smoke/table1.csv", ("digits", "Digits"), {"page": 1}),
    # Without a replacement, the file is deleted, here one of several that a step makes.
    ("results/figures/who_to_trust/smoke/curves.md", None, {"figure": 1, "page": 1}),
    ("results/summary/who_to_trust/smoke/claims.csv", None, {"compare": 1, "page": 1}),
    ("results/partitions/digits", None, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "jobs"), MADE_AGAIN, ids=[Path(name).name for name, *_ in MADE_AGAIN]
)
def test_what_is_made_again_after_a_change(project, copy, name, change, jobs):
    path = next(path for root in (project.project, copy) if (path := root / name).exists())
    if change:
        replace(path, *change)
    else:
        (shutil.rmtree if path.is_dir() else Path.unlink)(path)
    found = project.dry(copy, "who_to_trust", config=("papers=[who_to_trust]", *SMOKE[1:]))
    assert found == (jobs | {"who_to_trust": 1} if jobs else {})


def test_a_run_that_keeps_no_weights_cannot_answer(snakemake, made):
    run = run_dir(plan("who_to_trust")[0].cells[0].spec)
    done = snakemake(made, f"results/clients/{run}/logits.json")
    assert done.returncode == 1
    assert "keeps no weights; give export: [weights]" in done.stdout


def test_one_figure_makes_only_what_it_needs(dry, tmp_path):
    jobs = dry(tmp_path, "results/figures/who_to_trust/smoke/uwa_weights.pdf")
    assert (jobs["train"], jobs["figure"]) == (1, 1)
    assert "table" not in jobs


def test_a_plan_is_a_page_and_a_run_names_each_job(snakemake, tmp_path):
    paper = ("papers=[who_to_trust]", "scale=paper")
    planned = snakemake.run("-n", "--directory", str(tmp_path), "--config", *paper)
    assert planned.returncode == 0, planned.stdout
    assert int(re.search(r"^train +(\d+)$", planned.stdout, re.M)[1]) > 50
    assert len(planned.stdout.splitlines()) < 60
    (run,) = {
        run_dir(c.spec) for a in plan("who_to_trust") if a.id == "uwa_weights" for c in a.cells
    }
    done = snakemake(tmp_path, "results/figures/who_to_trust/smoke/uwa_weights.pdf")
    assert done.returncode == 0, done.stdout
    assert f"\nRun 1 of 1: {run}\n" in done.stdout
    assert re.search(
        r"^Step (\d+) of \1: figure who_to_trust smoke uwa_weights$", done.stdout, re.M
    )
    assert len(done.stdout.splitlines()) < 30
    assert "rule train:" not in done.stdout
    # An error is told in full.
    picture = "results/figures/who_to_trust/smoke/uwa_weights.png"
    (tmp_path / picture).unlink()
    (tmp_path / "results/runs" / run / "rounds.csv").unlink()
    failed = snakemake(tmp_path, picture)
    assert failed.returncode == 1
    assert "Error in rule figure:" in failed.stdout
    assert "rounds.csv" in failed.stdout


def test_a_path_of_another_scale_can_be_asked_for(dry, tmp_path):
    jobs = dry(tmp_path, "results/figures/who_to_trust/paper/uwa_weights.png")
    assert (jobs["train"], jobs["download"]) == (6, 2)  # 2 data sets x 3 seeds


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "figures/fedol/extended/figure9.png",
            "unknown table or figure of fedol at scale extended 'figure9'; did you mean ",
        ),
        (
            "tables/fedol/extendd/table1.csv",
            "unknown scale of paper fedol 'extendd'; did you mean 'extended'? (one of: ",
        ),
        (
            "figurs/fedol/extended/figure2.png",
            "no rule makes 'results/figurs/fedol/extended/figure2.png'; did you mean"
            " 'results/figures/{paper}/{scale}/{id}.png'? (",
        ),
        ("../data/prepared/mnst.npz", "unknown dataset 'mnst'; did you mean 'mnist'? (one of: "),
    ],
)
def test_a_wrong_path_is_one_line(snakemake, tmp_path, path, said):
    done = snakemake(tmp_path, os.path.normpath(f"results/{path}"))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith(f"error: {said}")
    assert "Traceback" not in done.stdout
    assert "InputFunctionException" not in done.stdout


def test_a_step_that_would_fail_again_is_tried_once_and_told_in_the_end(snakemake, tmp_path):
    prepared = tmp_path / "data/prepared"
    prepared.mkdir(parents=True)
    for suffix in ("json", "npz"):
        (prepared / f"digits.{suffix}").write_text("{}")
    picture = "results/figures/who_to_trust/smoke/uwa_weights.png"
    folders = ("--directory", str(tmp_path), "--retries", "2")
    done = snakemake.run(*folders, "--config", *SMOKE, "--", picture)
    assert done.returncode == 1
    assert done.stdout.count("Error in rule partition:") == 1
    assert "Trying to restart" not in done.stdout
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert "/indices.npz (logs/partition/" in told
    assert told.endswith("digits.npz is not a readable .npz archive: File is not a zip file")


def test_a_failed_step_that_makes_no_file_is_told_in_the_end(snakemake, tmp_path):
    """Here nothing can be published: the folder is no repository with a cache."""
    done = snakemake(tmp_path, "publish")
    assert done.returncode == 1
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert told.startswith("failed: publish (logs/publish.log): ")
    assert "it said nothing" not in told


def test_probes_of_another_data_set_are_prepared_too(dry, tmp_path):
    jobs = dry(tmp_path, "results/tables/tally_train/smoke/table10.csv")
    assert (jobs["train"], jobs["download"], jobs["prepare"], jobs["partition"]) == (1, 2, 2, 1)


def test_targets(dry, tmp_path):
    everything = dry(tmp_path)
    assert everything["default"] == 1
    drawn = dry(tmp_path, "regenerate_all_figures", "partitions")
    assert "compare" not in drawn
    assert {r: drawn[r] for r in ("figure", "table", "partition")} == {
        r: everything[r] for r in ("figure", "table", "partition")
    }
    by_name = [dry(tmp_path, paper) for paper in ("fedol", "comparison")]
    assert sum(jobs["aggregate"] for jobs in by_name) == everything["aggregate"]
    assert all(0 < jobs["train"] < everything["train"] for jobs in by_name)


def test_several_targets_of_one_folder_in_a_new_place(dry, tmp_path):
    config = (*SMOKE, "seeds=[0,1]")
    tables = [f"results/tables/who_to_trust/smoke/{name}.csv" for name in ("table1", "payload")]
    assert dry(tmp_path, *tables, config=config)["table"] == 2
    runs = tmp_path / "results/plan/runs"
    folder = next(spec.parent for spec in runs.rglob("*.json"))
    paths = [spec.relative_to(runs).with_suffix("") for spec in folder.iterdir()]
    shutil.rmtree(runs)
    results = [f"results/runs/{path}/result.json" for path in paths]
    assert dry(tmp_path, *results, config=config)["train"] == len(paths) >= 2


def slurm_plan(
    snakemake,
    folder: Path,
    *options: str,
    paper: str,
    datasets: str = "null",
    more: tuple[str, ...] = (),
) -> tuple[list[tuple[str, dict[str, str]]], list[str]]:
    """Plan with the Slurm profile; return each job's rule with its resources, and all groups."""
    config = (f"papers=[{paper}]", "scale=smoke", "workers=1", f"datasets={datasets}", *more)
    places = ("--directory", str(folder), "--profile", "slurm", "-n", "-p")
    done = snakemake.run(*places, *options, "--config", *config)
    assert done.returncode == 0, done.stdout
    pattern = r"^ *(?:local)?rule (\w+):\n(?:.+\n)*? +resources: (.+)"
    jobs = [
        (rule, dict(pair.split("=", 1) for pair in said.split(", ")))
        for rule, said in re.findall(pattern, done.stdout, re.M)
    ]
    return jobs, re.findall(r"Group job (\w+)", done.stdout)


GPU = {"gpu": "1", "slurm_extra": "--signal=TERM@120"}


@pytest.mark.parametrize("paper", ["tally_train", "fedol"])
def test_profile_slurm_plans(snakemake, tmp_path, paper):
    """Training has a GPU, time, memory and Slurm's warning before the limit; nothing else has."""
    jobs, groups = slurm_plan(snakemake, tmp_path, paper=paper)
    hours = {"train": 12, "train_clients": 12, "export_logits": 1}
    count_bytes = {c.spec.digest() for a in plan(paper) for c in a.cells if c.spec.ledger_only}
    without = [
        rule for rule, resources in jobs if rule in hours and resources.get("gpu", "0") == "0"
    ]
    assert without == ["train"] * len(count_bytes), "which train nobody"
    for rule, resources in jobs:
        assert int(resources["runtime"]) > 0
        if rule in hours:
            limit = {"runtime": str(60 * hours[rule]), "slurm_extra": GPU["slurm_extra"]}
            assert resources.items() >= limit.items()
            assert resources["mem_mb"] == "4000"
        else:
            assert not resources.keys() & GPU.keys(), rule
    rules = {rule for rule, _ in jobs}
    assert "train" in rules
    assert set(hours) <= rules or paper != "fedol"
    assert set(groups) == ({"divisions", "aggregators"} if paper == "fedol" else {"divisions"})


TRAINING = ("train", "train_clients", "export_logits")
A100 = ("gpu_model=a100", "gpu_partition=my_gpus")
MY_CPUS = ("--default-resources", "runtime=30", "slurm_partition=my_cpus")


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_only_jobs_on_a_gpu_ask_for_its_type_and_partition(snakemake, tmp_path, device):
    more = (*A100, f"device={device}")
    jobs, _ = slurm_plan(snakemake, tmp_path, *MY_CPUS, paper="fedol", more=more)
    asked = {
        (rule, gpus_asked_of_slurm(resources), resources["slurm_partition"])
        for rule, resources in jobs
        if rule in TRAINING
    }
    on_gpu = {(rule, "--gpus=a100:1", "my_gpus") for rule in TRAINING}
    if device == "cpu":
        assert asked == {(rule, "", "my_cpus") for rule in TRAINING}
    else:
        assert asked == {*on_gpu, ("train", "", "my_cpus")}, "which only count bytes"
    others = [resources for rule, resources in jobs if rule not in TRAINING]
    assert {resources["slurm_partition"] for resources in others} == {"my_cpus"}


def gpus_asked_of_slurm(resources: dict[str, str]) -> str:
    """Return the options for GPUs that the executor gives to sbatch."""
    typed = {key: int(said) if said.isdigit() else said for key, said in resources.items()}
    return set_gres_string(SimpleNamespace(resources=typed)).strip()


def test_all_jobs_of_a_group_ask_for_the_same_gpu(snakemake, tmp_path):
    """Snakemake puts no jobs together that name different types or partitions."""
    groups = ("--groups", "train=runs", "--group-components", "runs=100")
    ways = ("--set-resource-scopes", "gpu=local", "--resources", "gpu=1")
    jobs, made = slurm_plan(snakemake, tmp_path, *MY_CPUS, *groups, *ways, paper="fedol", more=A100)
    assert "runs" in made
    expected = {"gpu": "1", "gpu_model": "a100", "slurm_partition": "my_gpus"}
    assert all(resources.items() >= expected.items() for rule, resources in jobs if rule == "train")


def test_short_runs_are_put_together_on_slurm(snakemake, tmp_path):
    """The profile's commented lines: ten runs to a job, which still has one GPU; or arrays."""
    groups = ("--groups", "train=runs", "--group-components", "runs=10")
    ways = ("--set-resource-scopes", "gpu=local", "--resources", "gpu=1")
    paper = {"paper": "tally_train", "datasets": "[digits]"}
    jobs, made = slurm_plan(snakemake, tmp_path, *groups, *ways, **paper)
    trained = [resources for rule, resources in jobs if rule == "train"]
    assert made == ["runs"] * math.ceil(len(trained) / 10)
    assert len(made) > 1
    assert all(resources.items() >= GPU.items() for resources in trained)
    arrays, made = slurm_plan(snakemake, tmp_path, "--slurm-array-jobs", "train", **paper)
    assert "runs" not in made
    # A member of an array gets what the first one asks for, so all must ask for the same.
    asked = [resources for rule, resources in arrays if rule == "train"]
    assert len(asked) == len(trained)
    assert all(resources == asked[0] for resources in asked)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (("scal=smoke",), "--config: unknown key 'scal'; did you mean 'scale'?"),
        (("scale=smok",), "unknown scale 'smok'; did you mean 'smoke'? (who_to_trust has "),
        (
            ("papers=[who_to_thrust]",),
            "unknown paper 'who_to_thrust'; did you mean 'who_to_trust'?",
        ),
        (("seeds=[zero]",), "--config: seeds.0 = 'zero'"),
        (("data=d$(touch x)",), "--config: data = 'd$(touch x)': should be a folder's path"),
        (('publish=["quick; touch x #"]',), "--config: publish.0 = 'quick; touch x #'"),
    ],
)
def test_mistakes_in_the_configuration(snakemake, tmp_path, config, said):
    done = snakemake(tmp_path, "all", config=config)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if said in line]
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "x").exists()


def test_a_mistake_in_a_file_of_settings_is_told_of_that_file(snakemake, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("scal: smoke\n")
    done = snakemake.run("-n", "--directory", str(tmp_path), "--configfile", str(file))
    assert done.returncode == 1
    assert "mine.yaml: unknown key 'scal'; did you mean 'scale'?" in done.stdout
    assert "config.yaml:" not in done.stdout


def test_data_may_lie_in_a_folder_with_spaces(snakemake, tmp_path):
    card = "my data/prepared/digits.json"
    done = snakemake(tmp_path, card, config=(*SMOKE, "data=my data"))
    assert done.returncode == 0, done.stdout
    assert (tmp_path / card).exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("results/figures/who_to_trust/smok/figure1.png", "'smok'; did you mean 'smoke'?"),
        ("results/runs/a/b/c/seed0-00000000/result.json", "at any scale"),
    ],
)
def test_mistakes_in_a_target(snakemake, tmp_path, target, said):
    done = snakemake(tmp_path, target)
    assert done.returncode == 1
    assert said in done.stdout


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ("smoke", "no rule makes 'fedol', for it is not among config.yaml's 'papers'; add it"),
        ("twenty_seeds", "; fedol has it, but config.yaml's 'papers' not: add it"),
    ],
)
def test_a_paper_that_the_settings_do_not_name_says_how_to_choose_it(
    snakemake, tmp_path, scale, said
):
    done = snakemake(tmp_path, "fedol", config=("papers=[celm]", f"scale={scale}"))
    assert done.returncode == 1
    assert f"{said} there, or give --config 'papers=[fedol]'" in done.stdout.splitlines()[-1]


def commands(snakemake, folder: Path, *targets: str, config: tuple[str, ...] = SMOKE) -> list[str]:
    """Return the commands that a call would run, a line each."""
    places = ("-n", "-p", "--directory", str(folder))
    done = snakemake.run(*places, "--config", *config, *(("--", *targets) if targets else ()))
    assert done.returncode == 0, done.stdout
    return [line.strip() for line in done.stdout.splitlines() if "scripts/" in line]


def test_settings_reach_the_commands_that_train(snakemake, tmp_path):
    own = ("engine=loop", "runs_per_gpu=3", "checkpoint_seconds=7")
    config = ("papers=[fedol]", "scale=smoke", "device=cpu", "workers=2", *own)
    called = commands(snakemake, tmp_path, config=config)
    for name in ("train", "train_clients", "export_logits"):
        of_script = [line for line in called if f"scripts/{name}.py" in line]
        assert of_script, name
        for line in of_script:
            assert "--device cpu --engine loop --workers 2 --runs-per-gpu 3" in line
            assert ("--checkpoint-seconds 7" in line) == (name == "train")


def test_a_record_of_other_seeds_or_another_precision_is_of_their_plan(snakemake, tmp_path):
    (line,) = commands(snakemake, tmp_path, "results/record.csv")
    assert "--seeds" not in line
    assert "--precision" not in line
    config = (*SMOKE, "seeds=[3,4]", "precision=bf16")
    (line,) = commands(snakemake, tmp_path, "results/record.csv", config=config)
    assert "--seeds 3 4 --precision bf16" in line


def test_publish_takes_the_scales_that_the_settings_name(snakemake, tmp_path):
    (line,) = commands(snakemake, tmp_path, "publish")
    assert "--with" not in line
    (line,) = commands(snakemake, tmp_path, "publish", config=(*SMOKE, "publish=[quick,smoke]"))
    assert "--with quick smoke" in line
