"""Whether the methods of a paper's file have the settings that were chosen for them."""

from __future__ import annotations

from collections.abc import Iterable

from fedlogit import methods
from fedlogit.component import ComponentRef
from fedlogit.papers.layers import resolve_name
from fedlogit.papers.schema import Paper


def not_as_chosen(paper: Paper, settings: Iterable[str]) -> list[str]:
    """Return a line for each method of a paper's file that is not the setting chosen for it.

    Args:
        paper: The paper.
        settings: The chosen ones, as a grid's axis `method` names them: ``fedprox(mu=0.1)``.
    """
    lines = []
    for setting in settings:
        alias = setting.partition("(")[0]
        has, wanted = _method_of(paper, alias), _method_of(paper, setting)
        changed = {key: value for key, value in wanted.params.items() if has.params[key] != value}
        if changed:
            given = ", ".join(f"{key}={value!r}" for key, value in changed.items())
            lines.append(
                f"{paper.paper}.yaml: methods.{alias}: {setting} was chosen; give {wanted.name} the"
                f" setting {given}"
            )
    return lines


def _method_of(paper: Paper, entry: str) -> ComponentRef:
    """Return the method that an entry of a grid's axis `method` names, with all its parameters.

    Raises:
        FedlogitError: if the paper's file has no such method.
    """
    call, _ = resolve_name("method", entry, paper.methods, {})
    found = ComponentRef.model_validate(call)
    return ComponentRef(name=found.name, params=methods.get(found).params())
