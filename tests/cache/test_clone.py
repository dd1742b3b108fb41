"""A plain clone and its cache give what is committed, without training or network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.calls import ROOT, dvc

# Both use one clone with all published runs.
pytestmark = pytest.mark.slow
TABLE = Path("results/tables/celm/paper/table5.csv")
SETTINGS = ("papers=[celm]", "scale=paper", "datasets=[fashion_mnist]", "frozen=true")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A clone of the last commit, with all published runs."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git, or no checkout to clone")
    folder = tmp_path_factory.mktemp("git") / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    pulled = dvc("pull", "--quiet", "results/runs.dvc", cwd=folder)
    assert pulled.returncode == 0, pulled.stderr
    return folder


def call(clone: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=clone,
        env=os.environ | {"PYTHONPATH": str(clone)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_clone_draws_the_committed_table_from_the_cache(clone):
    committed = (clone / TABLE).read_bytes()
    (clone / TABLE).unlink()
    done = call(clone, "-m", "snakemake", "--cores", "1", "--config", *SETTINGS, "--", TABLE)
    assert done.returncode == 0, done.stdout
    assert ": table celm paper table5\n" in done.stdout
    assert "Run 1 of " not in done.stdout
    assert (clone / TABLE).read_bytes() == committed


def test_all_that_is_committed_is_what_the_cache_gives(clone):
    done = call(clone, "-m", "fedlogit", "redraw", "--check")
    assert done.returncode == 0, done.stdout
