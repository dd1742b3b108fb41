"""The workflow as a module of another one, as Snakemake documents it and snakedeploy writes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.calls import ROOT

from fedlogit.papers import expand, load_paper, run_dir

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
def hub(tmp_path) -> dict[str, str]:
    """Return an environment in which github.com has this repository's last commit."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git, or no checkout to clone")
    clone = tmp_path / "hub/owner/fedlogit"
    subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, clone], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, check=True)
    (clone / "refs/heads/main").write_bytes(head.stdout)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/hub/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.fixture
def other(tmp_path) -> Path:
    """Another repository, with the configuration and profiles that snakedeploy copies."""
    for name in ("config", "profiles"):
        shutil.copytree(ROOT / name, tmp_path / "other" / name)
    settings = "{papers: [fedol], scale: smoke, device: cpu}\n"
    (tmp_path / "other/config/config.yaml").write_text(settings)
    (tmp_path / "other/workflow").mkdir()
    return tmp_path / "other"


def snakemake(folder: Path, *options: str, python: str | Path = sys.executable, **more: str) -> str:
    """Call it as somebody who knows nothing of this checkout; return what it says."""
    done = call(folder, *options, python=python, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def call(
    folder: Path, *options: str, python: str | Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Call it, and leave it to the caller whether that may fail."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(python), "-m", "snakemake", "--cores", "2", *options], cwd=folder, env=kept | more,
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def test_what_snakedeploy_writes_makes_a_table_once(other, hub):
    table = "results/tables/fedol/smoke/lost_classes.csv"
    (other / "workflow/Snakefile").write_text(DEPLOYED)
    snakemake(other, table, **hub)
    assert (other / table).read_text().count("\n") > 1
    assert len(list(other.glob("results/runs/**/result.json"))) == 1
    assert len(list(other.glob(".snakemake/modules/*/scripts/train.py"))) == 1
    assert "Nothing to be done" in snakemake(other, table, **hub)


def test_rules_under_other_names_feed_rules_of_ones_own(other, python):
    (other / "workflow/Snakefile").write_text(BY_HAND)
    assert "rule fedlogit_train:\n" in snakemake(other, "-n", python=python)  # not shortened
    snakemake(other, python=python)
    assert (other / "mine.csv").read_text().startswith("dataset")
    assert "Nothing to be done" in snakemake(other, python=python)


@pytest.mark.parametrize("how", [("-f",), ("-R", "{}"), ("-R", "fedlogit_train")], ids=" ".join)
def test_a_run_forced_in_a_module_asks_for_its_inputs(other, python, how):
    (other / "workflow/Snakefile").write_text(BY_HAND)
    first = expand(load_paper("fedol", ROOT / "workflow/papers"), "smoke")[0].cells[0]
    file = f"results/runs/{run_dir(first.spec)}/result.json"
    (other / file).parent.mkdir(parents=True)
    (other / file).write_text("{}")
    assert "Nothing to be done" in snakemake(other, "-n", "--", file, python=python)
    asked = [part.format(file) for part in how]
    assert "rule fedlogit_partition:" in snakemake(other, "-n", *asked, "--", file, python=python)


def test_a_mistake_does_not_name_a_file_that_has_no_part_in_it(other, python):
    (other / "workflow/Snakefile").write_text(BY_HAND)
    (other / "config/config.yaml").write_text("{papers: [fedol], workers: many}\n")
    done = call(other, "-n", python=python)
    assert done.returncode != 0
    assert "\nconfig of the module: workers = 'many': " in done.stdout + done.stderr
