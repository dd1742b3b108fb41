"""What pages take over from the Markdown that `fedlogit.results.summary` wrote of a scale."""

from __future__ import annotations

from pathlib import Path

from fedlogit.files import read_text
from fedlogit.results.verdicts.claims import EVIDENCE_HEADING

__all__ = ["below_heading", "claims_and_evidence"]


def below_heading(path: Path) -> str:
    """Return a file's text without its first line, the heading.

    Raises:
        DataError: if the file is missing or is not text.
    """
    return read_text(path).strip().partition("\n")[2].strip()


def claims_and_evidence(path: Path) -> tuple[str, str]:
    """Return the table of claims in a file, and the evidence behind them.

    The first is without its heading; the second, which keeps its own, is "" if there is none.

    Raises:
        DataError: if the file is missing or is not text.
    """
    claims, _, evidence = below_heading(path).partition(EVIDENCE_HEADING)
    return claims.strip(), evidence.strip()
