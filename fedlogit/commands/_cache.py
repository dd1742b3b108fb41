"""The cache of finished runs: its list, a ``.dvc`` file; what is here of it; calls of DVC."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

from fedlogit.commands._error_lines import print_first
from fedlogit.errors import DataError, FedlogitError
from fedlogit.results.formatting import write_text
from fedlogit.results.runs.finished import check_run
from fedlogit.runs import layout

__all__ = [
    "changed_runs",
    "dvc",
    "is_here",
    "nonempty_listing",
    "print_cache_state",
    "read_listing",
    "remove_temporary",
    "write_listing",
]

# Names that start with a letter, digit or _: neither . nor .., nor hidden, nor empty.
_RUN = re.compile(r"(?:\w[\w.+-]{0,79}/){3}seed[0-9]{1,19}-[0-9a-f]{8}")
_DEPTH = 4  # the parts of that path
_LIST = re.compile(r"[0-9a-f]{32}\.dir")
_TRANSFERRED = re.compile(r"\.[\w-]{22}\.tmp")  # DVC's name of an object in the making
_BROKEN_LOCKS = re.compile(r"Unable to read RWLock-file '(.+)'\. JSON structure is corrupted")
_HEADER = "# The published runs, one output each. `snakemake publish` adds to this file.\n"
# libyaml's, where PyYAML has it: a list of thousands of runs takes seconds without.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read_listing(path: Path, root: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the outputs that a ``.dvc`` file lists, by run.

    Args:
        path: The file.
        root: The name of the folder of runs beside it; None: that of the file, less its suffix.

    Raises:
        FedlogitError: if it is not such a file, or an entry is none of a run: whoever wrote it
            would decide which files here are written.
    """
    if not path.exists():
        return {}
    try:
        outs = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)["outs"]  # noqa: S506
    except (yaml.YAMLError, ValueError, KeyError, TypeError):
        outs = None
    if not isinstance(outs, list):
        raise FedlogitError(f"{path} is not a list of DVC's outputs; git checkout it")
    found: dict[str, dict[str, Any]] = {}
    for number, out in enumerate(outs, 1):
        run = _listed_run(out, root or path.stem, f"{path}: outs, entry {number}")
        if run in found:
            raise FedlogitError(
                f"{path}: outs, entry {number}: {run} is listed twice; list it once"
            )
        found[run] = out
    return found


def _listed_run(out: Any, root: str, where: str) -> str:
    """Return the run, as a path below the folder of runs, of one entry of a list of outputs.

    Raises:
        FedlogitError: if the entry is none of a run; `where` names it.
    """
    if not isinstance(out, dict):
        raise FedlogitError(f"{where}: {_short(out)} is no output of DVC; git checkout the file")
    first, _, run = str(out.get("path")).partition("/")
    checks = {
        "path": (
            isinstance(out.get("path"), str) and first == root and bool(_RUN.fullmatch(run)),
            f"{root}/DATASET/PARTITION/METHOD/seedN-HASH, with 8 hexadecimal digits as HASH",
        ),
        "md5": (bool(_LIST.fullmatch(str(out.get("md5")))), "32 hexadecimal digits and .dir"),
        "size": (type(out.get("size")) is int and out["size"] >= 0, "a number of bytes"),
    }
    for key, (is_right, wanted) in checks.items():
        if not is_right:
            given = _short(out[key]) if key in out else "missing"
            raise FedlogitError(
                f"{where}: {key} is {given}, should be {wanted}; git checkout the file"
            )
    return run


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"


