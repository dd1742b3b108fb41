"""Commands, scripts and DVC as a user would call them, from the current folder."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

from fedlogit.cli import call, command_names
from fedlogit.errors import FedlogitError

ROOT = Path(__file__).parents[1]
RUNS = Path("results/runs")


def dvc(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call DVC; it may not ask anything of anybody."""
    return subprocess.run(
        [sys.executable, "-m", "dvc", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"DVC_NO_ANALYTICS": "1"},
        stdin=subprocess.DEVNULL,
        check=False,
    )


def script(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Call a command, or a script's main, in this process, which has imported PyTorch already."""
    main = partial(call, name) if name in command_names() else _main(name)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(args)
        except FedlogitError as error:
            print(f"error: {error}", file=sys.stderr)  # as run_main does
            code = 2
    return subprocess.CompletedProcess([name, *args], code, out.getvalue(), err.getvalue())


def _main(name: str) -> Callable[[Sequence[str]], int | None]:
    return runpy.run_path(str(ROOT / "scripts" / f"{name}.py"))["main"]
