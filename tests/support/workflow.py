"""The real Snakemake, on embedded data at scale smoke."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from fedlogit.papers import list_papers

REPOSITORY = Path(__file__).resolve().parents[2]
PAPERS = list_papers(REPOSITORY / "workflow" / "papers")
ALL = f"papers=[{','.join(PAPERS)}]"
SMOKE = (ALL, "scale=smoke", "workers=1", "device=cpu")


class Snakemake:
    """The real one, run from a project's root, with results in another folder."""

    def __init__(self, python: Path, project: Path = REPOSITORY) -> None:
        self.command = [str(python), "-m", "snakemake", "--cores", "2"]
        self.project = project

    def __call__(self, folder: Path, *args: str, config: tuple[str, ...] = SMOKE):
        """Make targets, or the default ones."""
        targets = ["--", *args] if args else []
        return self.run("--directory", str(folder), "--config", *config, *targets)

    def dry(
        self,
        folder: Path,
        *args: str,
        config: tuple[str, ...] = SMOKE,
        options: tuple[str, ...] = (),
    ):
        """Plan only; return the jobs per rule."""
        folders = ("--directory", str(folder))
        done = self.run("-n", *folders, *options, "--config", *config, "--", *args)
        assert done.returncode == 0, done.stdout
        stats = re.search(r"^job +count\n-[- ]+\n(.*?)\ntotal", done.stdout, re.M | re.S)
        if stats is None:
            assert "Nothing to be done" in done.stdout
            return {}
        return {rule: int(n) for rule, n in (line.split() for line in stats[1].splitlines())}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call it with these arguments."""
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return subprocess.run(
            [*self.command, *arguments],
            cwd=self.project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
