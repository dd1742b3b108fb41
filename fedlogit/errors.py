"""Errors that a user can act on: one line that names the key, the value and what would be right."""

from __future__ import annotations

import difflib
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import TracebackType

__all__ = [
    "LONGEST_SHOWN",
    "DataError",
    "Diverged",
    "FedlogitError",
    "MissingKeyError",
    "Unsupported",
    "did_you_mean",
    "missing_package",
    "own_line",
    "reading",
    "shown",
    "unknown",
    "writing",
]


LONGEST_SHOWN = 100
"""Letters of a value that a message repeats."""


class FedlogitError(ValueError):
    """A mistake in what the user gave; its message is one line and complete."""


class DataError(FedlogitError):
    """A file that is missing, truncated, corrupt, mislabelled or of the wrong shape."""


class Unsupported(FedlogitError):
    """A method does not support what a run asks of it; nothing is wrong with the run's spec.

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


@contextmanager
def reading(path: str | PathLike[str], hint: str = "") -> Iterator[None]:
    """Turn an error of reading a file or folder into one line that names it.

    Args:
        path: The file or folder.
        hint: What to do, for the end of the message.

    Raises:
        DataError: in place of an OSError, or of a text that is not UTF-8.
    """
    try:
        yield
    except OSError as error:
        raise DataError(_with_hint(f"cannot read {path}", error, hint)) from None
    except UnicodeDecodeError as error:
        hint = hint or "save it as UTF-8"
        raise DataError(f"{path} is not UTF-8: {error}; {hint}") from None


@contextmanager
def writing(path: str | PathLike[str], hint: str = "") -> Iterator[None]:
    """Turn an error of writing a file or folder into one line that names it.

    The arguments are those of `reading`.

    Raises:
        FedlogitError: in place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise FedlogitError(_with_hint(f"cannot write {path}", error, hint)) from error


def _with_hint(what: str, error: OSError, hint: str) -> str:
    return "; ".join(filter(None, [f"{what}: {error.strerror or error}", hint]))


def missing_package(
    error: ModuleNotFoundError, needed_by: str, hint: str, package: str = ""
) -> FedlogitError:
    """Return the error for a package that is not installed.

    Args:
        error: Of the import.
        needed_by: What cannot be done without it.
        hint: What to do.
        package: The only one that may be missing; "" allows any from outside.

    Raises:
        ModuleNotFoundError: `error` itself, if another module is missing, or one of this library:
            that is no mistake of the user's, and its traceback says whose.
    """
    top = str(error.name).partition(".")[0]
    if top == __name__.partition(".")[0] or package not in ("", top):
        raise error
    lacking = package or error.name
    return FedlogitError(f"{needed_by} needs the package {lacking}, which is not installed; {hint}")


def shown(value: object) -> str:
    """Return a value as a message repeats it; only the beginning of a long one."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def unknown(kind: str, name: object, options: Iterable[str]) -> FedlogitError:
    """Return the error for a name that is not among `options`, with the nearest one suggested."""
    names = sorted(options)
    hint = did_you_mean(name, names)
    known = f"one of: {', '.join(names)}" if names else "there are none"
    return FedlogitError(f"unknown {kind} {shown(name)}{hint} ({known})")


def own_line(where: TracebackType | None, skipped: str = "") -> str:
    """Return the last line of ours or the user's that was running, not one of a library.

    Args:
        where: The traceback of an exception.
        skipped: A file whose lines do not count.

    Returns:
        As ``method.py line 12``; "" if there is none.
    """
    libraries = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib"))
    names = [
        (Path(frame.filename).name, frame.lineno)
        for frame in traceback.extract_tb(where)
        if not frame.filename.startswith((*libraries, "<frozen")) and frame.filename != skipped
    ]
    return "{} line {}".format(*names[-1]) if names else ""


def did_you_mean(name: object, options: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the nearest of some names, or "" if none is near."""
    near = difflib.get_close_matches(str(name), list(options), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
