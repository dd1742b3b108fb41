"""``python -m fedlogit``: a module per command, found by its name and imported only to be run."""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import IO

import pytest
from support.small import SMALL

from fedlogit import __version__, cli, commands
from fedlogit.cli import call, command_names, main
from fedlogit.commands._registry import load
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json, write_json
from fedlogit.runs.library_code import code_version

ROOT = Path(__file__).resolve().parents[2]


def fedlogit(
    *arguments: str, python: tuple[str, ...] = (), cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python, "-m", "fedlogit", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_help_names_every_command_and_imports_none():
    done = fedlogit("--help", python=("-X", "importtime"))
    assert done.returncode == 0
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if line[:2] == "  ")
    assert list(told) == command_names()
    assert told["train"] == "Train one run."
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "fedlogit.cli" in imported
    assert not imported & {"torch", "numpy", "pydantic", "yaml", "fedlogit.commands.train"}


def test_commands_that_train_nothing_start_without_pytorch():
    # A workflow calls them hundreds of times, and PyTorch takes a second or more to import.
    names = [
        "compare",
        "diff",
        "download",
        "figure",
        "page",
        "partition",
        "power",
        "prepare",
        "publish",
    ]
    names += ["record", "redraw", "report", "runs", "summary", "table"]
    code = (
        "import sys; from fedlogit.commands._registry import load;"
        f" [load(name) for name in {names}]; print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_without_a_command_the_list_is_told_and_it_fails(capsys):
    assert main([]) == 2
    assert "  train " in capsys.readouterr().err


def test_an_unknown_command_is_one_line_with_the_nearest():
    done = fedlogit("trian")
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown command 'trian'; did you mean 'train'?")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_a_daemon_closed_are_written_to_nowhere(tmp_path, closed):
    write_json(tmp_path / "spec.json", SMALL)
    run = f"{sys.executable} -m fedlogit train --spec spec.json --out run {closed}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", run], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "Traceback" not in done.stdout + done.stderr
    assert read_json(tmp_path / "run/result.json")["status"] == "finished"


def test_ctrl_c_while_modules_are_imported_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fedlogit.cli", _Interrupting("fedlogit.cli"))
    with pytest.raises(SystemExit) as end:
        runpy.run_module("fedlogit", run_name="__main__")
    assert end.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


class _Interrupting(ModuleType):
    """A module from which whatever is imported interrupts, as a Ctrl-C then does."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


def test_options_that_a_command_lacks_are_one_line():
    done = fedlogit("train", "--spek", "x")
    assert done.returncode == 2
    assert done.stderr.startswith("error: the following arguments are required: --spec, --out;")
    assert done.stderr.endswith("python -m fedlogit train --help lists the options\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["_cache", "../train", "train.py"])
def test_only_commands_can_be_called(name):
    with pytest.raises(FedlogitError, match="unknown command"):
        call(name, [])


@pytest.mark.parametrize("name", command_names())
def test_a_commands_help_says_first_what_the_list_says(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")  # a narrow terminal wraps the usage
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    usage, _, rest = capsys.readouterr().out.partition("\n\n")
    assert usage.startswith(f"usage: python -m fedlogit {name} ")
    first, _ = rest.split("\n", 1)
    assert first.endswith(".")
    main(["--help"])
    assert f"  {first}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", command_names())
def test_every_option_has_a_help_and_examples_keep_their_lines(name):
    command, parser = load(name), argparse.ArgumentParser()
    command.add_arguments(parser)
    assert [action.dest for action in parser._actions if not action.help] == []
    examples = [line for line in command.__doc__.splitlines() if line.startswith("    ")]
    # A backslash at the end of a line goes on; Python would have joined the two.
    assert not [line for line in examples if " " * 8 in line.strip() and "#" not in line]


def test_a_package_that_is_not_there_is_named(monkeypatch):
    for module in ("publish", "_cache"):
        monkeypatch.delitem(sys.modules, f"fedlogit.commands.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(FedlogitError, match="publish needs the package yaml, which is not"):
        call("publish", [])


def test_a_module_that_the_library_itself_lacks_is_no_users_mistake(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text('"""Broken."""\nimport fedlogit.nowhere\n')
    monkeypatch.setattr(commands, "__path__", [str(tmp_path)])
    assert cli.command_names() == ["broken"]
    with pytest.raises(ModuleNotFoundError, match=r"fedlogit\.nowhere"):
        call("broken", [])


def test_a_module_of_the_library_that_a_paper_needs_is_no_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fedlogit.papers", None)
    with pytest.raises(ModuleNotFoundError, match=r"fedlogit\.papers"):
        call("train_many", ["--paper", "celm", "--scale", "smoke"])


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, ""),
        ({"commit": "f00", "uncommitted": False}, ", commit f00"),
        ({"commit": "f00", "uncommitted": True}, ", commit f00, uncommitted changes"),
    ],
)
def test_the_version_is_told_with_that_of_the_code(facts, told, monkeypatch, capsys):
    monkeypatch.setattr(cli, "commit_facts", lambda: facts)
    assert main(["--version"]) == 0
    said = capsys.readouterr().out
    assert said == f"fedlogit {__version__} (code_version {code_version()}{told})\n"


def test_no_commands_source_is_part_of_what_a_runs_code_is(monkeypatch):
    """A run's code version is that of what decides its numbers."""
    changed = Path(commands.__path__[0]).glob("*.py")
    contents = dict.fromkeys(changed, b"other")
    before = code_version()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: contents.get(path) or read(path))
    assert code_version() == before
    contents[Path(cli.__file__)] = b"other"
    assert code_version() != before


