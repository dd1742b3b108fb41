"""Runs on one machine take different GPUs; pretend ones will do, since only their names count."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from support.waiting import heard, until

from fedlogit.runs.gpus import own_gpu, visible_gpus
from fedlogit.runs.setup import choose_device

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with GPUs 0 and 1, and a temporary folder of its own."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path


def hold(device: str, share: int, folder: Path) -> None:
    with own_gpu(device, share):
        (folder / f"{os.getpid()}.took").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
        until((folder / "end").exists)


class Runs:
    """Processes that hold a GPU until they are told to end."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started, self.seen = folder, [], set()

    def start(self, device: str = "cuda", share: int = 1):
        process = FORK.Process(target=hold, args=(device, share, self.folder))
        process.start()
        self.started.append(process)
        return process

    def take(self, seconds: float = 60) -> str:
        """Return the GPU that one more run took; wait for it."""
        path = until(self._new, "a run takes a GPU", seconds=seconds)
        self.seen.add(path)
        return path.read_text()

    def _new(self) -> Path | None:
        """Return the file of a run that was not seen yet."""
        files = set(self.folder.glob("*.took")) - self.seen
        return next((path for path in files if path.read_text()), None)

    def nothing(self) -> bool:
        time.sleep(1.2)
        return set(self.folder.glob("*.took")) == self.seen

    def end(self) -> None:
        (self.folder / "end").touch()


@pytest.fixture
def runs(tmp_path):
    made = Runs(tmp_path)
    yield made
    made.end()
    for process in made.started:
        process.join(30)
        assert process.exitcode in (0, -signal.SIGKILL)


def test_each_run_takes_another_gpu_and_a_third_waits(runs, capfd):
    runs.start(), runs.start("auto")
    assert {runs.take(), runs.take()} == {"0", "1"}
    runs.start()
    heard(capfd, "waiting for a GPU: 0, 1 taken, runs_per_gpu = 1")
    assert runs.nothing()
    runs.end()
    assert runs.take() in ("0", "1")


def test_a_killed_run_frees_its_gpu(runs):
    first = runs.start()
    runs.start()
    mine = runs.take()
    if mine != "0":
        runs.take()
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    runs.start()
    assert runs.take() in ("0", "1")


def test_runs_share_gpus_evenly_where_they_may(runs):
    taken = []
    for _ in range(4):
        runs.start(share=2)
        taken.append(runs.take())
    assert taken == ["0", "1", "0", "1"]
    runs.start(share=2)
    assert runs.nothing()


def test_slurm_jobs_have_gpus_of_their_own(runs, monkeypatch):
    """Where Slurm hides other jobs' GPUs, each job's are numbered from 0."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    for job in ("1", "2"):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        runs.start()
        assert runs.take() == "0"


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_named_device_takes_nothing(machine, device):
    with own_gpu(device, 1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert list((machine / "tmp").iterdir()) == []


def test_afterwards_all_gpus_are_seen_and_nothing_is_left(machine):
    with own_gpu("cuda", 1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert list((machine / "tmp").iterdir()) == []


@pytest.mark.parametrize("before", [None, " GPU-8a1f, 3 "])
def test_afterwards_what_was_visible_is_as_it_was_to_the_letter(monkeypatch, before):
    monkeypatch.setattr("fedlogit.runs.gpus.visible_gpus", lambda environment: ["0", "1"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if before is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    with own_gpu("cuda", 1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == before


def test_which_gpus_there_are(tmp_path):
    for name in ("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert visible_gpus({}, tmp_path) == ["2", "10"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "GPU-8a1f, 3"}) == ["GPU-8a1f", "3"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "-1"}) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch can use the GPU that is there")
def test_auto_tells_of_a_gpu_that_pytorch_cannot_use(monkeypatch):
    with pytest.warns(UserWarning, match=r"is the CPU, .* cannot use GPU 0, 1, .* device = 'cpu'"):
        assert choose_device("auto") == torch.device("cpu")
    assert choose_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert choose_device("auto") == torch.device("cpu")
