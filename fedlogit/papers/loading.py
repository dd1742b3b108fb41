"""A paper's YAML file, read and checked: each mistake is one line, before anything is trained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedlogit.dotted_keys import nest
from fedlogit.errors import DataError, FedlogitError, unknown
from fedlogit.papers.axis_values import scalar
from fedlogit.papers.claim_checks import check_claims
from fedlogit.papers.claim_options import Comparison
from fedlogit.papers.grids import grids_at, values_of
from fedlogit.papers.label_checks import check_labels
from fedlogit.papers.metric_names import check_metric, is_counted
from fedlogit.papers.option_checks import check_known, check_options
from fedlogit.papers.schema import (
    CLAIM_TESTS,
    Claim,
    Paper,
    ScaledClaim,
    Source,
    Table,
    analysis_names,
    figure_names,
)
from fedlogit.spec import RunSpec
from fedlogit.yaml_files import check_keys, load_yaml

__all__ = ["list_papers", "load_paper", "papers_in"]

_NAME = r"\w[\w-]*"


def list_papers(folder: Path) -> list[str]:
    """Return the names of the papers in `folder`."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def papers_in(folder: Path) -> list[str]:
    """Return the names of the papers in a folder that has some.

    Raises:
        DataError: if it has none.
    """
    names = list_papers(folder)
    if not names:
        raise DataError(f"there is no {folder}/*.yaml; give the folder of the papers' files")
    return names


def load_paper(name: str, folder: Path) -> Paper:
    """Read and check ``<folder>/<name>.yaml``.

    Raises:
        DataError: if the folder has no paper.
        FedlogitError: unknown paper, unknown key, wrong type, or a name that points nowhere; one
            line that names the file and the key.
    """
    if name not in papers_in(folder):
        raise unknown("paper", name, list_papers(folder))
    path = folder / f"{name}.yaml"
    paper = Paper.read(load_yaml(path), path.name)
    if paper.paper != name:
        raise FedlogitError(f"{path.name}: paper = {paper.paper!r}: should be {name!r}")
    try:
        _check_names(paper)
        _check_axes(paper)
        _check_grids(paper)
        _check_stands_for(paper)
        _check_kinds(paper)
        _check_metrics(paper)
        check_options(paper)
        check_claims(paper)
        _check_overrides(paper)
        check_labels(paper)
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
        check_known("proposes", name, paper.methods)
    for name in paper.about:
        check_known("about", name, paper.methods)
    sources: list[tuple[str, Source | Claim | ScaledClaim]]
    sources = [*paper.artefacts.items(), *paper.claims.items()]
    for name, scale in paper.scales.items():
        sources += [(f"scales.{name}.claims.{key}", claim) for key, claim in scale.claims.items()]
    for key, entry in sources:
        if entry.source is not None:
            check_known(f"{key}: from", entry.source, paper.artefacts)
            if getattr(paper.artefacts[entry.source], "source", None):
                raise FedlogitError(f"{key}: from = {entry.source!r} says 'from' itself")
    for key, claim in paper.claims.items():
        check_known(f"claims.{key}.test", claim.test, CLAIM_TESTS, "test")
    for name, scale in paper.scales.items():
        for section, known in (
            ("datasets", paper.datasets),
            ("partitions", paper.partitions),
            ("methods", paper.methods),
            ("artefacts", paper.artefacts),
            ("claims", paper.claims),
        ):
            for key in getattr(scale, section):
                check_known(f"scales.{name}.{section}", key, known)
        for key in scale.include or ():
            check_known(f"scales.{name}.include", key, paper.artefacts)


def _check_axes(paper: Paper) -> None:
    """Check that what tables are laid out by, and scales change, are axes of their runs."""
    grids = [grid for entry in paper.artefacts.values() for grid in entry.grid or []]
    every = {axis for grid in grids for axis in grid}
    for name, scale in paper.scales.items():
        for axis in scale.axes:
            check_known(f"scales.{name}.axes", axis, every, "axis")
    for key, entry in paper.artefacts.items():
        source = entry.source or key
        axes = _axes_of(paper, source)
        for axis in sorted(axes):  # before rows and columns, whose right names would be taken wrong
            check_keys(RunSpec, nest(axis, None), f"{source}: grid")
        if isinstance(entry, Table):
            _check_layout(key, entry, axes)
        for name, scale in paper.scales.items():
            for axis in scale.artefacts[key].axes if key in scale.artefacts else ():
                check_known(f"scales.{name}.artefacts.{key}.axes", axis, axes, "axis")