def write_listing(path: Path, outs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a ``.dvc`` file with these outputs, in the order of their names."""
    listed = [dict(outs[run]) for run in sorted(outs)]
    text = yaml.dump({"outs": listed}, Dumper=_DUMPER, sort_keys=False)
    write_text(path, _HEADER + text)


def nonempty_listing(listing: Path) -> dict[str, dict[str, Any]]:
    """Return what `read_listing` does, of a list that has runs.

    Raises:
        DataError: if it has none, or is missing.
    """
    outs = read_listing(listing)
    if not outs:
        raise DataError(f"{listing} lists no run; git checkout it")
    return outs


def is_here(folder: Path) -> bool:
    """Return whether a run's folder has anything in it; DVC makes all folders first."""
    return folder.is_dir() and any(folder.iterdir())


def print_cache_state(
    runs: Path,
    outs: dict[str, dict[str, Any]],
    reasons: dict[str, str],
    perhaps_own: Collection[str],
) -> int:
    """Print what the cache has, what is here of it, and each run that is not whole.

    Args:
        runs: The folder of runs.
        outs: The runs of the cache, as from `read_listing`.
        reasons: Why a run that is missing could not be pulled, where that is known.
        perhaps_own: Runs that may have been made here: all but those that were pulled just now.

    Returns:
        An exit code: 2 if a run is missing or damaged.
    """
    here = [run for run in outs if is_here(runs / run)]
    unfinished = [run for run in here if not (runs / run / layout.RESULT).exists()]
    finished = sorted({*here} - {*unfinished})
    bar = tqdm(finished, "Runs checked", unit="run", disable=None)
    damaged = {run: reason for run in bar if (reason := _damage(runs, runs / run))}
    size = sum(out["size"] for out in outs.values()) / 1e6
    print(f"cache: {len(outs)} finished runs, {size:.1f} MB; here: {len(finished)}")
    own = {*finished} & {*perhaps_own} - {*damaged}
    if own:  # or else DVC need not look at each file, which takes it a while
        own &= {*changed_runs(runs.with_suffix(".dvc"))}
    if own:
        print(
            f"{len(own)} of them are not the published files, as they were made here, and stay;"
            " dvc pull --force FOLDER puts the published run in the place of yours (which is one:"
            f" {runs / min(own)})"
        )
    print(
        "not in it: data sets (a run that is missing fetches its own from the official source),"
        " checkpoints, and runs at scale smoke and quick unless published by name"
    )
    missing = sorted({*outs} - {*here})
    wrong = [*map(partial(_unfinished, runs), unfinished)]
    wrong += [_missing(runs / run, reasons.get(run)) for run in missing]
    wrong += [f"error: {reason}" for reason in damaged.values()]
    print_first(wrong, Path("logs/cache.txt"))
    if damaged or missing:
        return 2
    print("Next: make figures draws what these runs cover; make reproduce trains the rest")
    return 0


def _get(folder: Path) -> str:
    """Return the command that fetches a run."""
    return f"python -m fedlogit pull {folder}"


def _unfinished(runs: Path, run: str) -> str:
    folder = runs / run
    return (
        f"left alone: {folder} is here and not finished; rm -r {folder}; {_get(folder)}"
        " has the published one"
    )


def _missing(folder: Path, why: str | None) -> str:
    return f"error: {folder} is missing; {why or _get(folder)}"


def _damage(root: Path, folder: Path) -> str:
    """Return what is wrong with a run, or ""."""
    try:
        check_run(root, folder)
    except FedlogitError as error:
        return f"{error}; rm -r {folder}; {_get(folder)} has the published one"
    return ""


def changed_runs(listing: Path) -> list[str]:
    """Return the published runs whose folder is not what was published."""
    status = json.loads(dvc("status", "--json", str(listing)))
    outs = [
        found["changed outs"]
        for entries in status.values()
        for found in entries
        if "changed outs" in found
    ]
    # DVC's paths are relative, however that of the list was given: a run is their end.
    return sorted(
        "/".join(Path(path).parts[-_DEPTH:])
        for out in outs
        for path, how in out.items()
        if how == "modified"
    )


def remove_temporary(objects: Path) -> None:
    """Remove what transfers that failed or were killed left half-written.

    Args:
        objects: A folder of DVC's objects, to which nobody is adding any.
    """
    for path in objects.glob("[0-9a-f][0-9a-f]/.*.tmp"):
        if _TRANSFERRED.fullmatch(path.name):
            path.unlink(missing_ok=True)


def dvc(*args: str) -> str:
    """Call DVC and return what it printed.

    Raises:
        FedlogitError: with the first error of its message, if it fails.
    """
    command = [sys.executable, "-m", "dvc", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and (broken := _broken_locks(done.stderr)):
        # DVC wrote its list of locks when the disk was full; it would refuse it for ever.
        broken.unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        message = errors[0].removeprefix("ERROR: ") if errors else done.stderr or done.stdout
        raise FedlogitError(f"dvc {args[0]} failed: {message.strip()}")
    return done.stdout


def _broken_locks(said: str) -> Path | None:
    """Return the list of locks that DVC could not read, if it is that of this repository.

    Args:
        said: DVC's messages; a path in them is only what they say.
    """
    here = Path.cwd()
    roots = (folder for folder in (here, *here.parents) if (folder / ".dvc").is_dir())
    own, found = next(roots, here) / ".dvc" / "tmp" / "rwlock", _BROKEN_LOCKS.search(said)
    return own if found and Path(found[1]).resolve() == own.resolve() else None
