"""What a paper says in words, tested on finished runs; the rule is in `verdict`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fedlogit.errors import FedlogitError, unknown
from fedlogit.results.artefact import Artefact, Claim
from fedlogit.results.claim_tests import TESTS, Comparison, Evidence, cells
from fedlogit.results.collect import collect, describe
from fedlogit.results.text import markdown, sentence
from fedlogit.results.verdict import CLAIM_RULE

__all__ = ["claims_markdown", "evidence_markdown", "judge_claims"]

_COLUMNS = ["id", "section", "text", "result", "agree", "evidence", "scale"]


def judge_claims(artefact: Artefact) -> pd.DataFrame:
    """Return a row per claim: id, section, text, result, agree, evidence, scale.

    `agree` counts the cells whose mean points the claimed way, however noisy; `evidence` has the
    numbers of each cell.

    Raises:
        DataError: if a run is missing or damaged.
        FedlogitError: if a claim names an unknown test, key, axis or metric, or is too wide.
    """
    if not artefact.claims:
        return pd.DataFrame(columns=_COLUMNS)
    options = {
        key: Comparison.read(claim.options, f"claim {key}")
        for key, claim in artefact.claims.items()
    }
    frame = collect(artefact, sorted({metric for o in options.values() for metric in o.metrics()}))
    rows = [_judge(key, claim, options[key], frame) for key, claim in artefact.claims.items()]
    return pd.DataFrame(rows).assign(scale=artefact.scale)[_COLUMNS]


def _judge(key: str, claim: Claim, options: Comparison, frame: pd.DataFrame) -> dict[str, str]:
    if claim.test not in TESTS:
        raise unknown(f"test of claim {key}", claim.test, TESTS)
    try:
        found = [
            e for cell in cells(options, frame) for e in TESTS[claim.test](options, cell, frame)
        ]
    except FedlogitError as error:
        raise FedlogitError(f"claim {key}: {error}") from None
    row = {"id": key, "section": claim.section, "text": claim.text}
    run = [evidence for evidence in found if evidence.result != "not run"]
    row |= {"result": _together(found), "agree": f"{sum(e.agrees for e in run)} of {len(run)}"}
    return row | {"evidence": "; ".join(evidence.text for evidence in found)}


def _together(found: list[Evidence]) -> str:
    """Combine cells: one that fails decides; only all that hold make the claim hold."""
    results = {evidence.result for evidence in found}
    if "does not hold" in results:
        return "does not hold"
    return results.pop() if len(results) == 1 else "undecided" if results else "not run"


def claims_markdown(rows: pd.DataFrame, artefacts: Sequence[Artefact]) -> str:
    """Return judged claims as a section of Markdown, with the rule and where the runs come from."""
    told = rows["text"] + rows["section"].map(lambda section: f" ({section})" if section else "")
    table = pd.DataFrame(
        {"Claim": told, "Result": rows["result"], "Cells as claimed": rows["agree"]}
    )
    runs = [collect(artefact) for artefact in artefacts if artefact.claims]
    source = sentence(describe(pd.concat(runs)))
    return f"### Claims\n\n{markdown(table)}\n\n{source}.\n\n{CLAIM_RULE}"


def evidence_markdown(rows: pd.DataFrame) -> str:
    """Return the numbers behind each claim, as lists."""
    parts = ["### Evidence"]
    for row in rows[rows["evidence"] != ""].to_dict("records"):
        cells = "\n".join(f"- {cell}" for cell in row["evidence"].split("; "))
        parts.append(f"{row['text']}: {row['result']}.\n\n{cells}")
    return "\n\n".join(parts)
