"""The files of a plan: each says what a job needs to know, and changes only if that does.

Each is named by its content, as a run is by its spec, so that planning with other settings, or only
for show, never changes what another call is making. They are written when somebody asks, and only
if they are not there, so that their time stamps say since when they hold. All that belong into one
folder are written together: Snakemake looks into a folder once and remembers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fedlogit.files import write_atomic

__all__ = ["PlanFiles", "digest"]

T = TypeVar("T")


class PlanFiles:
    """Writes files below a folder, such as ``results/plan``."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, which need not be there."""
        self._folder = folder
        self._written: set[tuple[str, str, int]] = set()

    def write(
        self, kind: str, path: str, known: Mapping[str, T], content: Callable[[T], Any]
    ) -> str:
        """Write the files of all that is known in the folder of `path`; return that of `path`.

        Args:
            kind: Folder of such files.
            path: Name of the file that is asked for, without ``.json``; a key of `known`.
            known: What files of the kind are about, by name.
            content: What a file says, as JSON can.
        """
        root, folder = self._folder / kind, path.rpartition("/")[0]
        if (kind, folder, len(known)) not in self._written:  # more is known with another scale
            for other, value in known.items():
                if other.rpartition("/")[0] == folder:
                    _write_changed(root / f"{other}.json", content(value))
            self._written.add((kind, folder, len(known)))
        return str(root / f"{path}.json")


def digest(data: Any) -> str:
    """Return a name for what a plan says, in the order in which it says it."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:12]


def _write_changed(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=1) + "\n"  # in the paper's order, in which it is printed
    if not path.exists() or path.read_text() != text:
        with write_atomic(path) as temporary:
            temporary.write_text(text)
