"""Methods and partitions of a paper's file: their calls, and parameters that it names elsewhere.

`fedlogit.papers.loading` checks a file without them, which need the library's methods, and torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from fedlogit.component import Component, ComponentRef, parse_call
from fedlogit.errors import FedlogitError, MissingKeyError
from fedlogit.papers.claim_checks import check_value, conditions
from fedlogit.papers.grids import grids_at
from fedlogit.papers.layers import resolve_name
from fedlogit.papers.option_checks import check_known, settings_of
from fedlogit.papers.schema import Paper, Scale

__all__ = ["check_components"]


def check_components(paper: Paper) -> None:
    """Check what a paper's file says of methods and partitions, used by a scale or not.

    Those from outside of this package are left to who uses them.

    Raises:
        FedlogitError: one line naming the file, the key and the parameter.
    """
    try:
        _check_calls(paper)
        _check_parameters(paper)
        _check_parameter_labels(paper)
    except FedlogitError as error:
        raise FedlogitError(f"{paper.paper}.yaml: {error}") from None


_EXAMPLES = {"method": "uwa(validation=0.1)", "partition": "dir_client(0.1)"}


def _check_calls(paper: Paper) -> None:
    """Check every call of a method or a partition."""
    from fedlogit import methods
    from fedlogit.partition import get

    for place, section in _sections(paper):
        calls = (section.methods, "method", methods.get), (section.partitions, "partition", get)
        for entries, kind, found in calls:
            for alias, entry in entries.items():
                text = entry if isinstance(entry, str) else entry.get(kind)
                is_left_out = not isinstance(entry, str) and kind not in entry
                if not (isinstance(text, str) or is_left_out):
                    raise FedlogitError(
                        f"{place}{kind}s.{alias}.{kind} = {text!r}: should be a call such as"
                        f" {_EXAMPLES[kind]}"
                    )
                try:
                    _check_call(text, found)
                except FedlogitError as error:
                    raise FedlogitError(f"{place}{kind}s.{alias}: {error}") from None


def _sections(paper: Paper) -> Iterator[tuple[str, Paper | Scale]]:
    """Yield the parts of a paper's file that define methods and partitions, and their keys."""
    yield "", paper
    for name, scale in paper.scales.items():
        yield f"scales.{name}.", scale


def _check_call(text: str | None, get: Callable[[ComponentRef], Component]) -> None:
    """Check a call of this package, to which a scale or a cell may add what must be given."""
    if text is None or _is_outside(text.partition("(")[0]):
        return
    with suppress(MissingKeyError):
        get(ComponentRef.model_validate(parse_call(text)))


def _is_outside(name: str) -> bool:
    return ":" in name


def _check_parameters(paper: Paper) -> None:
    """Check that tables, figures and claims name parameters (``method.x``) that methods have."""
    for where, key, axis, value in _named_parameters(paper):
        known = _parameters(paper, paper.artefacts[key].source or key)
        if known is None:
            continue
        check_known(where, axis, known, "parameter")
        if value is not None:
            check_value(f"{where}.{axis}", value, known[axis])


def _check_parameter_labels(paper: Paper) -> None:
    """Check that labels such as ``method.rule=median`` have values that methods have."""
    labels = [label for label in paper.labels if label.startswith("method.") and "=" in label]
    if not labels:
        return
    found = [_parameters(paper, entry.source or key) for key, entry in paper.artefacts.items()]
    for label in labels if None not in found else ():
        axis, _, value = label.partition("=")
        values = {str(v) for known in found if known for v in known.get(axis, ())}
        check_known(f"labels.{label}", value, values, f"value of {axis}")


def _named_parameters(paper: Paper) -> Iterator[tuple[str, str, str, Any]]:
    """Yield every parameter named: where, of which table or figure, and a condition's value."""
    named_in = [
        (f"{key}: rows and columns", key, axis, None)
        for key, entry in paper.artefacts.items()
        for axis in entry.printed
    ]
    named_in += [(where, key, setting, None) for where, key, setting in settings_of(paper)]
    yield from (
        entry for entry in (*named_in, *conditions(paper)) if entry[2].startswith("method.")
    )


def _parameters(paper: Paper, key: str) -> dict[str, list[Any]] | None:
    """Return the values, at any scale, of all parameters of the methods of a table or figure.

    None where not all are known: a method is from outside, or lacks what only its cells give.
    """
    from fedlogit import methods

    found: dict[str, list[Any]] = {"method.name": []}
    for scale in paper.scales.values():
        grids = grids_at(scale, key, paper.artefacts[key])
        for entry in (entry for grid in grids for entry in grid.get("method", [])):
            call, _ = resolve_name("method", entry, paper.methods, scale.methods)
            if _is_outside(call["name"]):
                return None
            try:
                params = methods.get(ComponentRef.model_validate(call)).params()
            except MissingKeyError:
                return None
            found["method.name"].append(call["name"])
            for name, value in params.items():
                found.setdefault(f"method.{name}", []).append(value)
    return found
