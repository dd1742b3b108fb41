"""On a real Slurm: a paper to the end; jobs that end early go on to the same bits.

Run by `make slurm-test`. The cluster is Debian's, of one node, with pretend GPUs.
"""

from __future__ import annotations

import datetime
import math
import os
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from one_node import HERE, Checkout, Cluster, cancel_all, slurm, waiting_or_running
from support.outcomes import outcome, same
from support.waiting import until

from fedlogit import methods
from fedlogit.data import load
from fedlogit.papers import expand, load_paper, run_dir
from fedlogit.runs.context import RunOptions
from fedlogit.runs.run import run
from fedlogit.runs.setup import divide
from fedlogit.spec import RunSpec

pytestmark = [pytest.mark.slurm, pytest.mark.slow]  # left out by `make test`

_until = partial(until, seconds=600, every=0.2)

PROGRAMS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sbatch", "sacct", "ss")
KINDS = ("cancelled", "warned", "asked", "timed", "hungry")
LIMITS = {
    "runtime": 20,
    "mem_mb": "2700 * attempt",
    # Without a warning before its limit, one of them meets the limit itself.
    "slurm_extra": "'' if 'timed' in wildcards.run else '--signal=TERM@120'",
}


@pytest.fixture(scope="session")
def base(tmp_path_factory) -> Path:
    """A folder that the daemons' users can enter."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no Slurm here: {', '.join(missing)} missing (make slurm-packages)")
    if os.geteuid() != 0:
        pytest.skip("the test cluster's daemons need root")
    own = Path("/etc/slurm/slurm.conf")
    if own.exists() and not own.is_symlink():
        pytest.skip(f"{own} is a cluster's; the test cluster stays away")
    folder = tmp_path_factory.mktemp("slurm")
    for path in (folder, folder.parent, folder.parent.parent):
        path.chmod(path.stat().st_mode | 0o055)
    return folder


@pytest.fixture(scope="module")
def cluster(base) -> Iterator[Cluster]:
    made = Cluster(base / "cluster")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def checkout(cluster, tmp_path) -> Iterator[Checkout]:
    made = Checkout(tmp_path / "checkout")
    made.uncomment(my_account="lab", my_cpus="cpu")
    yield made
    made.end()
    cancel_all()


@pytest.fixture
def alone(patients, cluster) -> Iterator[None]:
    """Whatever an earlier test left, or this one will, is ended; a daemon that died is back."""
    for moment in ("before", "after"):
        patients.end()
        cluster.start()
        cancel_all()
        if moment == "before":
            yield


@pytest.fixture(scope="module")
def patients(cluster, base) -> Checkout:
    """A checkout with the paper whose runs are interrupted."""
    made = Checkout(base / "patients")
    (made.folder / "workflow/papers/interrupted.yaml").write_text((HERE / "paper.yaml").read_text())
    (made.folder / "workflow/reference/interrupted.csv").write_text(
        "table,dataset,partition,method,metric,mean,std\n"
    )
    made.change(train=LIMITS)
    return made


SETTINGS = ("--config", "papers=[interrupted]", "scale=paper", "checkpoint_seconds=0", "--")
ON_GPUS = ("gpu_model=fake", "gpu_partition=gpu")


def table(name: str) -> str:
    return f"results/tables/interrupted/paper/{name}.csv"


@pytest.fixture(scope="module")
def whole(base) -> Path:
    """The same training, uninterrupted, without pauses."""
    data = load("digits", base / "data")
    given = {
        "dataset": "digits", "partition": "k_classes(3, private_size=90)",
        "clients": 4, "rounds": 30, "batch": 32, "public": {"size": 60},
        "models": ["mlp(hidden=[16])"], "local": {"epochs": 1}, "method": "average",
        "optimizer": {"name": "adam", "lr": 0.003}, "export": ["weights"], "seed": 0,
    }  # fmt: skip
    spec = methods.resolve(RunSpec.read(given, "test spec"))
    folder = base / "whole"
    options = RunOptions(torch.device("cpu"), progress=False)
    run(spec, methods.get(spec.method), data, divide(spec, data), folder, options)
    return folder


def test_a_paper_to_the_end(checkout):
    """With the profile's lines uncommented, and short training runs four to a job."""
    checkout.include("tally_train", "smoke", ["table2", "table8", "figure2"])
    paper = load_paper("tally_train", checkout.folder / "workflow" / "papers")
    artefacts = expand(paper, "smoke", datasets=("digits",))
    runs = {str(run_dir(cell.spec)) for artefact in artefacts for cell in artefact.cells}
    assert len(runs) > 4
    begun = datetime.datetime.now().isoformat(timespec="seconds")
    checkout.change(
        groups={"partition": "divisions", "train": "runs"},
        resources={"gpu": 1},
        **{
            "set-resource-scopes": {"gpu": "local"},
            "group-components": {"divisions": 8, "runs": 4},
        },
    )
    settings = ("--config", "papers=[tally_train]", "scale=smoke", "datasets=[digits]", *ON_GPUS)
    checkout.finish(checkout.snakemake(*settings), 2400)
    results = checkout.folder / "results"
    assert (
        "Reported and reproduced" in (results / "summary/tally_train/smoke/summary.md").read_text()
    )
    assert (results / "report/tally_train/smoke.html").stat().st_size > 1000
    found = {p.parent.relative_to(results / "runs") for p in results.glob("runs/**/result.json")}
    assert {str(path) for path in found} == runs
    assert (results / "figures/tally_train/smoke/figure2.pdf").stat().st_size > 1000
    listed = slurm(
        "sacct", "-X", "-n", "-P", "-S", begun, "-o", "partition,account,alloctres,state"
    )
    gpu = [line for line in listed.splitlines() if "gres/gpu=1" in line]
    assert len(gpu) == math.ceil(len(runs) / 4), listed
    assert all(line.startswith(("gpu|lab", "cpu|lab")) for line in listed.splitlines())
    done = checkout.log.read_text()
    checkout.finish(checkout.snakemake(*settings), 600)
    assert "Nothing to be done" in checkout.log.read_text().removeprefix(done)


