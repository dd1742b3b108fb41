"""Whether methods come in the paper's order, on runs whose differences are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support.refusals import refused

from fedlogit.results.formatting import write_csv
from fedlogit.results.record.orders import orders_sentence, orders_table, recorded_orders
from fedlogit.results.verdicts.counterparts import matched_numbers
from fedlogit.results.verdicts.orders import pairwise_orders, read_orders
from fedlogit.results.verdicts.published import read_reference

HEAD = "table,dataset,partition,method,metric,mean,std"
DIVERGED = 0.0
METHODS = ("average", "uwa", "meta_model")


@pytest.fixture
def pairs(make_run, make_artefact, tmp_path):
    """Return a function from accuracies of methods, published and ours by seed, to the pairs."""

    def make(published, ours, metric="accuracy", scale="extended"):
        path = tmp_path / "reference.csv"
        lines = [f"table1,mnist,k_classes(2),{m},{metric},{published[m]}," for m in published]
        path.write_text("\n".join([HEAD, *lines]) + "\n")
        runs = [
            make_run(value or 0.5, method=method, seed=seed, status=_status(value))
            for method, values in ours.items()
            for seed, value in enumerate(values)
            if value is not None
        ]
        artefact = make_artefact(*runs, scale=scale)
        return pairwise_orders(matched_numbers([artefact], read_reference(path)))

    return make


def _status(accuracy: float) -> str:
    return "finished" if accuracy else "diverged"


def orders(rows: pd.DataFrame) -> dict[tuple[str, str], str]:
    return {(r["first"], r["second"]): str(r["order"]) for r in rows.to_dict("records")}


# Differences of .10, .12, .08: their mean is .10, s = .02, the error .02/√3 = .01155, t = 8.66, and
# p = .0065 with 2 degrees of freedom. The 90 % interval is .10 ± 2.920 x .01155 = .0663 to .1337.
def test_a_pair_has_the_difference_seed_by_seed_and_its_interval(pairs):
    rows = pairs(
        {"average": 0.5, "uwa": 0.7}, {"average": (0.3, 0.4, 0.5), "uwa": (0.4, 0.52, 0.58)}
    )
    (row,) = rows.to_dict("records")
    assert (row["first"], row["second"], row["n"]) == ("uwa", "average", 3)
    assert (row["order"], row["scale"]) == ("same order", "extended")
    assert row["published"] == pytest.approx(0.2)
    assert row["ours"] == pytest.approx(0.1)
    assert (row["low"], row["high"]) == pytest.approx((0.0663, 0.1337), abs=1e-4)


# With differences of .10, .12 and -.01 the mean is .07, s = .07, t = 1.73 and p = .11.
@pytest.mark.parametrize(
    ("uwa", "order"),
    [
        ((0.4, 0.52, 0.58), "same order"),
        ((0.2, 0.28, 0.42), "opposite order"),
        ((0.4, 0.52, 0.49), "not distinguished"),
        ((0.2, 0.28, 0.51), "not distinguished"),
        # .04, .10 and .07: their mean is .07, s = .03 and t = 4.04, so that p is .028, of one side.
        ((0.34, 0.5, 0.57), "same order"),
        ((0.26, 0.3, 0.43), "opposite order"),
        ((0.3, 0.4, 0.5), "not distinguished"),  # equal
        ((0.4, 0.5, 0.6), "same order"),  # by the same in all
        ((0.31,), "single run, same"),
        ((0.29,), "single run, opposite"),
        ((0.3,), "single run, equal"),
        ((DIVERGED,), "not distinguished"),
    ],
)
def test_the_order_is_tested_over_seeds(pairs, uwa, order):
    ours = {"average": (0.3, 0.4, 0.5)[: len(uwa)], "uwa": uwa}
    assert orders(pairs({"average": 0.5, "uwa": 0.7}, ours)) == {("uwa", "average"): order}


def test_seeds_that_only_one_method_has_do_not_count(pairs):
    ours = {"average": (0.3, 0.4, 0.5), "uwa": (0.4, None, 0.6)}
    (row,) = pairs({"average": 0.5, "uwa": 0.7}, ours).to_dict("records")
    assert (row["n"], row["ours"]) == (2, pytest.approx(0.1))
    assert pairs({"average": 0.5, "uwa": 0.7}, {"average": (0.3,), "uwa": (None, 0.4)}).empty


def test_a_run_that_diverged_leaves_its_pair_undistinguished(pairs):
    ours = {"average": (0.3, 0.4, 0.5), "uwa": (0.4, DIVERGED, 0.58)}
    (row,) = pairs({"average": 0.5, "uwa": 0.7}, ours).to_dict("records")
    assert row["order"] == "not distinguished"
    assert np.isnan(row["ours"])


def test_only_numbers_that_differ_by_more_than_a_point_are_a_pair(pairs):
    ours = dict.fromkeys(METHODS, (0.3, 0.4))
    published = {"average": 0.5, "uwa": 0.51, "meta_model": 0.5101}
    assert list(orders(pairs(published, ours))) == [("meta_model", "average")]


# A point of what is no share is 1 % of the smaller number: 1 second of 100, and not 1.01.
def test_a_point_of_what_is_no_share_is_a_hundredth_of_the_smaller_number(pairs):
    ours = dict.fromkeys(METHODS, (0.3, 0.4))
    published = {"average": 100, "uwa": 100.9, "meta_model": 101.005}
    assert list(orders(pairs(published, ours, metric="seconds"))) == [("meta_model", "average")]


@pytest.mark.parametrize(
    ("place", "changes", "n"),
    [
        ("table1,mnist,k_classes(2),uwa,accuracy,0.7,,", {}, 1),
        ("table1,mnist,k_classes(5),uwa,accuracy,0.7,,", {"partition": "k_classes(5)"}, 0),
        ("table1,fashion_mnist,k_classes(2),uwa,accuracy,0.7,,", {"dataset": "fashion_mnist"}, 0),
        ("table1,mnist,k_classes(2),uwa,balanced_accuracy,0.7,,", {}, 0),
        ("table1,mnist,k_classes(2),uwa,accuracy,0.7,,public.size=30", {"public": {"size": 30}}, 0),
        ("table2,mnist,k_classes(2),uwa,accuracy,0.7,,", {}, 0),
    ],
)
def test_only_numbers_of_one_place_are_a_pair(make_run, make_artefact, tmp_path, place, changes, n):
    path = tmp_path / "reference.csv"
    first = "table1,mnist,k_classes(2),average,accuracy,0.5,,"
    path.write_text(f"{HEAD},where\n{first}\n{place}\n")
    runs = make_run(0.3), make_run(0.4, method="uwa", **changes)
    tables = [make_artefact(*runs, id=name) for name in ("table1", "table2")]
    assert len(pairwise_orders(matched_numbers(tables, read_reference(path)))) == n


def test_runs_of_two_tables_are_no_pair(make_run, make_artefact, tmp_path):
    """A table that stands for another has settings of its own, which may decide the order."""
    path = tmp_path / "reference.csv"
    lines = [
        f"table1,mnist,k_classes(2),{method}"
        for method in ("average,accuracy,0.5,", "uwa,accuracy,0.7,")
    ]
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    average, uwa = make_run(0.3), make_run(0.4, method="uwa")
    standing = {"id": "other", "stands_for": {"table": "table1"}}
    apart = [make_artefact(average), make_artefact(uwa, **standing)]
    assert pairwise_orders(matched_numbers(apart, read_reference(path))).empty
    together = [make_artefact(average, uwa)]
    assert len(pairwise_orders(matched_numbers(together, read_reference(path)))) == 1


def test_every_two_methods_are_a_pair_and_methods_without_runs_are_none(pairs):
    published = {"average": 0.3, "uwa": 0.5, "meta_model": 0.4}
    ours = dict.fromkeys(METHODS, (0.3, 0.4))
    assert list(orders(pairs(published, ours))) == [
        ("uwa", "meta_model"), ("uwa", "average"), ("meta_model", "average"),
    ]  # fmt: skip
    assert list(orders(pairs(published, {"average": (0.3,), "uwa": (0.4,)}))) == [
        ("uwa", "average")
    ]


def test_counted_bytes_are_no_pair(pairs):
    ours = {"average": (0.3,), "uwa": (0.4,)}
    assert pairs({"average": 100, "uwa": 200}, ours, metric="bytes_up").empty


@pytest.fixture
def recorded(tmp_path):
    """Return a function to the pairs of a record, at two scales."""
    paper = SimpleNamespace(
        paper="p", short_name="P", scales={"extended": None, "paper": None}, short_title=str.upper
    )
    place = {"table": "table1", "dataset": "mnist", "partition": "", "where": "", "metric": "auroc"}

    def make(shown: dict[str, str], found: dict[str, str]):
        for scale in paper.scales:
            pair = {"first": "a", "second": "b", "published": 0.1, "ours": 0.2, "low": 0.1}
            rows = [place | pair | {"high": 0.3, "n": 3, "order": found[scale], "scale": scale}]
            folder = tmp_path / "summary" / "p" / scale
            write_csv(folder / "orders.csv", pd.DataFrame(rows))
            write_csv(folder / "compare.csv", pd.DataFrame(rows))
        numbers = [
            place | {"paper": "p", "method": method, "scale": scale}
            for method, scale in shown.items()
        ]
        return recorded_orders(pd.DataFrame(numbers), {"p": paper}, tmp_path), {"p": paper}

    return make


def test_the_record_has_the_pairs_of_the_scale_that_it_shows(recorded):
    found = {"paper": "single run, same", "extended": "opposite order"}
    pairs, papers = recorded({"a": "paper", "b": "paper"}, found)
    assert list(pairs["order"]) == ["single run, same"]
    pairs, _ = recorded({"a": "extended", "b": "extended"}, found)
    assert list(pairs["order"]) == ["opposite order"]
    assert orders_table(pairs, papers).splitlines()[2].replace(" ", "") == "|P,TABLE1|extended|1|1|"
    mixed, _ = recorded({"a": "paper", "b": "extended"}, found)
    assert mixed.empty
    assert orders_sentence(mixed) == ""


def test_a_sentence_counts_pairs_by_order():
    names = (
        ["same order"] * 3 + ["opposite order"] * 2 + ["single run, same", "single run, opposite"]
    )
    metric = "accuracy"
    said = (
        "Of 7 pairs of methods whose published numbers differ by more than a point, 3 are in the"
        " same order here, 2 in the opposite order and 2 have a single run (1 in the papers'"
        " direction)."
    )
    assert (
        orders_sentence(pd.DataFrame({"order": names, "metric": metric, "published": 0.05})) == said
    )
    apart = [0.5, -0.11, 0.1, -0.1, 0.02, 0.3, 0.3]
    mixed = pd.DataFrame({"order": names, "metric": metric, "published": apart})
    near = "pairs of accuracies or other shares that differ by at most 10 points"
    assert orders_sentence(mixed) == (
        f"{said} Of the 3 {near}, 1 are in the same order here and 2 in the opposite order."
    )
    mixed.loc[4, "metric"] = "best_perplexity"  # its points are no points of a share
    assert f" Of the 2 {near}, " in orders_sentence(mixed)
    mixed["order"] = "single run, equal"
    assert "7 have a single run (0 in the papers' direction, 7 equal)." in orders_sentence(mixed)


def test_a_missing_file_of_pairs_says_what_to_run(tmp_path):
    path = Path(tmp_path / "orders.csv")
    with refused(f"cannot read {path}: "):
        read_orders(path)
