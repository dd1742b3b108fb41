"""The cache of compiled code: of nobody else, whole or made again, refused in one line."""

import ctypes
import multiprocessing
import os
import shutil
import stat
import struct
from pathlib import Path

import pytest
from support.refusals import refused

from fedlogit.engine.native import compiler

SOURCE = 'extern "C" double fedlogit_tenth() { return 0.1; }\n'
FORK = multiprocessing.get_context("fork")
needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A cache of its own, and a source that takes no time: ``tenth`` returns 0.1."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "tenth.cpp").write_text(SOURCE)
    monkeypatch.setattr(compiler, "_FOLDER", tmp_path / "source")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CXX", raising=False)
    compiler.load.cache_clear()
    return tmp_path / "cache" / "fedlogit"


def tenth() -> float:
    """Load the function as another process does, and return what it says."""
    function = ctypes.CDLL(str(compiler.compiled("tenth"))).fedlogit_tenth
    function.restype = ctypes.c_double
    return function()


def answer(says) -> None:
    says.put(tenth())


def asked() -> float:
    """Ask a process of its own, which a damaged library may kill."""
    says = FORK.SimpleQueue()
    process = FORK.Process(target=answer, args=(says,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    return says.get()


@needs_compiler
def test_the_folder_is_the_users_alone_whatever_the_umask(cache):
    before = os.umask(0)
    try:
        assert asked() == 0.1
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in cache.iterdir()] == [0o700]


@needs_compiler
@pytest.mark.parametrize("damage", ["truncated", "empty", "changed"])
def test_a_damaged_library_is_compiled_again(cache, damage):
    assert asked() == 0.1
    (path,) = cache.iterdir()
    content = path.read_bytes()
    changed = content.replace(struct.pack("<d", 0.1), struct.pack("<d", 0.2))
    kept = {"truncated": content[: len(content) // 2], "empty": b"", "changed": changed}
    path.write_bytes(kept[damage])
    assert asked() == 0.1
    made = path.stat().st_mtime_ns
    assert asked() == 0.1
    assert path.stat().st_mtime_ns == made, "once healed, it is kept"


@needs_compiler
def test_a_library_of_somebody_else_is_not_loaded(cache, monkeypatch):
    ours = compiler.compiled("tenth")
    content = ours.read_bytes()
    ours.unlink()
    (cache.parent / "theirs.so").write_bytes(content)
    ours.symlink_to(cache.parent / "theirs.so")
    assert compiler.compiled("tenth") == ours
    assert not ours.is_symlink()
    ours.chmod(0o777)
    assert stat.S_IMODE(compiler.compiled("tenth").stat().st_mode) == 0o700


@needs_compiler
def test_a_folder_that_others_can_write_to_is_tightened(cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    assert tenth() == 0.1
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_tightened_is_refused(cache, monkeypatch):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    monkeypatch.setattr(os, "fchmod", lambda handle, mode: None)  # as where there are no modes
    with refused(f"{cache} has mode 777, which cannot be changed to 700; it must be a folder of"):
        compiler.compiled("tenth")


def test_a_folder_of_another_user_is_refused(cache, monkeypatch):
    cache.mkdir(parents=True)
    owner = cache.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with refused(f"{cache} belongs to user {owner} and you are user {owner + 1}; it must be"):
        compiler.compiled("tenth")


def test_a_link_in_place_of_the_folder_is_refused(cache, tmp_path):
    cache.parent.mkdir()
    (tmp_path / "theirs").mkdir()
    cache.symlink_to(tmp_path / "theirs")
    with refused(f"{cache} is a link; it must be a folder of your own"):
        compiler.compiled("tenth")
    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "below"), [("XDG_CACHE_HOME", "fedlogit"), ("HOME", ".cache/fedlogit")]
)
def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch, variable, below):
    (tmp_path / "file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    folder = tmp_path / "file" / below
    with refused(
        f"cannot write {folder}: Not a directory; set XDG_CACHE_HOME to a folder of yours"
    ):
        compiler.compiled("tenth")


@needs_compiler
@pytest.mark.parametrize("given", ["", "relative/cache"])
def test_a_path_that_xdg_ignores_is_ignored(tmp_path, monkeypatch, given):
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.chdir(tmp_path / "source")
    assert compiler.compiled("tenth").parent == tmp_path / "home" / ".cache" / "fedlogit"
    assert [path.name for path in Path().iterdir()] == ["tenth.cpp"]


@needs_compiler
def test_the_compiler_may_have_arguments(monkeypatch):
    program = shutil.which("g++") or shutil.which("clang++")
    monkeypatch.setenv("CXX", f"{program} -DUNUSED='a b'")
    assert tenth() == 0.1


@needs_compiler
def test_an_upgraded_compiler_at_the_same_path_compiles_anew(tmp_path, monkeypatch):
    program, real = tmp_path / "cxx", shutil.which("g++") or shutil.which("clang++")
    monkeypatch.setenv("CXX", str(program))

    def made_by(version: str) -> Path:
        says = f'if [ "$1" = --version ]; then echo "{version}"; echo "(C)"; exit; fi'
        program.write_text(f'#!/bin/sh\n{says}\nexec {real} "$@"\n')
        program.chmod(0o700)
        assert compiler.compiler_version() == version
        return compiler.compiled("tenth")

    first, upgraded, again = made_by("cxx 1.0"), made_by("cxx 1.1"), made_by("cxx 1.0")
    assert first == again != upgraded
    assert tenth() == 0.1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no-such-compiler -m64", "there is no program 'no-such-compiler'; unset CXX"),
        ("g++ 'a", "is not a command: No closing quotation"),
    ],
)
def test_a_compiler_that_is_not_there(monkeypatch, given, said):
    monkeypatch.setenv("CXX", given)
    with refused(said):
        compiler.compiled("tenth")


def test_a_compiler_that_is_no_program(tmp_path, monkeypatch):
    (tmp_path / "cxx").write_bytes(b"\0\1")
    (tmp_path / "cxx").chmod(0o700)
    monkeypatch.setenv("CXX", str(tmp_path / "cxx"))
    with refused(f"engine = 'native' cannot be compiled: {tmp_path / 'cxx'}: Exec format error"):
        compiler.compiled("tenth")


@needs_compiler
def test_many_at_once_load_whole_libraries(cache):
    says = FORK.SimpleQueue()
    processes = [FORK.Process(target=answer, args=(says,)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 6
    assert {says.get() for _ in processes} == {0.1}
    assert all(path.suffix == ".so" for path in cache.iterdir())


ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU part\t: 0xd40

processor\t: 1
BogoMIPS\t: 243.75
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


def test_a_library_is_of_one_kind_of_cpu(monkeypatch):
    """A cache in a shared home serves all nodes of a cluster, on ARM, too."""
    kinds = [
        ARM,
        ARM.replace("0xd40", "0xd4f"),
        ARM.replace("sve", "sve sve2"),
        "flags\t: sse2 avx\n" * 2,
        "flags\t: sse2 avx avx2\n" * 2,
    ]
    found = []
    monkeypatch.setattr(Path, "exists", lambda path: True)
    for said in kinds:
        monkeypatch.setattr(Path, "read_text", lambda path, said=said: said)
        found.append(compiler._cpu())
    assert len(set(found)) == len(kinds)
    assert found[3] == "flags\t: sse2 avx"
    assert found[0].count("Features") == 1
