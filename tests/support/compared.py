"""Published numbers compared with runs, as `write_summary` does it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.results.verdicts import compare as verdicts
from fedlogit.results.verdicts.counterparts import matched_numbers

__all__ = ["compare"]


def compare(artefacts: Sequence[Artefact], reference: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published number."""
    return verdicts.compare(matched_numbers(artefacts, reference))
