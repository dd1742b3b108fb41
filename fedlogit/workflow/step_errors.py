"""What went wrong with a step of the workflow, in one line from its log."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from fedlogit.papers.selection import choose_them

__all__ = ["error_in", "failure", "no_such_target"]

_ERROR = "error: "
# What there is no rule for with `frozen`; without, there is one for each.
_TRAINING = ("train", "train_clients", "export_logits", "aggregate", "ensemble")
_TRAINED = ("results/runs", "results/clients", "results/targets", "results/ensembles")


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


def no_such_target(target: str, known: Iterable[str], others: Iterable[str] = ()) -> str:
    """Return the error for a target that no rule makes, with the nearest rule or path.

    Args:
        target: What was asked for.
        known: What may be asked for.
        others: Papers that have a file, but are not chosen, so that no rule has their name.
    """
    known = list(known)
    if target in others:
        lacking = f"no rule makes {target!r}, for it is not among config.yaml's 'papers'"
        return f"{lacking}; {choose_them(target)}"
    if target in _TRAINING or (_folder(target) in _TRAINED and not _in_folder(target, known)):
        return f"no rule makes {target!r}: frozen = true leaves out the rules that train"
    near = _nearest_path(target, known) if "/" in target else _nearest_name(target, known)
    hint = f"; did you mean {near!r}?" if near else ""
    return f"no rule makes {target!r}{hint} (config/README.md lists the targets)"


def _nearest_name(target: str, known: Iterable[str]) -> str:
    names = [name for name in known if "/" not in name]
    return next(iter(difflib.get_close_matches(target, names, n=1, cutoff=0.5)), "")


def _nearest_path(target: str, known: list[str]) -> str:
    """Return the nearest path in the same folder, or in the one that may have been misspelt."""
    # A path is less like its pattern, with wildcards, than a misspelt folder is like the right one.
    folders = {_folder(path) for path in known if "/" in path}
    of = difflib.get_close_matches(_folder(target), folders, n=1, cutoff=0.8)
    paths = _in_folder(of[0], known) if of else []
    return next(iter(difflib.get_close_matches(target, paths, n=1, cutoff=0)), "")


def _in_folder(target: str, known: Iterable[str]) -> list[str]:
    return [path for path in known if "/" in path and _folder(path) == _folder(target)]


def _folder(path: str) -> str:
    """Return the first two names of a path, which say what it is of."""
    return "/".join(path.split("/")[:2])


def _lines(log: str) -> list[str]:
    path = Path(log)
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
