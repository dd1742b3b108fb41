"""Which override wins: a cell's spec is merged of layers of a paper's file.

A later layer wins, and nested keys merge (``local: {epochs: 1}`` keeps ``first_epochs``; ``null``
removes a value)::

    paper defaults      < scale overrides
      < paper's dataset < scale's dataset
      < paper's method  < scale's method
      < scale's artefact
      < the cell of the grid

So the more specific wins, and at equal specificity the scale wins over the paper. A cell's axes
always win: a scale changes an axis by replacing its values, never by flattening it.

In a grid, a method or a partition is a short name from the paper's file, possibly with further
parameters: ``uwa(variance_floor=1e-6)`` is the paper's ``uwa`` with that one changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fedlogit.component import A_CALL, parse_call
from fedlogit.dotted_keys import merge, nest
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.schema import Paper, Scale
from fedlogit.spec import RunSpec
from fedlogit.yaml_files import check_keys

__all__ = ["calls_of", "merged_layers", "resolve_name"]

_ALWAYS_AXES = ("dataset", "method")


def merged_layers(
    paper: Paper, scale: Scale, cell: Mapping[str, Any], last: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge a cell's layers, `last` above its method's; the names in it are still short.

    Raises:
        FedlogitError: if the grid lacks an axis, or a name is unknown; for a data set, a method or
            a seed in a layer, which none decides.
    """
    for axis in _ALWAYS_AXES:
        if axis not in cell:
            raise FedlogitError(f"the grid has no axis {axis!r}, but {', '.join(cell)}; add it")
    dataset = cell["dataset"]
    if not isinstance(dataset, str) or dataset not in paper.datasets:
        raise unknown("dataset", dataset, paper.datasets)
    _, of_method = resolve_name("method", cell["method"], paper.methods, scale.methods)
    data: dict[str, Any] = {}
    for layer in (
        paper.defaults,
        scale.overrides,
        paper.datasets[dataset],
        scale.datasets.get(dataset, {}),
        *of_method,
        last,
    ):
        _refuse_axes(layer)
        data = merge(data, layer)
    for item in cell.items():
        data = merge(data, _nested_key(*item))
    if "seed" in data:
        raise FedlogitError(
            f"seed = {data['seed']}: no layer and no axis has a seed; give seeds: [{data['seed']}]"
            " to the paper, the scale or the table"
        )
    return data


def _refuse_axes(layer: Mapping[str, Any]) -> None:
    """Refuse what a grid decides, which a layer would give in vain."""
    for axis in _ALWAYS_AXES:
        if axis in layer:
            raise FedlogitError(
                f"{axis} = {layer[axis]!r} has no effect here, as the grid's axis {axis!r} decides;"
                " leave it out"
            )


def calls_of(paper: Paper, scale: Scale, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calls that the short names of a method and a partition mean."""
    method, _ = resolve_name("method", data.get("method"), paper.methods, scale.methods)
    partition, _ = resolve_name(
        "partition", data.get("partition"), paper.partitions, scale.partitions
    )
    return {"method": method, "partition": partition}


def resolve_name(
    kind: str, entry: Any, of_paper: Mapping[str, Any], of_scale: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Resolve a short name with further parameters.

    Returns:
        The call (``{"name", "params"}``), and the overrides that come with it: paper's, scale's.
    """
    if entry is None:
        raise FedlogitError(f"key {kind!r} is missing: give it as an axis, or under 'defaults'")
    if not isinstance(entry, str):
        raise FedlogitError(f"{kind} = {entry!r}: should be {A_CALL}")
    further = _plain_call(entry)
    alias = further["name"]
    if alias not in of_paper:
        raise unknown(kind, alias, of_paper)
    name, params = alias, dict[str, Any]()
    layers: list[dict[str, Any]] = []
    for definition in (of_paper[alias], of_scale.get(alias, {})):
        layer = {kind: definition} if isinstance(definition, str) else dict(definition)
        if kind in layer:
            call = _plain_call(layer.pop(kind))
            name, params = call["name"], {**params, **call["params"]}
        layers.append(layer)
    return {"name": name, "params": {**params, **further["params"]}}, layers


def _plain_call(text: str) -> dict[str, Any]:
    """Return the parts of a call, whose arguments a run's spec, a JSON file, can hold."""
    call = parse_call(text)
    for key, value in call["params"].items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise FedlogitError(
                f"{text!r}: {key} = {value!r}: should be a number, a text in quotes, True, False,"
                " None, or a list or mapping of these"
            ) from None
    return call


def _nested_key(key: str, value: Any) -> dict[str, Any]:
    """Turn a dotted key into nested mappings, checking that it exists in a spec."""
    tree: dict[str, Any] = nest(key, value)
    check_keys(RunSpec, tree, f"axis {key}")
    return tree
