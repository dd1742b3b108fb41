"""A paper's numbers as one small file that `dvc metrics` shows and compares between commits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedlogit.results.artefact import Artefact
from fedlogit.results.provenance import provenance

__all__ = ["metrics"]


def metrics(
    rows: pd.DataFrame, claims: pd.DataFrame, artefacts: Sequence[Artefact]
) -> dict[str, Any]:
    """Return ours for each published number, how many got which verdict, and what it took.

    Args:
        rows: A comparison, as from `fedlogit.results.compare.compare`.
        claims: Judged claims, as from `fedlogit.results.claims.judge_claims`.
        artefacts: The tables that they rest on.
    """
    runs = pd.concat([provenance(artefact) for artefact in artefacts]).drop_duplicates("digest")
    return {
        "training": {
            "runs": len(runs),
            "hours": round(float(runs["wall_seconds"].sum()) / 3600, 2),
            "devices": ", ".join(sorted(set(runs["device"]))),
        },
        "verdicts": _counts(rows["verdict"]),
        "claims": _counts(claims["result"]),
        "ours": _nested(rows),
    }


def _counts(values: pd.Series) -> dict[str, int]:
    return {str(value): int(count) for value, count in sorted(values.value_counts().items())}


def _nested(rows: pd.DataFrame) -> dict[str, Any]:
    """Return table -> data set -> partition -> method -> metric -> mean of what was run."""
    tree: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        if math.isnan(row["ours"]):
            continue
        leaf = tree
        for key in ("table", "dataset", "partition", "method"):
            leaf = leaf.setdefault(str(row[key]) or "any", {})
        leaf[str(row["metric"])] = round(float(row["ours"]), 6)
    return tree
