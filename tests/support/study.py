"""A study of two small runs and the commands that make everything of it, for the tests of faults.

All paths are relative, so that a copy of its folder, as the current one, gives the same files.
"""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import yaml

from fedlogit.config import Settings
from fedlogit.papers import Plan
from fedlogit.papers.plan_writer import PlanWriter
from support.cached_runs import shown_at_quick
from support.calls import script
from support.many import specs_of, train_many

REFERENCE = Path("workflow/reference/pilot.csv")
SUMMARY = "results/summary/pilot/quick"
NUMBERS = "table,dataset,partition,method,metric,mean,std\nt,digits,k,average,accuracy,0.5,\n"
# In the order in which each finds what it reads.
DRAWS = {
    "redraw": "redraw",
    "compare": f"compare --artefacts t.json --reference {REFERENCE} --out {SUMMARY}",
    "record": "record",
    "summary": "summary --scale quick pilot",
    "page": "page --artefacts t.json f.json --out results/report/pilot/quick.html",
    "report": "report",
}


def make_study(folder: Path) -> None:
    """Write a paper with a table and a figure, train its two runs and carry out `DRAWS`."""
    with chdir(folder):
        REFERENCE.parent.mkdir(parents=True)
        REFERENCE.write_text(NUMBERS)
        Path("workflow/papers").mkdir()
        shown_at_quick(0, 1)
        file = Path("workflow/papers/pilot.yaml")
        figure = {"title": "F", "from": "t", "plot": "accuracy_by_round"}
        paper = yaml.safe_load(file.read_text()) | {"figures": {"f": figure}}
        file.write_text(yaml.safe_dump(paper))
        specs_of(folder / "specs", {"seed": 0}, {"seed": 1})
        assert train_many(folder).returncode == 0
        _write_plans()
        for call in DRAWS.values():
            done = script(*call.split())
            assert done.returncode == 0, done.stderr


def _write_plans() -> None:
    settings = {"papers": ["pilot"], "scale": "quick", "frozen": True, "partial": True}
    plan = Plan(Settings.load(settings, "options"), Path("workflow/papers"), Path("results"))
    writer = PlanWriter(plan)
    for artefact in plan.artefacts:
        Path(writer.artefact_file(artefact)).rename(f"{artefact.id}.json")


def contents(folder: Path) -> dict[Path, bytes]:
    """Return what all files of a folder hold, but of those that only make a next call faster."""
    files = (path for path in folder.rglob("*") if path.is_file() and "plan" not in path.parts)
    return {path.relative_to(folder): path.read_bytes() for path in files}
