"""PyTorch's optimizers without its compiler, which nothing here uses.

PyTorch's own methods import the compiler when they are first called, to tell it to leave them
alone: two seconds for every run. Unwrapped, they are the same functions without that.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

__all__ = ["SGD", "Adam", "AdamW"]


def _uncompiled(kind: type[torch.optim.Optimizer]) -> Any:
    """Return an optimizer class with its methods unwrapped; `step` needs `no_grad` then."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    plain: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    step = torch.no_grad()(inspect.unwrap(kind.step))
    return type(kind.__name__, (kind,), plain | {"step": step})


SGD = _uncompiled(torch.optim.SGD)
Adam = _uncompiled(torch.optim.Adam)
AdamW = _uncompiled(torch.optim.AdamW)
