"""The setting that a method gets is the best one on validation samples, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.chosen import not_as_chosen

from fedlogit.papers import load_paper
from fedlogit.results.analyses.chosen import chosen_settings
from fedlogit.results.tables import write_table

ROOT = Path(__file__).parents[2]
TUNING = ROOT / "results/tables/comparison/paper/tuning.csv"


def tried(**scores: tuple[float, float]) -> pd.DataFrame:
    """Return means of settings ``m_x``, printed ``m(x)``, in two cells."""
    rows = [
        {"partition": part, "method": name.replace("_", "(") + ")", "mean": mean}
        for name, means in scores.items()
        for part, mean in zip(("k2", "dir"), means, strict=True)
    ]
    return pd.DataFrame(rows)


def chosen(means: pd.DataFrame) -> list[str]:
    found = chosen_settings(means)
    return list(found.loc[found["chosen"], "setting"])


def test_the_best_mean_over_cells_is_chosen_for_each_method():
    # a: .4, .5 (of .9 and .1), .45; b: its only setting.
    scores = {"a_1": (0.4, 0.4), "a_2": (0.9, 0.1), "a_3": (0.5, 0.4), "b_1": (0.1, 0.1)}
    assert chosen(tried(**scores)) == ["a(2)", "b(1)"]


def test_of_equal_settings_the_default_is_chosen():
    # .3 + .6 and .6 + .3 differ by rounding, if at all.
    assert chosen(tried(a_1=(0.3, 0.6), a_2=(0.6, 0.3), a_3=(0.45, 0.45))) == ["a(1)"]


def test_a_setting_that_diverged_somewhere_is_not_chosen():
    nothing = (np.nan, 0.9)
    assert chosen(tried(a_1=(0.2, 0.2), a_2=nothing)) == ["a(1)"]
    assert chosen(tried(a_1=nothing, a_2=nothing)) == ["a(1)"]


def test_the_table_has_a_row_per_method_and_the_csv_one_per_try(make_run, make_artefact, tmp_path):
    scores = {"fedprox(mu=0.01)": 0.5, "fedprox(mu=0.1)": 0.7, "uwa": 0.6}
    runs = [
        make_run(
            accuracy + gain, method=name, partition=part, seed=100,
            axes={"dataset": "mnist", "partition": part, "method": name, "seed": 100},
        )
        for part, gain in (("k_classes(2)", 0.0), ("k_classes(5)", 0.1))
        for name, accuracy in scores.items()
    ]  # fmt: skip
    given = {"analysis": "chosen", "rows": None, "columns": None, "options": {"percent": True}}
    csv, text, _ = write_table(make_artefact(*runs, **given), tmp_path / "chosen")
    lines = [[c.strip() for c in x.strip("|").split("|")] for x in text.read_text().splitlines()]
    assert lines[4] == ["fedprox", "2", "`fedprox(mu=0.1)`", "70.00", "80.00", "75.00", "55.00"]
    assert lines[5][:3] == ["UWA", "1", "`uwa`"]
    frame = pd.read_csv(csv)
    assert frame["mean"].tolist() == pytest.approx([0.55, 0.75, 0.65])
    assert frame["chosen"].tolist() == [False, True, True]
    assert frame["default"].tolist() == [True, False, True]


@pytest.fixture
def comparison():
    return load_paper("comparison", ROOT / "workflow/papers")


def test_a_method_with_another_setting_than_the_chosen_one_is_named(comparison):
    default = comparison.methods["fedkt"]
    paper = comparison.model_copy(
        update={"methods": comparison.methods | {"fedprox": "fedprox(mu=0.01)", "fedkt": default}}
    )
    assert not_as_chosen(paper, ["fedprox(mu=0.01)"]) == []
    assert not_as_chosen(paper, ["fedprox(mu=0.1)"]) == [
        "comparison.yaml: methods.fedprox: fedprox(mu=0.1) was chosen; give fedprox the setting"
        " mu=0.1"
    ]


@pytest.mark.skipif(not TUNING.exists(), reason="the settings have not been tried yet")
def test_the_study_s_methods_have_the_settings_that_the_committed_results_choose(comparison):
    means = pd.read_csv(TUNING)
    assert not_as_chosen(comparison, chosen(means)) == []


def test_every_try_says_all_that_is_tried_so_that_a_chosen_setting_does_not_change_it(comparison):
    (grid,) = comparison.tables["tuning"].grid
    parameters: dict[str, set[frozenset[str]]] = {}
    for entry in grid["method"]:
        name, _, rest = entry.partition("(")
        given = frozenset(part.partition("=")[0] for part in rest.rstrip(")").split(", "))
        parameters.setdefault(name, set()).add(given)
    assert len(parameters) > 1
    assert all(len(given) == 1 and {""} not in given for given in parameters.values()), parameters
