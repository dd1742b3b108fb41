#!/usr/bin/env python3
"""Run ``snakemake --lint`` and fail on what it finds, but for one advice that does not apply.

It asks for a conda environment per rule. All rules share the locked environment of ``envs/``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main

ROOT = Path(__file__).resolve().parent.parent
ADVICE = "Specify a conda environment or container for each rule"


def main(argv: Sequence[str]) -> int:
    """Return 0 if nothing but that advice was given."""
    command = [sys.executable, "-m", "snakemake", "--lint", *argv]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    found = re.findall(r"^(Lints for .*|    \* .*)$", output, re.MULTILINE)
    wrong = [line for line in found if line.startswith("    ") and ADVICE not in line]
    if not found and done.returncode:
        print(output, file=sys.stderr)
        return done.returncode
    if wrong:
        print("\n".join(line for line in found if ADVICE not in line))
    return int(bool(wrong))


if __name__ == "__main__":
    run_main(main)
