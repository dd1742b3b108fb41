"""Options that the commands of a run share, and the device that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import torch

from fedlogit import methods
from fedlogit.commands._folders import data_folder
from fedlogit.commands._values import count, given_path, seconds
from fedlogit.engine_names import CPU_ENGINES, EngineName
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json
from fedlogit.runs.context import RunContext, RunOptions
from fedlogit.runs.gpus import own_gpu
from fedlogit.runs.setup import choose_device, open_data
from fedlogit.spec import RunSpec

__all__ = [
    "checkpoint_option",
    "engine_options",
    "own_device",
    "read_spec",
    "run_context",
    "run_options",
    "wanted_device",
]


def run_options(parser: argparse.ArgumentParser) -> None:
    """Declare a run's options: spec, data, partition, device, workers, bar."""
    parser.add_argument(
        "--spec",
        type=given_path,
        required=True,
        help="the run's spec (JSON); - reads standard input",
    )
    parser.add_argument(
        "--split", type=given_path, help="indices.npz from partition (default: computed)"
    )
    engine_options(parser)
    parser.add_argument(
        "--runs-per-gpu", type=count, default=1, metavar="N",
        help="wait for a GPU with fewer than N runs",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=count, default=os.cpu_count() or 1, help="threads on a CPU"
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def engine_options(parser: argparse.ArgumentParser) -> None:
    """Declare what one run and many have in common: data, device, engine."""
    data_folder(parser)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:0, …")
    parser.add_argument(
        "--engine", default="auto", choices=get_args(EngineName), help="how clients are trained"
    )


def checkpoint_option(parser: argparse.ArgumentParser) -> None:
    """Declare how often what is trained is saved."""
    parser.add_argument(
        "--checkpoint-seconds",
        type=seconds,
        default=60,
        help="minimum time between checkpoints; 0: after every round",
    )


@contextmanager
def own_device(args: argparse.Namespace, spec: RunSpec) -> Iterator[torch.device]:
    """Yield the device that the options name, a GPU that others leave free if several are there.

    ``auto`` is a GPU if there is one, and the engine is not the one for CPUs.

    Raises:
        FedlogitError: if the device is not there; if it runs out of memory before this ends.
    """
    device = wanted_device(args.device, args.engine)
    with own_gpu(device, args.runs_per_gpu):
        chosen = choose_device(device)
        try:
            yield chosen
        except torch.OutOfMemoryError as error:
            raise FedlogitError(_too_large(chosen, args, spec, str(error))) from None
        except (MemoryError, RuntimeError) as error:
            reason = _unmet(error)
            if reason is None:
                raise
            raise FedlogitError(
                f"device = '{chosen}' is out of memory ({reason}): lower batch (now {spec.batch}),"
                " or take smaller models or fewer clients"
            ) from None


def _unmet(error: MemoryError | RuntimeError) -> str | None:
    """Return what memory of the CPU an error says there is not, or None if it is about another.

    PyTorch raises its own error only where a GPU has too little.
    """
    line = str(error).partition("\n")[0]
    if isinstance(error, MemoryError):  # also NumPy's
        return line or "not enough memory"
    _, found, rest = line.partition("DefaultCPUAllocator: ")
    if found:
        return rest.partition(". Error code")[0].rstrip(".")
    return line if line.startswith("Storage size calculation overflowed") else None


def wanted_device(device: str, engine: str) -> str:
    """Return the device to take: ``auto`` is the CPU for the engines that are for CPUs."""
    return "cpu" if device == "auto" and engine in CPU_ENGINES else device


def _too_large(device: torch.device, args: argparse.Namespace, spec: RunSpec, reason: str) -> str:
    """Return what to lower when a run does not fit into a device's memory, in one line."""
    shared, engine = args.runs_per_gpu, args.engine
    first = reason.partition(". GPU")[0].strip().rstrip(".").partition("\n")[0]
    ways = [f"runs_per_gpu (now {shared})"] if shared > 1 else []
    ways.append(f"batch (now {spec.batch})")
    lower = f"lower {' or '.join(ways)}"
    if engine != "loop":
        lower += f", or take engine = 'loop' (now {engine!r})"
    return f"device = '{device}' is out of memory ({first}): {lower}"


def run_context(args: argparse.Namespace, spec: RunSpec, device: torch.device) -> RunContext:
    """Return what a stage of a run is computed with: the data and the split that options name."""
    data = open_data(spec, args.data, args.split)
    options = RunOptions(device, args.workers, args.engine)
    return RunContext(spec, methods.get(spec.method), *data, options)


def read_spec(path: Path) -> RunSpec:
    """Read a run's spec from a file, or from standard input where the path is ``-``."""
    source = Path("/dev/stdin") if str(path) == "-" else path
    return RunSpec.read(read_json(source), str(path))
