"""A table or figure as data: which finished runs it shows, along which axes, under which names.

`PlannedArtefact.as_artefact` makes it of a plan. A file carries it to the script that draws it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from numbers import Number
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fedlogit.errors import FedlogitError
from fedlogit.files import read_json
from fedlogit.frozen_config import explain
from fedlogit.papers.axis_values import label_of
from fedlogit.papers.options import KindOptions
from fedlogit.papers.schema import Claim, StandsFor

__all__ = [
    "REFERENCE",
    "Artefact",
    "Missing",
    "Refused",
    "RunRef",
    "read_artefact",
    "read_artefacts",
]

Kind = TypeVar("Kind", bound=KindOptions)

# Left out of a file where they are empty: a new key then changes no other file and no digest.
_OPTIONAL_KEYS = ("stands_for", "analysis", "left_out", "missing", "cannot")

REFERENCE = "fully_informed"
"""The method that figures draw as a line to reach (Who to Trust §4.3), not as a competitor."""


class RunRef(BaseModel):
    """A run that an artefact needs: where it lies, the hash it must have, its place on the axes."""

    model_config = ConfigDict(frozen=True)

    dir: Path
    digest: str
    axes: dict[str, Any]

    @property
    def cell(self) -> str:
        """Its place on all axes but the seed's, which runs of one cell share, as JSON."""
        return json.dumps({k: v for k, v in self.axes.items() if k != "seed"}, sort_keys=True)


class Missing(BaseModel):
    """A run that an artefact plans and is drawn without.

    Attributes:
        before: How many of its `runs` come before it in the grid.
        axes: Its place on the axes, and its seed.
    """

    model_config = ConfigDict(frozen=True)

    before: int
    axes: dict[str, Any]


class Refused(BaseModel):
    """A cell of a grid without a run, because the method does not support it.

    Attributes:
        before: How many of the artefact's cells come before it, also of those left out.
        axes: Where it stands on the axes, as tables have the values.
        why: What the method says, after its name.
    """

    model_config = ConfigDict(frozen=True)

    before: int
    axes: dict[str, Any]
    why: str


