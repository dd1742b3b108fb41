"""A paper's claims, tested on finished runs; the rule is in `rules`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.metric_names import is_share
from fedlogit.papers.schema import Claim
from fedlogit.results.collect import collect, dataset_notes, describe
from fedlogit.results.formatting import markdown, read_csv, sentence
from fedlogit.results.verdicts.claim_evidence import ClaimEvidence, evidence_for_claims
from fedlogit.results.verdicts.claim_tests import Evidence, pooled
from fedlogit.results.verdicts.compare import MAKE_AGAIN
from fedlogit.results.verdicts.rules import (
    CLAIM_RULE,
    UNTESTED,
    ClaimResult,
    decide,
    final_result,
    largest_difference,
)

__all__ = [
    "EVIDENCE_HEADING",
    "claims_markdown",
    "evidence_markdown",
    "judge_claims",
    "read_claims",
    "result_text",
    "with_section",
]

EVIDENCE_HEADING = "### Evidence"
_BETWEEN = "; "  # comparisons of a claim, in the CSV
_NOT_PLANNED = "*Not planned*: the scale or the settings leave out runs that the claim compares."
_COLUMNS = [
    "id", "section", "text", "result", "reason", "by_dataset", "cells", "pooled", "run", "agree",
    "data", "evidence",
]  # fmt: skip


def judge_claims(artefact: Artefact) -> pd.DataFrame:
    """Return a row per claim: its id, section, text and scale, and what came out.

    `result` is the final word, from the tests of the `cells` and of their mean, `pooled`; it is
    *not planned* where the scale has no runs to compare, now or later. `reason` says why it is
    undecided, also that only one side's method logs the metric; `by_dataset` what is decided on
    those of its data sets of which all runs are here, where others have none. `run` counts the
    comparisons that were run at every planned seed, of all that are planned, and `agree` how many
    of these point the claimed way by their mean, however noisy. `data` says what its data are,
    where they are not the paper's; `evidence` has the numbers of each, and which point the other
    way.

    Raises:
        DataError: if a run is missing or damaged.
        FedlogitError: if a claim names an unknown test, key or axis, or is too wide.
    """
    frame, found = evidence_for_claims(artefact)
    if not found:
        return pd.DataFrame(columns=[*_COLUMNS, "scale"])
    names = partial(artefact.label, axis="dataset")
    rows = [
        _judge(key, artefact.claims[key], tested, frame, names) for key, tested in found.items()
    ]
    return pd.DataFrame(rows, columns=_COLUMNS).assign(scale=artefact.scale)


def read_claims(path: Path) -> pd.DataFrame:
    """Return the judged claims in a file that `write_summary` wrote, all as texts.

    Raises:
        DataError: if it is missing, no table, or lacks a column.
    """
    needed = ("id", "text", "result", "reason", "run", "agree", "data")
    return read_csv(path, needed, str, MAKE_AGAIN).fillna("")


def _judge(
    key: str,
    claim: Claim,
    tested: ClaimEvidence,
    frame: pd.DataFrame,
    names: Callable[[Any], str],
) -> dict[str, str]:
    options, found = tested.options, tested.comparisons
    # Of a multiple, what is left is no difference of two shares.
    shares = options.times == 1 and all(is_share(metric) for metric in options.metrics())
    row = {"id": key, "section": claim.section, "text": claim.text, **_decision(found, shares)}
    alone = {}
    if row["result"] == ClaimResult.UNDECIDED and not all(e.whole for e in found):
        alone = {
            names(on): _decision(of, shares)
            for on, of in _complete_datasets(tested.datasets, tested.cells).items()
        }
    row["by_dataset"] = "; ".join(f"{name}: {result_text(it)}" for name, it in alone.items())
    row["data"] = "; ".join(dataset_notes(_finished_on(tested.datasets, frame)))
    return row | {"evidence": _BETWEEN.join(_without_semicolon(e.description) for e in found)}


def _without_semicolon(text: str) -> str:
    """Return a text, which may have a user's label, without what separates such texts."""
    return text.replace(_BETWEEN, ", ")


def _finished_on(datasets: Sequence[str], frame: pd.DataFrame) -> pd.DataFrame:
    """Return the finished runs on the data sets of cells; all, if a cell has several."""
    run = frame[~frame["missing"]]
    return run[run["dataset"].isin(datasets)] if all(datasets) else run