def _axes_of(paper: Paper, source: str) -> set[str]:
    """Return the axes of an artefact's runs: of its own grids, and of those that scales give it."""
    of_scales = [
        scale.artefacts[source] for scale in paper.scales.values() if source in scale.artefacts
    ]
    written = [paper.artefacts[source].grid, *(own.grid for own in of_scales)]
    return {axis for grids in written for grid in grids or [] for axis in grid}


def _check_grids(paper: Paper) -> None:
    """Check that grids name what the file has, before claims and labels that rest on them."""
    for key, entry in paper.artefacts.items():
        for kind, known in (
            ("dataset", paper.datasets),
            ("partition", paper.partitions),
            ("method", paper.methods),
        ):
            grids = [grid for s in paper.scales.values() for grid in grids_at(s, key, entry)]
            for value in (value for grid in grids for value in grid.get(kind, [])):
                name = value.partition("(")[0] if isinstance(value, str) else ""
                if re.fullmatch(_NAME, name):  # what is no call has an error of its own
                    check_known(f"{key}: grid", name, known, kind)


def _check_stands_for(paper: Paper) -> None:
    """Check that what stands for published numbers is there at the scale."""
    for scale, key, stands_for in paper.stand_ins():
        where = f"scales.{scale}.artefacts.{key}.stands_for"
        check_known(f"{where}.table", stands_for.table or key, paper.tables, "table")
        grids = grids_at(paper.scale(scale), key, paper.artefacts[key])
        axes = {axis for grid in grids for axis in grid}
        for axis, values in stands_for.axes.items():
            check_known(f"{where}.axes", axis, axes, "axis")
            there = {str(scalar(value)) for grid in grids for value in grid.get(axis, [])}
            for value in values.values():
                check_known(f"{where}.axes.{axis}", str(scalar(value)), there, "value")


def _check_layout(key: str, table: Table, axes: set[str]) -> None:
    """Check that what lies down the rows and across the columns are axes, each once."""
    for axis in table.printed:
        if axis != "metric" and not axis.startswith("method."):
            check_known(f"{key}: rows and columns", axis, axes, "axis")
        if table.printed.count(axis) > 1:
            raise FedlogitError(
                f"{key}: rows and columns have the axis {axis!r} twice; give it once"
            )


def _check_kinds(paper: Paper) -> None:
    """Check that there is each kind of figure and analysis, before runs are trained for it."""
    for key, figure in paper.figures.items():
        check_known(f"{key}: plot", figure.plot, figure_names(), "plot")
    for key, table in paper.tables.items():
        if table.analysis is not None:
            check_known(f"{key}: analysis", table.analysis, analysis_names(), "analysis")


def _check_metrics(paper: Paper) -> None:
    """Check that each metric can be one, before runs are trained for it."""
    for where, name, key in _metrics(paper):
        check_metric(where, name, paper.labels)
        counted = values_of(paper, key).get("ledger_only") == [True]
        if counted and not is_counted(name.partition("@")[0]):
            raise FedlogitError(
                f"{where} = {name!r}: the runs of {key} train nothing (ledger_only), so they have"
                " bytes alone, such as bytes_up"
            )


def _metrics(paper: Paper) -> Iterator[tuple[str, str, str]]:
    """Yield the metrics that tables, figures and claims name: after their key, and of which."""
    for key, entry in paper.artefacts.items():
        where = (
            f"{key}: metrics" if isinstance(entry, Table) and entry.metrics else f"{key}: metric"
        )
        yield from ((where, name, key) for name in entry.shown)
    for key, claim in paper.claims.items():
        compared = claim.options.get("metric", Comparison.model_fields["metric"].default)
        if isinstance(compared, str):
            yield f"claims.{key}.options.metric", compared, claim.source


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
