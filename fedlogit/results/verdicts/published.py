"""A paper's published numbers as a frame, read from ``workflow/reference/<paper>.csv``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from fedlogit.papers.published import published_rows

__all__ = ["nothing_published", "published", "read_reference", "unambiguous"]

_COLUMNS = ["table", "dataset", "partition", "method", "metric", "mean", "std", "n", "where"]


def read_reference(path: Path) -> pd.DataFrame:
    """Read published numbers: ``table,dataset,partition,method,metric,mean,std`` and maybe ``n``.

    An empty partition means that the number does not depend on it. Shares are fractions. `std` is
    what the paper prints after ±, `n` the number of runs behind it where the paper says so. A
    column `where` may name further axes: ``public.size=5000; public.anchors=1000``.

    Raises:
        DataError: if the file is missing, lacks a column, has a row twice, or has an empty metric,
            a mean, std or n that cannot be, or a share below 0 or above 1.
    """
    rows = [row for _, row in published_rows(path)]
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    numbers = ["mean", "std", "n"]
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in numbers})


def published(folder: Path, paper: str) -> pd.DataFrame:
    """Return the numbers in ``<folder>/<paper>.csv``; of a study without that file, no rows.

    Raises:
        DataError: if there is a file and it is wrong; see `read_reference`.
    """
    path = folder / f"{paper}.csv"
    return read_reference(path) if path.exists() else nothing_published()


def unambiguous(numbers: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """Return one number per place on these axes, and none where tables print different ones."""
    different = numbers.groupby(axes, dropna=False)["mean"].transform("nunique") > 1
    return numbers[~different].drop_duplicates(axes)


def nothing_published() -> pd.DataFrame:
    """Return what `read_reference` returns, without a row: a study has no published numbers."""
    return pd.DataFrame(columns=_COLUMNS)
