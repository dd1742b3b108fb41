"""Fixtures: Snakemake, and a folder in which it made everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.workflow import Snakemake


@pytest.fixture(scope="session")
def snakemake(python) -> Snakemake:
    return Snakemake(python)


@pytest.fixture(scope="session")
def made(snakemake, tmp_path_factory) -> Path:
    """A folder where everything was made at scale smoke."""
    folder = tmp_path_factory.mktemp("smoke")
    done = snakemake(folder)
    assert done.returncode == 0, done.stdout
    return folder
