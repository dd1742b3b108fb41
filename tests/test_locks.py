"""Locks between processes, and what they say where there can be none."""

import errno
import fcntl
import multiprocessing
import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock
from support.refusals import refused
from support.waiting import heard

from fedlogit.errors import FedlogitError
from fedlogit.locks import first_free, held, is_held, remove_unheld

FORK = multiprocessing.get_context("fork")


def test_a_lock_is_let_go_on_errors_and_needs_a_folder_to_write_to(tmp_path):
    path = tmp_path / "a" / "x.lock"
    with pytest.raises(RuntimeError), held(path, "waiting"):
        raise RuntimeError
    with held(path, "waiting"), first_free([path, path.with_name("y")], "") as free:
        assert free.name == "y"
    assert list(path.parent.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(FedlogitError, match="cannot write"), held(Path(tmp_path, "file/x"), ""):
        pass


def test_whether_a_lock_is_held_is_known_without_taking_it(tmp_path):
    path = tmp_path / "a" / "x.lock"
    assert not is_held(path)
    assert not path.parent.exists()
    with held(path, "waiting"):
        assert is_held(path)
        assert is_held(path), "asking does not let it go"
    path.touch()  # as a killed process leaves it
    assert not is_held(path)
    with held(path, "waiting"):
        pass
    (tmp_path / "file").touch()
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "file")
    assert not is_held(path), "who takes it is told that it cannot be locked"


def test_only_a_lock_that_nobody_holds_is_removed(tmp_path):
    path = tmp_path / "x.lock"
    with held(path, ""):
        remove_unheld(path)
        assert path.exists()
    path.touch()  # as a killed process leaves it
    remove_unheld(path)
    assert not path.exists()
    remove_unheld(path)


def test_the_lock_of_the_next_one_is_not_removed_in_place_of_that_which_was_there(
    tmp_path, monkeypatch
):
    path = tmp_path / "x.lock"
    path.touch()

    def flock(file: int, operation: int) -> None:
        path.unlink()  # as the last holder does between opening and locking,
        path.write_text("of the next one")  # and as the next one does then

    monkeypatch.setattr("fcntl.flock", flock)
    remove_unheld(path)
    assert path.read_text() == "of the next one"


def test_asking_for_a_lock_that_is_just_let_go_leaves_no_file(tmp_path, monkeypatch):
    path, unlink = tmp_path / "x.lock", Path.unlink
    asked = []

    def late(self: Path) -> None:
        unlink(self)
        monkeypatch.setattr(Path, "exists", lambda _: True)  # as it was a moment ago
        asked.append(is_held(path))
        monkeypatch.undo()

    monkeypatch.setattr(Path, "unlink", late)
    with held(path, ""):
        pass
    assert asked == [False]
    assert not path.exists()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, code):
    def flock(file: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    path = tmp_path / "x.lock"
    said = f"cannot lock {path}: {os.strerror(code)}; its file system must support locks"
    with refused(said), held(path, ""):
        pass


def hold_and_say(path: Path, ready) -> None:
    with held(path, ""):
        ready.set()
        signal.pause()


def test_the_lock_of_a_killed_process_is_no_obstacle(tmp_path, capsys):
    path, ready = tmp_path / "x.lock", FORK.Event()
    process = FORK.Process(target=hold_and_say, args=(path, ready))
    process.start()
    assert ready.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert path.exists()
    with held(path, "waiting"):
        pass
    assert capsys.readouterr().err == ""
    assert not path.exists()


def test_a_folder_that_cannot_be_made_is_named_and_not_waited_for():
    said = r"cannot write /proc/no/\.lock: No such file"
    with pytest.raises(FedlogitError, match=said), held(Path("/proc/no/.lock"), "waiting"):
        pass


def test_who_waits_is_told_once_and_gets_the_lock(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("fedlogit.locks._POLL", 0.05)
    path, got = tmp_path / "x.lock", threading.Event()

    def second() -> None:
        with held(path, "another makes it"):
            got.set()

    other = threading.Thread(target=second)
    with held(path, ""):
        other.start()
        told = heard(capsys, "another makes it")
        assert not got.wait(0.2)
    assert got.wait(30)
    other.join()
    assert told + capsys.readouterr().err == "another makes it\n"
    assert not path.exists()


def test_a_file_that_was_removed_between_opening_and_locking_is_no_lock(tmp_path, monkeypatch):
    path, locks = tmp_path / "x.lock", []

    def flock(file: int, operation: int) -> None:
        if not locks:
            path.unlink()  # as its holder does just now
        locks.append(operation)
        flock_of_the_system(file, operation)

    flock_of_the_system = fcntl.flock
    monkeypatch.setattr("fedlogit.locks._POLL", 0.01)
    monkeypatch.setattr("fcntl.flock", flock)
    with held(path, ""):
        assert path.exists()
        with first_free([path, path.with_name("y")], "") as free:
            assert free.name == "y"


def test_who_lets_go_leaves_the_lock_of_who_comes_in_between(tmp_path, monkeypatch):
    path, release = tmp_path / "x.lock", FileLock.release
    with ExitStack() as second:

        def released(lock: FileLock) -> None:
            monkeypatch.setattr(FileLock, "release", release)
            second.enter_context(held(path, ""))  # the first one's file is gone, its lock is not
            lock.release()

        monkeypatch.setattr(FileLock, "release", released)
        with held(path, ""):
            pass
        with first_free([path, path.with_name("y")], "") as free:
            assert free.name == "y"
    assert not path.exists()
