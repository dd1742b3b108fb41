"""Values of options: paths and numbers, checked as they are read."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from fedlogit.frozen_config import MAX_PARALLEL

__all__ = ["count", "given_file", "given_path", "positive", "seconds"]


def given_path(text: str) -> Path:
    """Return an option's path; an empty one, as of a variable that is not set, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give a path")
    return Path(text)


def given_file(text: str) -> Path:
    """Return an option's file to write; what can only be a folder, such as ``.``, is refused."""
    path = given_path(text)
    if path.name in ("", ".."):
        raise argparse.ArgumentTypeError(f"{text}: is a folder; give the name of a file")
    return path


def count(text: str) -> int:
    """Return an option's number, such as of threads, runs or seeds."""
    number = int(text)
    if not 1 <= number <= MAX_PARALLEL:
        raise argparse.ArgumentTypeError(f"{text}: give a number from 1 to {MAX_PARALLEL}")
    return number


def seconds(text: str) -> float:
    """Return an option's finite time of 0 or more."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: give 0 or more")
    return number


def positive(text: str) -> float:
    """Return an option's finite number above 0."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: give more than 0")
    return number
