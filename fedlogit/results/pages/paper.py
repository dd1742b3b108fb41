"""A page of Markdown per paper: what is implemented, how to run it, what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from fedlogit import dotted_keys, methods
from fedlogit.component import ComponentRef, find, parse_call
from fedlogit.files import read_json
from fedlogit.papers.schema import JUDGED_SCALE, TEST_SCALE, Paper
from fedlogit.partition import Partition
from fedlogit.results.formatting import markdown
from fedlogit.results.pages.commands import commands, link, memory
from fedlogit.results.pages.summary_text import below_heading, claims_and_evidence
from fedlogit.results.pages.templating import render
from fedlogit.results.record.numbers import comparisons, preferred
from fedlogit.results.verdicts.claims import read_claims
from fedlogit.results.verdicts.compare import read_comparison
from fedlogit.results.verdicts.rules import DECIDED, VERDICTS, ClaimResult, Unjudged
from fedlogit.runs.paths import ResultsLayout

__all__ = ["paper_page"]


def paper_page(paper: Paper, results: Path) -> str:
    """Return the page of a paper.

    Args:
        paper: Its file.
        results: The folder with ``tables``, ``figures`` and ``summary`` that were committed.

    Raises:
        DataError: if a file of results is damaged.
    """
    numbers = f"workflow/reference/{paper.paper}.csv"
    return render(
        "paper.md",
        paper=paper,
        numbers=numbers if (results.parent / numbers).exists() else None,
        methods=_methods(paper),
        datasets=[_label(paper, name) for name in paper.datasets],
        partitions=_partitions(paper),
        settings=_settings(paper),
        hours=_scale_rows(paper, results),
        commands=commands(paper, results),
        shown_numbers=_preferred_comparison(paper, results),
        shown_claims=_preferred_claims(paper, results),
        summaries=_summary_links(paper, results),
    )


def _label(paper: Paper, name: str) -> str:
    return paper.labels.get(name, name)


def _methods(paper: Paper) -> str:
    """Return a row per method: its name, its call, and what the file or its class says it is."""
    rows = []
    for name, given in paper.methods.items():
        call = str(given if isinstance(given, str) else given["method"])
        found = type(methods.get(ComponentRef.model_validate(call)))
        about = paper.about.get(name) or _first_line(found)
        rows.append({"Method": _label(paper, name), "In a paper's file": f"`{call}`", "": about})
    return markdown(pd.DataFrame(rows))


def _first_line(component: type) -> str:
    """Return what a class says it does, with code as Markdown has it; "" if it says nothing."""
    return (component.__doc__ or "").strip().partition("\n")[0].replace("``", "`")


def _partitions(paper: Paper) -> str:
    """Return a row per partition: its short name, its call, and what its class says it does."""
    rows = []
    for name, call in paper.partitions.items():
        # Not instantiated: a grid's value may be the parameter that the call lacks.
        wanted = ("partition", "fedlogit.partition", Partition, parse_call(call)["name"])
        found = find(*wanted)  # type: ignore[type-abstract]
        about = _first_line(found)
        rows.append({"In tables": f"`{name}`", "Partition": f"`{call}`", "": about})
    return markdown(pd.DataFrame(rows))


def _settings(paper: Paper) -> str:
    """Return the defaults of all runs, what data sets change, and what the scale `paper` does."""
    at = {"every run": paper.defaults}
    at |= {_label(paper, name): given for name, given in paper.datasets.items()}
    if scale := paper.scales.get(JUDGED_SCALE):
        at[f"every run, at `{JUDGED_SCALE}`"] = scale.overrides
        at |= {
            f"{_label(paper, name)}, at `{JUDGED_SCALE}`": given
            for name, given in scale.datasets.items()
        }
    rows = [
        {"Where": where, "Setting": f"`{key}`", "Value": f"`{json.dumps(value)}`"}
        for where, given in at.items()
        for key, value in dotted_keys.flat(given)
    ]
    return markdown(pd.DataFrame(rows))


def _scale_rows(paper: Paper, results: Path) -> str:
    """Return a row per scale: what it is and, where results are committed, what its tables took."""
    rows = []
    for name, scale in paper.scales.items():
        path = ResultsLayout(results).summary(paper.paper, name) / "metrics.json"
        took = read_json(path)["training"] if path.exists() and name != TEST_SCALE else {}
        rows.append(
            {
                "Scale": f"`{name}`",
                "What": scale.summary,
                "Runs": str(took.get("runs", "–")),
                "Hours": str(took.get("hours", "–")),
                "Memory": memory(paper, results, name),
                "On": took.get("devices", "–"),
            }
        )
    return markdown(pd.DataFrame(rows), right=("Runs", "Hours", "Memory"))


class _ScaleSummary(NamedTuple):
    """A part of a scale's summary, and a sentence on why it is that scale's."""

    why: str
    text: str


def _preferred_comparison(paper: Paper, results: Path) -> _ScaleSummary | None:
    """Return the comparison of the preferred scale; None if nothing was compared."""
    found = dict(comparisons(paper, results))
    pages = {scale: path.with_suffix(".md") for scale, path in found.items()}
    rows = {scale: read_comparison(path) for scale, path in found.items()}
    run = {scale: of[of["verdict"] != Unjudged.NOT_RUN] for scale, of in rows.items()}
    run = {scale: of for scale, of in run.items() if len(of)}
    judged = {scale: int(of["verdict"].isin(VERDICTS).sum()) for scale, of in run.items()}
    seeds = {scale: int(of["n"].max()) for scale, of in run.items()}
    scale = preferred({name: (judged[name], seeds[name]) for name in run})
    if scale is None:
        return _ScaleSummary("", below_heading(pages[list(rows)[-1]])) if rows else None
    why = (
        f"Of {len(rows[scale])} published numbers {judged[scale]} have a verdict; verdicts are"
        f" given at scale `{scale}` alone."
        if judged[scale]
        else f"No number was run at scale `{JUDGED_SCALE}`, so none has a verdict; shown is scale"
        f" `{scale}`, which has the most seeds ({seeds[scale]})."
    )
    return _ScaleSummary(why, below_heading(pages[scale]))


def _preferred_claims(paper: Paper, results: Path) -> _ScaleSummary | None:
    """Return the claims at the preferred scale; None if no run decides one, or there are none."""
    files = {scale: path.with_name("claims.csv") for scale, path in comparisons(paper, results)}
    result = {scale: read_claims(path)["result"] for scale, path in files.items()}
    planned = {scale: of[of != ClaimResult.NOT_PLANNED] for scale, of in result.items()}
    run = {scale: of for scale, of in planned.items() if (of != ClaimResult.NOT_RUN).any()}
    decided = {scale: int(of.isin(DECIDED).sum()) for scale, of in run.items()}
    seeds = {scale: len(paper.scale(scale).seeds or paper.seeds) for scale in run}
    scale = preferred({name: (decided[name], seeds[name]) for name in run})
    if scale is None:
        return None
    others = ", ".join(f"`{s}` {decided[s]} of {len(run[s])}" for s in run if s != scale)
    alike = [s for s in run if decided[s] == decided[scale]]
    more = ", which has the most seeds" if len(alike) > 1 else ", more than at any other"
    why = f"Of {len(run[scale])} claims {decided[scale]} are decided at scale `{scale}`" + (
        f"{more} ({others})." if others else "."
    )
    return _ScaleSummary(why, claims_and_evidence(files[scale].with_suffix(".md"))[0])


def _summary_links(paper: Paper, results: Path) -> str:
    """Return links to the summaries of all scales that have one."""
    found = {s: ResultsLayout(results).summary(paper.paper, s) / "summary.md" for s in paper.scales}
    return ", ".join(
        f"[{scale}]({link(path)})"
        for scale, path in found.items()
        if scale != TEST_SCALE and path.exists()
    )
