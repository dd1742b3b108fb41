"""What is known about published numbers without a run, and about those that did not come out.

``workflow/reference/notes.yaml`` says it in words, for the record of all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import BeforeValidator

from fedlogit.frozen_config import FrozenConfig
from fedlogit.yaml_files import load_yaml

__all__ = ["Deviation", "NotRun", "Notes", "NumberSelection", "any_of", "read_notes"]


def _as_tuple(value: object) -> object:
    """Return one value, or a list of them, as a tuple."""
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


_Values = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


class NumberSelection(FrozenConfig):
    """Which published numbers: of a paper, those with these values; an empty key takes all."""

    paper: str
    table: _Values = ()
    dataset: _Values = ()
    partition: _Values = ()
    method: _Values = ()
    metric: _Values = ()

    def match(self, numbers: pd.DataFrame) -> pd.Series:
        """Return, for each published number, whether it is one of these."""
        found = numbers["paper"] == self.paper
        for key in ("table", "dataset", "partition", "method", "metric"):
            if wanted := getattr(self, key):
                found &= numbers[key].isin(wanted)
        return found


def any_of(several: Sequence[NumberSelection], numbers: pd.DataFrame) -> pd.Series:
    """Return, for each published number, whether it is one of these."""
    found = pd.Series(False, index=numbers.index)
    for rows in several:
        found |= rows.match(numbers)
    return found


class NotRun(FrozenConfig):
    """Why some numbers have no run of ours at the paper's scale.

    Attributes:
        rows: Which numbers.
        why: The end of a sentence that begins with "Not run: ".
    """

    rows: NumberSelection
    why: str


class Deviation(FrozenConfig):
    """What was tried to explain numbers that did not come out as published.

    Attributes:
        title: What deviates.
        rows: Which numbers.
        text: A paragraph of Markdown; links are relative to ``docs``.
    """

    title: str
    rows: tuple[NumberSelection, ...]
    text: str

    def match(self, numbers: pd.DataFrame) -> pd.Series:
        """Return, for each published number, whether this is about it."""
        return any_of(self.rows, numbers)


class Notes(FrozenConfig):
    """All that is known.

    Attributes:
        not_run: Why numbers have no run.
        derived: Numbers that settings were derived from: no evidence where they are reproduced.
        deviations: What was tried where numbers did not come out.
    """

    not_run: tuple[NotRun, ...] = ()
    derived: tuple[NumberSelection, ...] = ()
    deviations: tuple[Deviation, ...] = ()

    def settings_from(self, numbers: pd.DataFrame) -> pd.Series:
        """Return, for each published number, whether a setting was derived from it."""
        return any_of(self.derived, numbers)

    def why(self, numbers: pd.DataFrame) -> Sequence[str]:
        """Return, for each published number, what is known of why it was not run, or ""."""
        found = pd.Series("", index=numbers.index, dtype=object)
        for note in self.not_run:
            found[note.rows.match(numbers)] = note.why
        return found.tolist()


def read_notes(folder: Path) -> Notes:
    """Read ``<folder>/notes.yaml``; without that file nothing is known.

    Raises:
        FedlogitError: for an unknown key or a wrong type, in one line.
    """
    path = folder / "notes.yaml"
    return Notes.read(load_yaml(path), path.name) if path.exists() else Notes()
