"""Summarise what was made: a few numbers next to the paper's, and where everything is.

    python -m fedlogit summary --scale quick who_to_trust
    python -m fedlogit summary --scale paper --datasets mnist -- who_to_trust celm
    python -m fedlogit summary --config config.yaml
    python -m fedlogit summary

It reads what `compare` wrote. With --scale or --config, it writes all numbers to
results/summary.md. Without, it covers everything that finished runs cover, and the numbers are in
results/record.md, or, for a study without published numbers, in
results/summary/<paper>/<scale>/summary.md; scales without a comparison are skipped.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedlogit.commands._folders import papers_folder, results_folder
from fedlogit.commands._settings import of_finished_runs, refuse_missing
from fedlogit.commands._values import given_path
from fedlogit.config import Settings, read_settings
from fedlogit.errors import FedlogitError
from fedlogit.papers import Plan, PlannedArtefact, list_papers
from fedlogit.results.closing import closing, where_to_look
from fedlogit.results.formatting import write_text
from fedlogit.results.summary import overview
from fedlogit.runs.paths import ResultsLayout

_NOTHING = (
    "Nothing was made here yet: make figures pulls finished runs and draws them, make reproduce"
    " trains the quick scale"
)
_NOT_COMPARED = (
    "No paper was compared at any scale yet: snakemake --cores all makes all that the papers of"
    " config.yaml have at its scale, the comparison too"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("papers", nargs="*", help="papers (default: all)")
    parser.add_argument("--scale", help="scale (default: that of --config, else all)")
    parser.add_argument("--datasets", nargs="*", help="only papers with a run on these data sets")
    parser.add_argument("--seeds", nargs="*", help="seeds that were used instead of the papers'")
    parser.add_argument(
        "--config", type=given_path, help="config.yaml to take the other settings from"
    )
    results_folder(parser)
    papers_folder(parser, "--papers-folder")
    parser.add_argument(
        "--report",
        type=given_path,
        default=Path("results/report.html"),
        help="the report to name, if it exists",
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    lines = _at_scale(args) if args.scale is not None or args.config else _everywhere(args)
    print("\n".join(lines))


def _at_scale(args: argparse.Namespace) -> list[str]:
    """Write the table of all numbers at a scale; return what to say of it."""
    settings = _chosen(args)
    refuse_missing(args.results)
    plan = Plan(settings, args.papers_folder, args.results)
    if left_out := plan.left_out():
        print(left_out, file=sys.stderr)
    judged = [paper for paper in plan.chosen if plan.judged(paper, settings.scale)]
    labels = {paper: plan.papers[paper].labels_of_numbers for paper in judged}
    full = write_text(args.results / "summary.md", overview(args.results, settings.scale, labels))
    made = [a for a in plan.artefacts if a.paper.paper in plan.chosen]
    return closing(plan, made, where_to_look(args.results, full, args.report, settings.scale))


def _chosen(args: argparse.Namespace) -> Settings:
    """Return what the options say and, for what they leave open, the configuration.

    All of it, since its seeds and its precision say which runs there are.
    """
    given = {key: getattr(args, key) for key in ("papers", "scale", "datasets", "seeds")}
    there: dict[str, Any] = {"papers": list_papers(args.papers_folder)}
    if args.config:
        there = Settings.load(read_settings(args.config), str(args.config)).model_dump(mode="json")
    return Settings.load(there | {k: v for k, v in given.items() if v not in (None, [])}, "options")


def _everywhere(args: argparse.Namespace) -> list[str]:
    """Return what to say of all that finished runs cover."""
    for key in ("datasets", "seeds"):
        if getattr(args, key):
            raise FedlogitError(f"{key}: give a scale, too")
    settings = of_finished_runs(args.papers_folder, args.papers)
    refuse_missing(args.results)
    plan = Plan(settings, args.papers_folder, args.results)
    covered = plan.covered()
    if not covered:
        return [_NOTHING]
    made = _compared(args.results, covered)
    if not made:
        return [_NOT_COMPARED]
    following = where_to_look(args.results, _every_number(args.results, made), args.report)
    return closing(plan, made, following)


def _compared(results: Path, covered: Sequence[PlannedArtefact]) -> list[PlannedArtefact]:
    """Return what is covered, less papers at scales whose tables were not compared."""
    tables = {(a.paper.paper, a.scale) for a in covered if a.kind == "table"}
    lacking = {of for of in tables if not _summary(results, *of).with_name("compare.csv").exists()}
    return [a for a in covered if (a.paper.paper, a.scale) not in lacking]


def _every_number(results: Path, made: Sequence[PlannedArtefact]) -> Path:
    """Return the record; of papers of which it has no row, such as studies, their summaries."""
    papers, scales = {a.paper.paper for a in made}, {a.scale for a in made}
    if papers & _papers_in(results / "record.csv"):
        return results / "record.md"
    alone = (next(iter(names)) if len(names) == 1 else "*" for names in (papers, scales))
    return _summary(results, *alone)


def _summary(results: Path, paper: str, scale: str) -> Path:
    return ResultsLayout(results).summary(paper, scale) / "summary.md"


def _papers_in(record: Path) -> set[str]:
    """Return the papers that a record has rows of; none where there is no record."""
    if not record.exists():
        return set()
    with record.open(encoding="utf-8", newline="") as file:
        return {row["paper"] for row in csv.DictReader(file) if row.get("paper")}
