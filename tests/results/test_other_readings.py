"""Verdicts that would be others against numbers that are printed alike."""

import math
from pathlib import Path

import pandas as pd
import pytest

from fedlogit.results.record.other_readings import decided_by_rounding, divided_by_n

REFERENCES = sorted((Path(__file__).parents[2] / "workflow/reference").glob("*.csv"))
HEAD = "table,dataset,partition,method,metric,mean,std,n,where"


@pytest.fixture
def judged(tmp_path):
    """Return a function that says what else a number may be, as printed and of ours."""

    def found(
        metric, printed, ours, verdict, std="", ours_std=math.nan, n=1, by=decided_by_rounding
    ):
        (tmp_path / "p.csv").write_text(f"{HEAD}\nt,d,,m,{metric},{printed},{std},3,\n")
        row = {"paper": "p", "metric": metric, "published": float(printed), "published_n": 3}
        row |= {"published_std": float(std or "nan"), "ours": ours, "std": ours_std, "n": n}
        rows = by(pd.DataFrame([row | {"verdict": verdict}]), tmp_path)
        return rows[["printed", "others"]].to_numpy().tolist()

    return found


# A distance is judged by its ratio: 0.0656 is within 1 % of 0.066, and 1.4 % below 0.0665.
def test_a_mean_may_be_half_a_unit_more(judged):
    assert judged("emd_uniform", "0.066", 0.0656, "reproduced") == [["0.066", "partly reproduced"]]
    assert judged("emd_uniform", "0.0660", 0.0656, "reproduced") == []


# "0.75" may be 0.745, which 0.779 exceeds by 3.4 points; "0.750" may be 0.7495, which 0.7794
# exceeds by 2.99.
@pytest.mark.parametrize(
    ("printed", "ours", "expected"),
    [("0.75", 0.779, "single run, outside"), ("0.750", 0.779, ""), ("0.750", 0.7794, "")],
)
def test_of_a_single_run(judged, printed, ours, expected):
    found = judged("accuracy", printed, ours, "single run, within")
    assert found == ([[printed, expected]] if expected else [])


# Three runs of .80 ± .002 and .804 ± .00: 2.920 x .002/√3 = .0034 and so within 1 point; with
# ± .005 of the paper the half is .0084 and .0124 in all, which is within 3 points only.
def test_a_standard_deviation_may_be_more(judged):
    found = judged("accuracy", "0.804", 0.8, "reproduced", std="0.00", ours_std=0.002, n=3)
    assert found == [["0.804", "partly reproduced"]]
    assert judged("accuracy", "0.804", 0.8, "reproduced", std="0.000", ours_std=0.002, n=3) == []


def test_counts_that_agree_are_not_rounded(judged):
    assert judged("bytes_per_probe", "1", 1.0, "reproduced") == []
    assert judged("payload_gigabytes", "0.31", 0.3097, "reproduced") != []


def test_what_is_not_judged_is_left_out(judged):
    assert judged("accuracy", "0.75", 0.779, "reduced scale") == []


# Welch, two of three runs at .80 ± .01 and the paper's .80: 0.01 √(1/3 + 1/3) = .008165 has 4
# degrees of freedom, and 2.132 x .008165 = .0174, but no less than ours alone, .0169: partly. A
# paper's ± of .015 has √(.01² + .015²) / √3 = .01041 with 3.5 degrees, so about 2.2 x .0104 = .023;
# of .024, √(.01² + .024²) / √3 = .0150 with 2.7, so about 2.5 x .0150 = .0374: too wide.
def test_a_spread_that_divides_by_n_is_wider(judged):
    given = ("accuracy", "0.80", 0.8)
    ours = {"ours_std": 0.01, "n": 3, "by": divided_by_n}
    # .0196 x √(3 / 2) = .0240.
    assert judged(*given, "partly reproduced", std="0.0196", **ours) == [["0.80", "inconclusive"]]
    assert judged(*given, "partly reproduced", std="0.010", **ours) == []
    # The paper's n is 3, whatever ours: .016 x √(3 / 2) = .0196, and 2.920 x .0196 / √3 = .033.
    assert judged(*given, "partly reproduced", std="0.016", **ours | {"n": 10}) == [
        ["0.80", "inconclusive"]
    ]
    assert judged(*given, "single run, within", by=divided_by_n) == []


# The paper prints "2.60 GB"; "2.6" would say that it may be 2.55.
@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
@pytest.mark.parametrize("column", ["mean", "std"])
def test_published_numbers_keep_their_last_zeros(path, column):
    """Numbers below 100 of a table's metric have equally many decimals, unless they are whole."""
    rows = pd.read_csv(path, dtype=str, comment="#")
    small = rows[column].str.contains(".", regex=False, na=False)
    small &= rows[column].astype(float) < 100
    decimals = rows[column][small].str.partition(".")[2].str.len()
    kinds = decimals.groupby([rows["table"], rows["metric"]]).nunique()
    assert kinds[kinds > 1].empty
