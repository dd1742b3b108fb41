"""What went wrong with a step of the workflow, in one line from its log."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["error_in", "failure", "no_such_target"]

_ERROR = "error: "


def error_in(logs: Iterable[str]) -> str | None:
    """Return the line by which a program says that the same call would fail again, if it did.

    All programs of this project end with one (`fedlogit.cli`), for a mistake in what was given as
    for an exception that nobody expected. What was stopped by a signal, or killed, has none.
    """
    lines = [line for log in logs for line in _lines(log) if line.startswith(_ERROR)]
    return lines[-1] if lines else None


def failure(outputs: Iterable[str], logs: Iterable[str]) -> str:
    """Return a line for a step that failed: what it makes, where its log is, and its error."""
    logs = list(logs)
    made = next(iter(outputs), "a step")
    last = [line for log in logs for line in _lines(log) if line.strip()][-1:]
    error = error_in(logs) or "".join(last) or "it said nothing"
    return f"failed: {made} ({', '.join(logs) or 'no log'}): {error.removeprefix(_ERROR)}"


def no_such_target(target: str, known: Iterable[str]) -> str:
    """Return the error for a target that no rule makes, with the nearest rule or path."""
    # A path is less like its pattern, with wildcards, than a misspelt name is like the right one.
    near = difflib.get_close_matches(target, list(known), n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no rule makes {target!r}{hint} (config/README.md lists the targets)"


def _lines(log: str) -> list[str]:
    path = Path(log)
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
