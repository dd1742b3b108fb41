"""Fixtures: a project of its own with finished runs, as a user's folder would be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fedlogit.papers import run_dir
from support.calls import ROOT, RUNS, script
from support.small import SMALL, small_spec


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """An empty folder with the repository's settings of DVC, which is also the current one."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / ".dvc", folder / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    shutil.copy(ROOT / ".dvcignore", folder)
    (folder / "dvc-remote").mkdir()
    config = folder / ".dvc" / "config"
    config.write_text(config.read_text().replace("[core]", "[core]\n    no_scm = true"))
    shutil.copytree(ROOT / "workflow" / "papers", folder / "workflow" / "papers")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def finished(train) -> Callable[..., Path]:
    """Return a function that trains a run of a second where its hash says; returns its folder."""

    def make(**changes) -> Path:
        folder = RUNS / run_dir(small_spec(**changes))
        return train(folder, **changes)

    return make


@pytest.fixture
def published(project, finished: Callable[..., Path], tmp_path_factory) -> tuple[Path, Path]:
    """Two published runs of one method; made once, and copied for each test."""
    made = tmp_path_factory.getbasetemp() / "published"
    folders = [RUNS / run_dir(small_spec(seed=seed)) for seed in (0, 1)]
    if not made.exists():
        for seed in (0, 1):
            finished(seed=seed)
        (folders[0] / "checkpoint.safetensors").write_bytes(b"half")
        done = script("publish")
        assert done.returncode == 0, done.stderr
        shutil.copytree(project, made)
    shutil.copytree(made, project, dirs_exist_ok=True)
    return folders[0], folders[1]


def shown_at_quick(*seeds: int) -> None:
    """Write a paper whose only table shows the small runs with these seeds, at scale `quick`."""
    names = {"datasets": {"digits": {}}, "partitions": {"k": SMALL["partition"]}}
    axes = {"dataset": ["digits"], "partition": ["k"], "method": ["average"]}
    table = {"title": "T", "grid": axes, "rows": ["method"], "columns": ["partition"]}
    scales = {"paper": {"seeds": [99]}, "quick": {"seeds": [*seeds]}}
    given = {"dataset", "partition", "method", "seed"}
    paper = {
        "paper": "pilot",
        "title": "A pilot study",
        "seeds": [99],
        "defaults": {key: value for key, value in SMALL.items() if key not in given},
        "methods": {"average": "average"},
        "labels": {"digits": "Digits", "k": "Three classes", "average": "Average"},
        "tables": {"t": table},
        "scales": {name: {"summary": "A test's."} | scale for name, scale in scales.items()},
    }
    Path("workflow/papers/pilot.yaml").write_text(yaml.safe_dump(paper | names))
