"""Run tests on a changed copy of the project: the libraries are imported once, then forked.

Importing PyTorch takes longer than most mutants live. The parent imports libraries, never the
project; a child imports the project's copy, runs pytest on it and ends.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("torch", "torch.func", "numpy", "scipy.stats", "pandas", "seaborn", "pydantic", "yaml",
             "matplotlib.pyplot", "safetensors.torch", "sklearn.datasets", "sklearn.ensemble",
             "sklearn.mixture", "sklearn.metrics", "hypothesis", "pytest")  # fmt: skip
# What tests of the scopes read; the rest of the repository, its cache among it, is not copied.
COPIED = ("fedlogit", "tests", "scripts", "workflow", "config", "config.yaml", "docs", "examples",
          "pyproject.toml", "data/sources.yaml", "data/fed_isic2019_counts.csv",
          "results/record.csv")  # fmt: skip
_CHANGES = ("fedlogit", "tests", "scripts", "workflow", "pyproject.toml")


@dataclass(frozen=True)
class Change:
    """A module's text with one mutation.

    Attributes:
        file: Path of the module in the project.
        start: Where `new` takes the place of what is there.
        end: Where that ends.
        new: The new piece.
    """

    file: str
    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Outcome:
    """How tests of a mutant ended.

    Attributes:
        status: ``killed``, ``import`` (the tests could not even be collected), ``timeout``,
            ``crashed``, or ``survived``.
        seconds: What it took.
        by: The test that failed first, where one did.
    """

    status: str
    seconds: float
    by: str = ""


class Tree:
    """A copy of the project in a folder of its own, with at most one change at a time."""

    def __init__(self, project: Path, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in COPIED:
            source, target = project / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():  # with what is compiled: it has its source's time, as the copy
                shutil.copytree(source, target)
            elif source.exists():
                shutil.copy2(source, target)

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Make a change and take it back."""
        path = self.folder / change.file
        text, times = path.read_text("utf-8"), path.stat()
        path.write_text(text[: change.start] + change.new + text[change.end :], "utf-8")
        # Python takes compiled code for current by the source's time and size.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 10_000_000_000))
        try:
            yield
        finally:
            path.write_text(text, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def digest(project: Path, tests: Sequence[str]) -> str:
    """Return a digest of all that can change how these tests of a mutant end."""
    found = hashlib.sha256()
    for top in _CHANGES:
        for path in sorted([project / top, *(project / top).rglob("*")]):
            name = path.relative_to(project).as_posix()
            ours = "mutation" in path.parts or path.name.startswith("mutants")
            other = path.name.startswith("test_") and name not in tests
            if path.is_file() and path.suffix != ".pyc" and not ours and not other:
                found.update(f"{name}\n".encode() + path.read_bytes())
    return found.hexdigest()


def import_libraries() -> None:
    """Import what the children need, in one thread: a forked process has no other."""
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    for library in LIBRARIES:
        with suppress(ModuleNotFoundError):
            __import__(library)
    gc.collect()
    gc.freeze()  # pytest collects garbage at its end; a child need not look at the libraries


class Run:
    """A forked child that runs tests in a tree; `poll` says whether and how it ended."""

    def __init__(
        self, tree: Path, tests: Sequence[str], limit: float, log: Path, *, compiled: bool = False
    ) -> None:
        """Start tests; `compiled` lets Python keep what it compiles, as none of it is changed."""
        self._begun, self._limit = time.monotonic(), limit
        self._said = log.with_suffix(".json")
        self._said.unlink(missing_ok=True)
        self._pid = os.fork()
        if self._pid == 0:
            sys.dont_write_bytecode = not compiled
            _child(tree, tests, log, self._said)

    def poll(self) -> Outcome | None:
        """Return the outcome, or None while the tests run; end them at their limit."""
        seconds = time.monotonic() - self._begun
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._end_group()
            return self._ended(os.waitstatus_to_exitcode(status), seconds)
        if seconds < self._limit:
            return None
        self.stop()
        return Outcome("timeout", seconds)

    def stop(self) -> None:
        """End tests that still run."""
        os.kill(self._pid, signal.SIGKILL)  # it may not have its group yet
        os.waitpid(self._pid, 0)
        self._end_group()

    def _end_group(self) -> None:
        """End what the tests started and left."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)

    def _ended(self, code: int, seconds: float) -> Outcome:
        # pytest: 0 all passed, 1 some failed, 2 not collected, 3 pytest's own fault, 4 no conftest
        statuses = {0: "survived", 1: "killed", 2: "import", 4: "import"}
        if code < 0:
            return Outcome("crashed", seconds)
        if code not in statuses:
            raise RuntimeError(f"pytest ended with {code}, which says nothing about a mutant")
        by = json.loads(self._said.read_text()) if self._said.exists() else ""
        return Outcome(statuses[code], seconds, by)


class _Witness:
    """A pytest plugin that writes down which test failed first."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed and not self._file.exists():
            self._file.write_text(json.dumps(report.nodeid))


def _child(tree: Path, tests: Sequence[str], log: Path, said: Path) -> None:
    """Run tests and end the process; never returns."""
    code = 3
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(tree)
        os.environ |= {
            "PYTHONPATH": str(tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # other packages' take a second
            "HYPOTHESIS_STORAGE_DIRECTORY": str(log.with_suffix(".examples")),
        }
        sys.path[:0] = [str(tree), str(tree / "tests")]
        sys.argv = ["pytest"]
        import pytest

        options = ["-x", "-q", f"--rootdir={tree}", "-p", "no:cacheprovider",
                   "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0",
                   f"--basetemp={log.with_suffix('.tmp')}"]  # fmt: skip
        code = int(pytest.main([*options, *tests], plugins=[_Witness(said)]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
