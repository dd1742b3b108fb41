"""The schema of a paper's YAML file, as pydantic models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fedlogit.dotted_keys import merge
from fedlogit.errors import unknown
from fedlogit.frozen_config import FrozenConfig, Seeds
from fedlogit.spec import Text

__all__ = [
    "CLAIM_TESTS",
    "JUDGED_SCALE",
    "TEST_SCALE",
    "Claim",
    "Figure",
    "Grid",
    "Paper",
    "Replicated",
    "Scale",
    "ScaledArtefact",
    "ScaledClaim",
    "Source",
    "StandsFor",
    "Table",
    "Untested",
    "analysis_names",
    "figure_names",
    "short_title",
]

JUDGED_SCALE = "paper"
"""The scale whose runs decide verdicts: the paper's own settings."""
TEST_SCALE = "smoke"
"""The scale that tests the workflow in seconds; pages and records leave it out."""

CLAIM_TESTS = ("greater", "best", "alike", "shrinking")
"""Kinds of claims, which `fedlogit.results.verdicts.claim_tests` tests."""


def _check_not_empty(value: Sized) -> Sized:
    if not value:
        raise ValueError("should have one entry at least")
    return value


def _check_plain(text: str) -> str:
    """Refuse what figures would read as mathematics, or pages as HTML or a picture.

    Raises:
        ValueError: naming the first such sign.
    """
    if found := next((sign for sign in ("$", "<", ">", "`", "![", "\n") if sign in text), None):
        raise ValueError(
            f"should be plain text, without {found!r}, for figures and pages print it as it stands;"
            " signs such as α and ≥ can be written as they are"
        )
    return text


PlainText = Annotated[str, AfterValidator(_check_plain)]
# An empty list would mean the same as none, or leave out a table without a word.
NotEmpty = AfterValidator(_check_not_empty)
Names = Annotated[tuple[str, ...], NotEmpty]
Overrides = dict[str, Any]
Grid = dict[str, Annotated[list[Any], NotEmpty]]
Grids = Annotated[
    list[Grid], NotEmpty, BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)
]


class Source(FrozenConfig):
    """Where an artefact's runs come from: a grid of its own, or that of another artefact.

    Attributes:
        title: A short title.
        caption: What one sees; shown below it and in the report.
        grid: Axis -> values. Axes are ``dataset``, ``partition``, ``method`` and any dotted key of
            a run's spec (``public.size``). Several grids are joined.
        source: ``from`` in YAML: take the runs of this table or figure.
        seeds: Where they differ from the paper's.
        metric: A metric of a finished run, or ``accuracy@10`` for the value after a round.
        options: What its kind lets one choose; see `fedlogit.papers.options`.
    """

    title: PlainText
    caption: str = ""
    grid: Grids | None = None
    source: str | None = Field(default=None, alias="from")
    seeds: Seeds | None = None
    metric: str = "accuracy"
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.grid is None) == (self.source is None):
            raise ValueError("give either grid or from")
        return self

    @property
    def printed(self) -> tuple[str, ...]:
        """The axes down and across a table; a figure has none."""
        return ()

    @property
    def shown(self) -> tuple[str, ...]:
        """All metrics that it shows."""
        return (self.metric,)


class Table(Source):
    """A table: axes down the rows and across the columns, mean ± std over seeds in the cells.

    Attributes:
        metrics: Several metrics instead of one; ``metric`` is then an axis like any other.
        rows: The axes down the table, such as ``dataset``, ``optimizer.lr`` or ``method.rule``.
        columns: The axes across it.
        analysis: What is shown instead of means, such as ``answer``; it has rows and columns of its
            own. See `fedlogit.results.analyses`.
    """

    metrics: Names | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    analysis: str | None = None

    @property
    def printed(self) -> tuple[str, ...]:
        """The axes down and across the table."""
        return (*self.rows, *self.columns)

    @property
    def shown(self) -> tuple[str, ...]:
        """All metrics that it shows."""
        return self.metrics or (self.metric,)

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if self.analysis and (self.printed or self.metrics):
            raise ValueError("a table with 'analysis' has neither rows, columns nor metrics")
        if not self.analysis and not (self.rows and self.columns):
            raise ValueError("give rows and columns, or analysis")
        return self

    @model_validator(mode="after")
    def _check_metric_axis(self) -> Self:
        if bool(self.metrics) != ("metric" in self.printed):
            raise ValueError("'metrics' and the axis 'metric' in rows or columns go together")
        return self


