"""Code of others that calls sys.exit is an error, and a signal to end still ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.refusals import refused
from support.small import SMALL

from fedlogit.component import Component, catalogue, import_object
from fedlogit.errors import FedlogitError
from fedlogit.files import write_json
from fedlogit.stopping import Stopped, exit_code, exit_on_signal

ROOT = Path(__file__).resolve().parents[2]
METHOD = """
import sys
from fedlogit.methods import LogitFederation
class Leaves(LogitFederation):
    def aggregate(self, fed, logits):
        sys.exit(0)
"""
# What pydantic does with a signal's exception that comes while it builds a class.
WRAPPED = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
except BaseException as error:
    raise ValueError(f"SchemaError: {error}")
"""


def trained(folder: Path, module: str) -> subprocess.CompletedProcess[str]:
    """Train by a method of one's own, in a process."""
    (folder / "leaving.py").write_text(module)
    write_json(folder / "spec.json", SMALL | {"method": "leaving:Leaves"})
    command = [sys.executable, "-m", "fedlogit", "train", "--spec", "spec.json", "--out", "run"]
    return subprocess.run(
        [*command, "--data", ".", "--device", "cpu", "--quiet"],
        cwd=folder, env=os.environ | {"PYTHONPATH": f"{ROOT}:{folder}"},
        check=False, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["import sys\nsys.exit(0)\n", "raise SystemExit\n"])
def test_a_method_whose_module_exits_when_imported_is_one_line(tmp_path, module):
    done = trained(tmp_path, module)
    assert done.returncode == 2
    assert "method 'leaving:Leaves' cannot be imported: it calls sys.exit(" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_method_that_exits_in_a_round_has_not_trained(tmp_path):
    done = trained(tmp_path, METHOD)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: train did not end: sys.exit(0) was called in {tmp_path / 'leaving.py'}, line 6;"
        " raise a FedlogitError there instead\n"
    )


def test_a_module_of_a_package_that_exits_is_named(tmp_path, monkeypatch):
    (tmp_path / "many").mkdir()
    (tmp_path / "many/__init__.py").touch()
    (tmp_path / "many/script.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with refused("many/script.py cannot be imported: it calls sys.exit(0)"):
        catalogue("many", Component)


def test_a_signal_that_comes_while_a_module_is_imported_ends_the_process(tmp_path, monkeypatch):
    (tmp_path / "interrupted.py").write_text(WRAPPED)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Stopped) as left, exit_on_signal(), suppress(FedlogitError):
        import_object("method", "interrupted:Any")
    assert left.value.code == exit_code(signal.SIGTERM)
    with refused("cannot be imported"):
        import_object("method", "missing_now:Any")


def test_a_signal_that_a_library_made_another_error_of_ends_the_process():
    with pytest.raises(Stopped) as left, exit_on_signal():
        exec(WRAPPED)
    assert left.value.code == exit_code(signal.SIGTERM)
