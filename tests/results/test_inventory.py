"""The page of models and data sets: sizes are the networks', licences the cards'."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedlogit.data import DATASETS
from fedlogit.papers import load_paper
from fedlogit.results.pages.inventory import inventory_page, size

PAPERS = Path(__file__).parents[2] / "workflow" / "papers"


@pytest.fixture(scope="module")
def page() -> str:
    return inventory_page([load_paper("who_to_trust", PAPERS)])


def test_the_size_of_lenet():
    # 5 x 5 convolutions to 6 and 16 channels; 400, 120, 84 and 10 units; a bias each.
    layers = [(25 + 1) * 6, (6 * 25 + 1) * 16, 401 * 120, 121 * 84, 85 * 10]
    assert size("lenet", (1, 28, 28), 10) == (sum(layers), 0)


def test_running_statistics_are_counted_apart():
    # A mean and a variance of each channel, where there are a scale and a shift of each.
    keeps, none = (size(f"resnet18(batch_stats={v})", (3, 32, 32), 10) for v in (False, True))
    assert keeps[0] == none[0] == 11_181_642
    assert (keeps[1], none[1]) == (2 * (64 * 5 + 128 * 5 + 256 * 5 + 512 * 5), 0)


def test_each_model_has_a_row_for_each_data_set(page):
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines()]
    lenet = [row for row in rows if row and row[0] == "`lenet`"]
    assert ["`lenet`", "MNIST", "10", "61,706", "246,824", "0", "Who to Trust?"] in lenet
    assert "mlp(hidden=[32])" not in page  # at scale smoke only


def test_each_data_set_has_its_samples_and_digest(page):
    table = page.partition("## Samples of data sets")[2].partition("## ")[0]
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines()]
    assert ["MNIST", "60,000", "10,000", "10", "28 x 28 x 1", "`331cf54b8ca5`"] in rows
    assert ["WikiText-2 (raw)", "text", "–", "–", "text", "not pinned"] in rows
    assert [row[0] for row in rows if row][2:] == [card.title for card in DATASETS.values()]


def test_each_data_set_has_its_licence(page):
    table = page.partition("## Licences of data sets")[2]
    rows = [line for line in table.splitlines() if line.startswith("| [")]
    assert len(rows) == len(DATASETS)
    for row, card in zip(rows, DATASETS.values(), strict=True):
        assert f"| `{card.name}`" in row
        assert f"| {card.licence}" in row
