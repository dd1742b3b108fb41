"""What tables show instead of means: ``analysis: answer`` is `analyse` of the module `answer` here.

Each `analyse` takes an artefact and returns an `Analysis`. A new kind is one file.
"""

from __future__ import annotations

import importlib

from fedlogit.errors import unknown
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.schema import analysis_names
from fedlogit.results.analyses.analysis import Analysis

__all__ = ["Analysis", "analyse", "analysis_names"]


def analyse(artefact: Artefact) -> Analysis:
    """Return what a table with `analysis` shows.

    Raises:
        FedlogitError: if there is no such kind, with the nearest one suggested.
        DataError: if a run is missing or damaged, or if there are too few of them.
    """
    name = str(artefact.analysis)
    if name not in analysis_names():
        raise unknown(f"analysis of {artefact.name}", name, analysis_names())
    found: Analysis = importlib.import_module(f"{__name__}.{name}").analyse(artefact)
    return found
