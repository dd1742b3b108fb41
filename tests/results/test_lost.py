"""Accuracy lost under a condition, by hand; and what a method cannot do, in tables."""

from __future__ import annotations

import pandas as pd
import pytest

from fedlogit.errors import DataError, FedlogitError
from fedlogit.papers.options import Lost as Options
from fedlogit.results.analyses.lost import losses
from fedlogit.results.tables import write_table

OPTIONS = {"condition": "participation", "against": "All"}
LABELS = {"participation=all": "All", "participation=0.5": "Half", "average": "Average"}


@pytest.fixture
def table(make_artefact):
    def make(*runs, **changes):
        given = {"rows": None, "columns": None, "analysis": "lost", "options": OPTIONS}
        return make_artefact(*runs, **given | {"labels": LABELS} | changes)

    return make


def found(artefact) -> pd.DataFrame:
    return losses(artefact, Options(**artefact.options)).set_index(["method", "condition"])


def test_it_is_the_mean_of_the_differences_of_each_seed(make_tested, table):
    # .8 - .7 and .6 - .3: mean .2, deviation √2 · .1.
    runs = [make_tested(0.8), make_tested(0.6, seed=1)]
    runs += [make_tested(0.7, condition=0.5), make_tested(0.3, condition=0.5, seed=1)]
    row = found(table(*runs)).loc[("average", "Half")]
    assert row[["accuracy", "lost", "n"]].tolist() == pytest.approx([0.5, 0.2, 2])
    assert row["lost_std"] == pytest.approx(2**0.5 / 10)


def test_honest_clients_are_compared_with_themselves(make_tested, table):
    # The third and fourth are adversaries and not tested: (.9 + .7) / 2 - (.6 + .5) / 2.
    runs = [make_tested(0.9, 0.7, 0.1, 0.1), make_tested(0.6, 0.5, condition=0.5)]
    assert found(table(*runs)).loc[("average", "Half"), "lost"] == pytest.approx(0.25)


def test_it_is_printed_in_points_and_one_seed_declares_no_winner(make_tested, table, tmp_path):
    runs = [make_tested(0.5), make_tested(0.52, condition=0.5)]
    text = write_table(table(*runs), tmp_path / "t")[1].read_text()
    assert "| All: accuracy |" in " ".join(text.split())
    assert "| k_classes(2) | Average | 50.0 | -2.0 |" in " ".join(text.split())
    assert "One seed: no test, and so no winner" in text


def test_points_gained_are_those_lost_with_the_other_sign(make_tested, table, tmp_path):
    runs = [make_tested(0.5), make_tested(0.52, condition=0.5)]
    csv, md, _ = write_table(table(*runs, options=OPTIONS | {"gained": True}), tmp_path / "t")
    text = " ".join(md.read_text().split())
    assert "| Half: points gained |" in text
    assert "| k_classes(2) | Average | 50.0 | 2.0 |" in text
    assert "below 0 is a loss" in text
    assert pd.read_csv(csv)["lost"].tolist() == pytest.approx([0, -0.02])


def test_methods_are_in_the_order_of_the_figures(make_tested, table, tmp_path):
    methods = ["fedmd", "celm", "average"]
    runs = [make_tested(0.5, method=m, condition=c) for m in methods for c in (None, 0.5)]
    assert list(losses(table(*runs), Options(**OPTIONS))["method"].unique()) == methods[::-1]


def test_a_gain_too_small_to_be_printed_has_no_sign(make_tested, table, tmp_path):
    runs = [make_tested(0.5), make_tested(0.5001, condition=0.5)]
    text = write_table(table(*runs), tmp_path / "t")[1].read_text()
    assert "| k_classes(2) | Average | 50.0 | 0.0 |" in " ".join(text.split())


def test_what_is_lost_stands_beside_the_accuracy_of_the_same_seeds(make_tested, table, tmp_path):
    # Half of FedAvg at seed 0 alone: 50.0, and not the mean of .5 and .7. Average has both seeds.
    runs = [make_tested(0.5 + s / 5, method="fedavg", seed=s) for s in (0, 1)]
    runs += [make_tested(0.4, method="fedavg", condition=0.5)]
    numbers = found(table(*runs))
    assert numbers.loc[("fedavg", "All"), ["accuracy", "n"]].tolist() == [0.5, 1]
    assert numbers.loc[("fedavg", "Half"), "lost"] == pytest.approx(0.1)
    # Two seeds of what it is against are no two differences.
    assert (
        "One seed: no test, and so no winner"
        in write_table(table(*runs), tmp_path / "t")[1].read_text()
    )
    both = [make_tested(0.6, seed=s, condition=c) for s in (0, 1) for c in (None, 0.5)]
    assert found(table(*runs, *both)).loc[("average", "All"), "n"] == 2


def test_what_nothing_is_compared_with_keeps_its_seeds(make_tested, table):
    runs = [make_tested(0.5), make_tested(0.7, seed=1)]
    assert found(table(*runs)).loc[("average", "All"), "accuracy"] == pytest.approx(0.6)


