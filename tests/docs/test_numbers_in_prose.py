"""Numbers in what is written about the results stand in the files that are linked beside them.

It sees that a text was forgotten when results changed, not each single slip: of numbers that are
off by up to nine in the last digit, about half are found in the same files, as another cell's.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from documented import ROOT

FINDINGS = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
COMPARISON = re.sub(
    r"<!-- made from.*?<!-- end -->",
    "",
    (ROOT / "docs/comparison.md").read_text(encoding="utf-8"),
    flags=re.DOTALL,
)
NOTES = yaml.safe_load((ROOT / "workflow/reference/notes.yaml").read_text(encoding="utf-8"))

# Numbers of single runs and rounds, which no table has (but each run's result.json or rounds.csv),
# and what is no result.
ELSEWHERE = {
    "62.4": "Average, k = 2, seed 1", "59.7": "the same, seed 2",
    ".310": "JSD of round 1 under SLS, seed 41", ".268": "the same, seed 43",
    ".434": "JSD of round 10, seed 41", ".468": "the same, seed 43",
    "40.1": "CGSV before samples were moved; the run was not kept",
    "23.7": "right answers as the warm-up ends: the mean peer", "30.2": "the vote",
    "36.6": "the mean softmax", "1.55": "disagreement as the warm-up ends",
    "4.5": "FedOL, #Ic = 3: clients of two architectures less those of one",
    "1.45": "a difference of two of the paper's numbers",
    "0.785": "the least that is printed as 0.79",
}  # fmt: skip


@dataclass(frozen=True)
class Passage:
    """A paragraph, list item or table, and the files that its numbers may come from."""

    text: str
    files: tuple[Path, ...]


def passages(page: str) -> Iterator[Passage]:
    """Split a page of docs/; a list or a table also has the links of what it belongs to."""
    above: tuple[Path, ...] = ()
    item: tuple[Path, ...] = ()
    for text in re.split(r"\n\s*\n|\n(?=- )", page):
        own = tuple((ROOT / "docs" / link).resolve() for link in linked(text))
        if text.startswith("#"):
            above = item = ()
        elif text.startswith("- "):
            item = own
        elif text.startswith((" ", "|")):
            item = own + item
        else:
            above, item = own, ()
        yield Passage(text, item + above)


def linked(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#]+\.(?:md|csv))\)", text)


def decimals(text: str) -> list[str]:
    """Return the numbers with digits after a point, but those of names, code and links."""
    for what in (r"\]\([^)]*\)", r"`[^`]*`", r"Dir(ichlet)?\([\d.]+\)", r"(§|eq\. )[\d.]+"):
        text = re.sub(what, " ", text)
    return re.findall(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)", text)


@cache
def values(path: Path) -> frozenset[float]:
    """Return the numbers of a file: of the CSV beside a page, if any, which has all digits."""
    table = path.with_suffix(".csv")
    text = (table if table.is_file() else path).read_text(encoding="utf-8")
    return frozenset(map(float, re.findall(r"(?<![\w.])\d*\.?\d+(?:e-?\d+)?(?!\w|\.\d)", text)))


@cache
def published() -> frozenset[float]:
    """Return the means and deviations that the papers print."""
    return frozenset(
        float(row[key])
        for path in (ROOT / "workflow/reference").glob("*.csv")
        for row in csv.DictReader(path.open(encoding="utf-8"))
        for key in ("mean", "std")
        if row[key]
    )


def is_in(number: str, found: frozenset[float]) -> bool:
    """Tell whether a value rounds to a number as it is printed, a share perhaps in percent."""
    half = 0.5 * 10 ** -len(number.partition(".")[2]) + 1e-9
    units = (1,) if number.startswith(".") else (1, 100)
    return any(abs(value * unit - float(number)) <= half for value in found for unit in units)


def unfounded(passage: Passage) -> list[str]:
    """Return the numbers of a passage that neither its files nor the papers have."""
    found = published().union(*map(values, passage.files))
    return [number for number in decimals(passage.text) if not is_in(number, found)]


WRITTEN = [
    *[pytest.param(p, id=f"findings: {p.text.strip()[:40]}") for p in passages(FINDINGS)],
    *[pytest.param(p, id=f"comparison: {p.text.strip()[:40]}") for p in passages(COMPARISON)],
    *[
        pytest.param(p, id=f"notes: {note['title']}")
        for note in NOTES["deviations"]
        for p in passages(note["text"])
    ],
]


@pytest.mark.parametrize("passage", WRITTEN)
def test_every_number_stands_in_a_linked_file(passage):
    assert [number for number in unfounded(passage) if number not in ELSEWHERE] == []


def test_a_number_of_no_file_is_seen():
    table = "[table](../results/tables/celm/paper/switches.md)"
    (passage,) = passages(f"FedAvg has 77.8 and CELM 12.3456, `0.2468`, Dir(0.05) ({table}).")
    assert unfounded(passage) == ["12.3456"]
    assert unfounded(Passage(passage.text, ())) == ["77.8", "12.3456"]


def test_what_stands_elsewhere_is_written():
    written = {number for param in WRITTEN for number in unfounded(param.values[0])}
    assert set(ELSEWHERE) - written <= {"36.6", ".310"}  # which other numbers hide
