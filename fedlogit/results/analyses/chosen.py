"""Which of the settings that were tried on validation samples each method gets."""

from __future__ import annotations

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Percent
from fedlogit.results.analyses.analysis import Analysis
from fedlogit.results.collect import collect, summarise
from fedlogit.results.formatting import number

__all__ = ["analyse", "chosen_settings"]

_DIGITS = 12  # differences below are rounding
_FACTS = ("method", "setting", "mean", "default", "chosen")  # columns that are no cell


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per setting that was tried; printed, a row per method with the chosen one.

    A setting is a value of the axis `method`; those of a method have the name before the bracket in
    common, and the first is the default. Columns of the CSV: `method`, `setting`, a column of means
    over seeds for each cell, `mean` over cells, `default`, `chosen`.
    """
    means = summarise(collect(artefact), ["partition", "method"], artefact.metric)
    tried = chosen_settings(means)
    cells = [str(name) for name in tried if name not in _FACTS]
    return Analysis(
        tried,
        _printed_table(artefact, tried, cells),
        (
            "Chosen is the setting with the best mean over these cells; of equal ones the default,"
            " which is the first",
        ),
        right=("Tried", *(artefact.label(cell) for cell in cells), "Mean", "Default's mean"),
    )


def chosen_settings(means: pd.DataFrame) -> pd.DataFrame:
    """Return every setting that was tried, and which one each method gets.

    Args:
        means: A row per cell and setting: `partition`, `method` (the setting), `mean`; also as read
            from the CSV of a table with these axes.

    Returns:
        Columns as of `analyse`. A setting that has no result in some cell, because training
        diverged, is never chosen; where all have none, the default is.
    """
    order = list(dict.fromkeys(means["method"]))
    wide = means.pivot(index="method", columns="partition", values="mean").loc[order]
    wide = wide[list(dict.fromkeys(means["partition"]))]
    tried = wide.assign(mean=wide.mean(axis=1, skipna=False)).reset_index(names="setting")
    tried.insert(0, "method", [name.partition("(")[0] for name in tried["setting"]])
    tried["default"] = ~tried["method"].duplicated()
    scores = tried["mean"].round(_DIGITS).fillna(float("-inf"))
    best = scores.groupby(tried["method"], sort=False).idxmax()  # of equal ones the first
    return tried.assign(chosen=tried.index.isin(best)).rename_axis(columns=None)


def _printed_table(artefact: Artefact, tried: pd.DataFrame, cells: list[str]) -> pd.DataFrame:
    rows = []
    for method, settings in tried.groupby("method", sort=False):
        (chosen,) = settings[settings["chosen"]].to_dict("records")
        (default,) = settings[settings["default"]].to_dict("records")
        scores = {artefact.label(cell): _score(artefact, chosen[cell]) for cell in cells}
        rows.append(
            {
                "Method": artefact.label(method),
                "Tried": str(len(settings)),
                "Chosen": f"`{chosen['setting']}`",
                **scores,
                "Mean": _score(artefact, chosen["mean"]),
                "Default's mean": _score(artefact, default["mean"]),
            }
        )
    return pd.DataFrame(rows)


def _score(artefact: Artefact, mean: float) -> str:
    return number(mean, artefact.metric, percent=artefact.read_options(Percent).percent)
