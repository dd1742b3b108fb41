"""What is called otherwise now is refused in one line that names the new word."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.calls import ROOT, script
from support.refusals import refused
from support.small import SMALL, TEXT, small_spec

from fedlogit.config import Settings
from fedlogit.papers import expand, load_paper

IN_A_SPEC = [
    ("kernel", "native", "key 'kernel' is now engine, which is no part of a run"),
    ("scale", "paper", "key 'scale' is now no part of a run"),
    ("optimizer", SMALL["optimizer"] | {"lifetime": "run"}, "key 'lifetime' is now reset_every"),
    ("optimizer", SMALL["optimizer"] | {"scrub": True}, "key 'scrub' is now zero_nonfinite_grads"),
    ("text", TEXT["text"] | {"tested_on": "test"}, "key 'tested_on' is now evaluation_split"),
]


def paper(folder: Path, change) -> str:
    """Write CELM's file with a change, and return its name."""
    data = yaml.safe_load((ROOT / "workflow" / "papers" / "celm.yaml").read_text())
    change(data)
    (folder / "celm.yaml").write_text(yaml.safe_dump(data))
    return "celm"


@pytest.mark.parametrize(("key", "value", "said"), IN_A_SPEC)
def test_in_a_runs_spec(key, value, said):
    with refused(said):
        small_spec(**{key: value})


@pytest.mark.parametrize(("key", "value", "said"), IN_A_SPEC)
def test_in_a_papers_defaults_and_scales(tmp_path, key, value, said):
    with refused(f"celm.yaml: defaults{'.' + key if isinstance(value, dict) else ''}: {said}"):
        load_paper(paper(tmp_path, lambda data: data["defaults"].update({key: value})), tmp_path)
    with refused(f": {said}"):
        name = paper(tmp_path, lambda d: d["scales"]["quick"]["overrides"].update({key: value}))
        load_paper(name, tmp_path)
    with refused(f": {said}"):
        name = paper(tmp_path, lambda d: d["datasets"]["fashion_mnist"].update({key: value}))
        load_paper(name, tmp_path)


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("kernel", "key 'kernel' is now engine"),
        ("optimizer.lifetime", "key 'lifetime' is now reset_e"),
    ],
)
def test_as_an_axis_of_a_papers_table(tmp_path, axis, said):
    def change(data):
        grid = data["tables"]["table1"]["grid"]
        for part in grid if isinstance(grid, list) else [grid]:
            part[axis] = ["run"]

    with refused(said):
        expand(load_paper(paper(tmp_path, change), tmp_path), "paper")


def test_in_the_configuration():
    with refused(
        "config.yaml: key 'kernel' is now engine, which is auto, loop (was autograd), nat"
    ):
        Settings.load({"kernel": "autograd"}, "config.yaml")


@pytest.mark.parametrize("value", ["autograd", "fast", "", None])
def test_an_engine_that_there_is_not(value):
    with refused("config.yaml: engine = "):
        Settings.load({"engine": value}, "config.yaml")


def test_on_the_command_line(tmp_path):
    done = script("train", "--spec", "x", "--out", str(tmp_path / "x"), "--engine", "autograd")
    assert done.returncode == 2
    assert "argument --engine: invalid choice: 'autograd'" in done.stderr
    assert not (tmp_path / "x").exists()
