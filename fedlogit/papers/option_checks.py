"""Options of tables and figures, checked when a paper's file is read, and the names in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from fedlogit.dotted_keys import nest
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.axis_values import label_of
from fedlogit.papers.grids import axes_of, values_of
from fedlogit.papers.metric_names import check_metric
from fedlogit.papers.options import (
    ANALYSES,
    FIGURES,
    Answer,
    ByPublic,
    BySetting,
    Contribution,
    KindOptions,
    Lost,
    PeerBands,
    Printed,
)
from fedlogit.papers.schema import Figure, Paper, Table
from fedlogit.spec import RunSpec
from fedlogit.yaml_files import check_keys

__all__ = ["check_known", "check_options", "option_metrics", "settings_of"]


def check_options(paper: Paper) -> None:
    """Check the options of every table and figure: their keys, their types, what they name.

    Raises:
        FedlogitError: one line with the key, the value and the nearest that would be right.
    """
    for key, where, options in _options_read(paper):
        _check_named(paper, key, options, where)


def settings_of(paper: Paper) -> Iterator[tuple[str, str, str]]:
    """Yield the settings of runs that options name: where, and of which table or figure."""
    for key, where, options in _options_read(paper):
        yield from ((at, key, setting) for at, setting in _settings(options, where))


def option_metrics(paper: Paper) -> set[str]:
    """Return the metrics that options name."""
    found: set[str] = set()
    for _, _, options in _options_read(paper):
        found.update(*(_option_names(getattr(options, name)) for name in options.metrics_in))
        found |= {level.metric for level in getattr(options, "levels", ())}
    return found


def check_known(where: str, name: object, names: Collection[str], kind: str = "name") -> None:
    """Refuse a name that is not among `names`, with the nearest one."""
    if name not in names:
        raise FedlogitError(f"{where}: {unknown(kind, name, names)}")


def _options_read(paper: Paper) -> Iterator[tuple[str, str, KindOptions]]:
    """Yield the id, the options' key and the options of each table and figure of a known kind."""
    for id_, entry in paper.artefacts.items():
        section = "tables" if isinstance(entry, Table) else "figures"
        where, (kind, name) = f"{section}.{id_}.options", _kind(entry)
        if kind is None:
            continue
        if entry.options and not kind.model_fields:
            raise FedlogitError(
                f"{where} = {entry.options!r}: {name!r} has no options; leave them out"
            )
        yield id_, where, kind.read(entry.options, where)


def _settings(options: KindOptions, where: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of runs that options name, each after its key."""
    for name in options.settings_in:
        yield from (
            (f"{where}.{name}", setting) for setting in _option_names(getattr(options, name))
        )


def _kind(entry: Table | Figure) -> tuple[type[KindOptions] | None, str]:
    """Return the options that an artefact may have, and what its kind is called."""
    if isinstance(entry, Figure):
        return FIGURES.get(entry.plot), entry.plot
    if entry.analysis:
        return ANALYSES.get(entry.analysis), entry.analysis
    return Printed, "table"


def _check_named(paper: Paper, key: str, options: KindOptions, where: str) -> None:
    """Check the axes, metrics and settings that options name, and what one kind alone has."""
    for name in options.axes:
        for axis in _option_names(getattr(options, name)):
            check_known(f"{where}.{name}", axis, axes_of(paper, key), "axis")
    for name in options.metrics_in:
        for metric in _option_names(getattr(options, name)):
            check_metric(f"{where}.{name}", metric, paper.labels)
    for at, setting in _settings(options, where):
        _check_setting(at, setting)
    if isinstance(options, Lost):
        _check_against(paper, key, options, where)
    if isinstance(options, Answer):
        for call in options.labelled:
            check_known(f"{where}.labelled", call.partition("(")[0], paper.methods, "method")
    if isinstance(options, Contribution):
        check_known(f"{where}.value", options.value, _methods(paper, key), "method")
    if isinstance(options, PeerBands):
        for method in options.beside:
            check_known(f"{where}.beside", method, _methods(paper, key), "method")
    if isinstance(options, ByPublic):
        _check_public(paper, key, options, where)
    if isinstance(options, BySetting):
        _check_levels(paper, options, where)


def _option_names(value: Any) -> tuple[str, ...]:
    """Return the names that an option gives: none, one or several."""
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _methods(paper: Paper, key: str) -> list[str]:
    return [str(method) for method in values_of(paper, key).get("method", [])]


def _check_setting(where: str, setting: str) -> None:
    """Check that a dotted key is one of a run's spec; of a method's own, see `component_checks`."""
    first, _, rest = setting.partition(".")
    if first == "method" and rest:
        return
    check_keys(RunSpec, nest(setting, 0), where)


def _check_against(paper: Paper, key: str, options: Lost, where: str) -> None:
    """Check that a value of the conditions' axis is printed like that at some scale."""
    values = values_of(paper, key).get(options.condition, [])
    labels = {label_of(paper.labels, options.condition, value) for value in values}
    check_known(f"{where}.against", options.against, labels, "label of a condition")


def _check_public(paper: Paper, key: str, options: ByPublic, where: str) -> None:
    """Check that the axis across is given or alone, and that its values have a place on it."""
    values = values_of(paper, key)
    public = sorted(axis for axis in values if axis.startswith("public"))
    if options.x is None and len(public) != 1:
        found = f"has {', '.join(public)}" if public else "has none that starts with 'public'"
        raise FedlogitError(f"{where}: key 'x' is missing: give the axis across; the grid {found}")
    axis = options.x or public[0]
    for value in values.get(axis, ["none"]):
        if isinstance(value, str) and value != "all" and not value.startswith(("[", "{")):
            raise FedlogitError(
                f"{where}.x = {axis!r}: should be an axis of numbers or of lists of classes, such"
                f" as public.size; it has the value {value!r}"
            )


def _check_levels(paper: Paper, options: BySetting, where: str) -> None:
    """Check the methods and metrics of horizontal lines, and the tables of published numbers.

    The method may be one that the figure lacks: figures of several scales may share a list.
    """
    methods = {method for id_ in paper.artefacts for method in _methods(paper, id_)}
    for place, level in enumerate(options.levels):
        check_known(f"{where}.levels.{place}.method", level.method, methods, "method")
        if level.metric:
            check_metric(f"{where}.levels.{place}.metric", level.metric, paper.labels)
    for table in options.table:
        check_known(f"{where}.table", table, paper.artefacts, "table")
