"""A reader of the documentation: a scratch copy of the checkout in which blocks are followed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import yaml
from documented import ROOT, Block, applied

from fedlogit.commands._cache import read_listing, write_listing
from fedlogit.data import load_arrays
from fedlogit.data.embedded import docstrings
from fedlogit.results.verdicts.compare import runs_behind

# What a reader's shell would not give: a warm start, no network (nothing listens there).
_NOWHERE = "http://127.0.0.1:9"


def git(*arguments: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


class Reader:
    """Follows blocks, one after another, in a copy of its own.

    The copy is a clone with the working tree's changes; its environment is the current one, with a
    stamp by which `make` takes it for installed; scale and device are those of a test.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.root, self.stack, self.starts = folder / "fedlogit", stack, 0
        git("clone", "--quiet", "--shared", ROOT, self.root)
        changed = git("ls-files", "-z", "--modified", "--others", "--exclude-standard").split("\0")
        for name in filter(None, changed):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy(ROOT / name, self.root / name)
            else:
                (self.root / name).unlink(missing_ok=True)
        self._shorten()
        self._environment()
        self._mirror()

    def _shorten(self) -> None:
        """Leave only MNIST's runs in the cache's list, of which DVC reads thousands for seconds.

        What was compared of the others goes, too: the record refuses it, as its runs are gone.
        """
        listing = self.root / "results/runs.dvc"
        published = read_listing(listing).items()
        kept = {run: out for run, out in published if run.startswith("mnist/")}
        write_listing(listing, kept)
        there = {run.rpartition("-")[2] for run in kept}
        for path in self.root.glob("results/summary/*/*/compare.csv"):
            if not there.issuperset(runs_behind(path)):
                path.unlink()
        for what in ("as the reader finds it", "for what compares with HEAD~1"):
            git("add", "--all", cwd=self.root)
            author = ("-c", "user.name=reader", "-c", "user.email=reader@example.org")
            git(*author, "commit", "--quiet", "--allow-empty", "--message", what, cwd=self.root)

    def configure(self, papers: list[str]) -> None:
        """Write the settings of a test into ``config.yaml``."""
        path = self.root / "config.yaml"
        text = git("show", "HEAD:config.yaml") if not path.exists() else path.read_text()
        wanted = {"papers": papers, "scale": "smoke", "device": "cpu"}
        for key, value in wanted.items():
            line = f"{key}: {yaml.safe_dump(value, default_flow_style=True).splitlines()[0]}"
            text, found = re.subn(rf"^{key}:.*$", line, text, flags=re.M)
            assert found == 1
        path.write_text(text)

    def _environment(self) -> None:
        """Make ``.venv`` of links to the current environment, with warm programs and the stamp."""
        home = self.root / ".venv"
        (home / "bin").mkdir(parents=True)
        for path in Path(sys.prefix).iterdir():
            if path.name != "bin" and not path.name.startswith(".installed"):
                (home / path.name).symlink_to(path)
        for path in Path(sys.prefix, "bin").iterdir():
            (home / "bin" / path.name).symlink_to(path)
        for name in ("python", "python3", "snakemake", "dvc"):
            (home / "bin" / name).unlink(missing_ok=True)
        for name in ("snakemake", "dvc"):
            self._program(name, f'exec python -m {name} "$@"')
        self._program("python3", 'exec python "$@"')
        self.warm()
        asked = ["make", "-s", "--eval=stamp: ; @echo $(STAMP)", "stamp"]
        stamp = subprocess.run(asked, cwd=self.root, capture_output=True, text=True, check=True)
        (self.root / stamp.stdout.strip()).touch()

    def _program(self, name: str, text: str) -> None:
        path = self.root / ".venv/bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def warm(self) -> None:
        """Start a Python that has imported the copy's library, as it is now."""
        spec = importlib.util.spec_from_file_location(
            f"warm_copy_{self.starts}", self.root / "tests/support/warm_python.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        folder = self.root.parent / f"python{self.starts}"
        folder.mkdir()
        program = self.stack.enter_context(module.warm_python(folder))
        cold = Path(sys.prefix, "bin/python")
        self._program("python", f'[ "$1" = -c ] && exec {cold} "$@"\nexec {program} "$@"')
        self.starts += 1

    def _mirror(self) -> None:
        """Put digits and docstrings into a mirror, as the data sets that a page adds."""
        (self.root.parent / "mirror").mkdir()
        arrays, _ = load_arrays("digits", self.root)
        np.savez(self.root.parent / "mirror/letters.npz", **arrays)
        (self.root.parent / "mirror/letters_of_austen").mkdir()
        for split, text in docstrings().items():
            path = self.root.parent / f"mirror/letters_of_austen/{split}.txt"
            path.write_bytes(text.tobytes()[:10_000])

    def run(self, command: str) -> str:
        """Run a command in the root of the copy, in a shell with the environment activated.

        Returns:
            What it printed, less what it wrote to standard error.
        """
        bin_ = self.root / ".venv/bin"
        environment = os.environ | {
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.root),
            "FEDLOGIT_MIRROR": str(self.root.parent / "mirror"),
            "DVC_NO_ANALYTICS": "1",
            "MPLBACKEND": "agg",
            **{f"{kind}_proxy": _NOWHERE for kind in ("http", "https")},
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def write(self, block: Block) -> None:
        """Write, complete or change the file that a block is."""
        path = self.root / block.title
        if block.language == "diff":
            path.write_text(applied(path.read_text(), block.text))
            if path.suffix == ".py":
                self.warm()  # what it has imported is no longer what is there
        elif block.language == "yaml" and path.exists():
            given = yaml.safe_load(path.read_text()) | yaml.safe_load(block.text)
            path.write_text(yaml.safe_dump(given, sort_keys=False))
        else:
            path.write_text(block.text)
