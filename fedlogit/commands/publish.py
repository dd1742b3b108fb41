"""Validate finished runs, add them to DVC and push them to the cache.

    python -m fedlogit publish                  # without runs that only scale smoke or quick needs
    python -m fedlogit publish --with quick     # with those that scale quick needs

results/runs.dvc lists each published run as a separate output, so pulling never touches other runs.
A run is listed only after its files have reached the remote.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from fedlogit.commands._cache import (
    changed_runs,
    dvc,
    read_listing,
    remove_temporary,
    write_listing,
)
from fedlogit.commands._error_lines import print_first
from fedlogit.commands._folders import papers_folder, runs_folder
from fedlogit.commands._remote import (
    check_remote,
    folder_in_repository,
    objects_in_repository,
)
from fedlogit.commands._values import positive
from fedlogit.config import UsuallyLeftOut
from fedlogit.errors import DataError, FedlogitError, unknown
from fedlogit.files import remove_leftovers_of
from fedlogit.locks import held
from fedlogit.papers import Paper, expand, load_paper, papers_in
from fedlogit.results.runs.finished import SortedRuns, sort_runs
from fedlogit.runs.integrity import read_spec
from fedlogit.spec import RunSpec

USUALLY_LEFT_OUT: tuple[str, ...] = get_args(UsuallyLeftOut)
LIMIT = 250
"""Megabytes that a remote inside the repository may hold, unless more are allowed.

Every clone has a copy. Hosts of git ask for repositories below a gigabyte, history included.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    runs_folder(parser)
    parser.add_argument(
        "--with",
        dest="included",
        nargs="*",
        default=[],
        metavar="SCALE",
        help=f"also publish runs at these scales: {' or '.join(USUALLY_LEFT_OUT)}",
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace published runs by those here that differ"
    )
    parser.add_argument(
        "--prune", action="store_true", help="remove published runs that no table or figure needs"
    )
    papers_folder(parser)
    parser.add_argument("--remote", help="DVC remote to push to, instead of the default")
    parser.add_argument(
        "--limit",
        type=positive,
        default=LIMIT,
        metavar="MB",
        help="maximum size of a remote inside this repository, which every clone copies",
    )


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    listing = args.runs.with_suffix(".dvc")
    left_out = _left_out(args)
    papers = [load_paper(name, args.papers) for name in papers_in(args.papers)]
    _check_scales(args.included, papers)
    needed, scales_of_kind = needed_runs(papers)

    def is_wanted(run: str) -> bool:
        scales = needed.get(run)
        if scales is None:
            if args.prune:
                return False
            scales = scales_of_kind.get(_kind(read_spec(args.runs / run)))  # of other seeds
        # What no paper has at any scale is wanted by whoever publishes it.
        return scales is None or not scales <= {*left_out}

    if not listing.parent.is_dir():
        raise DataError(f"--runs {args.runs}: there is no folder {listing.parent}")
    check_remote(args.remote)
    found = sort_runs(args.runs, is_wanted)
    waiting = f"another process publishes in {listing.parent}; waiting for it to end"
    with held(listing.with_name(".publish.lock"), waiting):
        is_new = _publish(args, listing, found, needed.keys())
    refused = [f"error: refused {reason}" for reason in found.refused.values()]
    print_first(refused, Path("logs/refused.txt"))
    if found.refused:
        return 2
    if is_new:
        inside = folder_in_repository(args.remote)
        added = [str(listing), "results", *([str(inside)] if inside else [])]
        print(f"Next: make redraw, then git add {' '.join(added)} (docs/cache.md)")
    return 0