def test_what_cannot_be_is_the_word_and_its_reason(make_tested, table, tmp_path):
    axes = {"dataset": "mnist", "partition": "k_classes(2)", "participation": 0.5}
    unable = {"before": 1, "axes": axes | {"method": "fedavg"}, "why": "does not want to"}
    runs = [make_tested(0.4, method="fedavg"), make_tested(0.5), make_tested(0.5, condition=0.5)]
    csv, md, _ = write_table(table(*runs, cannot=[unable]), tmp_path / "t")
    lines = md.read_text().splitlines()
    assert [cell.strip() for cell in lines[5].split("|")[2:5]] == ["fedavg", "40.0", "n/a"]
    assert "Not applicable (n/a): fedavg (does not want to)." in lines[-1]
    told = pd.read_csv(csv).set_index(["method", "condition"])["cannot"]
    assert told["fedavg", "Half"] == "does not want to"
    assert told.isna().sum() == 3


def test_a_run_that_diverged_is_no_number(make_tested, table, tmp_path):
    runs = [make_tested(0.5), make_tested(0.6, seed=1), make_tested(0.4, condition=0.5)]
    runs.append(make_tested(0.1, condition=0.5, seed=1, status="diverged"))
    text = write_table(table(*runs), tmp_path / "t")[1].read_text()
    assert "10.0 †1 |" in text
    assert "training diverged for k seeds" in text


def test_a_seed_whose_standard_diverged_is_no_difference_and_no_failure_of_the_other(
    make_tested, table
):
    runs = [make_tested(0.5), make_tested(0.6, seed=1, status="diverged")]
    runs += [make_tested(0.4, condition=0.5), make_tested(0.2, condition=0.5, seed=1)]
    rows = found(table(*runs))[["n", "diverged", "lost", "accuracy"]]
    assert rows.loc[("average", "All")].tolist() == [1, 1, 0, 0.5]
    assert rows.loc[("average", "Half")].tolist() == pytest.approx([1, 0, 0.1, 0.3])


def test_bad_input_is_one_clear_line(make_tested, table):
    with pytest.raises(DataError, match="with seed 0: nothing to compare"):
        found(table(make_tested(0.5, condition=0.5)))
    with pytest.raises(FedlogitError, match="condition = 'rounds' is no axis of its runs"):
        found(table(make_tested(0.5), options=OPTIONS | {"condition": "rounds"}))
    with pytest.raises(FedlogitError, match="two runs share the cell"):
        found(table(make_tested(0.5), make_tested(0.5, batch=7)))


def test_what_cannot_be_stands_in_its_row_where_the_grid_has_no_partition(make_tested, table):
    axes = {"dataset": "mnist", "method": "average", "participation": 0.5}
    unable = {"before": 1, "axes": axes, "why": "has a reason"}
    row = found(table(make_tested(0.5), cannot=[unable])).loc[("average", "Half")]
    assert (row["partition"], row["cannot"], row["n"]) == ("k_classes(2)", "has a reason", 0)
    unable["axes"] = axes | {"method": "uwa"}  # which has no run at all
    row = found(table(make_tested(0.5), cannot=[unable])).loc[("uwa", "Half")]
    assert row["partition"] == "k_classes(2)"


def test_a_plain_table_says_cannot_in_its_place_and_not_nothing(make_run, make_artefact, tmp_path):
    axes = {"dataset": "mnist", "partition": "k_classes(5)", "method": "average"}
    unable = {"before": 1, "axes": axes, "why": "has a reason"}
    runs = [make_run(), make_run(method="uwa"), make_run(method="uwa", partition="k_classes(5)")]
    csv, md, tex = write_table(make_artefact(*runs, cannot=[unable]), tmp_path / "t")
    rows = [line.split("|")[2:-1] for line in md.read_text().splitlines()[4:6]]
    lines = [[cell.strip() for cell in row] for row in rows]
    assert lines == [["Average", "0.5000", "n/a"], ["UWA", "0.5000", "0.5000"]]
    assert "Not applicable (n/a): Average (has a reason)." in md.read_text()
    assert "n/a" in tex.read_text()
    row = pd.read_csv(csv).set_index(["method", "partition"]).loc[("average", "k_classes(5)")]
    assert (row["cannot"], row["n"]) == ("has a reason", 0)


def test_a_method_that_cannot_do_anything_has_its_row_in_the_grid_s_order(
    make_run, make_artefact, tmp_path
):
    axes = {"dataset": "mnist", "partition": "k_classes(2)", "method": "average"}
    unable = {"before": 0, "axes": axes, "why": "has a reason"}
    artefact = make_artefact(make_run(method="uwa"), cannot=[unable])
    lines = write_table(artefact, tmp_path / "t")[1].read_text().splitlines()
    assert ["Average" in lines[4], "UWA" in lines[5]] == [True, True]
