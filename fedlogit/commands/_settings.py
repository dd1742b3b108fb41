"""The settings of commands that speak of what finished runs cover, of any papers at any scale."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedlogit.commands._folders import papers_folder, results_folder
from fedlogit.commands._values import given_path
from fedlogit.config import Settings
from fedlogit.errors import DataError
from fedlogit.papers import papers_in

__all__ = ["folder_options", "of_finished_runs", "refuse_missing", "results_options"]


def results_options(parser: argparse.ArgumentParser) -> None:
    """Declare where results and the papers' files lie."""
    results_folder(parser)
    papers_folder(parser)


def folder_options(parser: argparse.ArgumentParser) -> None:
    """Declare where results, the papers' files and the published numbers lie."""
    results_options(parser)
    parser.add_argument(
        "--references",
        type=given_path,
        default=Path("workflow/reference"),
        help="folder of published numbers, one CSV per paper",
    )


def refuse_missing(results: Path) -> None:
    """Refuse a folder of results that is not there, and would be made with nothing in it.

    Raises:
        DataError: naming the folder.
    """
    if not results.is_dir():
        raise DataError(f"--results {results} is no folder; give the one that has runs/")


def of_finished_runs(folder: Path, papers: Sequence[str] = (), **others: Any) -> Settings:
    """Return settings that draw from the runs there are.

    Args:
        folder: The papers' files.
        papers: Which of them; none given: all.
        others: Other settings.

    Raises:
        FedlogitError: if there is no paper, or a name that can be none's, or for another setting.
    """
    Settings.load(others, "options")  # whose errors name no folder of papers
    chosen = list(papers) or papers_in(folder)
    return Settings.load(
        {"papers": chosen, "scale": "paper", "frozen": True, "partial": True} | others,
        "options" if papers else f"{folder}/*.yaml",
    )
