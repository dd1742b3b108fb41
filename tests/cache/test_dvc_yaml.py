"""`dvc metrics` and `dvc plots` work on the pipeline's own files; papers' pages are up to date."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from support.calls import ROOT, dvc, script

pytestmark = pytest.mark.slow  # DVC takes seconds to start


def test_metrics_and_plots_are_shown(tmp_path):
    done = dvc("metrics", "show", "--json", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)[""]["data"]
    assert files
    for shown in files.values():
        assert shown["data"]["training"]["runs"] > 0
        # DVC leaves out what is empty: a study has no published number, nor has a scale on other
        # data one beside its own.
        counted = {verdict for verdict, n in shown["data"]["verdicts"].items() if n}
        assert ("ours" in shown["data"]) == bool(counted - {"not run"})
    done = dvc("plots", "show", "--out", str(tmp_path / "plots"), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "ours against the paper" in (tmp_path / "plots" / "index.html").read_text()


def test_pages_of_papers_and_dvc_yaml_are_what_they_are_made_from(monkeypatch, tmp_path):
    """As committed: `make reproduce` writes results of this machine into the folder."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout: what was committed cannot be told from what was made")
    archive = tmp_path / "archive.zip"
    parts = ("docs", "dvc.yaml", "results", "workflow")
    subprocess.run(["git", "archive", "-o", archive, "HEAD", *parts], cwd=ROOT, check=True)
    committed = tmp_path / "committed"
    shutil.unpack_archive(archive, committed)
    monkeypatch.chdir(committed)
    assert script("papers", "--check").stderr == ""
    done = script("papers", "--check", "--dvc", str(tmp_path / "dvc.yaml"))
    assert done.returncode == 1
    assert "run make papers" in done.stderr
