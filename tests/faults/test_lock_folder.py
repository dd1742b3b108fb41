"""The folder of GPU locks lies where everybody writes; what others put there is refused."""

import os
import stat
from pathlib import Path

import pytest
from support.refusals import refused

from fedlogit.locks import held
from fedlogit.runs.gpus import own_gpu


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where the locks of a machine with one GPU will lie."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"fedlogit-gpus-{os.geteuid()}"


def take() -> None:
    with own_gpu("cuda", 1):
        pass


def test_the_folder_is_the_users_alone_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        with own_gpu("cuda", 1):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_planted_link_is_refused_and_nothing_is_made_elsewhere(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with refused(f"{folder} is a link; it must be a folder of your own to which nobody else can"):
        take()
    assert folder.is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_planted_link_to_nothing_is_refused(folder, tmp_path):
    folder.symlink_to(tmp_path / "elsewhere")
    with refused("is a link"):
        take()
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_of_another_user_is_refused_and_does_not_block(folder, monkeypatch):
    """Before, a lock that its owner held in it made training wait for ever."""
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    theirs = folder.with_name(f"fedlogit-gpus-{user + 1}")
    with held(theirs / "0.0.lock", ""), refused(
        f"{theirs} belongs to user {user} and you are user {user + 1}; it must be a folder of your"
        " own to which nobody else can write: remove it, or set TMPDIR to a folder of yours"
    ):  # fmt: skip
        take()


def test_a_folder_that_others_can_write_to_is_tightened(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with own_gpu("cuda", 1):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path):
    path = tmp_path / "x.lock"
    path.symlink_to(tmp_path / "elsewhere")
    with refused(f"cannot write {path}: it is a link"), held(path, ""):
        pass
    assert not (tmp_path / "elsewhere").exists()
