"""Options for the folders that several commands read or write."""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._values import given_path

__all__ = ["data_folder", "papers_folder", "results_folder", "runs_folder"]


def data_folder(parser: argparse.ArgumentParser) -> None:
    """Declare where prepared data sets lie."""
    parser.add_argument(
        "--data",
        type=given_path,
        default=Path("data/prepared"),
        help="folder of prepared data sets",
    )


def papers_folder(parser: argparse.ArgumentParser, option: str = "--papers") -> None:
    """Declare where the papers' files lie."""
    parser.add_argument(
        option, type=given_path, default=Path("workflow/papers"), help="folder of the papers' files"
    )


def results_folder(parser: argparse.ArgumentParser) -> None:
    """Declare where results lie."""
    parser.add_argument(
        "--results", type=given_path, default=Path("results"), help="folder of results"
    )


def runs_folder(parser: argparse.ArgumentParser) -> None:
    """Declare where runs lie."""
    parser.add_argument(
        "--runs", type=given_path, default=Path("results/runs"), help="folder of runs"
    )
