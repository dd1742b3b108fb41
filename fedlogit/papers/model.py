"""What a paper's YAML file may say."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from fedlogit.component import FrozenConfig
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.metric_names import check_metric
from fedlogit.reading import check_keys, load_yaml
from fedlogit.spec import RunSpec

__all__ = [
    "CLAIM_TESTS",
    "Claim",
    "Figure",
    "Grid",
    "Paper",
    "Scale",
    "ScaledArtefact",
    "ScaledClaim",
    "Table",
    "Untested",
    "analysis_names",
    "figure_names",
    "list_papers",
    "load_paper",
]

_NAME = r"\w[\w-]*"
CLAIM_TESTS = ("greater", "best", "alike", "shrinking")
"""Kinds of statements, which `fedlogit.results.claim_tests` tests."""

Seeds = tuple[Annotated[int, Field(ge=0)], ...]
Overrides = dict[str, Any]
Grid = dict[str, list[Any]]
Grids = Annotated[list[Grid], BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)]


class _Source(FrozenConfig):
    """Where an artefact's runs come from: a grid of its own, or that of another artefact.

    Attributes:
        title: A short title.
        caption: What one sees; shown below it and in the report.
        grid: Axis -> values. Axes are ``dataset``, ``partition``, ``method`` and any dotted key of
            a run's spec (``public.size``). Several grids are joined.
        source: ``from`` in YAML: take the runs of this table or figure.
        seeds: Where they differ from the paper's.
        metric: A metric of a finished run, or ``accuracy@10`` for the value after a round.
    """

    title: str
    caption: str = ""
    grid: Grids | None = None
    source: str | None = Field(default=None, alias="from")
    seeds: Seeds | None = None
    metric: str = "accuracy"
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.grid is None) == (self.source is None):
            raise ValueError("give either grid or from")
        return self


class Table(_Source):
    """A table: axes down the rows and across the columns, mean ± std over seeds in the cells.

    Attributes:
        metrics: Several metrics instead of one; ``metric`` is then an axis like any other.
        analysis: What is shown instead of means, such as ``answer``; it has rows and columns of its
            own. See `fedlogit.results.analyses`.
    """

    metrics: tuple[str, ...] | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    analysis: str | None = None

    @model_validator(mode="after")
    def _means_or_analysis(self) -> Self:
        if self.analysis and (self.rows or self.columns or self.metrics):
            raise ValueError("a table with 'analysis' has neither rows, columns nor metrics")
        if not self.analysis and not (self.rows and self.columns):
            raise ValueError("give rows and columns, or analysis")
        return self

    @model_validator(mode="after")
    def _metric_axis(self) -> Self:
        if bool(self.metrics) != ("metric" in (*self.rows, *self.columns)):
            raise ValueError("'metrics' and the axis 'metric' in rows or columns go together")
        return self


class Figure(_Source):
    """A figure: the name of a plot from `fedlogit.results` and its options."""

    plot: str


class Claim(FrozenConfig):
    """A statement of the paper that finished runs decide; see `fedlogit.results.claims`.

    Attributes:
        text: The paper's words, or close to them.
        section: Where the paper says it.
        source: ``from`` in YAML: the table whose runs decide.
        test: The kind of statement; see `fedlogit.results.claim_tests`.
        options: What the test compares.
    """

    text: str
    section: str = ""
    source: str = Field(alias="from")
    test: str
    options: dict[str, Any] = Field(default_factory=dict)


class Untested(FrozenConfig):
    """A statement of the paper that no finished runs decide.

    Attributes:
        text: The paper's words, or close to them.
        section: Where the paper says it.
        why: Why there is no test.
    """

    text: str
    section: str
    why: str


class ScaledClaim(FrozenConfig):
    """What a scale changes about one claim, so that it speaks of the runs that the scale has.

    Attributes:
        text: Other words.
        source: ``from`` in YAML: another table whose runs decide.
        options: Replace these options of the test; nested keys merge, lists are replaced.
    """

    text: str | None = None
    source: str | None = Field(default=None, alias="from")
    options: dict[str, Any] = Field(default_factory=dict)


class ScaledArtefact(FrozenConfig):
    """What a scale changes about one table or figure.

    Attributes:
        axes: Replace the values of these axes, in every grid that has them.
        grid: Replace the whole grid.
        seeds: Replace the seeds.
        set: Overrides of the runs' specs.
        caption: Another caption, where the paper's is not true at the scale.
    """

    axes: Grid = Field(default_factory=dict)
    grid: Grids | None = None
    seeds: Seeds | None = None
    set: Overrides = Field(default_factory=dict)
    caption: str | None = None


class Scale(FrozenConfig):
    """A named set of overrides, such as ``smoke``, ``quick`` or ``paper``.

    Attributes:
        summary: One line for people.
        overrides: For every run.
        datasets: For the runs on a dataset.
        partitions: Further parameters, e.g. ``k_classes: k_classes(private_size=500)``.
        methods: For the runs of a method: overrides, or further parameters as a call.
        axes: Replace the values of these axes in every grid of the paper that has them.
        include: Only these tables and figures; None makes all.
        artefacts: Changes to single tables and figures.
        claims: Changes to single claims.
        seeds: Replace the paper's seeds.
    """

    summary: str = ""
    overrides: Overrides = Field(default_factory=dict)
    datasets: dict[str, Overrides] = Field(default_factory=dict)
    partitions: dict[str, str] = Field(default_factory=dict)
    methods: dict[str, str | Overrides] = Field(default_factory=dict)
    axes: Grid = Field(default_factory=dict)
    include: tuple[str, ...] | None = None
    artefacts: dict[str, ScaledArtefact] = Field(default_factory=dict)
    claims: dict[str, ScaledClaim] = Field(default_factory=dict)
    seeds: Seeds | None = None


class Paper(FrozenConfig):
    """A paper: its defaults, its methods, and what each table and figure is made of.

    Attributes:
        paper: The name the file has.
        defaults: Spec of every run, unless something more specific says otherwise.
        datasets: The data sets it may use, with overrides.
        partitions: Short names for partitions with this paper's parameters.
        methods: Short names for methods: a call, or ``{method: call, …overrides}``.
        proposes: The methods that are the paper's own; their numbers are shown first.
        labels: How to print datasets, partitions, methods and axes.
        not_tested: Statements that `claims` leaves out, and why.
    """

    paper: str
    title: str
    arxiv: str | None = None
    seeds: Seeds
    defaults: Overrides
    datasets: dict[str, Overrides]
    partitions: dict[str, str] = Field(default_factory=dict)
    methods: dict[str, str | Overrides]
    proposes: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, Table]
    figures: dict[str, Figure] = Field(default_factory=dict)
    claims: dict[str, Claim] = Field(default_factory=dict)
    not_tested: tuple[Untested, ...] = ()
    scales: dict[str, Scale]

    @property
    def artefacts(self) -> dict[str, Table | Figure]:
        """Tables and figures by id."""
        return {**self.tables, **self.figures}

    def scale(self, name: str) -> Scale:
        """Return a scale, or raise with the nearest one."""
        if name not in self.scales:
            raise unknown(f"scale of paper {self.paper}", name, self.scales)
        return self.scales[name]


def list_papers(folder: Path) -> list[str]:
    """Return the names of the papers in `folder`."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_paper(name: str, folder: Path) -> Paper:
    """Read and check ``<folder>/<name>.yaml``.

    Raises:
        FedlogitError: unknown paper, unknown key, wrong type, or a name that points nowhere; one
            line that names the file and the key.
    """
    if name not in list_papers(folder):
        raise unknown("paper", name, list_papers(folder))
    path = folder / f"{name}.yaml"
    paper = Paper.read(load_yaml(path), path.name)
    if paper.paper != name:
        raise FedlogitError(f"{path.name}: paper = {paper.paper!r}: should be {name!r}")
    try:
        _check_names(paper)
        _check_axes(paper)
        _check_kinds(paper)
        _check_metrics(paper)
        _check_labels(paper)
        _check_overrides(paper)
    except FedlogitError as error:
        raise FedlogitError(f"{path.name}: {error}") from None
    return paper


