"""`dvc metrics` and `dvc plots` work on the pipeline's own files; papers' pages are up to date."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from support.calls import ROOT, dvc, script

pytestmark = pytest.mark.slow  # DVC takes seconds to start


def test_metrics_and_plots_are_shown(tmp_path):
    root = tmp_path / "root"  # without the list of all runs, which DVC would read for seconds
    shutil.copytree(ROOT / "results/summary", root / "results/summary")
    shutil.copy(ROOT / "dvc.yaml", root)
    command = (sys.executable, "-m", "dvc", "init", "--quiet", "--no-scm")
    subprocess.run(command, cwd=root, check=True)
    done = dvc("metrics", "show", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)[""]["data"]
    assert files
    for shown in files.values():
        assert shown["data"]["training"]["runs"] > 0
        assert shown["data"]["verdicts"].keys() >= {"reproduced", "not run"}
        assert "ours" not in shown["data"], "dvc metrics show would get a column per number"
    done = dvc("plots", "show", "--out", str(tmp_path / "plots"), cwd=root)
    assert done.returncode == 0, done.stderr
    assert "ours against the paper" in (tmp_path / "plots" / "index.html").read_text()


def test_numbers_are_compared_a_line_each(tmp_path):
    """As docs/cache.md says: between commits, by naming the files."""
    root = tmp_path / "root"
    path = root / "results/summary/p/paper/numbers.json"
    path.parent.mkdir(parents=True)
    (root / "dvc.yaml").touch()
    for command in (("git", "init", "--quiet"), (sys.executable, "-m", "dvc", "init", "--quiet")):
        subprocess.run(command, cwd=root, check=True)
    for number in (0.5, 0.625):
        path.write_text(json.dumps({"table1": {"mnist": {"iid": {"uwa": {"accuracy": number}}}}}))
        author = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "add", "."], cwd=root, check=True)
        subprocess.run(["git", *author, "commit", "-qm", "numbers"], cwd=root, check=True)
    done = dvc("metrics", "diff", "HEAD~1", "--targets", str(path.relative_to(root)), cwd=root)
    assert done.returncode == 0, done.stderr
    assert "table1.mnist.iid.uwa.accuracy" in done.stdout
    assert "0.125" in done.stdout


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
