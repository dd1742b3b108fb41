"""Aggregators from outside: any importable function, ``package.module:function`` in YAML."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fedlogit.aggregation.targets import Targets
from fedlogit.component import import_object
from fedlogit.errors import FedlogitError

__all__ = ["load_function"]


def load_function(name: str) -> Callable[[torch.Tensor], torch.Tensor | Targets]:
    """Return the function at ``package.module:function``.

    Raises:
        FedlogitError: if the name has another form, cannot be imported, or is not a function.
    """
    found = import_object("function", name, "function")
    if not callable(found):
        raise FedlogitError(f"function {name!r} is a {type(found).__name__}, not a function")
    return found
