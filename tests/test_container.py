"""What can be known of envs/Dockerfile without building it: its files, its Python, its target."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECIPE = (ROOT / "envs/Dockerfile").read_text()


def test_the_containers_python_is_one_that_the_project_takes():
    (minor,) = re.findall(r"^FROM python:3\.(\d+)-slim$", RECIPE, re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert int(minor) >= int(project["requires-python"].removeprefix(">=3."))


def test_no_more_than_is_copied_is_sent_to_the_builder():
    """A clone with its environment has gigabytes."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    copied = re.findall(r"^COPY (\S+) ", RECIPE, re.M)
    assert rules == ["*", *(f"!{path}" for path in copied)]


@pytest.fixture
def copied(tmp_path):
    """A folder with what the recipe copies, and nothing else."""
    for file, folder in re.findall(r"^COPY (\S+) (\S+)$", RECIPE, re.M):
        (tmp_path / folder).mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / folder)
    return tmp_path


def test_what_the_recipe_copies_is_enough_to_install_the_lock(copied):
    (venv,) = re.findall(r"\bVENV=(\S+)", RECIPE)
    (target,) = re.findall(r"\bmake ([a-z]+)$", RECIPE, re.M)
    command = ["make", "-n", target, f"VENV={venv}"]
    done = subprocess.run(command, cwd=copied, capture_output=True, text=True, check=True)
    assert "--require-hashes" in done.stdout
    assert f"touch {venv}/.installed-" in done.stdout
    assert f"{venv}/bin:" in RECIPE  # first in the PATH
