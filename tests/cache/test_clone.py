"""A plain clone, the cache that comes with it, and a table out of both: no training, no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calls import ROOT, dvc

TABLE = Path("results/tables/celm/paper/table5.csv")
SETTINGS = ("papers=[celm]", "scale=paper", "datasets=[fashion_mnist]", "frozen=true")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git checkout to clone")
@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_clone_draws_the_committed_table_from_the_cache(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    committed = (clone / TABLE).read_bytes()
    (clone / TABLE).unlink()
    pulled = dvc("pull", "--quiet", "results/runs.dvc", cwd=clone)
    assert pulled.returncode == 0, pulled.stderr
    drawn = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--config", *SETTINGS, "--", TABLE],
        cwd=clone,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert drawn.returncode == 0, drawn.stdout
    assert "rule table" in drawn.stdout
    assert "rule train" not in drawn.stdout
    assert (clone / TABLE).read_bytes() == committed
