"""The workflow as a module of another repository's, as Snakemake's docs and snakedeploy write it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.calls import ROOT

pytestmark = pytest.mark.slow
DEPLOYED = """
configfile: "config/config.yaml"

# declare https://github.com/owner/fedlogit as a module
module fedlogit:
    snakefile:
        github("owner/fedlogit", path="workflow/Snakefile", branch="main")
    config:
        config

# use all rules from https://github.com/owner/fedlogit
use rule * from fedlogit
"""
BY_HAND = f"""
configfile: "config/config.yaml"

module fedlogit:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config

use rule * from fedlogit as fedlogit_*

rule mine:
    default_target: True
    input: "results/tables/fedol/smoke/lost_classes.csv"
    output: "mine.csv"
    shell: "cp {{input}} {{output}}"
"""


@pytest.fixture
def deploy(tmp_path, python):
    """Return a function that makes another repository, and one that calls Snakemake in it."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git, or no checkout to clone")
    folder = tmp_path / "other"
    branch = ["-c", "advice.detachedHead=false", "clone", "--quiet", "--bare", ROOT]
    subprocess.run(["git", *branch, tmp_path / "hub/owner/fedlogit"], check=True)
    subprocess.run(["git", "branch", "--quiet", "--force", "main", "HEAD"],
                   cwd=tmp_path / "hub/owner/fedlogit", check=False, capture_output=True)  # fmt: skip
    hub = {  # what is asked of github.com is asked of the clone
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/hub/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def write(snakefile: str) -> Path:
        for name in ("config", "profiles"):  # as snakedeploy copies them
            shutil.copytree(ROOT / name, folder / name)
        (folder / "workflow").mkdir()
        (folder / "workflow/Snakefile").write_text(snakefile)
        (folder / "config/config.yaml").write_text("{papers: [fedol], scale: smoke, device: cpu}\n")
        return folder

    def snakemake(*options: str) -> str:
        done = subprocess.run(
            [str(python), "-m", "snakemake", "--cores", "2", *options], cwd=folder,
            env=kept | hub, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return write, snakemake


def test_what_snakedeploy_writes_makes_a_table_once(deploy):
    write, snakemake = deploy
    folder, table = write(DEPLOYED), "results/tables/fedol/smoke/lost_classes.csv"
    snakemake(table)
    assert (folder / table).read_text().count("\n") > 1
    assert len(list(folder.glob("results/runs/**/result.json"))) == 1
    assert [p.name for p in folder.glob(".snakemake/modules/*/pyproject.toml")] == [
        "pyproject.toml"
    ]
    assert "Nothing to be done" in snakemake(table)


def test_rules_under_other_names_feed_rules_of_ones_own(deploy):
    write, snakemake = deploy
    folder = write(BY_HAND)
    assert "fedlogit_train" in snakemake("-n")
    snakemake()
    assert (folder / "mine.csv").read_text().startswith("dataset")
    assert "Nothing to be done" in snakemake()
