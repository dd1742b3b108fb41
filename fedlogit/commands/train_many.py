"""Train many runs in one job, several at a time, within a time limit.

    python -m fedlogit train_many specs --minutes 55 --jobs 4 --archive results.tar.gz
    python -m fedlogit train_many --paper celm --scale paper --artefacts table1 table6

It writes the same files as Snakemake's rules, to the same bits and into the same folders, but needs
neither Snakemake nor a network. Data sets must have been prepared. Run the command again to resume.
A run that fails does not stop the others. Use `bundle` to take specs and data to another machine,
and `unpack` to bring the results back.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from fedlogit.commands._error_lines import print_first, write_lines
from fedlogit.commands._many.archive import pack
from fedlogit.commands._many.filing import files_of_runs
from fedlogit.commands._many.pool import Limits, ProcessPool
from fedlogit.commands._many.report import damaged, report, states
from fedlogit.commands._many.selection import selected_runs, selection_options
from fedlogit.commands._many.tasks import Task, Tasks
from fedlogit.commands._many.worker import Outcome
from fedlogit.commands._options import checkpoint_option, engine_options, wanted_device
from fedlogit.commands._values import count, given_file, given_path, positive
from fedlogit.errors import FedlogitError
from fedlogit.runs.paths import ResultsLayout
from fedlogit.runs.progress import Counter, counter
from fedlogit.runs.setup import choose_device
from fedlogit.stopping import exit_code

_GRACE = 120  # seconds, as a Slurm job of ours is warned before its end


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    selection_options(parser)
    engine_options(parser)
    parser.add_argument(
        "--partitions", type=given_path, help="folder of partitions (default: those in RESULTS)"
    )
    parser.add_argument(
        "--jobs", type=count, default=1, help="number of runs at a time, over all GPUs"
    )
    parser.add_argument("--workers", type=count, default=1, help="threads of each run on a CPU")
    parser.add_argument(
        "--minutes", type=positive, help="time limit; unfinished runs are saved before it ends"
    )
    parser.add_argument(
        "--grace", type=positive, metavar="SECONDS",
        help="how long before the limit runs are asked to stop (default: a tenth of it,"
        f" at most {_GRACE})",
    )  # fmt: skip
    checkpoint_option(parser)
    parser.add_argument(
        "--archive",
        type=given_file,
        metavar="FILE",
        help="write finished runs to this archive, if there are any",
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    limits = _limits(args, time.monotonic())
    _check_archive(args.archive)
    device = _device(args)
    selected = selected_runs(args)
    broken = damaged(selected, args.results)
    before = states(selected, args.results, broken)
    tasks = _tasks(args).of(selected.runs)
    done = list(before.values()).count("finished")
    with closing(counter(len(before), "run", done=done, show=not args.quiet)) as bar:
        on_end = _printer(bar, ResultsLayout(args.results).runs)
        pool = ProcessPool(device, args.jobs, limits, on_end)
        signals = pool.run(tasks)
    failed = broken | pool.failed
    after = states(selected, args.results, failed)
    errors = [f"error: {where}: {why}" for where, why in {**selected.refused, **failed}.items()]
    print_first(errors, args.results / "train_many.errors.txt")
    *each, counts = report(after, selected.refused, done)
    print(f"{counts}\nEach run: {write_lines(args.results / 'train_many.txt', each)}")
    failures = bool(selected.refused or failed)
    print(_following(after, failures))
    if args.archive:
        _pack(args, after)
    if signals:
        return exit_code(signals[0])
    return 2 if failures else 0


def _following(after: Mapping[str, str], failed: bool) -> str:
    """Return what to do next."""
    if failed:
        return "Next: mend what failed, then the same command again; what has finished is kept"
    if set(after.values()) - {"finished"}:
        return "Next: the same command again; what has finished is not repeated"
    return "Next: snakemake draws tables and figures from these runs (docs/cluster.md)"


def _check_archive(archive: Path | None) -> None:
    """Refuse a folder in an archive's place before anything is trained for it.

    Raises:
        FedlogitError: if it is one, or if there is a file where its folder should be.
    """
    if archive is None:
        return
    if archive.is_dir():
        raise FedlogitError(f"archive = {archive} is a folder; give the name of a file")
    first = next(parent for parent in archive.parents if parent.exists())
    if not first.is_dir():
        raise FedlogitError(f"archive = {archive}: {first} is a file; give another folder")


def _limits(args: argparse.Namespace, start: float) -> Limits:
    if args.minutes is None:
        return Limits()
    whole = 60 * args.minutes
    grace = min(_GRACE, whole / 10) if args.grace is None else args.grace
    if grace >= whole:
        raise FedlogitError(f"grace = {grace:g}: give less than the {whole:g} seconds of minutes")
    return Limits.after(start, whole, grace)


def _device(args: argparse.Namespace) -> str:
    """Return the device's name, once it is clear that it is there."""
    device = wanted_device(args.device, args.engine)
    choose_device(device)
    return device


def _tasks(args: argparse.Namespace) -> Tasks:
    options = {
        "--data": args.data,
        "--engine": args.engine,
        "--workers": args.workers,
        "--runs-per-gpu": args.jobs,
    }
    texts = [text for key, value in options.items() for text in (key, str(value))]
    return Tasks(
        args.results,
        args.partitions or ResultsLayout(args.results).partitions,
        (*texts, "--quiet"),
        ("--checkpoint-seconds", str(args.checkpoint_seconds)),
    )


def _printer(bar: Counter, runs: Path) -> Callable[[Task, Outcome], None]:
    """Return what prints a task's output above the bar, and counts the runs that ended."""

    def on_end(task: Task, outcome: Outcome) -> None:
        for line in outcome.output.splitlines():
            bar.write(line)
        if not outcome.stopped and runs in task.folder.parents:
            bar.update()

    return on_end


def _pack(args: argparse.Namespace, after: dict[str, str]) -> None:
    finished = [run for run, state in after.items() if state == "finished"]
    if not finished:
        print(f"{args.archive}: not written, as no run has finished")
        return
    pack(args.archive, "runs", files_of_runs(ResultsLayout(args.results).runs, finished))
    size = args.archive.stat().st_size / 1e6
    print(f"{args.archive}: {len(finished)} finished runs, {size:.1f} MB")
