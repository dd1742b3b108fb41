"""What one training run imports: PyTorch, NumPy and the few libraries of `pyproject.toml`."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.small import SMALL, TEXT

from fedlogit.data.dataset import load_arrays
from fedlogit.data.tokens import tokenise
from fedlogit.files import read_json

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[1]
# What the pipeline has and a bare GPU machine need not have.
ABSENT = [
    "PIL", "dvc", "jinja2", "matplotlib", "pandas", "pulp", "pyarrow", "seaborn", "snakemake",
    "tokenizers", "torchvision", "yaml",
]  # fmt: skip
WITHOUT = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({ABSENT!r}))  # importing one of them raises ImportError
sys.argv = ["train.py", *sys.argv[1:]]
runpy.run_path("scripts/train.py", run_name="__main__")
"""
ON_TEXT = TEXT | {"method": "tally_train(warm_up=0, probes_per_round=4)"}


@pytest.mark.parametrize("changes", [{}, ON_TEXT], ids=["images", "text"])
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


def test_all_files_of_the_library_are_in_its_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    library = REPOSITORY / "fedlogit"
    patterns = project["tool"]["setuptools"]["package-data"]["fedlogit"]
    packaged = {path for pattern in patterns for path in library.glob(pattern)}
    files = {p for p in library.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert packaged == {path for path in files if path.suffix != ".py"}
