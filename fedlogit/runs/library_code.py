"""Which code of the library a run executes: a digest of it, and its commit. Without PyTorch."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

import fedlogit

__all__ = ["code_version", "commit_facts", "imported_code_version", "is_source", "version_of"]

# What a run's numbers come from; not tables, figures and plans.
_FOLDERS = (
    "aggregation",
    "data",
    "engine",
    "federation",
    "methods",
    "models",
    "partition",
    "runs",
)
_SUFFIXES = (".py", ".cpp", ".h")
_GIT_SECONDS = 10  # after which a run begins without saying of which commit it is


def is_source(path: PurePath) -> bool:
    """Return whether a file, named from the package's folder, is code that a run executes."""
    if len(path.parts) == 1:
        return path.suffix == ".py"
    return path.parts[0] in _FOLDERS and path.suffix in _SUFFIXES


def version_of(version: str, sources: Mapping[PurePath, bytes]) -> str:
    """Return a version of the package with a digest of its sources, by their names in it."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.as_posix().encode())
        digest.update(sources[path])
    return f"{version}+{digest.hexdigest()[:12]}"


def code_version() -> str:
    """Return the package's version and a digest of the sources that a run executes."""
    root = _root()
    there = chain(root.glob("*"), *((root / folder).rglob("*") for folder in _FOLDERS))
    names = {path: path.relative_to(root) for path in there}
    return version_of(
        fedlogit.__version__,
        {name: path.read_bytes() for path, name in names.items() if is_source(name)},
    )


@cache
def imported_code_version() -> str:
    """Return `code_version` as it was when this process first asked, soon after it imported it.

    A process that trains for hours executes what it imported, whatever was edited since.
    """
    return code_version()


def commit_facts() -> dict[str, Any]:
    """Return the `commit` that is checked out, and whether sources of a run are `uncommitted`.

    Returns:
        Nothing where the package is in no commit, or git is not there or refuses.
    """
    # HEAD's own file: a package installed below a checkout of something else is none of its files.
    head = _git("rev-parse", "HEAD", "HEAD:./__init__.py")
    inside = [f":(glob){folder}/**/*{suffix}" for folder in _FOLDERS for suffix in _SUFFIXES]
    changed = _git("status", "--porcelain", "--untracked-files=all", "--", ":(glob)*.py", *inside)
    if head is None or changed is None:
        return {}
    return {"commit": head.split()[0], "uncommitted": bool(changed)}


def _git(*command: str) -> str | None:
    """Return what a command of git prints about the package's folder; None if it fails."""
    # A hook's variables name its repository, which need not be the package's.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *command],
            cwd=_root(),
            env=env,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _root() -> Path:
    return Path(fedlogit.__file__).parent
