"""Fetch the published runs that are missing here.

    python -m fedlogit pull
    python -m fedlogit pull mnist results/runs/fashion_mnist/iid    # only runs in these folders
    python -m fedlogit pull --paper celm --scale paper --artefacts table6 figure3
    python -m fedlogit pull --remote lab

Runs that exist here are kept, including those trained here. Their files differ from the published
ones: `result.json` has the time and the machine, and numbers may differ by rounding. Plain `dvc
pull` stops at such a run and fetches nothing. Runs that could not be fetched are listed.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path, PurePath

from fedlogit.commands._cache import is_here, nonempty_listing, print_cache_state
from fedlogit.commands._folders import runs_folder
from fedlogit.commands._many.selection import names_paper, paper_options, planned_runs
from fedlogit.commands._objects import put_in_place
from fedlogit.commands._remote import check_remote
from fedlogit.commands._values import given_path
from fedlogit.errors import FedlogitError, unknown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "folders", nargs="*", type=given_path, metavar="FOLDER",
        help="only runs in these folders, such as mnist or results/runs/mnist",
    )  # fmt: skip
    paper_options(parser)
    runs_folder(parser)
    parser.add_argument("--remote", help="DVC remote to fetch from, instead of the default")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    check_remote(args.remote)
    published = nonempty_listing(args.runs.with_suffix(".dvc"))
    chosen = _chosen_runs(args, published)
    outs = {run: out for run, out in published.items() if run in chosen}
    if len(outs) < len(published):
        print(f"of {len(published)} published runs {len(outs)} are asked for")
    missing = {run: out["md5"] for run, out in outs.items() if not is_here(args.runs / run)}
    reasons = put_in_place(args.runs, missing, args.remote) if missing else {}
    pulled = missing.keys() - reasons.keys()
    return print_cache_state(args.runs, outs, reasons, outs.keys() - pulled)


def _chosen_runs(args: argparse.Namespace, published: Collection[str]) -> Collection[str]:
    """Return the published runs that the options name.

    Raises:
        FedlogitError: if there is none.
    """
    of_paper = names_paper(args)
    if args.folders and of_paper:
        raise FedlogitError("give either folders, or --paper and --scale")
    if of_paper:
        planned = planned_runs(args, args.runs.parent)
        found = {*published}.intersection(planned)
        if not found:
            raise FedlogitError(f"none of the {len(planned)} runs asked for is published")
        if lacking := len(planned) - len(found):
            print(f"not published: {lacking} of the {len(planned)} runs asked for")
        return found
    if not args.folders:
        return published
    return {run for folder in args.folders for run in _in_folder(folder, args.runs, published)}


def _in_folder(folder: Path, runs: Path, published: Collection[str]) -> set[str]:
    """Return the published runs in a folder, given from here or from the folder of all runs.

    Raises:
        FedlogitError: if there is none.
    """
    here, root = folder.resolve(), runs.resolve()
    is_below = here.is_relative_to(root)
    parts = here.relative_to(root).parts if is_below else folder.parts
    if not is_below and (folder.is_absolute() or not parts):  # "." outside would be all runs
        raise FedlogitError(f"{folder} is not in {runs}, where runs are")
    found = {PurePath(run).parts for run in published}
    for depth, part in enumerate(parts):
        known = {run[depth] for run in found if len(run) > depth}
        if part not in known:
            raise unknown("folder of published runs", part, known)
        found = {run for run in found if run[depth] == part}
    return {str(PurePath(*run)) for run in found}
