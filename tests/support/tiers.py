"""What the fast tier leaves out: ``pytest -m "not slow"``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def first_of_each(cases: Iterable[Any], kind: Callable[[Any], str]) -> list[Any]:
    """Return cases to parametrize with: the first of each kind is fast, the others are slow."""
    seen: set[str] = set()
    found = []
    for case in cases:
        known = kind(case) in seen
        found.append(pytest.param(case, marks=pytest.mark.slow) if known else case)
        seen.add(kind(case))
    return found


def method_of(call: object) -> str:
    """Return the method's name in a call, a comparison, or a call on a text (one kind for all)."""
    name = str(call).partition("(")[0].partition(" [")[0]
    return "text" if name.startswith("text: ") else name
