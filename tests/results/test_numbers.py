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
        # Columns that a method or an engine logs: significant digits, and counts as they are.
        (0.73, "validation", "0.7300"),
        (0.734567, "validation@2", "0.7346"),
        (1.0, "ensemble", "1"),
        (2.302585, "loss_server", "2.303"),
        (-0.0123456, "contribution_0", "-0.01235"),
        (12345.678, "loss_private", "12,346"),
        (12.0, "present_clients", "12"),
        (12, "present_clients", "12"),
        (0.0, "loss_distil", "0"),
        (0.00012345, "loss_distil", "0.0001234"),
        (0.0000123456, "loss_distil", "1.235e-05"),
        (math.inf, "loss_distil", "inf"),
        (math.nan, "loss_distil", "–"),
        (1234.5, "bytes_public", "1,234"),
        # Bytes per probe are whole, but for those of numbers in fewer bits.
        (400.0, "bytes_per_probe", "400"),
        (10.5, "bytes_per_probe", "10.50"),
        (2.302585, "loss_test", "2.3026"),
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


@pytest.mark.parametrize(
    ("mean", "std", "wanted"),
    [
        (0.73, 0.05, "0.7300 ± 0.0500"),
        (0.0001, 0.05, "0.00010 ± 0.05000"),
        (12.0, 0.57735, "12.00 ± 0.58"),
        (1.0, 0.0, "1 ± 0"),
        (0.73, 0.0, "0.7300 ± 0.0000"),
        (0.73, math.nan, "0.7300"),
        (math.inf, 0.5, "inf ± 0.5000"),
        (2e-9, 1.5e-10, "2.000e-09 ± 1.500e-10"),
    ],
)
def test_a_logged_column_and_its_spread_have_digits_that_tell_them_apart(mean, std, wanted):
    assert spread(mean, std, "validation") == wanted


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
