"""Put finished runs into the cache: validated, added to DVC and pushed.

    python -m fedlogit publish                    # all but runs for scale smoke or quick alone
    python -m fedlogit publish --with quick       # these, too

results/runs.dvc lists every published run as an output of its own, so that pulling never touches
runs that are not in it. A run enters that file only after its bytes have reached the remote.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedlogit.commands._cache import changed_runs, dvc, read_listing, write_listing
from fedlogit.commands._first import tell_first
from fedlogit.commands._settings import papers_in
from fedlogit.errors import DataError, FedlogitError, unknown
from fedlogit.locks import held
from fedlogit.papers import Paper, expand, load_paper
from fedlogit.results.runs.finished import Sorted, sort_runs

USUALLY_LEFT_OUT = ("smoke", "quick")
LIMIT = 100_000_000
"""Bytes that the remote inside the repository may hold (every clone has a copy)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")
    parser.add_argument(
        "--with",
        dest="included",
        nargs="*",
        default=[],
        metavar="SCALE",
        help=f"publish these, too, of {', '.join(USUALLY_LEFT_OUT)}",
    )
    parser.add_argument(
        "--replace", action="store_true", help="publish runs again that differ from the cache"
    )
    parser.add_argument(
        "--prune", action="store_true", help="take runs off the list that no table or figure needs"
    )
    parser.add_argument(
        "--papers", type=Path, default=Path("workflow/papers"), help="what tables and figures need"
    )
    parser.add_argument("--remote", help="push to this remote of DVC instead of the default")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    listing = args.runs.with_suffix(".dvc")
    left_out = [scale for scale in USUALLY_LEFT_OUT if scale not in args.included]
    papers = [load_paper(name, args.papers) for name in papers_in(args.papers)]
    _check_scales(args.included, papers)
    needed = needed_runs(papers)

    def is_wanted(run: str) -> bool:
        return bool(needed[run] - {*left_out}) if run in needed else not args.prune

    if not listing.parent.is_dir():
        raise DataError(f"--runs {args.runs}: there is no folder {listing.parent}")
    found = sort_runs(args.runs, is_wanted)
    waiting = f"another process publishes in {listing.parent}; waiting for it to end"
    with held(listing.with_name(".publish.lock"), waiting):
        _publish(args, listing, found, needed.keys())
    refused = [f"error: refused {reason}" for reason in found.refused.values()]
    tell_first(refused, Path("logs/refused.txt"))
    if found.refused:
        return 2
    print(f"Next: make redraw, then git add {listing} dvc-remote results (docs/cache.md)")
    return 0


def _publish(
    args: argparse.Namespace, listing: Path, found: Sorted, needed: Collection[str]
) -> None:
    """Add what was found to the list, for who alone writes it, and say what came of it."""
    published = before = read_listing(listing)
    changed = [run for run in changed_runs(listing) if run in found.ready] if published else []
    if args.replace and changed:
        published = {run: out for run, out in published.items() if run not in changed}
        write_listing(listing, published)
    new = [run for run in found.ready if run not in published]
    if new:
        try:
            add(listing, new, published, args.remote)
        except BaseException:  # an interruption, too
            if len(published) < len(before):
                write_listing(listing, before)
            raise
    left_out = [scale for scale in USUALLY_LEFT_OUT if scale not in args.included]
    print(
        f"{len(new)} runs published, {len(found.ready) - len(new)} were;"
        f" left out {len(found.left_out)} that nothing but {' or '.join(left_out) or '-'} needs;"
        f" {args.runs.name}.dvc lists {len(published) + len(new)}"
    )
    _tell_unused(listing, {*published, *new}.difference(needed), args.prune)
    if changed and not args.replace:
        print(
            f"not published again, although they differ from the cache (--replace would;"
            f" dvc checkout --force {listing} restores the cache's): {_some(changed)}",
            file=sys.stderr,
        )


def _some(runs: Sequence[str]) -> str:
    """Return the first runs, and how many more there are."""
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return ", ".join(runs[:3]) + more


def _tell_unused(listing: Path, unused: set[str], prune: bool) -> None:
    """Say which runs of the list nothing shows, after taking them off if that was asked for."""
    if unused and prune:
        write_listing(listing, {r: o for r, o in read_listing(listing).items() if r not in unused})
        print(f"{len(unused)} of them taken off the list, as no table or figure needs them")
    elif unused:
        print(f"{len(unused)} of them no table or figure needs any more (--prune takes them off)")


def _check_scales(names: Sequence[str], papers: Sequence[Paper]) -> None:
    """Refuse a scale that no paper has.

    Raises:
        FedlogitError: with the nearest one.
    """
    known = {*USUALLY_LEFT_OUT}.union(*(paper.scales for paper in papers))
    for name in names:
        if name not in known:
            raise unknown("scale", name, known)


def needed_runs(papers: Sequence[Paper]) -> dict[str, set[str]]:
    """Return every run that a table or figure of any paper shows, and at which scales."""
    needed: dict[str, set[str]] = defaultdict(set)
    for paper in papers:
        for scale in paper.scales:
            for artefact in expand(paper, scale):
                for cell in artefact.cells:
                    needed[cell.run].add(scale)
    return needed


def add(
    listing: Path, new: Sequence[str], published: Mapping[str, dict[str, Any]], remote: str | None
) -> None:
    """Store new runs, push them, and then list them.

    Raises:
        FedlogitError: if DVC fails, or all runs together would be too large.
    """
    part = listing.with_name(f"{listing.stem}-new.dvc")
    try:
        write_listing(part, {run: {"path": f"{listing.stem}/{run}"} for run in new})
        dvc("commit", "--force", str(part))
        outs = dict(published) | read_listing(part, listing.stem)
        size = sum(out.get("size", 0) for out in outs.values())
        if size > LIMIT and remote is None:
            raise FedlogitError(
                f"with {len(new)} new runs the cache would have {size / 1e6:.0f} MB, more than"
                f" {LIMIT / 1e6:.0f}; give another remote (--remote), or publish fewer scales"
            )
        dvc("push", *(["--remote", remote] if remote else []), str(part))
        write_listing(listing, outs)
    finally:
        part.unlink(missing_ok=True)
