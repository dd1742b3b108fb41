"""Draw again all that finished runs cover, and compare it with what is there, as data.

What is committed must be what the cache of runs gives with the code beside it: numbers may differ
by rounding, texts not at all, pictures by what nobody sees.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import operator
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.testing.compare import compare_images
from matplotlib.testing.exceptions import ImageComparisonFailure

from fedlogit.papers import Plan
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.published import check_published_files
from fedlogit.results.figures import write_figure
from fedlogit.results.record.files import write_record
from fedlogit.results.summary import write_summary
from fedlogit.results.tables import write_table
from fedlogit.results.training_costs import FILE as TRAINING
from fedlogit.results.training_costs import write_training
from fedlogit.results.verdicts.published import published
from fedlogit.runs.paths import ResultsLayout

__all__ = ["differences", "orphans", "redraw", "strangers"]

_KINDS = ("tables", "figures", "summary")
_ROUNDING = 1e-9  # relative; sums of float64 in another order
_PIXELS = 2.0  # root mean square over pixels of 0 to 255: another font is above 10


def redraw(plan: Plan, references: Path, out: Path, jobs: int = 1) -> list[Path]:
    """Write the tables, figures and summaries that finished runs cover, at every scale.

    Also the record, and what training took.

    Args:
        plan: Its settings draw from the runs there are (`partial`); it knows where they lie.
        references: The folder of published numbers, ``<paper>.csv``; a study may have none.
        out: The folder for ``tables``, ``figures``, ``summary``, the record and ``training.csv``.
        jobs: How many processes draw at once.

    Returns:
        What was written.

    Raises:
        DataError: if a run is damaged, or published numbers are wrong.
    """
    check_published_files(plan.papers.values(), references)
    runs = plan.layout.runs
    compared = [
        (paper.paper, scale)
        for paper in plan.papers.values()
        for scale in paper.scales
        if any(a.kind == "table" for a in plan.artefacts_of(paper.paper, scale))
    ]
    drawings = [partial(_draw, a.as_artefact(runs), references, out) for a in plan.covered()]
    for paper, scale in compared:
        judged = [a.as_artefact(runs) for a in plan.judged(paper, scale)]
        drawings.append(partial(_summarise, judged, references, paper, scale, out))
    paths = [path for written in _all_of(drawings, jobs) for path in written]
    # Comparisons that are older may lie beside these, of runs that no longer are.
    return [*paths, *write_record(plan, references, out, compared), write_training(plan, out)]


def _all_of(drawings: Sequence[Callable[[], list[Path]]], jobs: int) -> list[list[Path]]:
    """Return what each drawing wrote, in their order, with `jobs` of them at once."""
    if jobs == 1:
        return [drawing() for drawing in drawings]
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, context, _depend_on_the_caller) as pool:
        return list(pool.map(operator.call, drawings))


def _depend_on_the_caller() -> None:
    """Let a process of the pool leave Ctrl-C to its caller, and end when that has been killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_caller, daemon=True).start()


def _end_with_the_caller() -> None:
    if caller := multiprocessing.parent_process():
        caller.join()
        os._exit(1)


def _draw(artefact: Artefact, references: Path, out: Path) -> list[Path]:
    path = ResultsLayout(out).artefact(
        artefact.kind, artefact.paper, artefact.scale, artefact.id, "md"
    )
    if artefact.kind == "table":
        return write_table(artefact, path.with_suffix(""))
    return write_figure(artefact, path, published(references, artefact.paper))


def _summarise(
    judged: Sequence[Artefact], references: Path, paper: str, scale: str, out: Path
) -> list[Path]:
    folder = ResultsLayout(out).summary(paper, scale)
    return write_summary(judged, published(references, paper), folder)


def differences(there: Path, fresh: Path) -> list[str]:
    """Return a line for each file of `there` that a fresh drawing does not give, or lacks.

    Args:
        there: The folder with ``tables``, ``figures``, ``summary`` and the record to check.
        fresh: The same, just drawn.
    """
    old, new = _compared_files(there), _compared_files(fresh)
    lines = [f"{there / name}: no finished run gives it" for name in sorted(old - new)]
    lines += [f"{there / name}: is missing, but runs cover it" for name in sorted(new - old)]
    for name in sorted(old & new):
        if not _files_agree(there / name, fresh / name):
            lines.append(f"{there / name}: the finished runs give something else")
    return lines


def orphans(results: Path, drawn: Iterable[Path], papers: Collection[str]) -> list[Path]:
    """Return the tables, figures, summaries and records in a folder that were not just drawn.

    Those of papers that are not among `papers` are none; where there are any, no record is, either.
    """
    kept, others = set(drawn), strangers(results, papers)

    def is_others(path: Path) -> bool:
        return bool(others) if path.parent == results else _paper_of(path, results) in others

    return sorted(
        path for path in _drawn_files(results) if path not in kept and not is_others(path)
    )


def strangers(results: Path, papers: Collection[str]) -> list[str]:
    """Return the papers that have tables, figures or summaries there and are not among `papers`."""
    found = {_paper_of(path, results) for path in _drawn_files(results)}
    return sorted(found.difference(papers, [""]))


def _paper_of(path: Path, results: Path) -> str:
    """Return the paper that a table, figure or summary is of; "" for what lies elsewhere."""
    parts = path.relative_to(results).parts
    return parts[1] if len(parts) > 2 else ""


def _compared_files(root: Path) -> set[Path]:
    """Return what is compared below a folder; a PDF shows what its PNG does."""
    return {path.relative_to(root) for path in _drawn_files(root) if path.suffix != ".pdf"}


def _drawn_files(root: Path) -> Iterator[Path]:
    """Yield all that is drawn below a folder."""
    for kind in _KINDS:
        yield from (root / kind).rglob("*.*")
    yield from root.glob("record.*")
    yield from root.glob(TRAINING)


def _files_agree(old: Path, new: Path) -> bool:
    """Return whether two files say the same; what cannot be read is the same as nothing."""
    try:
        return _contents_agree(old, new)
    except (OSError, ValueError, SyntaxError, ImageComparisonFailure):
        # A picture of another size is a ValueError, a broken one Pillow's SyntaxError.
        return False


def _contents_agree(old: Path, new: Path) -> bool:
    if old.suffix == ".png":
        return compare_images(str(old), str(new), tol=_PIXELS) is None
    if old.suffix == ".csv":
        values = [pd.read_csv(path, keep_default_na=False).to_dict("list") for path in (old, new)]
        return _data_agree(*values)
    if old.suffix == ".json":
        return _data_agree(*(json.loads(path.read_text(encoding="utf-8")) for path in (old, new)))
    return old.read_text(encoding="utf-8") == new.read_text(encoding="utf-8")


def _data_agree(a: Any, b: Any) -> bool:
    """Return whether plain data are equal but for rounding of floats."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and _data_agree(list(a.values()), list(b.values()))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_data_agree, a, b))
    if isinstance(a, float):
        return math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=1e-12) or (a != a and b != b)
    return bool(a == b)
