"""A Slurm of one node, a copy of the repository to work in, and Snakemake on both."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import yaml
from support.waiting import until

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
COPIED = [
    "Snakefile",
    "config.yaml",
    "data/sources.yaml",
    "fedlogit",
    "profiles",
    "scripts",
    "slurm",
    "workflow",
]


class Cluster:
    """A Slurm of one node with pretend GPUs."""

    def __init__(self, folder: Path, accounts: bool = True) -> None:
        self.folder = folder
        self.accounts = accounts

    def start(self) -> None:
        """Start what is not running."""
        options = [] if self.accounts else ["--no-accounts"]
        self._script("start.sh", *options)

    def stop(self) -> None:
        """Stop all of it."""
        self._script("stop.sh")

    def lose_node(self) -> None:
        """Kill the node's daemon and all that runs on it, as a power cut would."""
        daemon = int((self.folder / "run" / "slurmd.pid").read_text())
        steps = [pid for pid, name in _processes() if name.startswith("slurmstepd")]
        # Stopped first, so that none of them notices another's end.
        victims = [daemon, *steps, *(pid for step in steps for pid in _below(step))]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in victims:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        until(lambda: not _alive(daemon), "the node is dead", seconds=30)

    def _script(self, name: str, *args: str) -> None:
        log = self.folder.with_suffix(".log")
        with log.open("ab") as file:
            done = subprocess.run(
                [str(HERE / "cluster" / name), str(self.folder), *args],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=180, check=False,
            )  # fmt: skip
        assert done.returncode == 0, log.read_text()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _processes() -> list[tuple[int, str]]:
    listed = subprocess.run(["ps", "-eo", "pid,comm"], capture_output=True, text=True, check=True)
    rows = (line.split(maxsplit=1) for line in listed.stdout.splitlines()[1:])
    return [(int(pid), name) for pid, name in rows]


def _below(pid: int) -> list[int]:
    """Return all processes that a process started, from any of its threads, and theirs."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return [below for child in found for below in (child, *_below(child))]


def slurm(*command: str) -> str:
    """Return what one of Slurm's commands prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def waiting_or_running() -> dict[int, str]:
    """Return the state of each job that has not ended, as ``PD`` or ``R``."""
    listed = slurm("squeue", "-h", "-o", "%A %t")
    return {int(job): state for job, state in map(str.split, listed.splitlines())}


def cancel_all() -> None:
    """Cancel every job, and wait until none is left."""
    slurm("scancel", "--user=root")
    until(lambda: not waiting_or_running(), "every job has ended", seconds=120, every=0.2)


class Checkout:
    """A copy of the repository whose profile a user has adapted to the test cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in COPIED:
            source = REPOSITORY / name
            (folder / name).parent.mkdir(exist_ok=True)
            if source.is_dir() and not source.is_symlink():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, folder / name, follow_symlinks=False)
        self.started: list[subprocess.Popen[bytes]] = []
        self.profile = folder / "workflow" / "profiles" / "slurm" / "config.yaml"

    def uncomment(self, **values: str) -> None:
        """Uncomment the profile's lines, with values in place of their examples."""
        text = self.profile.read_text()
        for example, value in values.items():
            text, count = re.subn(rf"# (\w+: ){example}\b.*", rf"\g<1>{value}", text)
            assert count == 1, example
        self.profile.write_text(text)

    def change(self, **changes: object) -> None:
        """Change the resources of training, and any other key, in the profile."""
        data = yaml.safe_load(self.profile.read_text())
        data["set-resources"]["train"] |= changes.pop("train", {})  # type: ignore[operator]
        self.profile.write_text(yaml.safe_dump(data | changes))

    def include(self, paper: str, scale: str, artefacts: list[str]) -> None:
        """Leave all but a few tables and figures out of a paper."""
        path = self.folder / "workflow" / "papers" / f"{paper}.yaml"
        data = yaml.safe_load(path.read_text())
        data["scales"][scale]["include"] = artefacts
        path.write_text(yaml.safe_dump(data, sort_keys=False))

    def hurry(self, kind: str) -> None:
        """Let the runs of a kind of `Patient` pause no longer."""
        (self.folder / f"hurry-{kind}").touch()

    def end(self) -> None:
        """Kill what is left of Snakemake, so that a failed test does not fail the next ones."""
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.started.clear()
        shutil.rmtree(self.folder / ".snakemake" / "locks", ignore_errors=True)

    def snakemake(self, *args: str) -> subprocess.Popen[bytes]:
        """Start ``snakemake --profile slurm`` with a log beside the folder."""
        environment = os.environ | {"PYTHONPATH": str(HERE)}
        quick = ["--slurm-init-seconds-before-status-checks", "3"]
        command = [sys.executable, "-m", "snakemake", "--profile", "slurm", *quick, *args]
        with self.log.open("ab") as file:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                stderr=file, start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(".log")

    def finish(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Wait for Snakemake to end well; without a controller it would wait for good."""
        end = time.monotonic() + seconds
        try:
            while (code := process.poll()) is None:
                assert time.monotonic() < end, f"not within {seconds} s: {process.args}"
                slurm("scontrol", "ping")
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert code == 0, self.log.read_text()[-6000:]

    def run_folder(self, kind: str) -> Path:
        """Return where the run of a kind of `Patient` lives."""
        (plan,) = self.folder.glob(f"results/plan/runs/digits/*/patient*kind{kind}*/*.json")
        below = plan.relative_to(self.folder / "results" / "plan" / "runs")
        return self.folder / "results" / "runs" / below.with_suffix("")

    def train_log(self, kind: str) -> Path:
        """Return the log of a run's last attempt."""
        below = self.run_folder(kind).relative_to(self.folder / "results" / "runs")
        return self.folder / "logs" / "train" / f"{below}.log"

    def jobs(self, kind: str) -> list[int]:
        """Return the numbers of the Slurm jobs that trained a run and did not succeed."""
        return sorted(int(path.stem) for path in self._job_logs(kind))

    def went_on(self, kind: str) -> bool:
        """Return whether an attempt said that it goes on from a checkpoint.

        After a lost node the last one need not: Slurm may stop a job whose run has just finished,
        and that run's next attempt only puts the result back.
        """
        logs = [*self._job_logs(kind), self.train_log(kind)]
        return any("goes on after round" in log.read_text(errors="replace") for log in logs)

    def _job_logs(self, kind: str) -> list[Path]:
        """Return the logs of those jobs; the profile keeps none of a job that succeeded."""
        return [*self.folder.glob(f"logs/slurm/rule_train/*kind{kind}*/*.log")]
