"""Fetch the published runs that are not here, and say which could not be had.

    python -m fedlogit pull
    python -m fedlogit pull --remote lab

Runs that are here stay as they are, whoever made them: the same spec gives the same numbers, but
not the same file, as `result.json` says how long training took and where. `dvc pull` alone refuses
to go on where it meets one of those, and fetches none of the others.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedlogit.commands._cache import call_dvc, dvc, errors_of, first_error, is_here, kept, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")
    parser.add_argument("--remote", help="fetch from this remote of DVC instead of the default")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    outs = kept(args.runs.with_suffix(".dvc"))
    missing = {run: out for run, out in outs.items() if not is_here(args.runs / run)}
    reasons = pull(args.runs, missing, len(missing) == len(outs), args.remote) if missing else {}
    return tell(args.runs, outs, reasons)


def pull(
    runs: Path, missing: Mapping[str, Mapping[str, Any]], whole: bool, remote: str | None
) -> dict[str, str]:
    """Fetch runs and put them into their folders, each one that can be had.

    Args:
        runs: The folder of all runs.
        missing: What the list says of those to fetch.
        whole: Whether that is the whole list, which DVC does in half the time.
        remote: A remote of DVC; None is the default one.

    Returns:
        For each run that is still not there, the reason.
    """
    listing = str(runs.with_suffix(".dvc"))
    targets = [listing] if whole else [str(runs / run) for run in missing]
    of_remote = ["--remote", remote] if remote else []
    # Not `dvc pull`, which puts nothing in its place if it lacks a single file.
    fetched = call_dvc("fetch", *of_remote, *targets)
    gone = _GONE.findall(fetched.stderr)
    if fetched.returncode and not gone and not _transfers(fetched):  # nothing was asked for at all
        return dict.fromkeys(missing, first_error(fetched))
    with _removed_if_interrupted([runs / run for run in missing]):
        placed = call_dvc("checkout", *targets)
    if not fetched.returncode and not placed.returncode:
        return {}
    lost = [run for run in missing if not is_here(runs / run)]
    cache = Path(dvc("cache", "dir").strip(), "files", "md5")
    return {run: _reason(runs / run, missing[run]["md5"], cache, gone, of_remote) for run in lost}


@contextmanager
def _removed_if_interrupted(folders: Sequence[Path]) -> Iterator[None]:
    """Leave no part of a run that was not here before: it would count as one made here."""
    try:
        yield
    except BaseException:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        raise


_GONE = re.compile(r"^md5: ([0-9a-f]{32}\.dir)$", re.MULTILINE)


def _transfers(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what DVC says of single files that it could not fetch."""
    return [line for line in errors_of(done) if line.startswith("failed to transfer")]


def _reason(
    folder: Path, tree: str, cache: Path, gone: Sequence[str], of_remote: Sequence[str]
) -> str:
    """Return why a run could not be fetched.

    Args:
        folder: The run's folder.
        tree: The digest of its list of files.
        cache: Where DVC keeps what it fetched.
        gone: Lists of files that the remote lacks.
        of_remote: DVC's option for the remote.
    """
    if tree in gone:
        return f"the remote has no list of its files, {tree}"
    if not _in(cache, tree).exists():
        alone = _transfers(call_dvc("fetch", *of_remote, str(folder)))
        return alone[0] if alone else f"the list of its files is damaged in the remote ({tree})"
    for item in json.loads(_in(cache, tree).read_text()):
        if not _in(cache, item["md5"]).exists():
            return f"{item['relpath']} is damaged in the remote ({item['md5']})"
    return f"dvc pull {folder} says why"


def _in(cache: Path, digest: str) -> Path:
    """Return where DVC keeps what has a digest."""
    return cache / digest[:2] / digest[2:]
