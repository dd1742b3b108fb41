"""A paper's counts and numbers as two small files that `dvc metrics` compares between commits.

And ``dvc.yaml``, which tells DVC where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.schema import TEST_SCALE
from fedlogit.results.collect import distinct_values
from fedlogit.results.formatting import occurrences
from fedlogit.results.provenance import provenance, training_seconds
from fedlogit.results.verdicts.rules import CLAIM_RESULTS, VERDICTS, Unjudged

__all__ = ["dvc_yaml", "metrics", "numbers"]


def metrics(
    rows: pd.DataFrame, claims: pd.DataFrame, artefacts: Sequence[Artefact]
) -> dict[str, Any]:
    """Return how many numbers and claims got which verdict, and what it took.

    What counts as reproduced is several runs; single runs are counted by themselves.

    Args:
        rows: A comparison, as from `fedlogit.results.verdicts.compare.compare`.
        claims: Judged claims, as from `fedlogit.results.verdicts.claims.judge_claims`.
        artefacts: The tables that they rest on.
    """
    return {
        "training": _training([artefact for artefact in artefacts if artefact.runs]),
        "verdicts": _value_counts(
            rows["verdict"], [*VERDICTS, Unjudged.REDUCED_SCALE, Unjudged.NOT_RUN]
        ),
        "claims": _value_counts(claims["result"], CLAIM_RESULTS),
    }


def _training(artefacts: Sequence[Artefact]) -> dict[str, Any]:
    """Return how many runs are behind tables that have some, their hours, and on what they ran."""
    if not artefacts:
        return {"runs": 0, "hours": 0.0, "devices": ""}
    runs = pd.concat([provenance(artefact) for artefact in artefacts]).drop_duplicates("digest")
    return {
        "runs": len(runs),
        "hours": round(training_seconds(runs) / 3600, 2),
        "devices": distinct_values(runs["device"], ", "),
    }


def _value_counts(values: pd.Series, always: Sequence[str]) -> dict[str, int]:
    """Return how often each value occurs: those in `always` also if never, then any others."""
    return occurrences(values, dict.fromkeys([*always, *sorted(values.unique())]))


def numbers(rows: pd.DataFrame) -> dict[str, Any]:
    """Return table -> data set -> partition -> method -> metric -> mean of what was run.

    Numbers that stand for further axes have these between method and metric, as one level; so have
    those whose runs have another setting than the published one (see `counterparts`).
    Apart from `metrics`: ``dvc metrics show`` gives each number a column, and there are hundreds.
    """
    tree: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        if math.isnan(row["ours"]):
            continue
        leaf = tree
        place = [str(row[key]) or "any" for key in ("table", "dataset", "partition", "method")]
        for key in [*place, *filter(None, [row.get("where"), row["counterpart"]])]:
            leaf = leaf.setdefault(key, {})
        leaf[str(row["metric"])] = round(float(row["ours"]), 6)
    return tree


def dvc_yaml(results: Path) -> str:
    """Return ``dvc.yaml``: the committed metrics and comparisons, and no stages."""
    found = sorted(results.glob("summary/*/*/metrics.json"))
    shown = [path for path in found if path.parent.name != TEST_SCALE]
    plots = [
        {
            path.with_name("compare.csv").as_posix(): {
                "x": "paper",
                "y": "ours",
                "template": "scatter",
                "title": f"{path.parent.parent.name} at {path.parent.name}: ours against the paper",
            }
        }
        for path in shown
    ]
    data = {"metrics": [path.as_posix() for path in shown], "plots": plots}
    head = "# Made by `make papers`. No stages: Snakemake makes these files, DVC compares them.\n"
    return head + yaml.safe_dump(data, sort_keys=False, width=100)
