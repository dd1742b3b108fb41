"""What a host of the repository reads: it names only what is there."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]


JOBS = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]


def command_of(job: str) -> str:
    (command,) = [step["run"] for step in JOBS[job]["steps"] if "run" in step]
    return command


def test_continuous_integration_runs_what_the_project_has():
    assert os.access(ROOT / command_of("ci"), os.X_OK)
    target = command_of("newest-python").removeprefix("make ")
    assert f"\n{target}: " in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("job", JOBS)
def test_continuous_integration_has_a_python_that_the_project_takes(job):
    steps = JOBS[job]["steps"]
    (version,) = [s["with"]["python-version"] for s in steps if "setup" in s.get("uses", "")]
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert [*map(int, version.split("."))] >= [*map(int, needed.removeprefix(">=").split("."))]


@pytest.mark.parametrize(
    "page",
    ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md"],
)
def test_links_of_pages_about_taking_part_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\((?!https:)([^)#]+)", text)
    assert links
    assert all(((ROOT / page).parent / link).exists() for link in links), links
