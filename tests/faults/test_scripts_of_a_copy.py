"""A script uses the library that lies beside it, whichever other one Python would find."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedlogit.cli import command_names

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.parametrize("name", sorted(path.name for path in SCRIPTS.glob("[!_]*.py")))
def test_each_script_imports_the_library_of_its_own_copy(tmp_path, name):
    """The library of this copy only says so; the one on the path is what an environment has."""
    shutil.copytree(SCRIPTS, tmp_path / "copy" / "scripts")
    for place in ("copy", "environment"):
        (tmp_path / place / "fedlogit").mkdir(parents=True)
        (tmp_path / place / "fedlogit" / "__init__.py").write_text(f"raise SystemExit({place!r})\n")
    (tmp_path / "environment" / "torch.py").touch()  # which some import first, and takes long
    done = subprocess.run(
        [sys.executable, str(tmp_path / "copy" / "scripts" / name), "--help"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "environment")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.strip() == "copy"


def test_each_script_of_a_command_is_the_same_few_lines():
    """What differs is the file's name; the others are about the repository's own files."""
    texts = {path.stem: path.read_text() for path in SCRIPTS.glob("*.py")}
    others = {
        *("_generated", "_published", "code_versions", "fill_pages", "forget_plans"),
        *("lint_workflow", "papers", "partitions", "schemas"),
    }
    assert texts.keys() - others < {*command_names()}
    assert len({texts[name] for name in texts.keys() - others}) == 1