def _publish(
    args: argparse.Namespace, listing: Path, found: SortedRuns, needed: Collection[str]
) -> bool:
    """Add what was found to the list, for who alone writes it; return whether that changed it."""
    part = _part(listing)
    for path in (listing, part):
        remove_leftovers_of(path)
    part.unlink(missing_ok=True)  # of a publish that was killed: git add results would take it
    published = before = read_listing(listing)
    changed = [run for run in changed_runs(listing) if run in found.ready] if published else []
    unused = published.keys() - needed if args.prune else set()
    left = unused | {*changed} if args.replace else unused
    if left:
        published = {run: out for run, out in published.items() if run not in left}
        write_listing(listing, published)
    new = [run for run in found.ready if run not in published]
    if new:
        try:
            add(listing, new, published, args.remote, args.limit)
        except BaseException:  # an interruption, too
            if left:
                write_listing(listing, before)
            raise
    print(
        f"{len(new)} runs published, {len(found.ready) - len(new)} were;"
        f" left out {len(found.left_out)} that nothing{_but_scales(args)} needs;"
        f" {args.runs.name}.dvc lists {len(published) + len(new)}"
    )
    if unused:
        print(f"{len(unused)} taken off the list, as no table or figure needs them")
    elif more := {*published, *new}.difference(needed):
        print(f"{len(more)} of them no table or figure needs any more (--prune takes them off)")
    if changed and not args.replace:
        print(
            f"not published again, although they differ from the cache (--replace would;"
            f" dvc checkout --force {listing} restores the cache's): {_some(changed)}",
            file=sys.stderr,
        )
    return bool(new or left)


def _left_out(args: argparse.Namespace) -> list[str]:
    """Return the scales whose runs are not published."""
    return [scale for scale in USUALLY_LEFT_OUT if scale not in args.included]


def _but_scales(args: argparse.Namespace) -> str:
    """Return the scales that may need the runs that are left out, " but smoke"; "" if none may."""
    scales = " or ".join(_left_out(args))
    return f" but {scales}" if scales else ""


def _some(runs: Sequence[str]) -> str:
    """Return the first runs, and how many more there are."""
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return ", ".join(runs[:3]) + more


def _check_scales(names: Sequence[str], papers: Sequence[Paper]) -> None:
    """Refuse a scale that no paper has.

    Raises:
        FedlogitError: with the nearest one.
    """
    known = {*USUALLY_LEFT_OUT}.union(*(paper.scales for paper in papers))
    for name in names:
        if name not in known:
            raise unknown("scale", name, known)


def needed_runs(papers: Sequence[Paper]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return every run that a table or figure of any paper shows, and at which scales.

    Also the scales of each kind of run, whatever its seed and precision, which settings may change.
    """
    needed: dict[str, set[str]] = defaultdict(set)
    of_kind: dict[str, set[str]] = defaultdict(set)
    for paper in papers:
        for scale in paper.scales:
            for artefact in expand(paper, scale):
                for cell in artefact.cells:
                    needed[cell.run].add(scale)
                    of_kind[_kind(cell.spec)].add(scale)
    return needed, of_kind


def _kind(spec: RunSpec) -> str:
    """Return a digest that runs share which differ in nothing but seed and precision."""
    return spec.model_copy(update={"seed": 0, "precision": "f32"}).digest()


def _part(listing: Path) -> Path:
    """Return the list of the new runs alone, which is there while they are stored and pushed."""
    return listing.with_name(f"{listing.stem}-new.dvc")


def add(
    listing: Path,
    new: Sequence[str],
    published: Mapping[str, dict[str, Any]],
    remote: str | None,
    limit: float = LIMIT,
) -> None:
    """Store new runs, push them, and then list them.

    Args:
        listing: The list of the published runs.
        new: Those to add.
        published: The entries of the others.
        remote: A remote of DVC; None is the default one.
        limit: Megabytes that a remote inside the repository may hold.

    Raises:
        FedlogitError: if DVC fails, or all runs together would be too large.
    """
    part, objects = _part(listing), objects_in_repository(remote)
    try:
        write_listing(part, {run: {"path": f"{listing.stem}/{run}"} for run in new})
        dvc("commit", "--force", str(part))
        outs = dict(published) | read_listing(part, listing.stem)
        size = sum(out.get("size", 0) for out in outs.values()) / 1e6
        if size > limit and (inside := folder_in_repository(remote)):
            raise FedlogitError(
                f"with {len(new)} new runs {inside}, of which every clone has a copy, would hold"
                f" {size:.1f} MB, more than {limit:g}; push to a remote elsewhere (--remote), take"
                " off what no table needs (--prune), or allow more (--limit)"
            )
        dvc("push", *(["--remote", remote] if remote else []), str(part))
        write_listing(listing, outs)
    finally:
        part.unlink(missing_ok=True)
        if objects:  # or git add would take them
            remove_temporary(objects)
