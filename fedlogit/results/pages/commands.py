"""A row per table and figure of a paper's page: its command, and what its runs took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.papers.schema import TEST_SCALE, Paper
from fedlogit.results.formatting import markdown
from fedlogit.results.training_costs import FILE, read_training
from fedlogit.runs.paths import ResultsLayout

__all__ = ["command", "commands", "link", "memory"]

_SUFFIXES = {"table": ("md", "csv"), "figure": ("png", "pdf")}
"""Of each kind, what a reader looks at and what is asked of Snakemake."""


def commands(paper: Paper, results: Path) -> str:
    """Return a row for each table and figure at each scale that has it, but ``smoke``.

    Args:
        paper: Its file.
        results: The folder with ``tables``, ``figures`` and ``training.csv``.

    Raises:
        DataError: if ``training.csv`` is damaged.
    """
    took = _training_rows(paper, results / FILE)
    rows = [_row(paper, place, results, took.get(place[1:])) for place in _places(paper)]
    return markdown(pd.DataFrame(rows), right=("In the cache", "Hours", "Memory"))


def command(paper: str, scale: str, target: Path, *, drawn: bool = True) -> str:
    """Return the command that makes a table or figure.

    Args:
        paper: The paper's name.
        scale: The scale's name.
        target: A file of the table or figure, from the repository's root.
        drawn: Whether finished runs cover it; the command then trains nothing.
    """
    config = f"papers={paper} scale={scale}"
    config = f"frozen=true partial=true {config}" if drawn else config
    return f"snakemake --cores all --config {config} -- {target.as_posix()}"


def memory(paper: Paper, results: Path, scale: str) -> str:
    """Return the largest peak memory of a scale's finished runs; "–" where there are none.

    Raises:
        DataError: if ``training.csv`` is damaged.
    """
    rows = [row for (of, _), row in _training_rows(paper, results / FILE).items() if of == scale]
    peaks = [max((row[key] for row in rows), default=0) for key in ("cpu_mb", "gpu_mb")]
    return _memory(*peaks)


def link(path: Path) -> str:
    """Return a link from a page in ``docs/papers``; relative paths are the repository's."""
    return path.as_posix() if path.is_absolute() else f"../../{path.as_posix()}"


def _places(paper: Paper) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, scale and name of each table, then of each figure."""
    for kind, entries in (("table", paper.tables), ("figure", paper.figures)):
        for key in entries:
            for name, scale in paper.scales.items():
                if name != TEST_SCALE and (scale.include is None or key in scale.include):
                    yield kind, name, key


def _training_rows(paper: Paper, path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return by scale and name what training took; {} where nobody has drawn yet."""
    if not path.exists():
        return {}
    rows = read_training(path)
    of_paper = rows[rows["paper"] == paper.paper].to_dict("records")
    return {(row["scale"], row["id"]): {str(k): v for k, v in row.items()} for row in of_paper}


def _row(
    paper: Paper, place: tuple[str, str, str], results: Path, took: dict[str, Any] | None
) -> dict[str, str]:
    kind, scale, key = place
    seen, asked = _SUFFIXES[kind]
    shown = ResultsLayout(results).artefact(kind, paper.paper, scale, key, seen)
    made = shown.exists()
    target = ResultsLayout(Path("results")).artefact(kind, paper.paper, scale, key, asked)
    return {
        "Shown": paper.artefacts[key].title,
        "Scale": f"[{scale}]({link(shown)})" if made else scale,
        **_cost(took),
        "Command": f"`{command(paper.paper, scale, target, drawn=made)}`",
    }


def _cost(took: dict[str, Any] | None) -> dict[str, str]:
    """Return runs, hours and memory as they are shown."""
    if took is None:
        return dict.fromkeys(("In the cache", "Hours", "Memory"), "–")
    gpu = took["gpu_mb"] or took["gpu_hours"]
    hours = f"{took['cpu_hours']:.2f}" + (f" + {took['gpu_hours']:.2f} GPU" if gpu else "")
    none = not took["finished"]
    return {
        "In the cache": f"{took['finished']} of {took['runs']}",
        "Hours": "–" if none else hours,
        "Memory": _memory(took["cpu_mb"], took["gpu_mb"]),
    }


def _memory(cpu: int, gpu: int) -> str:
    """Return peaks in MB as they are shown; 0 is none."""
    parts = [f"{cpu / 1000:.1f} GB"] if cpu else []
    parts += [f"GPU {gpu / 1000:.1f} GB"] if gpu else []
    return ", ".join(parts) or "–"