def _check_names(paper: Paper) -> None:
    """Check every reference from one section of the file to another."""
    for key in (paper.paper, *paper.artefacts, *paper.scales):
        if not re.fullmatch(_NAME, key):
            raise FedlogitError(
                f"name = {key!r}: should be letters, digits, '_' and '-' alone, as files are"
                " called by it"
            )
    shared = sorted(set(paper.tables) & set(paper.figures))
    if shared:
        raise FedlogitError(f"{shared[0]!r} is both a table and a figure")
    for name in paper.proposes:
        _known("proposes", name, paper.methods)
    sources: list[tuple[str, _Source | Claim | ScaledClaim]]
    sources = [*paper.artefacts.items(), *paper.claims.items()]
    for name, scale in paper.scales.items():
        sources += [(f"scales.{name}.claims.{key}", claim) for key, claim in scale.claims.items()]
    for key, entry in sources:
        if entry.source is not None:
            _known(f"{key}: from", entry.source, paper.artefacts)
            if getattr(paper.artefacts[entry.source], "source", None):
                raise FedlogitError(f"{key}: from = {entry.source!r} says 'from' itself")
    for key, claim in paper.claims.items():
        _known(f"claims.{key}.test", claim.test, CLAIM_TESTS, "test")
    for name, scale in paper.scales.items():
        for section, known in (
            ("datasets", paper.datasets),
            ("partitions", paper.partitions),
            ("methods", paper.methods),
            ("artefacts", paper.artefacts),
            ("claims", paper.claims),
        ):
            for key in getattr(scale, section):
                _known(f"scales.{name}.{section}", key, known)
        for key in scale.include or ():
            _known(f"scales.{name}.include", key, paper.artefacts)


