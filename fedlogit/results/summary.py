"""Reported and reproduced numbers, claims, and where to look, for every paper at a scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedlogit.files import write_json
from fedlogit.papers.artefact import Artefact
from fedlogit.results.dvc_metrics import metrics, numbers
from fedlogit.results.formatting import markdown, write_csv, write_text
from fedlogit.results.verdicts.claims import (
    claims_markdown,
    evidence_markdown,
    judge_claims,
    read_claims,
)
from fedlogit.results.verdicts.compare import compare, read_comparison
from fedlogit.results.verdicts.comparison_table import (
    NOTHING_PUBLISHED,
    RIGHT,
    comparison_markdown,
    comparison_table,
    not_run,
)
from fedlogit.results.verdicts.counterparts import matched_numbers
from fedlogit.results.verdicts.orders import pairwise_orders
from fedlogit.runs.paths import ResultsLayout

__all__ = ["overview", "write_summary"]


def write_summary(artefacts: Sequence[Artefact], reference: pd.DataFrame, out: Path) -> list[Path]:
    """Compare a paper with ours and judge its claims.

    Writes ``compare.csv``, ``compare.md``, ``orders.csv``, ``claims.csv``, ``claims.md``,
    ``metrics.json`` and ``numbers.json`` (for ``dvc metrics``), and ``summary.md``: both without
    the evidence behind the claims, which is in ``claims.md``.

    Args:
        artefacts: The paper's tables, all at one scale.
        reference: Its published numbers, as `verdicts.published.read_reference` reads them.
        out: The folder.

    Returns:
        What was written, ``summary.md`` last.

    Raises:
        DataError: if a run is missing or damaged.
        FedlogitError: if a claim is malformed.
    """
    first = artefacts[0]
    matched = matched_numbers(artefacts, reference)
    rows, orders = compare(matched), pairwise_orders(matched)
    compared = comparison_markdown(rows, artefacts)
    claims = pd.concat([judge_claims(artefact) for artefact in artefacts], ignore_index=True)
    judged = claims_markdown(claims, artefacts) if len(claims) else ""
    evidence = f"{judged}\n\n{evidence_markdown(claims)}" if judged else "No claim is tested here."
    heading = f"## {first.paper_title or first.paper}, scale `{first.scale}`"
    return [
        write_csv(out / "compare.csv", rows),
        write_csv(out / "orders.csv", orders),
        write_text(out / "compare.md", compared),
        write_csv(out / "claims.csv", claims),
        write_json(out / "metrics.json", metrics(rows, claims, artefacts)),
        write_json(out / "numbers.json", numbers(rows)),
        write_text(out / "claims.md", evidence),
        write_text(out / "summary.md", "\n\n".join(filter(None, [heading, compared, judged]))),
    ]


def overview(results: Path, scale: str, labels: Mapping[str, Mapping[str, str]]) -> str:
    """Return, as Markdown, each paper's comparison, its claims in a line, and where the files are.

    Args:
        results: The folder with ``tables``, ``figures`` and ``summary``.
        scale: Which scale.
        labels: For each paper, how tables and values on their axes are printed.

    Raises:
        DataError: if a comparison or the claims are missing or damaged.
    """
    parts = []
    for paper, names in labels.items():
        rows = read_comparison(ResultsLayout(results).summary(paper, scale) / "compare.csv")
        table = comparison_table(rows, names)
        parts.append(f"## {paper}, scale `{scale}`")
        parts += [] if table.empty else [markdown(table, right=RIGHT)]
        parts += [NOTHING_PUBLISHED] if rows.empty else list(filter(None, [not_run(rows, names)]))
        parts.append(
            "\n".join([_claims_line(results, paper, scale), *_folder_lines(results, paper, scale)])
        )
    return "\n\n".join(parts)


def _claims_line(results: Path, paper: str, scale: str) -> str:
    path = ResultsLayout(results).summary(paper, scale) / "claims.csv"
    counts = read_claims(path)["result"].value_counts()
    judged = ", ".join(f"{count} {result}" for result, count in counts.items())
    return f"- Claims: {judged or 'none tested at this scale'}"


def _folder_lines(results: Path, paper: str, scale: str) -> list[str]:
    """Return a line for each folder that holds something."""
    lines = []
    for kind, suffix in (("tables", "md"), ("figures", "png")):
        folder = results / kind / paper / scale
        names = ", ".join(sorted(path.stem for path in folder.glob(f"[!.]*.{suffix}")))
        lines.append(f"- {kind.capitalize()}: {folder}/ ({names or 'none'})")
    summary = ResultsLayout(results).summary(paper, scale) / "summary.md"
    return [*lines, f"- Reported and reproduced: {summary}"]
