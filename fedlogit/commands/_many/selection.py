"""Which runs the options select: specs in files, or what tables and figures of a paper need."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedlogit import methods
from fedlogit.commands._folders import papers_folder, results_folder
from fedlogit.commands._values import count, given_path
from fedlogit.errors import DataError, FedlogitError, missing_package
from fedlogit.files import read_json
from fedlogit.runs.paths import run_dir
from fedlogit.runs.run import check_folder
from fedlogit.spec import RunSpec

__all__ = [
    "SelectedRuns",
    "names_paper",
    "paper_options",
    "planned_runs",
    "selected_runs",
    "selection_options",
]


@dataclass(frozen=True)
class SelectedRuns:
    """Runs that the options select.

    Attributes:
        runs: Each run's resolved spec, by its folder below that of all runs.
        refused: Why a file, or an entry of its list, is no spec of a run.
    """

    runs: dict[str, RunSpec] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def selection_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which runs."""
    parser.add_argument(
        "specs", nargs="*", type=given_path, metavar="SPECS",
        help="a folder of specs, or a JSON file with one spec or a list of specs",
    )  # fmt: skip
    paper_options(parser)
    parser.add_argument(
        "--sample", type=count, metavar="N",
        help="only N of these runs, chosen at random, but the same ones in each call",
    )  # fmt: skip
    results_folder(parser)


def paper_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that ask for the runs of a paper."""
    parser.add_argument("--paper", help="select the runs of this paper's tables and figures")
    parser.add_argument("--scale", help="scale of the paper's runs")
    parser.add_argument(
        "--artefacts",
        nargs="+",
        metavar="NAME",
        help="only these tables and figures, such as table1 figure2",
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds to use instead of the paper's")
    parser.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="only runs on these data sets"
    )
    papers_folder(parser)


def selected_runs(args: argparse.Namespace) -> SelectedRuns:
    """Return the runs that the options of `selection_options` ask for.

    Raises:
        FedlogitError: if they ask for none, or for a paper, scale, table or figure that is not
            there.
    """
    of_paper = names_paper(args)
    if bool(args.specs) == of_paper:
        raise FedlogitError("give either files of specs, or --paper and --scale")
    selected = SelectedRuns(planned_runs(args, args.results)) if of_paper else _read(args.specs)
    if not selected.runs and not selected.refused:
        raise FedlogitError(f"no specs in {', '.join(map(str, args.specs))}")
    return SelectedRuns(_sample(selected.runs, args.sample), selected.refused)


def _sample(runs: dict[str, RunSpec], size: int | None) -> dict[str, RunSpec]:
    """Return this many of the runs, those with the smallest hashes; all if None."""
    kept = set(sorted(runs, key=lambda run: runs[run].digest())[:size])
    return {run: spec for run, spec in runs.items() if run in kept}


def names_paper(args: argparse.Namespace) -> bool:
    """Return whether any option of `paper_options` but the folder of papers is given."""
    return any((args.paper, args.scale, args.artefacts, args.seeds, args.datasets))


def planned_runs(args: argparse.Namespace, results: Path) -> dict[str, RunSpec]:
    """Return the runs of a paper's tables and figures that the options of `paper_options` ask for.

    Raises:
        FedlogitError: if there is no such paper, scale, table or figure.
    """
    if not (args.paper and args.scale):
        raise FedlogitError("give --paper and --scale together")
    try:
        from fedlogit.config import Settings
        from fedlogit.papers import Plan
    except ModuleNotFoundError as error:
        hint = "bring specs from where it is (python -m fedlogit bundle)"
        raise missing_package(error, "--paper", hint) from None
    given = {key: getattr(args, key) for key in ("scale", "seeds", "datasets")}
    plan = Plan(Settings.load(given | {"papers": args.paper}, "options"), args.papers, results)
    found = plan.drawable_of(args.paper, args.scale)
    if args.artefacts:
        found = [plan.artefact(args.paper, args.scale, name) for name in args.artefacts]
    return {run: plan.spec_of_run(run) for artefact in found for run in plan.runs(artefact)}


def _read(paths: Iterable[Path]) -> SelectedRuns:
    selected = SelectedRuns()
    for path in (file for given in paths for file in _files(given)):
        try:
            data = read_json(path)
        except DataError as error:
            selected.refused[str(path)] = str(error).removeprefix(f"{path} ")
            continue
        entries = data if isinstance(data, list) else [data]
        for i, entry in enumerate(entries):
            where = f"{path}, entry {i}" if isinstance(data, list) else str(path)
            try:
                spec = _resolved(entry, where, path)
                selected.runs[str(run_dir(spec))] = spec
            except FedlogitError as error:
                selected.refused[where] = str(error).removeprefix(f"{where}: ")
    return selected


def _resolved(data: Any, where: str, path: Path) -> RunSpec:
    """Return a spec with all defaults; a file whose name has a hash must have that spec's."""
    spec = methods.resolve(RunSpec.read(data, where))
    check_folder(spec, path.with_suffix(""))
    return spec


def _files(given: Path) -> list[Path]:
    if not given.exists():
        raise DataError(f"{given} does not exist; give a folder or a file of specs")
    return sorted(given.rglob("[!.]*.json")) if given.is_dir() else [given]
