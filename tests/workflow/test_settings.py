"""config.yaml, its model and their schemas agree; the workflow is in house style."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.refusals import refused

from fedlogit.config import Settings
from fedlogit.yaml_files import load_yaml

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(python):
    """Return a function that runs a script."""

    def run(name: str, *args: str) -> subprocess.CompletedProcess[str]:
        command = [str(python), str(REPOSITORY / "scripts" / name), *args]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_config_file_names_every_key_with_its_default():
    data = load_yaml(REPOSITORY / "config.yaml")
    assert Settings.load(data, "config.yaml") == Settings()
    assert set(data) == set(Settings.model_fields)


def test_every_key_is_commented():
    lines = (REPOSITORY / "config.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        if line[:1].isalpha():
            assert lines[number - 1].startswith("#"), line


def test_config_readme_lists_every_key():
    text = (REPOSITORY / "config" / "README.md").read_text()
    assert all(f"| `{key}` |" in text for key in Settings.model_fields)


def test_what_a_shell_gives_is_understood():
    given = {"seeds": 0, "papers": "who_to_trust", "frozen": "true", "datasets": "null"}
    read = Settings.load(given, "options")
    assert (read.seeds, read.papers, read.frozen) == ((0,), ("who_to_trust",), True)
    assert read.datasets is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scale: smoke\nscale: quick\n", ": key 'scale' is given twice: at lines 1 and 2\n"),
        (
            "papers: [celm\nscale: quick\n",
            " is not valid YAML: while parsing a flow sequence at line 1",
        ),
        ("- papers\n", ": should be a mapping, such as scale: quick\n"),
    ],
)
def test_a_mistake_in_the_configurations_yaml_is_told_with_its_line_before_anything_is_made(
    snakemake, tmp_path, text, said
):
    (tmp_path / "config.yaml").write_text(text)
    done = snakemake.run("-n", "--directory", str(tmp_path))
    assert done.returncode == 1
    assert f"config.yaml{said}" in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == ["config.yaml"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"data": "d$(touch x)"}, "options: data = 'd$(touch x)'"),
        ({"data": "~/fl"}, "without '~'; write out ~ and variables"),
        ({"mirror": "~/m"}, "mirror = '~/m': should be a folder's path; write out ~ and variables"),
        ({"mirror": "$HOME/m"}, "mirror = '$HOME/m'"),
        ({"data": "-rf"}, "without '-'"),
        ({"data": ""}, "options: data = '': should be a folder's path"),
        ({"publish": "quick; touch x #"}, "options: publish.0 = 'quick; touch x #'"),
        ({"publish": ["papr"]}, "publish.0 = 'papr': Input should be 'smoke' or 'quick'"),
        ({"scale": "a b"}, "options: scale = 'a b'"),
        ({"paper": "x"}, "options: unknown key 'paper'; did you mean 'papers'"),
        ({"seeds": []}, "options: seeds = "),
        ({"seeds": [True]}, "options: seeds.0 = True"),
        ({"seeds": [2**32]}, "seeds.0 = 4294967296: Input should be less than 4294967296"),
        ({"scale": 3}, "options: scale = 3"),
        ({"frozen": "maybe"}, "options: frozen = 'maybe'"),
        ({"frozen": 16**4000}, "options: not plain data (Exceeds the limit (4300 digits)"),
        ({"device": "cuda0"}, "should be auto, cpu, cuda or cuda:<number>"),
        ({"device": "cuda:100"}, "device = 'cuda:100': should be auto, cpu, cuda or cuda:<number>"),
        ({"gpu_model": "a100:2"}, "options: gpu_model = 'a100:2'"),
        ({"gpu_partition": "-x"}, "options: gpu_partition = '-x'"),
        ({"workers": 100000}, "workers = 100000: Input should be less than or equal to 1024"),
        ({"runs_per_gpu": 2000}, "runs_per_gpu = 2000: Input should be less than or equal to 1024"),
    ],
)
def test_mistakes(data, said):
    with refused(said):
        Settings.load(data, "options")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"data": "a.txt"}, "data = 'a.txt': should be a folder's path, but a.txt is a file"),
        ({"data": "a.txt/b"}, "should be a folder's path, but a.txt is a file"),
        ({"mirror": "a.txt"}, "mirror = 'a.txt': should be a folder's path, but a.txt is a file"),
        ({"data": "results"}, "data = 'results': should be a folder outside results"),
        ({"data": "sub/../results/d"}, "should be a folder outside results"),
    ],
)
def test_folders_that_cannot_be(tmp_path, monkeypatch, data, said):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").touch()
    with refused(said):
        Settings.load(data, "options")


def test_folders_that_are_not_there_yet(tmp_path, monkeypatch):
    """A mirror may be on another machine than the one that plans; data are yet to be made."""
    monkeypatch.chdir(tmp_path)
    given = {"data": "results2/data", "mirror": "nowhere", "seeds": [2**32 - 1]}
    assert Settings.load(given, "options").data == "results2/data"


def test_schemas_say_what_the_models_say(script, tmp_path):
    done = script("schemas.py", "--check")
    assert done.returncode == 0, done.stderr
    drifted = tmp_path / "schemas"
    shutil.copytree(REPOSITORY / "workflow" / "schemas", drifted)
    (drifted / "config.schema.json").write_text("{}\n")
    done = script("schemas.py", "--check", "--out", str(drifted))
    assert done.returncode == 1
    said = f"{drifted / 'config.schema.json'} is not what the models say; run make schemas\n"
    assert done.stderr == said
    assert (drifted / "config.schema.json").read_text() == "{}\n"


def test_snakemake_lint_finds_nothing_that_applies(script):
    done = script("lint_workflow.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_snakefile_is_short():
    assert len((REPOSITORY / "workflow" / "Snakefile").read_text().splitlines()) <= 80


def test_make_lists_its_targets():
    done = subprocess.run(
        ["make", "-C", str(REPOSITORY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    targets = [line.split()[0] for line in done.stdout.splitlines()[:-1] if line[:1].isalpha()]
    for name in ("reproduce", "test", "lint", "figures", "bench", "lock", "clean"):
        assert name in targets


@pytest.mark.parametrize(
    ("overrides", "asked"),
    [
        ([], "--config config.yaml --"),
        (
            ["PAPERS=celm fedol", "SCALE=paper", "DATASETS=mnist", "SEEDS=0 1"],
            "--config config.yaml --scale paper --seeds 0 1 --datasets mnist -- celm fedol",
        ),
    ],
)
def test_the_summary_of_make_reproduce_is_of_what_was_asked_for(tmp_path, overrides, asked):
    """What the overrides leave open it reads in config.yaml itself, whose lists may be blocks."""
    for name in ("Makefile", "envs/requirements.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "config.yaml").write_text("papers:\n- celm\nscale: quick\n")
    command = ["make", "--no-print-directory", "-n", "reproduce", *overrides]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    *_, summary = done.stdout.replace("\\\n", " ").strip().splitlines()
    assert summary.split() == ["python", "-m", "fedlogit", "summary", *asked.split()]


@pytest.mark.parametrize("option", ["-n", "--dry-run", "-p -n", "-np"])
def test_a_dry_run_of_make_reproduce_is_not_summed_up(option):
    command = ["make", "-C", str(REPOSITORY), "-n", "reproduce", "SCALE=smoke", f"ARGS={option}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "snakemake" in done.stdout
    assert "fedlogit summary" not in done.stdout


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("reproduce PAPER=celm", "PAPER is no setting of make reproduce; PAPERS is."),
        ("reproduce SEED=1", "SEED is no setting of make reproduce; SEEDS is."),
        ("reproduce SCALES=paper", "SCALES is no setting of make reproduce; SCALE is."),
        ("redraw X=1", "X is no setting of make redraw; one of SCALE CORES CHECK "),
        ("pull PAPERS=x", "PAPERS is no setting of make pull; one of PYTHON VENV is."),
        ("redraw SEEDS=0", "SEEDS is no setting of make redraw; one of "),
        ("publish PAPERS=x", "PAPERS is no setting of make publish; one of "),
        ("publish CHECK=1", "CHECK is no setting of make publish; one of "),
        ("redraw PUBLISH=quick", "PUBLISH is no setting of make redraw; one of "),
        ("bench SCALE=paper", "SCALE is no setting of make bench; one of "),
        ("figures ENGINE=loop", "ENGINE is no setting of make figures; one of "),
        ("reproduce ENGINE=loop", None),
        ("bench BENCH=--only CORES=2", None),
        ("publish PUBLISH=quick", None),
        ("pull reproduce PAPERS=celm", None),
        ("redraw CHECK=1", None),
        ("mutation-test SEED=1 SAMPLE=2", None),
    ],
)
def test_make_refuses_what_is_none_of_its_settings(asked, message):
    alone = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    command = ["make", "-C", str(REPOSITORY), "--no-print-directory", "-n", *asked.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == (2 if message else 0)
    if message:
        assert f"*** {message}" in done.stderr
        assert (done.stderr.count("\n"), done.stdout) == (1, "")


@pytest.mark.parametrize(
    ("asked", "is_refused"),
    [
        (["reproduce", "ARGS=--config workers=2"], False),
        (["reproduce", "ARGS=--configfile lab.yaml", "SCALE=paper"], False),
        (["reproduce", "ARGS=-p --config workers=2", "SCALE=paper"], True),
        (["reproduce", "ARGS=-C workers=2", "SCALE=paper"], True),
        (["report", "ARGS=--config=workers=2"], True),
        (["publish", "ARGS=--config workers=2", "PUBLISH=quick"], True),
    ],
)
def test_a_second_config_which_would_replace_the_first_is_refused(asked, is_refused):
    command = ["make", "-C", str(REPOSITORY), "--no-print-directory", "-n", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if is_refused else 0)
    assert ("*** ARGS has --config, which" in done.stderr) is is_refused


def test_pip_is_that_of_outside_also_in_an_activated_environment(tmp_path):
    inside = tmp_path / ".venv/bin"
    inside.mkdir(parents=True)
    (inside / "python3").symlink_to("/bin/false")
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    asked = subprocess.run(
        ["make", "-s", "--eval=outside: ; @$(OUTSIDE) command -v $(PYTHON)", "outside"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env=os.environ | {"PATH": f"{inside}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert asked.stdout.strip() == shutil.which("python3")


def test_touching_the_lock_installs_nothing_and_changing_it_does(tmp_path):
    """An environment belongs to the lock's content."""
    for name in ("Makefile", "config.yaml"):
        shutil.copy(REPOSITORY / name, tmp_path)
    lock = tmp_path / "envs" / "requirements.lock"
    lock.parent.mkdir()
    lock.write_text("numpy==2.0.0\n")

    def asked() -> str:
        command = ["make", "-C", str(tmp_path), "-n", "environment"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    stamp = tmp_path / ".venv" / f".installed-{digest}"
    assert "pip" in asked()
    stamp.parent.mkdir()
    stamp.touch()
    assert "pip" not in asked()
    os.utime(lock, (2e9, 2e9))
    assert "pip" not in asked()
    lock.write_text("numpy==2.0.1\n")
    assert "pip" in asked()


def test_lock_has_hashes_and_no_host_names():
    lines = (REPOSITORY / "envs" / "requirements.lock").read_text().splitlines()
    pinned = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert pinned
    assert all("==" in line for line in pinned)
    assert not [line for line in lines if "://" in line or "index-url" in line]
    assert sum("--hash=sha256:" in line for line in lines) >= len(pinned)


@pytest.mark.parametrize("name", ["config", "paper", "run"])
def test_every_key_of_a_schema_is_described(name):
    found = json.loads((REPOSITORY / f"workflow/schemas/{name}.schema.json").read_text())
    for title, part in [(name, found), *found.get("$defs", {}).items()]:
        assert part["description"], title
        assert "Attributes:" not in part["description"], title
        for key, value in part.get("properties", {}).items():
            assert value.get("description"), f"{title}.{key}"
