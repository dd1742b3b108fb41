"""The files that a module imports from its own folder, found without importing anything."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import fedlogit

__all__ = ["imported_sources"]

_LIBRARIES = [Path(sysconfig.get_paths()[key]) for key in ("stdlib", "purelib", "platlib")]


def imported_sources(name: str, file: Path) -> list[Path]:
    """Return the sources that a module imports, directly or not, from where it is imported from.

    Its own file is the first. An import in a function counts, one by `importlib` does not. What an
    installed library imports does not count, nor does this package, which has versions.

    Args:
        name: The module's name, such as ``package.module``.
        file: Its source.
    """
    if any(file.is_relative_to(folder) for folder in _LIBRARIES):
        return [file]
    depth = name.count(".") + (file.name == "__init__.py")
    root = file.parents[depth]
    # Python also runs the packages that the module lies in.
    found = list(dict.fromkeys([file, *_files([tuple(name.split("."))], root)]))
    for source in found:  # which grows
        modules = _imported_modules(source, source.stat().st_mtime_ns, root)
        found += [path for path in _files(modules, root) if path not in found]
    return found


@cache  # a plan asks for the same module in each of its runs
def _imported_modules(file: Path, changed: int, root: Path) -> tuple[tuple[str, ...], ...]:
    """Return the modules that a source may import, by the parts of their names; none if no Python.

    Args:
        file: The source.
        changed: When it was, so that another version is read anew.
        root: Where names begin.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    package = file.relative_to(root).parent.parts
    names: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # One dot is the file's own package, each further one a folder above it.
            above = package[: max(0, len(package) - node.level + 1)] if node.level else ()
            module = (*above, *filter(None, (node.module or "").split(".")))
            names += [(*module, alias.name) for alias in node.names]
    return tuple(dict.fromkeys(names))


def _files(modules: Iterable[tuple[str, ...]], root: Path) -> Iterator[Path]:
    """Yield, once, each source of modules and of the packages that they lie in."""
    starts = (parts[:end] for parts in modules for end in range(1, len(parts) + 1))
    for parts in dict.fromkeys(starts):
        if parts[0] == fedlogit.__name__:
            continue
        place = root.joinpath(*parts)
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file():
                yield path