class Artefact(BaseModel):
    """What a table or figure is made of.

    Attributes:
        paper: The paper it belongs to, as named by the papers' files.
        paper_title: The paper's title.
        id: Its name within the paper, such as ``table1``.
        kind: Table or figure.
        scale: The named set of overrides that its runs were made with.
        reduced: Whether these make runs smaller than the paper's.
        labels: How values on the axes, and axes themselves, are printed.
        title: Its heading.
        caption: What it shows, in a sentence or two.
        rows: Axes down a table.
        columns: Axes across a table.
        metric: What is shown; see `fedlogit.results.metrics.value`.
        metrics: Several of them, in a table with an axis ``metric``.
        plot: The module of `fedlogit.results.figures` that draws a figure.
        options: What a table (``percent``, ``decimals``) or a plot lets one choose.
        stands_for: With which published numbers it is compared, if not with those of its settings.
        analysis: The module of `fedlogit.results.analyses` that makes a table, which then has no
            `rows` and `columns`; None shows means.
        claims: Claims of the paper that these runs decide.
        runs: The runs, in the order in which rows and columns shall appear; none, if all are
            `missing`.
        left_out: For each data set that lacks runs, how many do not exist, and of how many.
        missing: Those runs. They make a claim undecided, so it must know of them.
        cannot: Cells without a run, because the method does not support them.
    """

    model_config = ConfigDict(frozen=True)

    paper: str
    paper_title: str = ""
    id: str
    kind: Literal["table", "figure"]
    scale: str
    reduced: bool = True
    labels: dict[str, str] = {}
    title: str
    caption: str = ""
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    metric: str = "accuracy"
    metrics: tuple[str, ...] | None = None
    plot: str | None = None
    options: dict[str, Any] = {}
    stands_for: StandsFor | None = None
    analysis: str | None = None
    claims: dict[str, Claim] = {}
    runs: tuple[RunRef, ...]
    left_out: dict[str, tuple[int, int]] = {}
    missing: tuple[Missing, ...] = ()
    cannot: tuple[Refused, ...] = ()

    @model_validator(mode="after")
    def _at_least_one_run(self) -> Self:
        if not self.runs and not self.missing:
            raise ValueError("give at least one run")
        return self

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, which `read_artefact` reads as JSON."""
        absent = {key for key in _OPTIONAL_KEYS if not getattr(self, key)}
        return self.model_dump(mode="json", by_alias=True, exclude=absent)

    @property
    def name(self) -> str:
        """Return how messages call it: ``who_to_trust/table1``."""
        return f"{self.paper}/{self.id}"

    @property
    def shown(self) -> tuple[str, ...]:
        """Return all metrics that it shows."""
        return self.metrics or (self.metric,)

    def read_options(self, kind: type[Kind]) -> Kind:
        """Return what its `options` choose of those that a kind has."""
        return kind.read(self.options, f"{self.name}: options")

    def label(self, value: object, axis: str = "") -> str:
        """Return how a value is printed: by the label of ``axis=value``, else that of the value."""
        return label_of(self.labels, axis, value)

    def full_label(self, value: object, axis: str) -> str:
        """Return how a value is printed where nothing else names its axis.

        A number without a label of its own stands after the axis: ``Learning rate 0.01``.
        """
        label = self.label(value, axis)
        if not isinstance(value, Number) or label != label_of({}, axis, value):
            return label
        name = self.label(axis)
        if name == axis:  # such as method.probes_per_round
            name = axis.rpartition(".")[2].replace("_", " ")
        return f"{name} {label}"

    def place_label(self, dataset: object, partition: object, *, several: bool = True) -> str:
        """Return how a data set and a partition are printed; the latter alone if `several` are not.

        Args:
            dataset: A value of that axis.
            partition: A value of that axis.
            several: Whether there are several data sets to tell apart.
        """
        name = self.label(partition)
        return f"{self.label(dataset)}, {name}" if several else name

    def in_order(self, axis: str) -> list[Any]:
        """Return the values on an axis in the order of the grid, also of what it cannot show."""
        places = [ref.axes for ref in self.runs]
        for place, left in enumerate(self.missing):
            places.insert(left.before + place, left.axes)
        for place, unable in enumerate(self.cannot):
            places.insert(unable.before + place, unable.axes)
        return list(dict.fromkeys(axes[axis] for axes in places if axis in axes))

    @property
    def not_run(self) -> str:
        """Return which runs it is drawn without, such as ``not run: CIFAR-10``, or "".

        A row, column or method that has no run at all is not in a table, so it is named.
        """
        parts = [
            self.label(dataset) + (f" ({missing} of {of} runs)" if missing < of else "")
            for dataset, (missing, of) in self.left_out.items()
        ]
        absent = self._without_a_run()
        found = [f"not run: {', '.join(parts)}"] if parts else []
        found += [f"no run at all of {', '.join(absent)}"] if absent else []
        return "; ".join(found)

    def _without_a_run(self) -> list[str]:
        """Return the methods, and other values on its axes, of which there is no run anywhere.

        Those that are planned only on data sets without any run are not named beside these.
        """
        lacking = {name for name, (missing, of) in self.left_out.items() if missing == of}
        places = [left.axes for left in self.missing if left.axes.get("dataset") not in lacking]
        named = [*(self.rows or ()), *(self.columns or ()), "method"]
        found = []
        for axis in dict.fromkeys(named) if self.runs else ():
            if axis not in ("dataset", "seed"):
                planned = dict.fromkeys(place[axis] for place in places if axis in place)
                there = {run.axes.get(axis) for run in self.runs}
                kind = "" if axis == "method" else f"{self.label(axis)} "
                found += [kind + self.label(v, axis) for v in planned if v not in there]
        return found

    @property
    def why_cannot(self) -> str:
        """Return why the methods cannot do what has "n/a" in its place, as a sentence, or ""."""
        methods: dict[str, dict[str, None]] = {}
        for place in self.cannot:
            methods.setdefault(place.why, {})[self.label(place.axes.get("method", ""))] = None
        parts = [f"{', '.join(filter(None, names))} ({why})" for why, names in methods.items()]
        return f"Not applicable (n/a): {'; '.join(parts)}" if parts else ""


def read_artefacts(paths: Sequence[Path]) -> list[Artefact]:
    """Read artefact files, of which each describes another table or figure.

    A folder of plans may have two of one table, planned with other settings; a comparison of both
    would have all its rows twice.

    Raises:
        DataError: as `read_artefact`.
        FedlogitError: as `read_artefact`, or if two files describe the same.
    """
    found: dict[tuple[str, str, str], Path] = {}
    artefacts = [read_artefact(path) for path in paths]
    for path, artefact in zip(paths, artefacts, strict=True):
        key = (artefact.paper, artefact.scale, artefact.id)
        if key in found:
            raise FedlogitError(
                f"{artefact.id} of {artefact.paper} at scale {artefact.scale} is given twice:"
                f" {found[key]} and {path}; give one of them (make clean removes old plans)"
            )
        found[key] = path
    return artefacts


def read_artefact(path: Path) -> Artefact:
    """Read an artefact file.

    Raises:
        DataError: if the file is missing or not JSON.
        FedlogitError: naming the first key that is missing or wrong.
    """
    data = read_json(path)
    try:
        return Artefact.model_validate(data)
    except ValidationError as error:
        raise explain(error, str(path), Artefact) from None