def test_a_runs_record_repeats_the_command_as_it_was_typed(tmp_path):
    write_json(tmp_path / "spec.json", SMALL | {"rounds": 1})
    options = ["--spec", "spec.json", "--out", "run", "--device", "cpu", "--quiet"]
    done = fedlogit("train", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = read_json(tmp_path / "run/result.json")["provenance"]
    assert facts["command"] == f"python -m fedlogit train {' '.join(options)}"


def test_a_command_that_imports_torchvision_ends_without_complaints():
    code = "import torchvision.models; from fedlogit.cli import run_main; run_main(lambda argv: 0)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _paths(name: str) -> dict[str, argparse.Action]:
    """Return the options and arguments of a command that are paths."""
    parser = argparse.ArgumentParser()
    load(name).add_arguments(parser)
    given = [action for action in parser._actions if action.type]
    return {action.dest: action for action in given if isinstance(action.type("3"), Path)}


@pytest.mark.parametrize("name", command_names())
def test_an_empty_path_as_of_a_variable_that_is_not_set_is_refused_by_every_option(name):
    """It would be the current folder; ``pull ""`` fetched all runs."""
    for action in _paths(name).values():
        with pytest.raises(argparse.ArgumentTypeError, match="is empty; give a path"):
            action.type("")


@pytest.mark.parametrize("name", ["aggregate", "ensemble", "figure", "page", "report", "table"])
def test_a_command_that_writes_files_refuses_a_folder_to_write_to(name):
    with pytest.raises(argparse.ArgumentTypeError, match="is a folder; give the name of a file"):
        _paths(name)["out"].type(".")


def test_a_path_that_the_system_refuses_is_one_line(tmp_path):
    write_json(tmp_path / "spec.json", SMALL)
    done = fedlogit("train", "--spec", str(tmp_path / "spec.json"), "--out", "x" * 300)
    assert done.returncode == 2
    assert done.stderr == f"error: {'x' * 300}/spec.json: File name too long\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "secret"), "secret: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("of a library\nwith a second line"), "of a library"),
    ],
)
def test_what_the_system_refuses_is_one_line(capsys, error, said):
    def fails(argv):
        raise error

    with pytest.raises(SystemExit) as end:
        cli.run_main(fails)
    assert end.value.code == 2
    assert capsys.readouterr().err == f"error: {said}\n"


@pytest.mark.parametrize("lines", [1, 100_000])
def test_who_stops_reading_ends_a_command_without_a_word(lines):
    """A line waits until Python ends; many do not."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        done = printing(f"'line\\n' * {lines}", output)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("lines", [1, 100_000])
def test_output_on_a_full_disk_is_one_line(lines):
    with Path("/dev/full").open("w") as output:
        done = printing(f"'line\\n' * {lines}", output)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def printing(what: str, output: IO[str] | int, **variables: str) -> subprocess.CompletedProcess:
    """Print what Python understands by this, as a command does."""
    command = [
        sys.executable,
        "-c",
        f"from fedlogit.cli import *; run_main(lambda _: print({what}))",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    return subprocess.run(
        command, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, check=False
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_in_another_encoding_never_fails(encoding):
    done = printing("'0.5 – 0.6 …'", subprocess.PIPE, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.5 ? 0.6 ?\n", "")
