"""Shared pieces: a small run on real data (scikit-learn's digits) that takes a second."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

# Tests share the cores with each other: threads that wait for one another would wait for long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from support.small import TEXT, built, small_spec
from support.warm_python import warm_python

from fedlogit import methods
from fedlogit.data import Dataset, load, with_probes
from fedlogit.federation import Federation
from fedlogit.runs.context import RunOptions
from fedlogit.runs.run import run
from fedlogit.runs.setup import divide
from fedlogit.spec import RunSpec, Text

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts background jobs with Ctrl-C ignored; what tests start would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Their tests share a checkout or workflow that takes long to make, and follow each other.
IN_ONE_PIECE = (
    "tests/docs/test_documented_commands.py",
    "tests/docs_site/test_site.py",
    "tests/workflow/test_dag",  # of two modules
)


def piece(nodeid: str) -> str:
    """Return the beginning of names that are dealt out together with a test, or its own name."""
    return next((start for start in IN_ONE_PIECE if nodeid.startswith(start)), nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a Python of its own; between workers, deal out long tests first."""
    for item in items:
        if "python" in item.fixturenames:  # which starts with seconds of imports
            item.add_marker("slow")
    if "PYTEST_XDIST_WORKER" in os.environ:  # so that no worker is left with one at the end
        items.sort(key=lambda item: (piece(item.nodeid) == item.nodeid,
                                     not item.get_closest_marker("slow")))  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Deal out tests singly, but those of some modules in one piece (pytest --dist loadgroup)."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Pieces(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return piece(nodeid)

    return Pieces(config, log)


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> Iterator[Path]:
    """A program that runs scripts as Python does, without waiting for their imports."""
    with warm_python(tmp_path_factory.mktemp("python")) as program:
        yield program


@pytest.fixture(scope="session")
def digits(tmp_path_factory) -> Dataset:
    return load("digits", tmp_path_factory.mktemp("prepared"))


@pytest.fixture(scope="session")
def data_of(digits, tmp_path_factory) -> Callable[[RunSpec], Dataset]:
    """Return a function from a spec to its data set; the text is tokenised once."""

    @cache
    def docstrings() -> Dataset:
        pytest.importorskip("tokenizers", reason="prepares a text, which needs tokenizers")
        text = Text.read(TEXT["text"], "test")
        return load("sklearn_docs", tmp_path_factory.mktemp("prepared"), text)

    return lambda spec: docstrings() if spec.text else digits


@pytest.fixture(scope="session")
def tiles(digits, tmp_path_factory):
    """A spec whose probes are scikit-learn's photographs in tiles, and digits with them."""
    pytest.importorskip("PIL", reason="scikit-learn reads photographs with Pillow")
    public = {"size": 60, "stratified": False, "dataset": "photos8"}
    spec = small_spec(method="tally_train(warm_up=0, label_weight=0.0)", public=public)
    return spec, with_probes(digits, "photos8", tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def federation(data_of):
    """Return a function from spec changes to a fresh federation."""

    def build(
        workers: int = 1,
        data: Dataset | None = None,
        device: str = "cpu",
        engine: str = "loop",
        **changes,
    ) -> Federation:
        spec = small_spec(**changes)
        return built(spec, data or data_of(spec), workers=workers, device=device, engine=engine)

    return build


@pytest.fixture
def train(data_of, tmp_path):
    """Return a function that runs a small spec and returns its folder."""

    def go(
        folder: Path | None = None,
        *,
        workers: int = 1,
        every: float = 60,
        device: str = "cpu",
        engine: str = "loop",
        data: Dataset | None = None,
        **changes,
    ) -> Path:
        spec = small_spec(**changes)
        folder = folder or tmp_path / spec.digest()[:8]
        options = RunOptions(torch.device(device), workers, engine, every, progress=False)
        data = data or data_of(spec)
        run(spec, methods.get(spec.method), data, divide(spec, data), folder, options)
        return folder

    return go


@pytest.fixture(scope="session")
def reference(data_of, tmp_path_factory) -> Callable[..., Path]:
    """Return a function that runs a small spec as the loop does, with one worker, on the CPU.

    Each is trained once, whoever of pytest's workers asks first, and left as it is.
    """
    folders = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folders = folders.parent  # which all of them have
    (folders / "references").mkdir(exist_ok=True)

    def go(*, data: Dataset | None = None, **changes) -> Path:
        spec = small_spec(**changes)
        found = data or data_of(spec)
        folder = folders / "references" / f"{spec.digest()[:16]}-{found.x_train.shape[1]}"
        with FileLock(f"{folder}.lock"):
            if not (folder / "result.json").exists():
                options = RunOptions(torch.device("cpu"), progress=False, engine="loop")
                method, division = methods.get(spec.method), divide(spec, found)
                run(spec, method, found, division, folder, options)
        return folder

    return go


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what was imported and collected out of the garbage collector's way."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True)
def interrupt_as_before() -> Iterator[None]:
    """Undo what a command called in this process does to Ctrl-C when it has ended."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def own_modules(tmp_path, monkeypatch) -> None:
    """Modules of one's own are those in tmp_path, and not what other tests imported as such."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("own_")]:
        monkeypatch.delitem(sys.modules, name)
