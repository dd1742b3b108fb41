"""Disks that are full, and results folders that cannot be written."""

import re
import subprocess
from pathlib import Path

import pytest
from support.calls import script
from support.many import QUIET, folder_of, specs_of, train_many
from support.refusals import refused
from support.small import SMALL

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
def train(python, tmp_path):
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


def test_a_full_disk_is_one_line_and_nothing_half_written(train, tiny_disk):
    done = train(tiny_disk / "run")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "No space left on device" in done.stderr
    left = {p.name for p in (tiny_disk / "run").iterdir()}
    whole = {"spec.json", "checkpoint.safetensors", "checkpoint.previous.safetensors"}
    assert left <= whole, "no result and nothing temporary"


def test_a_run_goes_on_when_there_is_room_again(train, tiny_disk):
    assert train(tiny_disk / "run").returncode == 2
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    assert train(tiny_disk / "run").returncode == 0
    assert (tiny_disk / "run" / "result.json").exists()


def test_a_results_folder_that_cannot_be_written(train, tmp_path):
    (tmp_path / "results").write_text("a file where a folder should be")
    done = train(tmp_path / "results" / "run")
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
    "runs {home}/run --csv {disk}/rounds.csv --curves {disk}/curves.png",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with raw and prepared data, a spec, its finished run and that in an archive."""
    folder = tmp_path_factory.mktemp("home")
    (spec,) = specs_of(folder / "specs", {})
    assert script("download", "digits", "--out", str(folder / "raw")).returncode == 0
    assert train_many(folder, "--archive", str(folder / "runs.tar.gz")).returncode == 0
    folder_of(folder, spec).rename(folder / "run")
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