def test_a_run_that_trains_nobody_asks_for_no_gpu(checkout):
    """It goes where short jobs go, although training is told a type of GPU and a partition."""
    checkout.include("fedol", "smoke", ["table2"])
    settings = ("--config", "papers=[fedol]", "scale=smoke", *ON_GPUS, "--")
    begun = datetime.datetime.now().isoformat(timespec="seconds")
    checkout.finish(checkout.snakemake(*settings, "results/tables/fedol/smoke/table2.csv"), 600)
    listed = slurm("sacct", "-X", "-n", "-P", "-S", begun, "-o", "partition,account,reqtres,state")
    assert listed
    for line in listed.splitlines():
        assert line.startswith("cpu|lab|"), listed
        assert "gres/gpu" not in line, listed


@pytest.fixture(scope="module")
def interrupted(patients) -> tuple[Checkout, dict[str, int]]:
    """Five runs side by side, each interrupted in its own way after some rounds."""
    process = patients.snakemake(*SETTINGS, table("faults"))
    first: dict[str, int] = {}
    ended: set[str] = set()
    end = time.monotonic() + 900
    while len(ended) < len(KINDS):
        assert time.monotonic() < end, f"interrupted {first}; of these ended {ended}"
        assert process.poll() is None, patients.log.read_text()[-6000:]
        for kind in KINDS:
            if kind not in first and _saved(patients, kind):
                (first[kind],) = patients.jobs(kind)
                _interrupt(kind, first[kind])
        there = waiting_or_running()
        for kind in first.keys() - ended:
            if first[kind] not in there:
                ended.add(kind)
                patients.hurry(kind)
        time.sleep(0.5)
    patients.finish(process, 900)
    return patients, first


def _interrupt(kind: str, job: int) -> None:
    if kind == "cancelled":
        slurm("scancel", str(job))
    elif kind == "asked":
        slurm("scancel", "--signal=USR1", str(job))
    elif kind in ("warned", "timed"):
        # A limit that is near; Slurm looks at limits every half a minute.
        minutes = _minutes(job) + (2 if kind == "warned" else 1)
        slurm("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}")


def _minutes(job: int) -> int:
    """Return the whole minutes that a job has run."""
    *long, minutes, _ = slurm("squeue", "-h", "-j", str(job), "-o", "%M").strip().split(":")
    assert not long, f"job {job} has run for hours"
    return int(minutes)


def _saved(checkout: Checkout, kind: str) -> bool:
    try:
        return (checkout.run_folder(kind) / "checkpoint.safetensors").exists()
    except ValueError:  # not planned yet
        return False


def state(job: int) -> str:
    return slurm(
        "sacct", "-X", "-n", "-P", "-S", "now-1days", "-j", str(job), "-o", "state"
    ).strip()


