"""Numbers as tables print them."""

import math

import pandas as pd
import pytest

from fedlogit.results.formatting import markdown, number, spread
from fedlogit.results.pages.chapter import to_html


@pytest.mark.parametrize(
    ("value", "metric", "wanted"),
    [
        (0.00921, "payload_megabytes", "0.0092"),
        (0.0921, "payload_megabytes", "0.092"),
        (0.39, "payload_megabytes", "0.39"),
        (1342.061, "payload_megabytes", "1,342.06"),
        (0.0, "payload_megabytes", "0.00"),
        (0.00037, "payload_gigabytes", "0.00037"),
        (0.00921, "mebibytes_up", "0.01"),
        (4_400_000.0, "bytes_up", "4,400,000"),
        (0.97594, "accuracy@10", "0.9759"),
        (math.nan, "accuracy", "–"),
    ],
)
def test_a_number(value, metric, wanted):
    assert number(value, metric) == wanted


def test_per_cent_and_decimals_that_are_given():
    assert number(0.97594, "accuracy", percent=True) == "97.59"
    assert number(12.3456, "seconds", percent=True) == "12.3"
    assert number(0.00921, "payload_megabytes", decimals=2) == "0.01"


def test_a_spread_has_the_decimals_of_its_mean():
    assert spread(0.00921, 0.00004, "payload_megabytes") == "0.0092 ± 0.0000"
    assert spread(0.5, 0.0123, "accuracy", percent=True) == "50.00 ± 1.23"
    assert spread(0.5, math.nan, "accuracy") == "0.5000"


def test_a_bar_in_a_label_ends_no_cell():
    frame = pd.DataFrame({"Method": ["A|B", r"C\|D"], "p(x|y)": ["1", "2"]})
    text = markdown(frame, right=["p(x|y)"])
    assert [line.replace(r"\|", "").count("|") for line in text.splitlines()] == [3] * 4
    assert text.splitlines()[1].endswith(":|")
    html = to_html(text)
    assert ">A|B</td>" in html
    assert ">C|D</td>" in html
    assert "p(x|y)</th>" in html
    assert "A|B" in markdown(frame, "simple")


def test_bytes_that_never_vary_have_no_spread():
    assert spread(8000, 0.0, "bytes_up") == "8,000"
    assert spread(8000, 12.0, "bytes_up") == "8,000 ± 12"
    assert spread(0.5, 0.0, "accuracy") == "0.5000 ± 0.0000"