class Figure(Source):
    """A figure.

    Attributes:
        plot: Its kind, a module of `fedlogit.results.figures`.
    """

    plot: str


class Claim(FrozenConfig):
    """A statement of the paper that finished runs decide; see `fedlogit.results.verdicts.claims`.

    Attributes:
        text: The paper's words, or close to them.
        section: Where the paper says it; without one the claim is ours.
        source: ``from`` in YAML: the table whose runs decide.
        test: The kind of claim; see `fedlogit.results.verdicts.claim_tests`.
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


class Replicated(FrozenConfig):
    """What this study of a paper is in the terminology of ACM's badges (v1.1).

    Attributes:
        term: ``replication``, by another team with artefacts of its own, or ``reproduction``, by
            another team with the authors' artefacts.
        code: Whether the authors published code, and what of it was read; sentences.
    """

    term: Literal["replication", "reproduction"]
    code: str

    @property
    def sentences(self) -> str:
        """What a paper's page says."""
        whose = "artefacts of its own" if self.term == "replication" else "the authors' artefacts"
        return f"In ACM's terminology (v1.1) a {self.term}: another team, {whose}. {self.code}"


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

    def changed(self, claim: Claim) -> Claim:
        """Return a claim with these changes."""
        own = {
            "text": claim.text if self.text is None else self.text,
            "source": self.source or claim.source,
            "options": merge(claim.options, self.options),
        }
        return claim.model_copy(update=own)


class StandsFor(FrozenConfig):
    """Which published numbers runs are compared with that differ from them in a known way.

    A reduced scale shortens what a paper has (a merge every 50 rounds), and a table on substitute
    data has another data set. No such number is judged.

    Attributes:
        table: The table whose numbers they are; None means the same.
        axes: Axis -> published value -> the value here; others are the same.
    """

    table: str | None = None
    axes: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if self.table is None and not self.axes:
            raise ValueError("give table or axes")
        return self


class ScaledArtefact(FrozenConfig):
    """What a scale changes about one table or figure.

    Attributes:
        axes: Replace the values of these axes, in every grid that has them.
        grid: Replace the whole grid.
        seeds: Replace the seeds.
        set: Overrides of the runs' specs.
        caption: Another caption, where the paper's is not true at the scale.
        stands_for: With which published numbers it is compared, if not with those of its settings.
    """

    axes: Grid = Field(default_factory=dict)
    grid: Grids | None = None
    seeds: Seeds | None = None
    set: Overrides = Field(default_factory=dict)
    caption: str | None = None
    stands_for: StandsFor | None = None