def _complete_datasets(
    datasets: Sequence[str], tested: Sequence[Sequence[Evidence]]
) -> dict[str, list[Evidence]]:
    """Return the comparisons on each data set of which all were run; `tested` is by cell.

    A cell of unknown data set may be missing from any, so then there are none.
    """
    if not all(datasets):
        return {}
    on: dict[str, list[Evidence]] = {}
    for dataset, of_cell in zip(datasets, tested, strict=True):
        on.setdefault(dataset, []).extend(of_cell)
    return {name: of for name, of in on.items() if all(e.whole for e in of)}


def _decision(found: Sequence[Evidence], shares: bool) -> dict[str, str]:
    """Return what comparisons decide together, and how many there are."""
    # Of a cell some of whose seeds are missing nothing is known: they may turn it.
    known = [e if e.whole else replace(e, differences=e.differences[:0]) for e in found]
    by_cell = decide([e.differences_and_margin for e in known])
    by_mean = decide(list(pooled(known).values()))
    run = sum(e.whole for e in found)
    differences = [e.differences_and_margin[0] for e in found]
    within = largest_difference(differences) if shares else math.inf
    row = {
        "result": final_result(by_cell, by_mean, whole=run == len(found), within=within),
        "reason": "",
        "cells": by_cell,
        "pooled": by_mean,
        "run": f"{run} of {len(found)}",
        "agree": f"{sum(e.agrees for e in found if e.whole)} of {run}" if run else "",
    }
    if not any(len(e.differences) for e in found):
        if any(e.lacks for e in found):
            undecided = dict.fromkeys(("result", "cells", "pooled"), ClaimResult.UNDECIDED)
            return row | undecided | {"reason": _reason(found)}
        planned = any(e.planned for e in found)
        why = ClaimResult.NOT_RUN if planned else ClaimResult.NOT_PLANNED
        return row | dict.fromkeys(("result", "cells", "pooled"), why)
    return row | ({"reason": _reason(found)} if row["result"] == ClaimResult.UNDECIDED else {})


def _reason(found: Sequence[Evidence]) -> str:
    """Return why comparisons decide nothing."""
    if lacking := next((e.lacks for e in found if e.lacks), ""):
        return lacking
    run = sum(e.whole for e in found)
    if len(found) == 1 and not run:
        return f"{len(found[0].differences)} of {found[0].planned} seeds run"
    if run < len(found):
        return f"{run} of {len(found)} run"
    if any(e.differences.isna().any() for e in found):
        return "a run diverged"
    if any(len(e.differences) < 2 for e in found):
        return "one seed"
    return "intervals are too wide"


def result_text(row: Mapping[Any, Any]) -> str:
    """Return a claim's result in words, with the reason or with what is missing, if any."""
    run, _, planned = str(row["run"]).partition(" of ")
    partly_run = run != planned and row["result"] not in UNTESTED
    missing = f"{row['run']} run" if partly_run else ""
    more = row["reason"] or missing
    result = f"{row['result']}, {more}" if more else str(row["result"])
    return f"{result} ({row['by_dataset']})" if row.get("by_dataset") else result


def with_section(text: str, section: str) -> str:
    """Return a claim and where the paper says it; one of ours says so."""
    return f"{text} ({section or 'ours, not in the paper'})"


def claims_markdown(rows: pd.DataFrame, artefacts: Sequence[Artefact]) -> str:
    """Return judged claims as a section of Markdown, with the rule and where the runs come from."""
    claims = [with_section(*row) for row in zip(rows["text"], rows["section"], strict=True)]
    table = pd.DataFrame(
        {
            "Claim": claims,
            "Result": [result_text(row) for row in rows.to_dict("records")],
            "Cell by cell": rows["cells"],
            "Pooled": rows["pooled"],
            "As claimed, of those run": rows["agree"],
        }
    )
    judged = [artefact for artefact in artefacts if artefact.claims and artefact.runs]
    runs = [collect(artefact, gaps=True) for artefact in judged]
    nothing = "no run decides a claim" if any(a.runs for a in artefacts) else "nothing was run"
    source = sentence(describe(pd.concat(runs)) if runs else nothing)
    legend = f" {_NOT_PLANNED}" if (rows["result"] == ClaimResult.NOT_PLANNED).any() else ""
    return f"### Claims\n\n{markdown(table)}\n\n{source}.{legend}\n\n{CLAIM_RULE}"


def evidence_markdown(rows: pd.DataFrame) -> str:
    """Return the numbers behind each claim, as lists."""
    parts = [EVIDENCE_HEADING]
    for row in rows[rows["evidence"] != ""].to_dict("records"):
        cells = "\n".join(f"- {cell}" for cell in row["evidence"].split(_BETWEEN))
        parts.append(f"{row['text']}: {result_text(row)}.\n\n{cells}")
    return "\n\n".join(parts)
