"""Normality of held-out logits, from made exports, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import save_npz
from fedlogit.results.analyses import analyse
from fedlogit.results.analyses.normality import standardised
from fedlogit.results.figures.logit_normality import quantiles
from fedlogit.results.runs.run import read_run
from fedlogit.results.tables import write_table


def held_out(run, logits, labels, clients, owned):
    """Let a run have exported these logits; return the reference to it."""
    arrays = {"logits": logits, "labels": labels, "clients": clients}
    arrays = {f"held_out_{name}": np.array(array) for name, array in arrays.items()}
    save_npz(run.dir / "exports/aggregation.npz", arrays | {"owned": np.array(owned)})
    return run


def test_each_kind_of_logit_is_tested_by_itself(make_run, make_artefact, tmp_path):
    gaussian = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    skewed = np.exp(2 * gaussian)
    # One client holds classes 0 and 1: of a sample of class 0 the logits are for the true class,
    # another one that it holds, and one that it does not hold, which is constant and left out.
    logits = np.stack([gaussian, skewed, np.zeros(40)], 1)
    run = held_out(make_run(clients=1, classes=3), logits, [0] * 40, [0] * 40, [[1, 1, 0]])
    artefact = make_artefact(run, analysis="normality", rows=None, columns=None)
    assert write_table(artefact, tmp_path / "t")[1].read_text().count("Average") == 1
    numbers = analyse(artefact).numbers
    assert numbers[["logit", "groups", "rejected"]].to_numpy().tolist() == [
        ["true", 1, 0.0],
        ["held", 1, 1.0],
    ]
    expected = [0, stats.skew(skewed, bias=False)]
    assert numbers["skewness"].tolist() == pytest.approx(expected, abs=1e-9)
    both = abs(np.corrcoef(gaussian, skewed)[0, 1])
    assert numbers["correlation"].tolist() == pytest.approx([both, both])


def test_what_independent_gaussians_would_have(make_run, make_artefact):
    # Many groups of 25: the caption's reference must be what they have on average.
    logits = np.random.default_rng(0).standard_normal((400 * 25, 2))
    clients = np.repeat(np.arange(400), 25)
    many = make_run(clients=400, classes=2)
    run = held_out(many, logits, [0] * len(logits), clients, [[1, 0]] * 400)
    found = analyse(make_artefact(run, analysis="normality", rows=None, columns=None))
    true = found.numbers.set_index("logit").loc["true"]
    assert true["groups"] == 400
    assert true["rejected"] == pytest.approx(0.05, abs=0.03)
    assert true[["skewness", "kurtosis"]].tolist() == pytest.approx([0, 0], abs=0.12)
    assert true["independent"] == pytest.approx(true["correlation"], rel=0.08)
    assert f"would be 0, and {true['independent']:.2f} the mean size" in found.sentences[1]


def test_shares_and_means_over_groups(make_run, make_artefact):
    gaussian = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    columns = [gaussian, np.exp(0.35 * gaussian), np.exp(2 * gaussian)]  # of three clients
    p = [stats.shapiro(column).pvalue for column in columns]
    assert p[0] > 0.1 > p[1] > 0.05 > p[2]
    logits = np.stack([np.concatenate(columns), np.tile(gaussian[::-1], 3)], 1)
    three = make_run(clients=3, classes=2)
    run = held_out(three, logits, [0] * 120, np.repeat([0, 1, 2], 40), [[1, 0]] * 3)
    numbers = analyse(make_artefact(run, analysis="normality", rows=None, columns=None)).numbers
    true = numbers.set_index("logit").loc["true"]
    assert true["rejected"] == pytest.approx(1 / 3)
    for name, estimate in (("skewness", stats.skew), ("kurtosis", stats.kurtosis)):
        expected = np.mean([estimate(column, bias=False) for column in columns])
        assert true[name] == pytest.approx(expected)


def test_a_run_off_the_partition_axis_has_its_own_partition(make_run, make_artefact):
    gaussian = np.random.default_rng(0).standard_normal((40, 2))
    run = make_run(clients=1, classes=2, axes={"dataset": "mnist", "method": "average"})
    held_out(run, gaussian, [0] * 40, [0] * 40, [[1, 1]])
    numbers = analyse(make_artefact(run, analysis="normality", rows=None, columns=None)).numbers
    assert numbers["partition"].unique().tolist() == ["k_classes"]
    assert numbers["groups"].tolist() == [1, 1]


def test_groups_of_two_data_sets_are_not_mixed(make_run, make_artefact):
    runs = [make_run(), make_run(dataset="digits")]
    with pytest.raises(FedlogitError, match=r"dataset = \['digits', 'mnist'\]: give one"):
        analyse(make_artefact(*runs, analysis="normality", rows=None, columns=None))


def test_few_samples_and_runs_without_held_out_logits(make_run, make_artefact):
    one = make_run(clients=1, classes=2)
    few = held_out(one, np.zeros((19, 2)), [0] * 19, [0] * 19, [[1, 1]])
    given = {"analysis": "normality", "rows": None, "columns": None}
    with pytest.raises(DataError, match="no client has 20 held-out samples"):
        analyse(make_artefact(few, **given))
    save_npz(few.dir / "exports/aggregation.npz", {"weights": np.ones((2, 3))})
    with pytest.raises(DataError, match="array 'held_out_logits' is missing"):
        analyse(make_artefact(few, **given))


def test_groups_are_standardised_by_themselves(make_run):
    values = np.concatenate([np.arange(20.0), 1000 + 5 * np.arange(20.0)])
    run = make_run(clients=2, classes=1)
    run = held_out(run, values[:, None], [0] * 40, [0] * 20 + [1] * 20, [[1], [1]])
    (_, first), (_, second) = standardised(read_run(run.dir, run.digest))
    assert first.tolist() == pytest.approx(second.tolist())
    assert (first.mean(), first.std(ddof=1)) == (pytest.approx(0), pytest.approx(1))


def test_quantiles_of_gaussian_values_lie_on_the_diagonal():
    values = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    x, y = quantiles(values)
    assert np.abs(x - y).max() < 0.02