class Scale(FrozenConfig):
    """A named set of overrides, such as ``smoke``, ``quick`` or ``paper``.

    Attributes:
        summary: One line for people.
        reduced: Whether runs are smaller than the paper's; False where they have its settings, but
            other seeds, or models of another size.
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
    reduced: bool = True
    overrides: Overrides = Field(default_factory=dict)
    datasets: dict[str, Overrides] = Field(default_factory=dict)
    partitions: dict[str, str] = Field(default_factory=dict)
    methods: dict[str, str | Overrides] = Field(default_factory=dict)
    axes: Grid = Field(default_factory=dict)
    include: Names | None = None
    artefacts: dict[str, ScaledArtefact] = Field(default_factory=dict)
    claims: dict[str, ScaledClaim] = Field(default_factory=dict)
    seeds: Seeds | None = None


def short_title(title: str) -> str:
    """Return a title up to the colon, such as "Table 1"."""
    return title.partition(":")[0]


class Paper(FrozenConfig):
    """A paper: its defaults, its methods, and what each table and figure is made of.

    Attributes:
        paper: The name the file has.
        title: Of the paper.
        arxiv: Its number at arXiv.
        seeds: Those of every table and figure, unless it or a scale has others.
        defaults: Spec of every run, unless something more specific says otherwise.
        datasets: The data sets it may use, with overrides.
        partitions: Short names for partitions with this paper's parameters.
        methods: Short names for methods: a call, or ``{method: call, …overrides}``.
        about: What a method is, in a sentence, where its class is several methods.
        proposes: The methods that are the paper's own; their numbers are shown first.
        labels: How to print datasets, partitions, methods and axes.
        tables: Each table by its id, which names its files.
        figures: Each figure by its id.
        claims: Statements of the paper that finished runs decide, by id.
        not_tested: Statements that `claims` leaves out, and why.
        scales: Sets of overrides by name: what `paper`, `quick` and the others change.
        acm: Whether this is a replication or a reproduction; a study of one's own has none.
    """

    paper: str
    title: str
    arxiv: str | None = None
    acm: Replicated | None = None
    seeds: Seeds
    defaults: Overrides
    datasets: dict[str, Overrides]
    partitions: dict[str, str] = Field(default_factory=dict)
    methods: dict[str, str | Overrides]
    about: dict[str, str] = Field(default_factory=dict)
    proposes: tuple[str, ...] = ()
    labels: dict[str, PlainText] = Field(default_factory=dict)
    tables: dict[str, Table]
    figures: dict[str, Figure] = Field(default_factory=dict)
    claims: dict[str, Claim] = Field(default_factory=dict)
    not_tested: tuple[Untested, ...] = ()
    scales: dict[str, Scale]

    @property
    def short_name(self) -> str:
        """What it is called: as its own method, or by its title up to ``:`` or ``?``."""
        found = re.match(r"[^:?]+\??", self.title)
        return self.labels.get(self.paper) or (found[0] if found else self.paper)

    def short_title(self, id_: str) -> str:
        """Return what a table or figure is called: its title up to the colon."""
        return short_title(self.artefacts[id_].title)

    def samples(self, dataset: str) -> str:
        """Return which samples scores on a data set are of, ``test`` or ``validation``."""
        text = self.datasets.get(dataset, {}).get("text")
        return "test" if text is None else Text.read(text, f"{self.paper}.yaml: {dataset}").samples

    @property
    def labels_of_numbers(self) -> dict[str, str]:
        """How its tables are called, by id, and how values on their axes are printed."""
        return {**{id_: self.short_title(id_) for id_ in self.tables}, **self.labels}

    @property
    def artefacts(self) -> dict[str, Table | Figure]:
        """Tables and figures by id."""
        return {**self.tables, **self.figures}

    def claims_at(self, scale: str) -> dict[str, Claim]:
        """Return the claims as a scale has them."""
        changes = self.scale(scale).claims
        return {
            key: changes[key].changed(claim) if key in changes else claim
            for key, claim in self.claims.items()
        }

    def stand_ins(self) -> Iterator[tuple[str, str, StandsFor]]:
        """Yield each `stands_for` of a scale, after the names of the scale and of the artefact."""
        for name, scale in self.scales.items():
            for key, own in scale.artefacts.items():
                if own.stands_for is not None:
                    yield name, key, own.stands_for

    def scale(self, name: str) -> Scale:
        """Return a scale, or raise with the nearest one."""
        if name not in self.scales:
            raise unknown(f"scale of paper {self.paper}", name, self.scales)
        return self.scales[name]


def figure_names() -> list[str]:
    """Return the kinds of figures there are: a file each, which is not imported."""
    return _module_names("figures")


def analysis_names() -> list[str]:
    """Return the kinds of analyses there are: a file each, which is not imported."""
    return [name for name in _module_names("analyses") if name != "analysis"]


def _module_names(package: str) -> list[str]:
    """Return the public modules of a package of `fedlogit.results`."""
    folder = Path(__file__).parents[1] / "results" / package
    return sorted(path.stem for path in folder.glob("[!_]*.py"))
