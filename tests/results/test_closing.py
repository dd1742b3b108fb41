from __future__ import annotations

from pathlib import Path

import pytest
from support.comparisons import HEAD
from support.refusals import refused

from fedlogit.config import Settings
from fedlogit.papers import Plan
from fedlogit.results.closing import closing, where_to_look
from fedlogit.results.formatting import write_text
from fedlogit.results.summary import overview
from fedlogit.results.verdicts.compare import read_comparison, runs_behind

PAPERS = Path(__file__).parents[2] / "workflow/papers"
AVERAGE = "table1,mnist,k_classes(2),average,accuracy,.8,,,.6,,-.2,1,{}"
PROPOSED = "table1,mnist,k_classes(2),{},accuracy,.9,,,.7,,-.2,1,{}"
NOT_RUN = "table1,cifar10,k_classes(2),average,accuracy,.8,,,,,,0,not run"


@pytest.fixture
def said(tmp_path):
    """Return a function that writes papers' comparisons and returns the closing lines."""

    def close(**rows: list[str]) -> list[str]:
        plan = Plan(Settings(papers=tuple(rows), scale="paper"), PAPERS, tmp_path)
        for paper, lines in rows.items():
            path = tmp_path / "summary" / paper / "paper/compare.csv"
            write_text(path, "\n".join([HEAD, *lines]))
        following = where_to_look(tmp_path, tmp_path / "all.md", tmp_path)
        return closing(plan, plan.artefacts, following)

    return close


def test_the_end_is_ten_lines_however_much_was_made(said):
    lines = said(who_to_trust=[AVERAGE.format("reduced scale")] * 90 + [NOT_RUN] * 90)
    assert len(lines) <= 10
    assert "Who to Trust? 1 of 2" in lines[4]
    assert not any("not run" in line for line in lines)


@pytest.mark.parametrize(
    ("scale", "following"),
    [("smoke", "make reproduce:"), ("quick", "make reproduce SCALE=paper"), ("paper", "snakemake")],
)
def test_the_next_step_is_one_scale_larger(tmp_path, scale, following):
    last = where_to_look(tmp_path, tmp_path / "all.md", tmp_path, scale)[-1]
    assert last.startswith(f"Next: {following}")


def test_a_papers_own_method_and_numbers_with_a_verdict_come_first(said):
    rows = [
        AVERAGE.format("reduced scale"),
        PROPOSED.format("uwa", "reduced scale"),
        AVERAGE.format("inconclusive"),
        PROPOSED.format("uwa", "reproduced"),
    ]
    shown = said(who_to_trust=rows)[1:4]
    assert [line.rpartition("; ")[2] for line in shown] == [
        "reproduced",
        "inconclusive",
        "reduced scale: not judged",
    ]
    numbers = "test accuracy 0.7000, paper 0.9000"
    assert f"Who to Trust?: UWA on MNIST, 2 classes per client: {numbers}" in shown[0]


def test_a_run_of_another_setting_says_so(said):
    row = PROPOSED.format("uwa", "reduced scale") + ",,,,,,method=uwa(b=1)"
    assert "accuracy 0.7000 (ours: method=uwa(b=1)), paper 0.9000;" in said(who_to_trust=[row])[1]


def test_each_paper_has_one_number_before_any_has_two(said):
    mine = PROPOSED.format("uwa", "reproduced")
    shown = said(who_to_trust=[mine] * 3, celm=[PROPOSED.format("celm", "reduced scale")])[1:4]
    assert [line.split()[0] for line in shown] == ["Who", "CELM", "Who"]


def test_a_paper_without_any_run_is_counted_and_shows_no_number(said):
    lines = said(who_to_trust=[NOT_RUN])
    assert lines[1] == "Published numbers with runs here: Who to Trust? 0 of 1."


def test_what_was_made_is_named_and_a_study_without_published_numbers_is_not_counted(said):
    first, *rest = said(who_to_trust=[NOT_RUN], comparison=[])
    assert " figures of Who to Trust?, Comparison of methods, from 0 finished runs." in first
    assert rest[0] == "Published numbers with runs here: Who to Trust? 0 of 1."
    assert said(comparison=[])[1] == "Published numbers with runs here: none was published."


def test_a_number_of_two_scales_has_a_run_if_one_of_them_has(said):
    lines = said(who_to_trust=[AVERAGE.format("not run"), AVERAGE.format("reduced scale")])
    assert "Published numbers with runs here: Who to Trust? 1 of 1." in lines


def test_a_damaged_comparison_names_the_file(tmp_path):
    with refused("compare.csv: "):
        read_comparison(tmp_path / "summary/celm/quick/compare.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "No columns to parse from file"),
        (HEAD.removesuffix(",counterpart"), "column 'counterpart' is missing"),
        (HEAD.replace("table,", ""), "column 'table' is missing"),
        (f"{HEAD}\n{AVERAGE.format('not run')}".replace("-.2", "much"), "'much'"),
    ],
)
def test_a_comparison_that_is_none_is_one_line(tmp_path, text, said):
    path = write_text(tmp_path / "summary/celm/quick/compare.csv", text)
    with refused(said) as error:
        read_comparison(tmp_path / "summary/celm/quick/compare.csv")
    assert str(error.value).startswith(f"cannot read {path}: ")
    assert str(error.value).endswith("; run python -m fedlogit compare first")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file or directory; "),  # without the path once more
        ("", "No columns to parse from file; "),
        ("id,text\n", ""),
    ],
)
def test_missing_or_damaged_claims_are_one_line(tmp_path, text, why):
    folder = tmp_path / "summary/celm/quick"
    write_text(folder / "compare.csv", f"{HEAD}\n{NOT_RUN}")
    if text is not None:
        write_text(folder / "claims.csv", text)
    with refused(f"cannot read {folder / 'claims.csv'}: {why}"):
        overview(tmp_path, "quick", {"celm": {}})


def test_a_language_model_has_validation_accuracy(said):
    row = "table3,wikitext2,,lm_fedavg,tail_accuracy,.15,,,.14,,-.01,1,reduced scale"
    assert ": validation accuracy, mean over the last" in said(tally_train=[row])[1]


def test_runs_behind_a_comparison_are_each_named_once(tmp_path):
    lines = [f"{runs},{AVERAGE.format('inconclusive')}" for runs in ("b a", "c b")]
    path = write_text(tmp_path / "compare.csv", "\n".join([f"runs,{HEAD}", *lines]))
    assert runs_behind(path) == ["a", "b", "c"]
    path = write_text(tmp_path / "older.csv", "\n".join([HEAD, AVERAGE.format("inconclusive")]))
    with refused("older.csv: column 'runs' is missing; run make redraw"):
        runs_behind(path)
