"""Nested mappings, and keys with dots, such as ``public.size``: places in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["flat", "get", "merge", "nest"]


def flat(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings after their dotted keys, which begin with `above`."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}.")
        else:
            yield above + name, value


def get(data: Any, key: str) -> Any:
    """Return the value of a dotted key, or None where there is no such place."""
    for part in key.split("."):
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` on top; mappings merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def nest(key: str, value: Any) -> Any:
    """Return nested mappings in which a dotted key has a value: ``{"public": {"size": 3}}``."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value
