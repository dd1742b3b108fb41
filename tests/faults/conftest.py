"""Fixtures: a study of which everything has been made; a project with published runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cached_runs import finished, project, published
from support.study import make_study

__all__ = ["finished", "project", "published", "study"]


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> Path:
    """The folder of a study; to be copied and not to be changed."""
    folder = tmp_path_factory.mktemp("study")
    make_study(folder)
    return folder
