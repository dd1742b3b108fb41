"""Which of the chosen papers have the chosen data sets and scale; errors for what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fedlogit.errors import FedlogitError, did_you_mean, unknown
from fedlogit.papers.schema import Paper

__all__ = [
    "choose_them",
    "no_such_scale",
    "not_planned",
    "nothing_to_show",
    "with_datasets",
    "without_scale",
]


def choose_them(*names: str) -> str:
    """Return how papers that have a file, but are not among the chosen, are chosen."""
    which = "it" if len(names) == 1 else "them"
    return f"add {which} there, or give --config 'papers=[{','.join(names)}]'"


def with_datasets(papers: dict[str, Paper], names: Iterable[str]) -> dict[str, Paper]:
    """Return the papers that have one of these data sets; all if none is named.

    Raises:
        FedlogitError: for a data set that no paper has, with the nearest one.
    """
    known = {name for paper in papers.values() for name in paper.datasets}
    for name in names:
        if name not in known:
            raise unknown(f"dataset of {', '.join(papers)}", name, known)
    return {k: v for k, v in papers.items() if not names or {*names} & {*v.datasets}}


def without_scale(papers: Mapping[str, Paper], scale: str) -> dict[str, str]:
    """Return the papers that do not have a scale, and in words those that they have."""
    others = {name: paper for name, paper in papers.items() if scale not in paper.scales}
    return {name: ", ".join(paper.scales) for name, paper in others.items()}


def no_such_scale(papers: Mapping[str, Paper], scale: str, others: Sequence[str]) -> FedlogitError:
    """Return the error for a scale that no paper has: the nearest one, and those that each has.

    Args:
        papers: Those that are chosen.
        scale: What was asked for.
        others: Papers that have it, but are not chosen.
    """
    error = _no_such_scale(papers, scale)
    if not others:
        return error
    have = f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} it"
    return FedlogitError(f"{error}; {have}, but config.yaml's 'papers' not: {choose_them(*others)}")


def _no_such_scale(papers: Mapping[str, Paper], scale: str) -> FedlogitError:
    if len(papers) == 1:
        (only,) = papers.values()
        return unknown(f"scale of paper {only.paper}", scale, only.scales)
    known = {name for paper in papers.values() for name in paper.scales}
    each = "; ".join(f"{name} has {', '.join(paper.scales)}" for name, paper in papers.items())
    return FedlogitError(f"unknown scale {scale!r}{did_you_mean(scale, known)} ({each})")


def not_planned(
    paper: Paper, scale: str, id_: str, datasets: Iterable[str], *, unfinished: bool
) -> FedlogitError:
    """Return the error for a table or figure that cannot be drawn at a scale.

    Args:
        paper: The paper.
        scale: One of its scales.
        id_: The name of the table or figure.
        datasets: The only data sets asked for, if any.
        unfinished: Whether it has runs, of which none has finished.
    """
    names = paper.scale(scale).include or tuple(paper.artefacts)
    what = f"{id_} of {paper.paper} at scale {scale}"
    if unfinished:
        return FedlogitError(
            f"partial = true, but no run of {what} has finished here; make pull may bring them"
        )
    if id_ in names:
        on = f" on {', '.join(datasets)}; give other datasets" if datasets else ""
        return FedlogitError(f"{what} has no run{on}")
    return unknown(f"table or figure of {paper.paper} at scale {scale}", id_, names)


def nothing_to_show(paper: str, scale: str, *, unfinished: bool) -> FedlogitError:
    """Return the error for a page of a paper at a scale without anything that it could show.

    Args:
        paper: The paper's name.
        scale: One of its scales.
        unfinished: Whether it has runs, of which none has finished.
    """
    if unfinished:
        return FedlogitError(
            f"partial = true, but no run of {paper} at scale {scale} has finished here; make pull"
            " may bring them"
        )
    return FedlogitError(f"{paper} at scale {scale} has no run; give other datasets")
