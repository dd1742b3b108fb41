"""Options that the scripts of a run share; to be imported before PyTorch."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: spinning threads starve others

from fedlogit.files import read_json
from fedlogit.spec import RunSpec

__all__ = ["read_spec", "run_options"]


def run_options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with a run's options: spec, data, division, device, workers, bar."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--spec", type=Path, required=True, help="the run's spec, JSON; - reads it")
    parser.add_argument(
        "--data", type=Path, default=Path("data/prepared"), help="prepared data sets"
    )
    parser.add_argument(
        "--split", type=Path, help="indices.npz of scripts/partition.py; else made anew"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:0, …")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="threads on a CPU")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def read_spec(path: Path) -> RunSpec:
    """Read a run's spec from a file, or from standard input where the path is ``-``."""
    source = Path("/dev/stdin") if str(path) == "-" else path
    return RunSpec.read(read_json(source), str(path))
