"""The commands there are: their names, what each does, and their modules."""

from __future__ import annotations

import ast
import gc
import os
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

from fedlogit import commands
from fedlogit.errors import missing_package, unknown

__all__ = ["command_names", "first_line", "load"]


def command_names() -> list[str]:
    """Return the names of all commands, in order."""
    modules = pkgutil.iter_modules(commands.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def load(name: str) -> ModuleType:
    """Import a command, and with it what it needs.

    Raises:
        FedlogitError: for an unknown command, or if a package is not installed.
        ModuleNotFoundError: if the library lacks a module of its own.
    """
    if name not in command_names():
        raise unknown("command", name, command_names())
    # Before PyTorch is imported: threads that spin while they wait starve others.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    gc.disable()  # it would look through all that is imported again and again
    try:
        return import_module(f"{commands.__name__}.{name}")
    except ModuleNotFoundError as error:
        raise missing_package(error, name, "make environment") from error
    finally:
        gc.enable()
        gc.freeze()


def first_line(name: str) -> str:
    """Return what a command does, in the first line of its file, which is not imported."""
    source = Path(commands.__path__[0], f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
