"""What one training run imports: PyTorch, NumPy and the few libraries of `pyproject.toml`."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from support.calls import script
from support.many import specs_of
from support.small import SMALL, TEXT

from fedlogit.data import load_arrays
from fedlogit.data.tokens import tokenise
from fedlogit.files import read_json

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[1]
# What the pipeline has and a bare GPU machine need not have; and what takes PyTorch seconds to
# import, its compiler and what that computes shapes with.
ABSENT = [
    "PIL", "dvc", "jinja2", "matplotlib", "pandas", "pulp", "pyarrow", "seaborn", "snakemake",
    "sympy", "tokenizers", "torch._dynamo", "torchvision", "yaml",
]  # fmt: skip
WITHOUT = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({ABSENT!r}))  # importing one of them raises ImportError
sys.argv = ["train.py", *sys.argv[1:]]
runpy.run_path("scripts/train.py", run_name="__main__")
"""
# Imported by every Python that starts, the processes that train included.
WITHOUT_NETWORK = f"""
import socket, sys
from importlib.machinery import PathFinder

class Few(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {ABSENT!r}:
            return super().find_spec(name, path, target)

def connect(self, address):
    if self.family != socket.AF_UNIX:
        raise OSError("no network")
    return unix(self, address)

unix, socket.socket.connect = socket.socket.connect, connect
sys.meta_path[sys.meta_path.index(PathFinder)] = Few
"""
ON_TEXT = TEXT | {"method": "tally_train(warm_up=0, probes_per_round=4)"}


@pytest.mark.parametrize(
    "changes",
    [{}, {"method": "celm(steps=1)"}, {"method": "meta_model"}, ON_TEXT],
    ids=["images", "logit maximisation", "network of the server", "text"],
)
def test_a_run_needs_no_more_than_the_few(tmp_path, changes):
    spec = SMALL | {"rounds": 1} | changes
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    if "text" in spec:  # on the machine that has the library
        texts, _ = load_arrays("sklearn_docs", tmp_path)
        tokenise(texts, 300, "test").save(tmp_path, "sklearn_docs", 300)
    arguments = ["--spec", tmp_path / "spec.json", "--out", tmp_path / "out", "--data", tmp_path]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments, "--quiet", "--device", "cpu"],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert read_json(tmp_path / "out/result.json")["status"] == "finished"


def bare(folder: Path, *arguments: str) -> str:
    """Call a command as on a machine with the few libraries and no network; return what it says."""
    (folder / "sitecustomize.py").write_text(WITHOUT_NETWORK)
    path = os.pathsep.join([str(folder), str(REPOSITORY)])
    done = subprocess.run(
        [sys.executable, "-m", "fedlogit", *arguments],
        cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_many_runs_need_no_more_than_the_few(tmp_path):
    one_shot = {"rounds": 1, "method": "feddf"}
    specs_of(tmp_path / "specs", {"rounds": 1}, one_shot, ON_TEXT | {"rounds": 1})
    texts, _ = load_arrays("sklearn_docs", tmp_path)
    tokenise(texts, 300, "test").save(tmp_path, "sklearn_docs", 300)
    done = script("bundle", f"{tmp_path}/specs", "--data", f"{tmp_path}", "--out", f"{tmp_path}")
    assert done.returncode == 0, done.stderr
    there = tmp_path / "there"
    there.mkdir()
    bare(there, "unpack", "../specs.tar.gz", "../sklearn_docs.tar.gz")
    places = ("--data", "bundle/data", "--partitions", "bundle/partitions", "--device", "cpu")
    told = bare(there, "train_many", "bundle/specs", *places, "--archive", "back.tar.gz")
    assert "3 of 3 runs are finished" in told
    assert (there / "back.tar.gz").exists()
    with pytest.raises(AssertionError, match="--paper needs the package yaml, which is not inst"):
        bare(there, "train_many", "--paper", "celm", "--scale", "smoke")


def test_all_files_of_the_library_are_in_its_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    library = REPOSITORY / "fedlogit"
    patterns = project["tool"]["setuptools"]["package-data"]["fedlogit"]
    packaged = {path for pattern in patterns for path in library.glob(pattern)}
    files = {p for p in library.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert packaged == {path for path in files if path.suffix != ".py"}


def locked() -> dict[str, str]:
    """Return the version of each package in the lock file."""
    lock = (REPOSITORY / "envs/requirements.lock").read_text()
    return dict(re.findall(r"^([\w.-]+)==([\w.+]+)", lock, re.M))


def test_the_lock_has_what_the_library_asks_for():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    versions = locked()
    asked = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(versions[requirement.name]), str(requirement)


def imported(*files: Path) -> set[str]:
    """Return the packages that files import from outside, by the names of their modules."""
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    tops = {name.partition(".")[0] for name in named}
    return tops - set(sys.stdlib_module_names) - {"fedlogit"}


def test_the_data_extra_has_what_data_sets_are_downloaded_and_prepared_with():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extra = {Requirement(entry).name for entry in project["optional-dependencies"]["data"]}
    few = {Requirement(entry).name for entry in project["dependencies"]}
    library = REPOSITORY / "fedlogit"
    needed = imported(*(library / "data").glob("*.py"), library / "yaml_files.py")
    package = {"sklearn": "scikit-learn", "yaml": "pyyaml", "PIL": "pillow"}
    assert {package.get(name, name) for name in needed} - few == extra


def test_conda_installs_the_lock():
    folder = REPOSITORY / "envs"
    asked = yaml.safe_load((folder / "environment.yaml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in asked if isinstance(entry, dict)]
    assert pip == ["--require-hashes", f"-r {(folder / 'requirements.lock').name}"]
