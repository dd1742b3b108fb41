"""A method that is added to a table is at every scale that shows its methods, with a name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fedlogit.errors import FedlogitError
from fedlogit.papers import expand, list_papers, load_paper

FOLDER = Path(__file__).parents[2] / "workflow" / "papers"


def lists(grid: object) -> list[list[str]]:
    """Return the lists of several methods in a grid or grids."""
    grids = grid if isinstance(grid, list) else [grid or {}]
    return [g["method"] for g in grids if len(g.get("method", [])) > 1]


@pytest.mark.parametrize("name", list_papers(FOLDER))
def test_a_scale_names_the_tables_list_instead_of_repeating_it(name):
    paper = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    artefacts = paper["tables"] | paper["figures"]
    for scale in paper["scales"].values():
        for key, own in scale.get("artefacts", {}).items():
            of_table = lists(artefacts[key].get("grid"))
            for methods in lists(own.get("grid")) + lists(own.get("axes")):
                same = [m for m in of_table if m == methods]
                assert not same or any(m is methods for m in same), (name, key, methods)


@pytest.fixture
def who_to_trust(tmp_path):
    """Return a function that changes a copy of the paper's file and reads it."""

    def change(*pairs: tuple[str, str]):
        text = (FOLDER / "who_to_trust.yaml").read_text()
        for before, after in pairs:
            assert text.count(before) == 1
            text = text.replace(before, after)
        (tmp_path / "who_to_trust.yaml").write_text(text)
        return load_paper("who_to_trust", tmp_path)

    return change


ADDED = ("&table1 [average,", "&table1 [fast, average,")
NAMED = ("\n  average: average\n", "\n  average: average\n  fast: average\n")
LABELLED = ("\n  average: Average\n", "\n  average: Average\n  fast: Fast\n")


def test_a_method_added_to_the_first_table_is_at_every_scale(who_to_trust):
    paper = who_to_trust(ADDED, NAMED, LABELLED)
    for scale in paper.scales:
        (table,) = (a for a in expand(paper, scale) if a.id == "table1")
        assert "fast" in {cell.axes["method"] for cell in table.cells}, scale


def test_a_method_without_a_name_to_print_is_one_line(who_to_trust):
    with pytest.raises(FedlogitError) as caught:
        who_to_trust(ADDED, NAMED)
    assert str(caught.value) == (
        "who_to_trust.yaml: labels: the method 'fast' has no name to print; add a line such as"
        " 'fast: Fast'"
    )


@pytest.mark.parametrize("name", list_papers(FOLDER))
def test_methods_of_a_table_share_the_partition(name):
    """Else one would train on more samples, and seeds would not be paired."""
    beside = {"method", "local.steps", "rounds"}  # settings of methods, not of a table's cells
    paper = load_paper(name, FOLDER)
    for scale in paper.scales:
        for artefact in expand(paper, scale):
            splits = {}
            for cell in artefact.cells:
                spec = cell.spec
                if spec.ledger_only or spec.method.name == "fully_informed":
                    continue
                place = tuple((k, str(v)) for k, v in cell.axes.items() if k not in beside)
                known = splits.setdefault((place, spec.seed), cell.resolved.split)
                assert cell.resolved.split == known, f"{artefact.id} at {scale}: {cell.axes}"
