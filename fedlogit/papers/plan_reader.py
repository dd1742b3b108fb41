"""Reads the files of tables and figures that `PlanWriter` wrote, and refuses those of old plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact, read_artefacts
from fedlogit.papers.loading import load_paper

__all__ = ["read_plans"]


def read_plans(paths: Sequence[Path], papers: Path) -> list[Artefact]:
    """Read files of plans, of which each describes another table or figure that is still planned.

    The plan of a table that has left its paper stays until ``make clean``, and a pattern of files
    would take it into a comparison or a page.

    Args:
        paths: The files.
        papers: The folder of the papers' files; a paper without one there is not checked.

    Raises:
        DataError: as `read_artefacts`.
        FedlogitError: as `read_artefacts` and `load_paper`, or if a paper lacks what a file
            describes.
    """
    artefacts = read_artefacts(paths)
    names = {artefact.paper for artefact in artefacts}
    known = {n: load_paper(n, papers) for n in names if (papers / f"{n}.yaml").exists()}
    for path, artefact in zip(paths, artefacts, strict=True):
        paper = known.get(artefact.paper)
        if paper and artefact.id not in (
            paper.scale(artefact.scale).include or tuple(paper.artefacts)
        ):
            raise FedlogitError(
                f"{path}: {papers / artefact.paper}.yaml plans no {artefact.id} at scale"
                f" {artefact.scale}; leave the file out (make clean removes old plans)"
            )
    return artefacts
