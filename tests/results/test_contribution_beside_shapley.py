"""Contributions beside exact Shapley values, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import save_npz
from fedlogit.papers.options import Contribution as Options
from fedlogit.results.analyses.contribution import analyse, contributions_beside_shapley

GIVEN = {"rows": None, "columns": None, "analysis": "contribution", "options": {"value": "fedavg"}}
ALONE = (0.3, 0.2, 0.1)  # in a game that only adds, these are the Shapley values


def weighing(make_run, weights, **changes):
    """Return a run of UWA with these weights (clients, points)."""
    axes = {"dataset": "mnist", "partition": "k_classes(2)", "method": "uwa"}
    run = make_run(method="uwa", clients=3, export=["aggregation"], axes=axes, **changes)
    save_npz(run.dir / "exports/aggregation.npz", {"weights": np.array(weights, np.float32)})
    return run


def test_values_are_of_coalitions_and_uwas_contribution_is_its_mean_weight(
    make_coalitions, make_run, make_artefact
):
    runs = make_coalitions(ALONE, [0.2, 0.5, 0.3])
    runs.append(weighing(make_run, [[1, 0.6], [0, 0.3], [0, 0.1]]))
    artefact = make_artefact(*runs, **GIVEN)
    fedavg, uwa = contributions_beside_shapley(artefact, Options(**artefact.options))
    assert fedavg.values.tolist() == pytest.approx(ALONE)
    assert fedavg.contributions.tolist() == [0.2, 0.5, 0.3]
    assert uwa.values.tolist() == pytest.approx(ALONE)
    assert uwa.contributions.tolist() == pytest.approx([0.8, 0.15, 0.05])


def test_rank_correlations_over_seeds_by_hand(make_coalitions, make_artefact):
    # Ranks 1 2 3 against 3 1 2: 1 - 6 (4 + 1 + 1) / (3 · 8) = -1/2; seed 1 agrees: 1; seed 2 on the
    # best alone: 1 - 6 (0 + 1 + 1) / (3 · 8) = 1/2.
    runs = make_coalitions(ALONE, [0.2, 0.5, 0.3])
    runs += make_coalitions(ALONE, [0.5, 0.3, 0.2], seed=1)
    runs += make_coalitions(ALONE, [0.5, 0.2, 0.3], seed=2)
    runs += make_coalitions(ALONE, [1 / 3] * 3, seed=3)  # ranks nobody, and finds no best client
    (row,) = analyse(make_artefact(*runs, **GIVEN)).numbers.to_dict("records")
    assert (row["correlation"], row["best"], row["n"]) == (pytest.approx(1 / 3), 2 / 3, 3)
    assert row["correlation_std"] == pytest.approx((7 / 12) ** 0.5)


def test_runs_off_the_partition_axis_have_their_own_partition(make_coalitions, make_artefact):
    runs = [
        run.model_copy(update={"axes": {"dataset": "mnist", "method": "fedavg"}})
        for run in make_coalitions(ALONE, [0.2, 0.5, 0.3])
    ]
    numbers = analyse(make_artefact(*runs, **GIVEN)).numbers
    assert numbers[["partition", "n"]].to_numpy().tolist() == [["k_classes", 1]]


def test_equal_contributions_rank_nobody(make_coalitions, make_artefact):
    found = analyse(make_artefact(*make_coalitions(ALONE, [1 / 3] * 3), **GIVEN))
    assert found.numbers["n"].tolist() == [0]
    assert found.shown.iloc[0, 2:].tolist() == ["–", "–", "0"]


def test_contributions_that_differ_by_less_than_a_hundredth_of_an_equal_share_do_not_differ(
    make_coalitions, make_artefact
):
    # An equal share is 1/3: .0032 apart is less than a hundredth of it, .0034 is more.
    for apart, n in ((0.0032, 0), (0.0034, 1)):
        shares = [1 / 3 + apart / 2, 1 / 3, 1 / 3 - apart / 2]
        found = analyse(make_artefact(*make_coalitions(ALONE, shares), **GIVEN))
        assert found.numbers["n"].tolist() == [n]
    assert "differ by 1% of an equal share or more" in " ".join(found.sentences)


def test_a_coalition_without_a_run_is_named(make_coalitions, make_artefact):
    runs = make_coalitions(ALONE, [0.2, 0.5, 0.3])
    with pytest.raises(DataError, match=r"1 of 8 coalitions have no run, the first is \{1\}"):
        analyse(make_artefact(runs[0], *runs[2:], **GIVEN))


def test_coalitions_of_two_data_sets_are_not_mixed(make_coalitions, make_run, make_artefact):
    axes = {"dataset": "digits", "partition": "k_classes(2)", "method": "fedavg"}
    runs = [*make_coalitions(ALONE, [0.2, 0.5, 0.3]), make_run(dataset="digits", axes=axes)]
    with pytest.raises(FedlogitError, match=r"dataset = \['digits', 'mnist'\]: give one"):
        analyse(make_artefact(*runs, **GIVEN))


def test_more_clients_than_coalitions_can_be_counted_for(
    make_coalitions, make_artefact, monkeypatch
):
    monkeypatch.setattr("fedlogit.results.analyses.contribution._MOST_CLIENTS", 2)
    artefact = make_artefact(*make_coalitions(ALONE, [1 / 3] * 3), **GIVEN)
    with pytest.raises(DataError, match=r"take 2 \*\* 3 coalitions; give at most 2 clients"):
        analyse(artefact)
