"""Write results/code_versions.csv: of which commit the code is that made each published run.

A result names its code by a digest of the sources that a run executes (`code_version`). This walks
git's history, computes that digest of each commit's tree, and names the first commit that has it. A
version without one was made from a working tree that was never committed as it was.

python scripts/code_versions.py; with --check it only compares.
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.errors import FedlogitError
from fedlogit.runs import layout
from fedlogit.runs.library_code import is_source, version_of
from scripts._generated import checking_parser, write_or_check
from scripts._published import published_records

_PACKAGE = "fedlogit"
_INIT = PurePosixPath("__init__.py")
_VERSION = re.compile(rb'^__version__ = "(.+)"', re.MULTILINE)
_COLUMNS = ("version", "commit", "committed", "runs", "first_started", "last_finished")


@dataclass(frozen=True)
class Commit:
    """A commit: its hash and when it was made, in UTC."""

    hash: str
    time: str


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = checking_parser(__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project's checkout")
    args = parser.parse_args(argv)
    path = args.root / "results" / "code_versions.csv"
    text = table(published_facts(args.root), versions(args.root))
    why = "is not what history says; run make code-versions"
    return write_or_check({path: text}, why, check=args.check)


def table(facts: Iterable[Mapping[str, Any]], commits: Mapping[str, Commit]) -> str:
    """Return the file: a row per version, in the order in which runs were begun.

    Args:
        facts: What each published run recorded of where it comes from.
        commits: The first commit of each version of the code.
    """
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for fact in sorted(facts, key=lambda fact: str(fact["started"])):
        runs.setdefault(fact["code_version"], []).append(fact)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for version, made in runs.items():
        commit = commits.get(version, Commit("", ""))
        times = made[0]["started"], max(str(fact["finished"]) for fact in made)
        writer.writerow([version, commit.hash, commit.time, len(made), *times])
    return lines.getvalue()


def published_facts(root: Path) -> Iterator[dict[str, Any]]:
    """Yield the `provenance` of each published run.

    Raises:
        DataError: if the cache lacks one.
    """
    for (result,) in published_records(root, layout.RESULT):
        yield result["provenance"]


def versions(root: Path) -> dict[str, Commit]:
    """Return each version of the code that history has, and its first commit.

    Raises:
        FedlogitError: if there is no history, or only the end of it.
    """
    if _git(root, "rev-parse", "--is-shallow-repository").strip() == b"true":
        raise FedlogitError(f"{root} has only the end of git's history; git fetch --unshallow")
    log = ("log", "--full-history", "--date=format-local:%FT%TZ", "--format=%H %cd")
    lines = _git(root, *log, "--", _PACKAGE).decode().splitlines()
    commits = [Commit(*line.split()) for line in reversed(lines)]  # the oldest first
    trees = [_sources(root, commit) for commit in commits]
    blobs = _blobs(root, {digest for tree in trees for digest in tree.values()})
    found: dict[str, Commit] = {}
    for commit, tree in zip(commits, trees, strict=True):
        sources = {name: blobs[digest] for name, digest in tree.items()}
        version = _VERSION.search(sources[_INIT])
        if version:
            found.setdefault(version_of(version[1].decode(), sources), commit)
    return found


def _sources(root: Path, commit: Commit) -> dict[PurePath, str]:
    """Return the blob of each source that a run executed at a commit, by its name in the package.

    The rule has had fewer folders and kinds of files; a tree of that time has none of the others.
    """
    listed = _git(root, "ls-tree", "-r", "-z", f"{commit.hash}:{_PACKAGE}").decode()
    found = {}
    for entry in listed.split("\0")[:-1]:
        about, _, name = entry.partition("\t")
        if is_source(PurePosixPath(name)):
            found[PurePosixPath(name)] = about.split()[2]
    return found


def _blobs(root: Path, digests: Collection[str]) -> dict[str, bytes]:
    """Return the content of blobs, by their digest."""
    listed = "".join(f"{digest}\n" for digest in digests)
    answer = io.BytesIO(_git(root, "cat-file", "--batch", given=listed))
    found = {}
    for header in iter(answer.readline, b""):  # its digest, type and size; then as many bytes
        digest, _, size = header.split()
        found[digest.decode()] = answer.read(int(size))
        answer.readline()
    return found


def _git(root: Path, *command: str, given: str = "") -> bytes:
    """Return what a command of git prints.

    Raises:
        FedlogitError: in git's last line, if it fails.
    """
    done = subprocess.run(
        ["git", *command],
        cwd=root,
        input=given.encode(),
        capture_output=True,
        check=False,
        env=os.environ | {"TZ": "UTC"},
    )
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise FedlogitError(f"git {command[0]} in {root}: {message}")
    return done.stdout


if __name__ == "__main__":
    run_main(main)
