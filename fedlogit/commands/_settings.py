"""The settings of commands that speak of what finished runs cover, of any papers at any scale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedlogit.config import Settings
from fedlogit.papers import list_papers

__all__ = ["of_finished_runs"]


def of_finished_runs(folder: Path, papers: Sequence[str] = ()) -> Settings:
    """Return settings that draw from the runs there are.

    Args:
        folder: The papers' files.
        papers: Which of them; none given: all.

    Raises:
        FedlogitError: if there is no paper, or a name that can be none's.
    """
    where = "options" if papers else f"{folder}/*.yaml"
    chosen = list(papers) or list_papers(folder)
    return Settings.load(
        {"papers": chosen, "scale": "paper", "frozen": True, "partial": True}, where
    )
