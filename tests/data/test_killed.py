"""What a killed download, preparation or tokenisation left is gone after the next; not before."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from support.waiting import heard, until

from fedlogit.data.download import download
from fedlogit.data.prepare import prepare
from fedlogit.data.tokens import Tokens

FORK = multiprocessing.get_context("fork")
MIRROR = "  - {kind: mirror, format: npz}\n"
SPLITS = {split: np.arange(9, dtype=np.uint16) for split in ("train", "valid", "test")}


def hang(target: str) -> None:
    """Let copying or packing write a part of its file, and never end; in a process of its own."""

    def begin(*files: object, **_: object) -> None:
        file = files[-1] if target == "shutil.copyfile" else files[0].name
        Path(file).write_bytes(b"part")
        time.sleep(600)

    pytest.MonkeyPatch().setattr(target, begin)


@pytest.fixture
def start() -> Iterator[Callable[..., BaseProcess]]:
    """Return a function that starts a process, which hangs in `target` if one is given."""
    started = []

    def attempt(target: str, work: Callable[..., object], args: tuple) -> None:
        if target:
            hang(target)
        work(*args)

    def begin(work: Callable[..., object], *args: object, target: str = "") -> BaseProcess:
        process = FORK.Process(target=attempt, args=(target, work, args))
        process.start()
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.join()


def parts(folder: Path) -> list[Path]:
    """Return the files that were begun."""
    return [path for path in folder.rglob("*") if path.is_file() and path.read_bytes() == b"part"]


def test_a_killed_download(start, tiny, mirror, sources, tmp_path):
    folder, path = tmp_path / "data", sources(MIRROR)
    work = (download, "tiny", folder / "raw", mirror, path)
    first = start(*work, target="shutil.copyfile")
    until(lambda: parts(folder))
    first.kill()
    first.join()
    assert parts(folder)
    download("tiny", folder / "raw", mirror, path)
    assert [path.name for path in folder.iterdir()] == ["raw"]


def test_a_download_waits_for_another_and_leaves_its_files(
    start, tiny, mirror, sources, tmp_path, capfd
):
    folder, path = tmp_path / "data", sources(MIRROR)
    work = (download, "tiny", folder / "raw", mirror, path)
    first = start(*work, target="shutil.copyfile")
    until(lambda: parts(folder))
    second = start(*work)
    heard(capfd, "waiting for another download")
    assert second.is_alive()
    assert parts(folder)
    first.kill()
    second.join(60)
    assert second.exitcode == 0
    assert [path.name for path in folder.iterdir()] == ["raw"]


def test_a_killed_preparation(start, tiny, mirror, sources, tmp_path):
    raw, folder = tmp_path / "raw", tmp_path / "prepared"
    download("tiny", raw, mirror, sources(MIRROR))
    first = start(prepare, "tiny", raw, folder, target="numpy.savez")
    until(lambda: parts(folder))
    first.kill()
    first.join()
    other = folder / ".tiny.bpe300.7.npz"  # of another process, perhaps
    other.touch()
    prepare("tiny", raw, folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"tiny.npz", "tiny.json", other.name}


def test_a_killed_tokenisation(start, tmp_path):
    tokens = Tokens(SPLITS, "{}", "0")
    first = start(tokens.save, tmp_path, "docs", 300, target="numpy.savez_compressed")
    until(lambda: parts(tmp_path))
    first.kill()
    first.join()
    other = tmp_path / ".docs.7.npz"  # of a preparation, perhaps
    other.touch()
    tokens.save(tmp_path, "docs", 300)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"docs.bpe300.npz", "docs.bpe300.json", other.name}
