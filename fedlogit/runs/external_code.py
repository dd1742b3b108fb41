"""Code from outside the library that a spec names as ``module:attribute``, without PyTorch."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import fedlogit
from fedlogit.files import file_digest
from fedlogit.runs.imported_sources import imported_sources

__all__ = ["external_code", "external_modules"]

# A name is looked for where a word begins, not at each of its letters, which takes their square.
_OUTSIDE = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*):[A-Za-z_]\w*")


def external_code(spec: Any) -> dict[str, str]:
    """Return a digest of each module outside the package that a spec names, by module.

    It covers the module's file and what that imports from the same folder or package, in turn.

    Args:
        spec: As plain data, complete or not.
    """
    found: dict[str, str] = {}
    for name in external_modules(spec):
        with suppress(ImportError, ValueError):  # it only looks like a name of code
            module = importlib.util.find_spec(name)
            if module and module.origin and Path(module.origin).is_file():
                found[name] = _digest(name, Path(module.origin))
    return found


def _digest(name: str, file: Path) -> str:
    """Return a short digest of a module's sources; of a single file, of the file alone."""
    digests = [file_digest(path) for path in imported_sources(name, file)]
    if len(digests) > 1:
        digests = [hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()]
    return digests[0][:12]


def external_modules(spec: Any) -> list[str]:
    """Return the modules outside fedlogit that a spec names as ``module:attribute``, in order.

    Texts of that form in parameters count, too.

    Args:
        spec: As plain data, complete or not.
    """
    matches = (match for text in _texts(spec) for match in _OUTSIDE.finditer(text))
    names = dict.fromkeys(match[1] for match in matches)
    return [name for name in names if name.partition(".")[0] != fedlogit.__name__]


def _texts(value: Any) -> Iterator[str]:
    """Yield every text within plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)