@pytest.mark.parametrize(
    ("kind", "states", "said"),
    [
        ("cancelled", ["CANCELLED by 0"], "stopped by signal 15 after round"),
        ("warned", ["FAILED"], "stopped by signal 15 after round"),
        ("asked", ["FAILED"], "stopped by signal 10 after round"),
        ("timed", ["TIMEOUT"], "stopped by signal 15 after round"),
        ("hungry", ["FAILED", "CANCELLED by 0", "OUT_OF_MEMORY"], "memory limit"),
    ],
)
def test_a_job_that_ends_early_goes_on(interrupted, cluster, whole, kind, states, said):
    checkout, first = interrupted
    folder = checkout.run_folder(kind)
    assert state(first[kind]) in states
    (log,) = checkout.folder.glob(f"logs/slurm/rule_train/*kind{kind}*/{first[kind]}.log")
    told = log.read_text(errors="replace")
    if kind == "hungry":  # the node's daemon says it, and tells the job if that still listens
        daemon = (cluster.folder / "log" / "slurmd.log").read_text(errors="replace")
        told += "".join(line for line in daemon.splitlines() if f"StepId={first[kind]}." in line)
    assert said in told
    assert "goes on after round" in checkout.train_log(kind).read_text()
    assert same(outcome(folder), outcome(whole))
    assert not list(folder.glob("checkpoint*"))
    assert not (folder / ".lock").exists()


def test_memory_grows_with_the_attempt(interrupted):
    listed = slurm("sacct", "-X", "-n", "-P", "-S", "now-1days", "-o", "reqmem")
    assert {"2700M", "5400M"} <= set(listed.split())


@pytest.mark.usefixtures("alone")
def test_a_lost_node(patients, cluster, whole):
    """Slurm puts the job back into its queue; Snakemake need not notice."""
    process = patients.snakemake(*SETTINGS, table("node"))
    _until(lambda: _saved(patients, "lost"), "a checkpoint")
    (job,) = patients.jobs("lost")
    cluster.lose_node()
    patients.hurry("lost")
    if not _queued_again(job, 150):  # SlurmdTimeout and the next ping; else as an administrator
        node = slurm("sinfo", "-h", "-o", "%n").split()[0]
        slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")
        assert _queued_again(job, 60), waiting_or_running()
    cluster.start()
    # The controller of Debian 12 (22.05.8) crashes on a job that starts in the moment in which its
    # node comes back, and then asks for its allocation; three seconds later it does not.
    time.sleep(15)
    slurm("scontrol", "update", f"JobId={job}", "StartTime=now")  # not two minutes later
    patients.finish(process, 900)
    assert same(outcome(patients.run_folder("lost")), outcome(whole))
    assert patients.went_on("lost")


def _queued_again(job: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if waiting_or_running().get(job) == "PD":
            return True
        time.sleep(0.5)
    return False


@pytest.mark.usefixtures("alone")
def test_a_killed_snakemake_and_a_second_one(patients, whole):
    """The first one's job goes on; the second one's waits for it, and finds the run finished."""
    process = patients.snakemake(*SETTINGS, table("killed"))
    _until(lambda: _saved(patients, "left"), "a checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    unlock = patients.snakemake(*SETTINGS[:-1], "--unlock")
    patients.finish(unlock, 300)
    second = patients.snakemake(*SETTINGS, table("killed"))
    _until(lambda: _waits(patients, "left"), "the second job waits for the first")
    patients.hurry("left")
    patients.finish(second, 900)
    assert same(outcome(patients.run_folder("left")), outcome(whole))
    assert not (patients.run_folder("left") / ".lock").exists()


def _waits(checkout: Checkout, kind: str) -> bool:
    log = checkout.train_log(kind)
    return log.exists() and "another process makes" in log.read_text(errors="replace")


@pytest.mark.usefixtures("alone")
def test_a_cluster_without_accounts(patients, cluster, base, whole):
    """A cancelled job is noticed there, too, which the executor's default would not."""
    cluster.stop()
    bare = Cluster(base / "bare", accounts=False)
    try:
        bare.start()
        process = patients.snakemake(*SETTINGS, table("bare"))
        _until(lambda: _saved(patients, "bare"), "a checkpoint")
        (job,) = patients.jobs("bare")
        slurm("scancel", str(job))
        _until(lambda: job not in waiting_or_running(), "the job has ended")
        patients.hurry("bare")
        patients.finish(process, 900)
    finally:
        patients.end()
        bare.stop()
    assert same(outcome(patients.run_folder("bare")), outcome(whole))
    assert "goes on after round" in patients.train_log("bare").read_text()
