"""A study without published numbers has tables, claims and a summary, and says what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compared import compare

from fedlogit.errors import DataError
from fedlogit.papers import load_paper
from fedlogit.results.pages.paper import paper_page
from fedlogit.results.summary import overview, write_summary
from fedlogit.results.verdicts.comparison_table import NOTHING_PUBLISHED, comparison_markdown
from fedlogit.results.verdicts.published import nothing_published, published, read_reference

PAPERS = Path(__file__).parents[2] / "workflow" / "papers"
CLAIM = {
    "text": "UWA is better.",
    "from": "table1",
    "test": "greater",
    "options": {"left": {"method": "uwa"}, "right": {"method": "average"}},
}


@pytest.fixture
def table(make_run, make_artefact):
    runs = [make_run(a, method=m) for m, a in (("average", 0.6), ("uwa", 0.9))]
    return make_artefact(*runs, claims={"uwa": CLAIM})


def test_no_file_of_numbers_is_no_number(tmp_path):
    assert published(tmp_path, "my_study").empty


def test_a_file_of_numbers_without_a_row_is_no_number_either(tmp_path, table):
    path = tmp_path / "my_study.csv"
    path.write_text("table,dataset,partition,method,metric,mean,std\n")
    assert compare([table], read_reference(path)).empty


def test_a_wrong_file_of_numbers_is_refused(tmp_path):
    (tmp_path / "my_study.csv").write_text("table,dataset\n")
    with pytest.raises(DataError, match="column 'partition' is missing"):
        published(tmp_path, "my_study")


def test_the_comparison_says_that_there_is_nothing_to_compare_with(table):
    rows = compare([table], nothing_published())
    said = "### Reported and reproduced\n\nThere are no published numbers to compare with."
    assert comparison_markdown(rows, [table]) == said


def test_claims_are_tested_all_the_same(table, tmp_path):
    folder = tmp_path / "summary/who_to_trust/paper"
    *_, summary = write_summary([table], nothing_published(), folder)
    assert "| UWA is better." in summary.read_text(encoding="utf-8")
    said = overview(tmp_path, "paper", {"who_to_trust": {}})
    assert NOTHING_PUBLISHED in said
    assert "- Claims: 1 undecided" in said


@pytest.mark.parametrize("other", [True, False])
def test_a_page_links_what_the_given_folder_has(tmp_path, monkeypatch, other):
    monkeypatch.chdir(tmp_path)
    for name in ("other", "results"):
        (tmp_path / name / "tables/who_to_trust/paper").mkdir(parents=True)
    made = Path("other" if other else "results", "tables/who_to_trust/paper/table1.md")
    made.touch()
    page = paper_page(load_paper("who_to_trust", PAPERS), Path("other"))
    assert ("[paper](../../other/tables/who_to_trust/paper/table1.md)" in page) is other
    assert "](../../results/" not in page


def test_its_page_links_no_file_of_numbers(tmp_path):
    page = paper_page(load_paper("who_to_trust", PAPERS), tmp_path / "results")
    assert "published numbers: none;" in page
    assert "who_to_trust.csv" not in page
