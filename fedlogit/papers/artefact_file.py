"""What the JSON file of a table or figure says: all that drawing it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fedlogit.papers.axis_values import scalar
from fedlogit.papers.layers import merge
from fedlogit.papers.model import Paper
from fedlogit.papers.planned import Cell, PlannedArtefact, Refused

__all__ = ["artefact_json", "claims_of"]


def artefact_json(artefact: PlannedArtefact, runs: str = "results/runs") -> dict[str, Any]:
    """Return what drawing the artefact needs, as plain data; `runs` is the folder of the runs."""
    entry, paper = artefact.entry, artefact.paper
    optional = dict.fromkeys(("rows", "columns", "plot", "metrics", "analysis"))
    declared = optional | entry.model_dump(mode="json")
    # Without one the key is left out, so that plans keep their names.
    analysis = {"analysis": declared["analysis"]} if declared["analysis"] else {}
    return {
        "paper": paper.paper,
        "paper_title": paper.title,
        "id": artefact.id,
        "kind": artefact.kind,
        "scale": artefact.scale,
        "labels": paper.labels,
        **{
            key: declared[key]
            for key in (
                "title",
                "caption",
                "rows",
                "columns",
                "metric",
                "metrics",
                "plot",
                "options",
            )
        },
        **_scale_changes(artefact),
        **analysis,
        "claims": claims_of(artefact),
        "runs": [
            {
                "dir": f"{runs}/{cell.run}",
                "digest": cell.spec.digest(),
                "axes": _shown_axes(cell),
            }
            for cell in artefact.cells
        ],
        **(_missing_runs(artefact) if artefact.left_out else {}),
        **(
            {"cannot": [_refused_place(place) for place in artefact.cannot]}
            if artefact.cannot
            else {}
        ),
    }


def _scale_changes(artefact: PlannedArtefact) -> dict[str, Any]:
    """Return the scale's caption in place of the paper's, and what it stands for, if it says so."""
    own = artefact.paper.scale(artefact.scale).artefacts.get(artefact.id)
    changes = own.model_dump(mode="json", include={"caption", "stands_for"}) if own else {}
    return {key: value for key, value in changes.items() if value is not None}


def claims_of(artefact: PlannedArtefact) -> dict[str, dict[str, Any]]:
    """Return the claims that its runs decide, as plain data."""
    stated = _claims(artefact.paper, artefact.scale)
    return {key: claim for key, claim in stated if claim["from"] == artefact.id}


def _claims(paper: Paper, scale: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the paper's claims as plain data, as the scale changes them."""
    changes = paper.scale(scale).claims
    for key, claim in paper.claims.items():
        own = changes[key].model_dump(mode="json", by_alias=True) if key in changes else {}
        given = {name: value for name, value in own.items() if value is not None}
        yield key, merge(claim.model_dump(mode="json", by_alias=True), given)


def _missing_runs(artefact: PlannedArtefact) -> dict[str, Any]:
    """Return what it is drawn without: how many runs of each data set, and where each belongs."""
    missing = {cell.run: cell.spec.dataset for _, cell in artefact.left_out}
    there = {cell.run: cell.spec.dataset for cell in artefact.cells}
    lacking, all_ = Counter(missing.values()), Counter((there | missing).values())
    places = [
        {"before": before, "axes": {"partition": cell.spec.partition.name, **_shown_axes(cell)}}
        for before, cell in artefact.left_out
    ]
    return {"left_out": {k: (n, all_[k]) for k, n in lacking.items()}, "missing": places}


def _refused_place(place: Refused) -> dict[str, Any]:
    axes = {key: scalar(value) for key, value in place.axes.items()}
    return {"before": place.before, "axes": axes, "why": place.why}


def _shown_axes(cell: Cell) -> dict[str, Any]:
    """Return a run's place on the axes and its seed, as a table is sorted and labelled by."""
    return {k: scalar(v) for k, v in cell.axes.items()} | {"seed": cell.spec.seed}
