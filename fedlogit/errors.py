"""Errors that a user can act on: one line that names the key, the value and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "Cannot",
    "DataError",
    "Diverged",
    "FedlogitError",
    "MissingKeyError",
    "missing_package",
    "unknown",
]


class FedlogitError(ValueError):
    """A mistake in what the user gave; its message is one line and complete."""


class DataError(FedlogitError):
    """A file that is missing, truncated, corrupt, mislabelled or of the wrong shape."""


class Cannot(FedlogitError):
    """A method says that it cannot do what a run asks of it; nothing is wrong with the run.

    A table has "n/a" in the place of such a run, and below it why.

    Attributes:
        what: The setting that asks for it, as ``models = lenet, mlp``.
        method: The method's name.
        why: What the method does or lacks, as what follows its name in a sentence.
    """

    def __init__(self, what: str, method: str, why: str) -> None:
        """Say it in one line."""
        super().__init__(f"{what}: method {method} {why}")
        self.what, self.method, self.why = what, method, why


class MissingKeyError(FedlogitError):
    """Nothing else is wrong, but a key that must be given is not."""


class Diverged(FedlogitError):
    """Training produced a value that is not finite."""


def missing_package(
    error: ModuleNotFoundError, needed_by: str, remedy: str, package: str = ""
) -> FedlogitError:
    """Return the error for a package that is not installed.

    Args:
        error: Of the import.
        needed_by: What cannot be done without it.
        remedy: What to do.
        package: The only one that may be missing; "" allows any from outside.

    Raises:
        ModuleNotFoundError: `error` itself, if another module is missing, or one of this library:
            that is no mistake of the user's, and its traceback says whose.
    """
    top = str(error.name).partition(".")[0]
    if top == __name__.partition(".")[0] or package not in ("", top):
        raise error
    lacking = package or error.name
    return FedlogitError(
        f"{needed_by} needs the package {lacking}, which is not installed; {remedy}"
    )


def unknown(kind: str, name: object, options: Iterable[str]) -> FedlogitError:
    """Return the error for a name that is not among `options`, with the nearest one suggested."""
    names = sorted(options)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return FedlogitError(f"unknown {kind} {name!r}{hint} (one of: {', '.join(names)})")
