"""The file of a paper's published numbers, checked before anything is trained.

`fedlogit.results.verdicts.published` reads it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedlogit.errors import DataError, FedlogitError, unknown
from fedlogit.files import read_text
from fedlogit.papers.grids import axes_of, values_of
from fedlogit.papers.metric_names import check_metric, is_share
from fedlogit.papers.option_checks import check_known
from fedlogit.papers.schema import Paper

__all__ = [
    "check_places",
    "check_published",
    "check_published_files",
    "place_of",
    "published_rows",
]

_AXES = ("dataset", "partition", "method")
_PLACE = ("table", *_AXES, "metric", "where")
_COLUMNS = ("table", *_AXES, "metric", "mean", "std")
_KNOWN_COLUMNS = (*_COLUMNS, "n", "where")
_Row = dict[str, str]


def place_of(number: Mapping[str, Any]) -> dict[str, str]:
    """Return where a published number stands on the axes that its row has a value of.

    Args:
        number: A row of the file; its column `where` is ``public.size=500; seed=0``, or empty.
    """
    place = {axis: number[axis] for axis in _AXES if number[axis]}
    return place | dict(_named_axes(number["where"]))


def check_published_files(papers: Iterable[Paper], folder: Path) -> None:
    """Check the files in a folder of each paper that has one.

    Raises:
        FedlogitError: as `check_published`.
    """
    for paper in papers:
        path = folder / f"{paper.paper}.csv"
        if path.exists():
            check_published(path, paper)


def check_published(path: Path, paper: Paper) -> None:
    """Check the numbers in a file, that the paper has their places, and what stands for them.

    Raises:
        DataError: naming the file, the line, and mostly the column.
        FedlogitError: if the paper's file has something stand for a number that is not there.
    """
    _check_stands_for(check_places(path, paper), paper)


def check_places(path: Path, paper: Paper) -> list[_Row]:
    """Check the numbers in a file, and that the paper has their places; return the rows.

    Raises:
        DataError: naming the file, the line, and mostly the column.
    """
    rows = list(published_rows(path))
    tables = {*paper.tables, *(claim.source for claim in paper.claims.values())}
    for line, row in rows:
        try:
            check_known(f"{path}, row {line}, column table", row["table"], tables, "table")
            _check_place(f"{path}, row {line}, column", row, paper)
        except FedlogitError as error:
            raise DataError(str(error)) from None
    return [row for _, row in rows]


def _check_place(where: str, row: _Row, paper: Paper) -> None:
    """Check that runs of a number's table can be where it stands on axes, or stand for it.

    Otherwise a misspelt number would be one that nobody ran.

    Raises:
        FedlogitError: with the axis, value or metric and the nearest that there is.
    """
    table = row["table"]
    there = {axis: {*map(str, values)} for axis, values in values_of(paper, table).items()}
    for _, key, stands_for in paper.stand_ins():
        for axis, values in stands_for.axes.items() if table == (stands_for.table or key) else ():
            there[axis] = {*there.get(axis, ()), *values}
    for axis in _AXES:
        if row[axis] and axis in there:
            check_known(f"{where} {axis}", row[axis], there[axis], axis)
    check_metric(f"{where} metric", row["metric"], paper.labels)
    for axis, value in _named_axes(row["where"]):
        check_known(f"{where} where", axis, {"seed", *axes_of(paper, table)}, "axis")
        if axis in there:
            check_known(f"{where} where, axis {axis}", value, there[axis], "value")
        if axis == "seed" and not (value.isascii() and value.isdecimal()):
            raise FedlogitError(
                f"{where} where, axis seed: {value!r} must be a whole number from 0"
            )


def _named_axes(where: str) -> list[tuple[str, str]]:
    """Return the axes and values that a column `where` names."""
    parts = (part.partition("=") for part in where.split(";") if part)
    return [(axis.strip(), value.strip()) for axis, _, value in parts]


def _check_stands_for(rows: list[_Row], paper: Paper) -> None:
    """Check that there are the numbers for which tables stand at some scale."""
    for scale, key, stands_for in paper.stand_ins():
        where = f"{paper.paper}.yaml: scales.{scale}.artefacts.{key}.stands_for"
        table = stands_for.table or key
        check_known(f"{where}.table", table, {row["table"] for row in rows}, "published table")
        places = [place_of(row) for row in rows if row["table"] == table]
        for axis, values in stands_for.axes.items():
            there = {place[axis] for place in places if axis in place}
            for value in values:
                check_known(f"{where}.axes.{axis}", value, there, "published value")


def published_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    """Yield each row after its line, once its numbers, its `where` and its place are found right.

    Raises:
        DataError: naming the file, the line, and mostly the column.
    """
    seen: dict[tuple[str, ...], int] = {}
    for line, row in _rows(path):
        where = f"{path}, row {line}"
        if not row["metric"]:
            raise DataError(f"{where}: metric is empty; name one")
        if not math.isfinite(_number(row["mean"])):
            raise DataError(f"{where}, column mean: {row['mean']!r} must be a number")
        if row["std"] and not 0 <= _number(row["std"]) < math.inf:
            raise DataError(
                f"{where}, column std: {row['std']!r} must be a number from 0, or empty"
            )
        n = _number(row["n"])
        if row["n"] and not (n >= 1 and n.is_integer()):
            raise DataError(
                f"{where}, column n: {row['n']!r} must be a whole number from 1, or empty"
            )
        _check_share(where, row)
        _check_form(where, row["where"])
        place = tuple(row[key] for key in _PLACE)
        if place in seen:
            raise DataError(
                f"{where} is of the same number as row {seen[place]}:"
                f" {', '.join(filter(None, place))}; give it once"
            )
        seen[place] = line
        yield line, row


def _check_share(where: str, row: _Row) -> None:
    """Check that a share's mean and std are fractions: papers print per cent.

    Raises:
        DataError: naming the row, the column and the number.
    """
    for column in ("mean", "std") if is_share(row["metric"]) else ():
        if row[column] and not 0 <= _number(row[column]) <= 1:
            raise DataError(
                f"{where}, column {column}: {row['metric']} = {row[column]} must be a fraction,"
                " from 0 to 1"
            )


def _check_form(row: str, where: str) -> None:
    """Check that a column `where` is empty, or axes with a value each, none twice.

    Raises:
        DataError: naming the row and what it has.
    """
    found = _named_axes(where)
    axes = {axis for axis, value in found if axis and value}
    if where and not len(axes) == len(found) == where.count(";") + 1:
        raise DataError(
            f"{row}, column where: {where!r} must be like public.size=500; seed=0, each axis once,"
            " or empty"
        )


def _number(text: str) -> float:
    """Return a number, or NaN for a text that is none.

    Python would read further digits and 1_000 as numbers, too; whoever reads the file does not.
    """
    if not text.isascii() or "_" in text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def _rows(path: Path) -> Iterator[tuple[int, _Row]]:
    """Yield each row after its line in the file, from 1; columns that it lacks are empty.

    Raises:
        DataError: if the file cannot be read, lacks a column, or has one that is unknown or there
            twice, or if a row has more cells than there are columns.
    """
    text = read_text(path).removeprefix("\ufeff")  # with which Excel begins a file
    lines = enumerate(text.splitlines(), 1)
    kept = [(line, text) for line, text in lines if text.strip() and not text.startswith("#")]
    reader = csv.DictReader(text for _, text in kept)
    columns = reader.fieldnames or ()
    lacking = [name for name in _COLUMNS if name not in columns]
    if lacking:
        raise DataError(
            f"{path}: column {lacking[0]!r} is missing (must have, separated by commas,"
            f" {', '.join(_COLUMNS)})"
        )
    for name in columns:
        if name not in _KNOWN_COLUMNS:
            raise DataError(f"{path}: {unknown('column', name, _KNOWN_COLUMNS)}")
        if list(columns).count(name) > 1:
            raise DataError(f"{path}: column {name!r} is given twice; give it once")
    for found in reader:
        line = kept[reader.line_num - 1][0]
        if None in found:
            raise DataError(
                f"{path}, row {line} has more cells than there are columns ({', '.join(columns)});"
                " put a cell that has a comma in quotes"
            )
        row: _Row = dict.fromkeys((*_PLACE, "mean", "std", "n"), "")
        yield line, row | {key: (value or "").strip() for key, value in found.items()}
