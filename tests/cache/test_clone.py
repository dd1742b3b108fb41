"""A plain clone and its cache give what is committed, without training or network.

That they give all of it is seen by `make redraw CHECK=1`, which CI calls beside the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.calls import ROOT, dvc

from fedlogit.commands._cache import read_listing, write_listing

pytestmark = pytest.mark.slow
TABLE = Path("results/tables/celm/paper/table5.csv")
RUNS = ("fashion_mnist/dir_client-alpha100.0/", "cifar10/dir_client-alpha100.0/")
SETTINGS = ("papers=[celm]", "scale=paper", "frozen=true", "partial=true")


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone of the last commit, with the published runs of the table; its list has no others.

    DVC reads a list of thousands for half a minute, which `make pull` shows that it can.
    """
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git, or no checkout to clone")
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    listing = folder / "results/runs.dvc"
    published = read_listing(listing)
    write_listing(listing, {run: out for run, out in published.items() if run.startswith(RUNS)})
    pulled = dvc("pull", "--quiet", str(listing), cwd=folder)
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
