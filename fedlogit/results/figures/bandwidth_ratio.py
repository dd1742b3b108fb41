"""Bytes of a soft label for each byte of a vote, by number of classes (TallyTrain, Figure 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from fedlogit.aggregation.votes import pack
from fedlogit.federation import Ledger
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import runs_of, title
from fedlogit.results.runs.run import Run
from fedlogit.results.style import CATEGORIES, GREY, INK, new_figure

__all__ = ["draw", "measured_ratios", "ratio"]

_MOST = 2**16
_PROBES = 64  # probes of the ledger's messages: whole bytes also where votes are packed


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw what the ledger books for one probe, and, as points, what the runs themselves booked."""
    # With the numbers at which a vote needs one byte more, so that the step is upright.
    steps = [2**k + more for k in range(1, 16) for more in (0, 1)]
    classes = np.unique([*np.geomspace(2, _MOST, 90).astype(int), *steps])
    figure, grid = new_figure(1, 1, panel=(5.6, 3.6))
    axes = grid[0, 0]
    whole = [ratio(int(c), packed=False) for c in classes]
    bits = [ratio(int(c), packed=True) for c in classes]
    axes.plot(classes, whole, color=CATEGORIES[0], label="votes as whole bytes")
    axes.plot(classes, bits, color=CATEGORIES[1], ls="--", label="votes packed into bits")
    points = measured_ratios([run for _, run in runs_of(artefact)])
    for number, found in points.items():
        axes.plot(number, found, "o", color=INK, zorder=4)
        axes.annotate(
            f"C = {number:,}: {found:,.0f}", (number, found), (8, -4), textcoords="offset points",
            va="top", color=GREY,
        )  # fmt: skip
    axes.plot([], [], "o", color=INK, label="our runs, FedMD / TallyTrain")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="Classes",
        ylabel="Bytes of a soft label / bytes of a vote",
    )
    title(figure, artefact, collect(artefact))
    legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def ratio(classes: int, *, packed: bool) -> float:
    """Return the quotient of what the ledger books for soft labels and for votes."""
    ledger = Ledger()
    ledger.exchange("probabilities", torch.empty(2, _PROBES, classes, device="meta"))
    votes = torch.zeros(2, _PROBES, dtype=torch.int64)
    ledger.exchange("votes", pack(votes, classes, packed=packed))
    sent = ledger.totals()["up"]
    return sent["probabilities"] / sent["votes"]


def measured_ratios(runs: list[Run]) -> dict[int, float]:
    """Return the quotient by number of classes, from pairs of runs that differ in the signal only.

    Votes that were packed in bits, and runs without both signals, are left out.
    """
    sent: dict[tuple[int, int], dict[str, float]] = {}
    for run in runs:
        params = run.spec.method.params
        classes = len(run.result.final.per_class)
        rounds = run.spec.rounds - int(params.get("warm_up", 0))
        probes = rounds * int(params.get("probes_per_round", 0)) * run.spec.clients
        for kind in ("votes", "probabilities"):
            total = run.result.bytes.up.get(kind)
            plain = params.get("signal") == kind and not params.get("packed")
            if total and probes and plain:
                sent.setdefault((classes, run.spec.clients), {})[kind] = total / probes
    return {
        classes: both["probabilities"] / both["votes"]
        for (classes, _), both in sent.items()
        if len(both) == 2
    }
