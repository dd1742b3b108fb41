"""Keys with dots, such as ``public.size``: places in nested mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["get", "nest"]


def get(data: Any, key: str) -> Any:
    """Return the value of a dotted key, or None where there is no such place."""
    for part in key.split("."):
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def nest(key: str, value: Any) -> Any:
    """Return nested mappings in which a dotted key has a value: ``{"public": {"size": 3}}``."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value
