"""What is drawn below a folder of results, and how two drawings of it compare, as data.

What is committed must be what the cache of runs gives with the code beside it: numbers may differ
by rounding, texts not at all, pictures by what nobody sees.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.testing.compare import compare_images
from matplotlib.testing.exceptions import ImageComparisonFailure

from fedlogit.results.training_costs import FILE as TRAINING

__all__ = ["differences", "orphans", "strangers"]

_KINDS = ("tables", "figures", "summary")
_ROUNDING = 1e-9  # relative; sums of float64 in another order
_PIXELS = 2.0  # root mean square over pixels of 0 to 255: another font is above 10


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
    """Yield all that is drawn below a folder; a hidden file is one that is being written."""
    for kind in _KINDS:
        yield from (root / kind).rglob("[!.]*.*")
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
