"""A claim's mistakes are found when its paper's file is read, not after training."""

from __future__ import annotations

import pytest
from papers.test_expansion import change, load, small
from support.refusals import refused

GREATER = {"left": {"method": "uwa"}, "right": {"method": "average"}}
SHRINKING = {**GREATER, "along": "partition"}


def stated(options: dict, test: str = "greater") -> dict:
    """A paper with a claim on its table, whose source has several partitions."""
    data = small()
    data["tables"]["t"]["grid"][0]["partition"] = ["k(2)", "k(5)"]
    data["claims"] = {"c": {"text": "C", "from": "t", "test": test, "options": options}}
    return data


@pytest.mark.parametrize(
    ("test", "options", "said"),
    [
        ("greater", {**GREATER, "ovr": []}, "small.yaml: claims.c.options: unknown key 'ovr'; did "
         "you mean 'over'"),
        ("greater", {"right": {"method": "uwa"}}, "claims.c.options: key 'left' is missing"),
        ("greater", {"left": {"method": "uwa"}}, "claims.c.options: key 'right' is missing"),
        ("greater", {**GREATER, "left": {"metod": "uwa"}}, "claims.c.options.left: unknown axis "
         "'metod'; did you mean 'method'"),
        ("greater", {**GREATER, "over": ["datset"]}, "options.over: unknown axis 'datset'; did "),
        ("greater", {**GREATER, "where": {"datset": "digits"}}, "options.where: unknown axis 'dat"),
        ("greater", {**GREATER, "metric": "acuracy"}, "unknown metric 'acuracy'; did you mean"),
        ("greater", {**GREATER, "right": {"metric": "acuracy"}}, "options.right.metric: unknown "
         "metric 'acuracy'; did you mean 'accuracy'"),
        ("greater", {**GREATER, "right": {"metric": 5}}, "options.right.metric = 5: should be one"),
        ("greater", {**GREATER, "where": {"metric": "emd"}}, "where.metric = 'emd': is no condi"),
        ("greater", {**GREATER, "margin": float("nan")}, "options: margin = nan: Input should be a "
         "finite number"),
        ("greater", {**GREATER, "margin": "small"}, "options: margin = 'small': Input should be a "
         "valid number"),
        ("greater", {**GREATER, "right": {"method": "averag"}}, "claims.c.options.right.method: "
         "unknown value 'averag'; did you mean 'average'"),
        ("greater", {**GREATER, "where": {"partition": ["k(2)", "k(3)"]}}, "options.where.partition"
         ": unknown value 'k(3)'; did you mean"),
        ("greater", {**GREATER, "where": {"partition": []}}, "where.partition = []: should have a"),
        ("greater", SHRINKING, "options: test 'greater' has no option 'along', which is of 'shrin"),
        ("greater", {**GREATER, "size": True}, "options: test 'greater' has no option 'size'"),
        ("shrinking", {**SHRINKING, "times": 2}, "has no option 'times', which is of 'greater' al"),
        ("greater", {**GREATER, "times": 0}, "times"),
        ("shrinking", GREATER, "options: key 'along' is missing"),
        ("shrinking", {**SHRINKING, "along": "partiton"}, "options.along: unknown axis 'partiton'"),
        ("shrinking", {"left": {}, "along": "partition", "size": True}, "size = True: has no effe"),
        ("best", GREATER, "options: right = {'method': 'average'}: should have one axis with a li"),
        ("best", {"left": {}}, "options: key 'left.method' is missing: without 'right', 'best' "),
        ("greater", {**GREATER, "right": {"method": "uwa"}}, "right = {'method': 'uwa'}: is the "
         "same as left"),
        ("alike", {**GREATER, "margin": 5}, "options: margin = 5.0: should be a fraction, such as "
         "0.05 for 5 points"),
        ("alike", GREATER, "options: margin = 0.0: should be above 0 for 'alike'"),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_found_on_reading(tmp_path, test, options, said):
    with refused(said):
        load(tmp_path, stated(options, test))


@pytest.mark.parametrize(
    ("test", "options"),
    [
        ("greater", {**GREATER, "over": ["dataset", "partition"], "margin": -0.01}),
        ("greater", {"left": {"metric": "emd"}, "right": {"metric": "jsd"}}),
        ("shrinking", {**SHRINKING, "right": {"method": "reference", "partition": "*"}}),
        ("shrinking", {**SHRINKING, "size": True, "where": {"partition": ["k(5)", "k(2)"]}}),
        ("best", {"left": {"method": "uwa"}}),
        ("best", {"left": {"method": "uwa"}, "right": {"method": ["average"]}}),
        ("alike", {**GREATER, "margin": 0.01}),
    ],
)
def test_a_right_claim_is_read(tmp_path, test, options):
    assert load(tmp_path, stated(options, test)).claims["c"].options == options


def test_the_partition_of_a_method_that_is_off_the_axis_is_a_value(tmp_path):
    options = {**GREATER, "right": {"method": "reference", "partition": "iid"}}
    assert load(tmp_path, stated(options)).claims["c"].options == options


def test_a_value_that_one_scale_has_is_enough(tmp_path):
    data = stated({**GREATER, "where": {"partition": "k(7)"}})
    with refused("claims.c.options.where.partition: unknown value 'k(7)'"):
        load(tmp_path, data)
    data["scales"]["tiny"]["axes"] = {"partition": ["k(7)"]}
    assert load(tmp_path, data).claims["c"].options["where"] == {"partition": "k(7)"}


def test_a_value_that_every_scale_replaces_is_the_papers_own(tmp_path):
    data = stated({**GREATER, "where": {"partition": "k(5)"}})
    for scale in data["scales"].values():
        scale["axes"] = {"partition": ["k(7)"]}
    assert load(tmp_path, data).claims["c"].options["where"] == {"partition": "k(5)"}


def test_numbers_are_values_however_they_are_written(tmp_path):
    data = stated({"left": {"participation": 1}, "right": {"participation": 0.5}})
    data["tables"]["t"]["grid"][0]["participation"] = [1.0, 0.5]
    assert load(tmp_path, data).claims["c"].options == data["claims"]["c"]["options"]
    data["claims"]["c"]["options"]["left"] = {"participation": True}
    with refused("claims.c.options.left.participation: unknown value 'True'"):
        load(tmp_path, data)


def test_what_a_scale_makes_of_a_claim_is_checked_too(tmp_path):
    data = stated(GREATER)
    change(data, "scales/tiny/claims", {"c": {"options": {"right": {"method": "averag"}}}})
    with refused("scales.tiny.claims.c.options.right.method: unknown value 'averag'; did you mean"):
        load(tmp_path, data)


def test_claims_and_tables_of_runs_that_train_nothing_are_about_bytes(tmp_path):
    data = stated({"left": {"method": "uwa"}, "right": {"method": "average"}, "metric": "bytes_up"})
    for grid in data["tables"]["t"]["grid"]:
        grid["ledger_only"] = [True]
    data["tables"]["t"] |= {"metrics": ["bytes_up"], "columns": ["metric"]}
    data["figures"]["f"]["metric"] = "bytes_up"
    load(tmp_path, data)
    data["claims"]["c"]["options"].pop("metric")
    with refused("small.yaml: claims.c.options.metric = 'accuracy': the runs of t train nothing"):
        load(tmp_path, data)
    data.pop("claims")
    data["tables"]["t"] |= {"metrics": None, "columns": ["partition"]}
    with refused("small.yaml: t: metric = 'accuracy': the runs of t train nothing"):
        load(tmp_path, data)
