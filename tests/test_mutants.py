"""The list of mutants fits the code: what each replaces is there, once."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = yaml.safe_load((ROOT / "tests/mutants.yaml").read_text())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_what_a_mutant_replaces_stands_once_in_its_file(mutant):
    assert mutant.keys() == {"name", "file", "old", "new", "tests"}
    assert (ROOT / mutant["file"]).read_text().count(mutant["old"]) == 1
    assert mutant["old"] != mutant["new"]
    assert (ROOT / mutant["tests"]).exists()


def test_no_two_mutants_are_the_same():
    assert len({mutant["name"] for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant["file"], mutant["old"], mutant["new"]) for mutant in MUTANTS}) == len(
        MUTANTS
    )