def _check_axes(paper: Paper) -> None:
    """Check that what lies down the rows and across the columns of a table are axes of its runs."""
    for key, entry in paper.artefacts.items():
        source = entry.source or key
        of_scales = [scale.artefacts.get(source) for scale in paper.scales.values()]
        written = [grid for own in of_scales if own for grid in own.grid or []]
        axes = {axis for grid in [*(paper.artefacts[source].grid or []), *written] for axis in grid}
        if isinstance(entry, Table):
            for axis in (*entry.rows, *entry.columns):
                if axis != "metric" and not axis.startswith("method."):
                    _known(f"{key}: rows and columns", axis, axes, "axis")
        for name, scale in paper.scales.items():
            for axis in scale.artefacts[key].axes if key in scale.artefacts else ():
                _known(f"scales.{name}.artefacts.{key}.axes", axis, axes, "axis")


def _check_kinds(paper: Paper) -> None:
    """Check that there is each kind of figure and analysis, before runs are trained for it."""
    for key, figure in paper.figures.items():
        _known(f"{key}: plot", figure.plot, figure_names(), "plot")
    for key, table in paper.tables.items():
        if table.analysis is not None:
            _known(f"{key}: analysis", table.analysis, analysis_names(), "analysis")


def figure_names() -> list[str]:
    """Return the kinds of figures there are: a file each, which is not imported."""
    return _files("figures")


def analysis_names() -> list[str]:
    """Return the kinds of analyses there are: a file each, which is not imported."""
    return [name for name in _files("analyses") if name != "analysis"]


def _files(package: str) -> list[str]:
    """Return the public modules of a package of `fedlogit.results`."""
    folder = Path(__file__).parents[1] / "results" / package
    return sorted(path.stem for path in folder.glob("[!_]*.py"))


def _check_metrics(paper: Paper) -> None:
    """Check that each metric can be one, before runs are trained for it."""
    for where, name in _metrics(paper):
        check_metric(where, name, paper.labels)


def _metrics(paper: Paper) -> Iterator[tuple[str, str]]:
    """Yield the metrics that tables, figures and claims name, each after its key."""
    for key, entry in paper.artefacts.items():
        yield f"{key}: metric", entry.metric
        for name in (entry.metrics if isinstance(entry, Table) else None) or ():
            yield f"{key}: metrics", name
    for key, claim in paper.claims.items():
        if isinstance(compared := claim.options.get("metric"), str):
            yield f"claims.{key}.options.metric", compared


def _check_labels(paper: Paper) -> None:
    """Check that every method of a table or figure has a name to print, at every scale."""
    scaled = [entry for scale in paper.scales.values() for entry in scale.artefacts.values()]
    grids = [grid for entry in paper.artefacts.values() for grid in entry.grid or []]
    grids += [grid for entry in scaled for grid in (*(entry.grid or []), entry.axes)]
    grids += [scale.axes for scale in paper.scales.values()]
    for method in (method for grid in grids for method in grid.get("method", [])):
        name = str(method).partition("(")[0]
        if name in paper.methods and not {name, method} & paper.labels.keys():
            raise FedlogitError(
                f"labels: the method {name!r} has no name to print; add a line such as"
                f" '{name}: {name.replace('_', ' ').capitalize()}'"
            )


def _known(where: str, name: str, names: Collection[str], kind: str = "name") -> None:
    if name not in names:
        raise FedlogitError(f"{where}: {unknown(kind, name, names)}")


def _check_overrides(paper: Paper) -> None:
    """Check the keys of every set of overrides where it is written, not where it is used."""
    layers: dict[str, Any] = {"defaults": paper.defaults}
    layers |= {f"datasets.{k}": v for k, v in paper.datasets.items()}
    layers |= {f"methods.{k}": v for k, v in paper.methods.items()}
    for name, scale in paper.scales.items():
        layers[f"scales.{name}.overrides"] = scale.overrides
        layers |= {f"scales.{name}.datasets.{k}": v for k, v in scale.datasets.items()}
        layers |= {f"scales.{name}.methods.{k}": v for k, v in scale.methods.items()}
        layers |= {f"scales.{name}.artefacts.{k}.set": v.set for k, v in scale.artefacts.items()}
    for where, tree in layers.items():
        check_keys(RunSpec, tree, where)
