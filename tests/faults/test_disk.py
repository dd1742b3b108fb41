"""Disks that are full, and results folders that cannot be written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.calls import RUNS, script
from support.many import QUIET, folder_of, specs_of, train_many
from support.refusals import refused
from support.small import SMALL
from support.study import DRAWS, contents

from fedlogit.errors import FedlogitError
from fedlogit.files import save_npz, write_json
from fedlogit.results.style import new_figure, save_figure

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tiny_disk(tmp_path):
    """Yield a tmpfs of 96 KiB, which holds a spec but not a checkpoint."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "none", str(folder)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def train_into(python, tmp_path):
    """Return a function that trains into a folder."""

    def run(out: Path) -> subprocess.CompletedProcess[str]:
        write_json(tmp_path / "spec.json", SMALL | {"rounds": 4})
        return subprocess.run(
            [str(python), str(ROOT / "scripts" / "train.py"), "--spec", str(tmp_path / "spec.json"),
             "--out", str(out), "--data", str(tmp_path), "--device", "cpu", "--workers", "1",
             "--checkpoint-seconds", "0", "--quiet"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip

    return run


def test_a_full_disk_is_one_line_and_nothing_half_written(train_into, tiny_disk):
    done = train_into(tiny_disk / "run")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "No space left on device" in done.stderr
    left = {p.name for p in (tiny_disk / "run").iterdir()}
    whole = {"spec.json", "checkpoint.safetensors", "checkpoint.previous.safetensors"}
    assert left <= whole, "no result and nothing temporary"


def test_a_run_goes_on_when_there_is_room_again(train_into, tiny_disk):
    assert train_into(tiny_disk / "run").returncode == 2
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    assert train_into(tiny_disk / "run").returncode == 0
    assert (tiny_disk / "run" / "result.json").exists()


def test_a_results_folder_that_cannot_be_written(train_into, tmp_path):
    (tmp_path / "results").write_text("a file where a folder should be")
    done = train_into(tmp_path / "results" / "run")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot write {tmp_path / 'results'}")
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_write_that_fails_half_way_leaves_the_old_file(tiny_disk):
    import numpy as np

    write_json(tiny_disk / "a.json", {"old": True})
    noise = np.random.default_rng(0).integers(0, 256, 200_000, dtype=np.uint8)
    with pytest.raises(FedlogitError, match="No space left"):
        save_npz(tiny_disk / "b.npz", {"noise": noise})
    assert [p.name for p in tiny_disk.iterdir()] == ["a.json"]


@pytest.mark.parametrize("kilobytes", [4, 24, 28])  # 24: the picture alone
def test_a_figure_on_a_full_disk_is_one_line_and_leaves_neither_file(tiny_disk, kilobytes):
    figure, axes = new_figure()
    axes[0, 0].plot(range(9))
    (tiny_disk / "filler").write_bytes(bytes((96 - kilobytes) << 10))
    with refused("No space left on device"):
        save_figure(figure, tiny_disk / "half")
    assert [path.name for path in tiny_disk.iterdir()] == ["filler"]


# What each command writes to a disk; at home is what they read.
WRITES = [
    "download digits --out {disk}/raw",
    "prepare digits --raw {home}/raw --out {disk}/prepared",
    "partition --dataset digits --partition k_classes(2,private_size=20) --clients 3 --seed 0"
    " --data {home} --out {disk}/split",
    f"train --spec {{home}}/run/spec.json --data {{home}} --out {{disk}}/run {' '.join(QUIET)}",
    "train_many {home}/specs --data {home} --results {disk} --archive {disk}/runs.tar.gz "
    + " ".join(QUIET),
    "unpack {home}/runs.tar.gz --runs {disk}/runs",
    "bundle {home}/specs --data {home} --results {home}/none --out {disk}/bundle",
    "unpack {home}/bundle/specs.tar.gz --out {disk}/inputs",
    "runs {home}/run --csv {disk}/rounds.csv --curves {disk}/curves.png",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with raw data, a spec, its finished run, and archives of the run and of the spec."""
    folder = tmp_path_factory.mktemp("home")
    (spec,) = specs_of(folder / "specs", {})
    assert script("download", "digits", "--out", str(folder / "raw")).returncode == 0
    assert train_many(folder, "--archive", str(folder / "runs.tar.gz")).returncode == 0
    folder_of(folder, spec).rename(folder / "run")
    places = ("--data", str(folder), "--results", str(folder / "none"))
    bundled = script("bundle", str(folder / "specs"), *places, "--out", str(folder / "bundle"))
    assert bundled.returncode == 0, bundled.stderr
    return folder


@pytest.mark.parametrize("command", WRITES, ids=[line.split()[0] for line in WRITES])
def test_a_command_on_a_full_disk_leaves_whole_files_and_goes_on(tiny_disk, home, command):
    call = command.format(disk=tiny_disk, home=home).split()
    left: dict[Path, bytes] = {}
    for kilobytes in (0, 20):
        filler = tiny_disk / "filler"
        used = sum(4096 * -(-len(content) // 4096) for content in left.values())
        filler.write_bytes(bytes((96 - kilobytes << 10) - used))
        done = script(*call)
        filler.unlink()
        files = [path for path in tiny_disk.rglob("*") if path.is_file()]
        assert not [path for path in files if path.name.startswith(".")], "temporary files"
        left = {path: path.read_bytes() for path in files}
        if done.returncode == 0:
            break
        *_, said = done.stderr.splitlines()
        assert re.fullmatch(rf"error: .*cannot write {tiny_disk}/.*No space left on.*", said), said
    assert kilobytes > 0, "it failed at least once"
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    assert script(*call).returncode == 0
    lasting = {path for path in left if path.exists() and path.suffix not in (".txt", ".gz")}
    assert {path: path.read_bytes() for path in lasting} == {p: left[p] for p in lasting}


@pytest.fixture
def on_disk(tiny_disk, monkeypatch):
    """Return a function that copies a folder to a disk, makes it the current one and fills it.

    A second call leaves as many kilobytes as it says.
    """
    subprocess.run(["mount", "-o", "remount,size=4m", str(tiny_disk)], check=True)

    def copied(folder: Path) -> Path:
        shutil.copytree(folder, tiny_disk / "project")
        monkeypatch.chdir(tiny_disk / "project")
        return tiny_disk / "project"

    yield copied
    monkeypatch.undo()  # or the disk is in use


def on_a_full_disk(disk: Path, kilobytes: int, *call: str) -> subprocess.CompletedProcess[str]:
    """Call a command where so much is left of a disk."""
    filler, room = disk / "filler", shutil.disk_usage(disk).free
    filler.write_bytes(bytes(max(0, room - (kilobytes << 10))))
    done = script(*call)
    filler.unlink()
    return done


@pytest.mark.parametrize("name", DRAWS)
def test_results_on_a_full_disk_stay_as_they_were(on_disk, tiny_disk, study, name):
    folder, call = on_disk(study), DRAWS[name].split()
    before = contents(folder)
    for kilobytes in (0, 20):
        done = on_a_full_disk(tiny_disk, kilobytes, *call)
        assert contents(folder) == before
        if done.returncode == 0:
            break
        assert re.fullmatch(
            r"error: cannot write results/\S+: No space left on device\n", done.stderr
        )
    assert kilobytes > 0, "it failed at least once"
    assert script(*call).returncode == 0
    assert contents(folder) == before


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def lasting(run: Path) -> dict[Path, bytes]:
    """Return the files of a run that are published."""
    working = (".", "checkpoint")
    return {p: b for p, b in contents(run).items() if not p.name.startswith(working)}


@pytest.mark.slow
def test_runs_are_published_when_there_is_room_again(on_disk, tiny_disk, published):
    folder = on_disk(Path.cwd())
    for made in (".dvc/cache", ".dvc/tmp", "dvc-remote"):
        shutil.rmtree(folder / made)
    listing = RUNS.with_suffix(".dvc")
    whole = listing.read_bytes()
    listing.unlink()
    # DVC can write its locks in part; all of its cache; one of the objects that it pushes.
    for kilobytes, failing in ((4, "commit"), (48, "push")):
        done = on_a_full_disk(tiny_disk, kilobytes, "publish")
        said = rf"error: dvc {failing} failed: .*No space left on device.*\n"
        assert re.fullmatch(said, done.stderr), done.stderr
        assert not hidden(folder / "dvc-remote")
        assert [path.name for path in Path("results").iterdir()] == ["runs"]
    done = script("publish")
    assert done.returncode == 0, done.stderr
    assert listing.read_bytes() == whole


@pytest.mark.slow
def test_runs_are_pulled_when_there_is_room_again(on_disk, tiny_disk, published):
    folder = on_disk(Path.cwd())
    before = [lasting(run) for run in published]
    for made in (".dvc/cache", ".dvc/tmp", RUNS):
        shutil.rmtree(folder / made)
    # There is room for nothing; for some objects; for all of them and one run.
    for kilobytes in (0, 8, 44):
        done = on_a_full_disk(tiny_disk, kilobytes, "pull")
        said = r"error: cannot write \S+: No space left on device\n"
        assert re.fullmatch(said, done.stderr), done.stderr
        assert not hidden(folder / ".dvc/cache")
        assert not hidden(RUNS)
        there = [lasting(run) for run in published]
        assert all(found in ({}, whole) for found, whole in zip(there, before, strict=True))
    assert script("pull").returncode == 0
    assert [lasting(run) for run in published] == before
