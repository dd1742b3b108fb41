"""Runs that travel to a machine without Snakemake, and back, are those that the DAG makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.calls import ROOT, script
from support.many import content

from fedlogit.config import Settings
from fedlogit.files import write_json
from fedlogit.papers import Plan
from fedlogit.runs.layout import NOT_KEPT
from fedlogit.runs.tensors import read_tensors, tensor_digest

pytestmark = pytest.mark.slow
PAPERS = ("celm", "fedol", "tally_train", "who_to_trust")
# Of each paper its own method, besides two that share clients, and a text.
METHODS = {"celm": ["celm"], "fedol": ["fedol", "fedet"], "who_to_trust": ["uwa"]}


def chosen() -> dict[str, dict]:
    """Return the specs, as plain data, by the runs' folders."""
    plan = Plan(Settings(papers=PAPERS, scale="smoke"), ROOT / "workflow/papers")
    cells = [(a.paper.paper, c.spec) for a in plan.artefacts for c in a.cells]
    found = {}
    for paper, methods in METHODS.items():
        for method in methods:
            found[method] = next(s for p, s in cells if p == paper and s.method.name == method)
    of_tally = [s for p, s in cells if p == "tally_train" and s.method.name == "tally_train"]
    found["images"] = next(s for s in of_tally if s.text is None and s.public.dataset is None)
    found["text"] = next(s for s in of_tally if s.text is not None)
    runs = {run: plan.spec_of_run(run) for a in plan.artefacts for run in plan.runs(a)}
    wanted = [spec.digest() for spec in found.values()]
    return {r: s.model_dump(mode="json") for r, s in runs.items() if s.digest() in wanted}


@pytest.fixture(scope="module")
def runs() -> dict[str, dict]:
    return chosen()


@pytest.fixture(scope="module")
def travelled(made, runs, tmp_path_factory) -> Path:
    """A folder with ``results``, trained from a bundle, and ``home``, to which they came back."""
    folder = tmp_path_factory.mktemp("travelled")
    for run, spec in runs.items():
        write_json(folder / f"asked/{run}.json", spec)
    data = ("--data", str(made / "data/prepared"), "--results", str(folder / "results"))
    calls = [
        ("bundle", str(folder / "asked"), *data, "--out", str(folder / "sent")),
        ("unpack", *map(str, sent(folder)), "--out", str(folder / "there")),
        ("train_many", str(folder / "there/specs"), "--data", str(folder / "there/data"),
         "--partitions", str(folder / "there/partitions"), "--results", str(folder / "results"),
         "--archive", str(folder / "back.tar.gz"), "--device", "cpu", "--quiet", "--jobs", "2"),
        ("unpack", str(folder / "back.tar.gz"), "--runs", str(folder / "home/runs")),
    ]  # fmt: skip
    for name, *arguments in calls:
        done = script(name, *arguments)
        assert done.returncode == 0, done.stderr
    return folder


def sent(folder: Path) -> list[Path]:
    return [folder / f"sent/{name}.tar.gz" for name in ("specs", "digits", "sklearn_docs")]


def test_a_run_of_each_paper_has_the_dags_files_and_bits(made, travelled, runs):
    assert len(runs) == 6
    for run in runs:
        wanted = content(made / "results/runs" / run)
        assert content(travelled / "results/runs" / run) == wanted
        wanted["exports"] = {k: v for k, v in wanted["exports"].items() if k not in NOT_KEPT}
        wanted["files"] = [name for name in wanted["files"] if name[0] != "." and
                           name.removeprefix("exports/") not in NOT_KEPT]  # fmt: skip
        assert content(travelled / "home/runs" / run) == wanted


def test_methods_share_clients_as_in_the_dag(made, travelled):
    (weights,) = travelled.glob("results/clients/*/*/*/*/weights.safetensors")
    others = made / weights.relative_to(travelled)
    (ours, note), (theirs, _) = (read_tensors(path, "file") for path in (weights, others))
    assert note["digest"] == tensor_digest(ours) == tensor_digest(theirs)
    kinds = ("clients", "targets")
    arrays = [path for kind in kinds for path in travelled.glob(f"results/{kind}/**/*.npz")]
    assert len(arrays) == 3  # of one set of clients, and targets for each of two methods
    for path in arrays:
        assert (made / path.relative_to(travelled)).read_bytes() == path.read_bytes(), path
