"""Docstrings in Google's style, as this library writes them, taken apart for tables."""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

__all__ = ["about", "attributes", "in_markdown", "subclasses"]

T = TypeVar("T")
_SECTIONS = r"^(Args|Attributes|Raises|Returns|Yields):$"


def about(documented: object) -> str:
    """Return what a class or function is, in Markdown: its docstring up to the first section."""
    return in_markdown(re.split(_SECTIONS, inspect.getdoc(documented) or "", flags=re.M)[0].strip())


def attributes(cls: type) -> dict[str, str]:
    """Return what a class and those it derives from say of their attributes, in Markdown."""
    found: dict[str, str] = {}
    for one in reversed([one for one in cls.__mro__ if one.__module__ != "pydantic.main"]):
        parts = re.split(_SECTIONS, inspect.cleandoc(one.__dict__.get("__doc__") or ""), flags=re.M)
        for section, text in zip(parts[1::2], parts[2::2], strict=True):
            if section == "Attributes":
                items = re.findall(r"^    (\w+): (.*(?:\n(?: {5,}.*)?)*)", text, re.M)
                found |= {name: in_markdown(" ".join(said.split())) for name, said in items}
    return found


def subclasses(base: type[T]) -> dict[str, type[T]]:
    """Return every class below `base`, by name."""
    found: dict[str, type[T]] = {}
    for cls in base.__subclasses__():
        found |= {cls.__name__: cls, **subclasses(cls)}
    return found


def in_markdown(text: str) -> str:
    """Return a docstring's text with code as Markdown has it."""
    return text.replace("``", "`")
