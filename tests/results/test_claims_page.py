"""The page of claims, counts for ``dvc metrics``, and summaries of what was not run."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest

from fedlogit.errors import DataError
from fedlogit.files import read_json
from fedlogit.papers import load_paper
from fedlogit.results.dvc_metrics import metrics
from fedlogit.results.pages.claims import claims_page
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts.published import read_reference

ROOT = Path(__file__).parents[2]


@pytest.fixture
def whole(tmp_path):
    """Return a function from a row of claims.csv to the page."""
    paper = load_paper("who_to_trust", ROOT / "workflow/papers")

    def make(**row) -> str:
        path = tmp_path / "summary/who_to_trust/paper/claims.csv"
        path.parent.mkdir(parents=True)
        usual = {"id": "mm_best", "text": paper.claims["mm_best"].text, "data": ""}
        pd.DataFrame([usual | row]).to_csv(path, index=False)
        return claims_page([paper], tmp_path)

    return make


@pytest.fixture
def page(whole):
    """Return a function from a row of claims.csv to the page's line on it."""

    def make(**row) -> str:
        return next(line for line in whole(**row).splitlines() if "MM aggregator" in line)

    return make


def test_a_papers_own_claims_are_counted_by_result(tmp_path):
    paper = load_paper("tally_train", ROOT / "workflow/papers")
    ours = {key for key, claim in paper.claims.items() if not claim.section}
    assert "bridge_common_weights" in ours
    results = ["holds", "no difference larger than 1 point", "does not hold", "not planned"]
    theirs = [key for key in paper.claims if key not in ours]
    rows = [
        {"id": key, "text": "", "result": result, "reason": "", "run": "1 of 1", "agree": "",
         "data": ""}
        for key, result in [
            *zip(theirs, itertools.cycle(results)),
            *((key, "holds") for key in ours),
        ]
    ]  # fmt: skip
    for scale, shown in (
        ("extended", rows),
        ("quick", [r | {"result": "undecided"} for r in rows]),
    ):
        path = tmp_path / f"summary/tally_train/{scale}/claims.csv"
        path.parent.mkdir(parents=True)
        pd.DataFrame(shown).to_csv(path, index=False)
    page = claims_page([paper], tmp_path)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    (counts,) = (cells for cells in lines if cells[:1] == ["TallyTrain"])
    n = [sum(i % 4 == k for i in range(len(theirs))) for k in range(3)]
    assert counts == [
        "TallyTrain", "`extended`", str(sum(n)), str(n[0]), "–", str(n[1]), "–", "–", str(n[2]), "–"
    ]  # fmt: skip


def test_where_nothing_is_decided_nothing_is_counted(whole):
    page = whole(result="undecided", reason="one seed", run="6 of 6", agree="6 of 6")
    assert "Claims of" not in page


@pytest.mark.parametrize(
    ("result", "run", "agree", "expected"),
    [
        ("holds", "6 of 6", "6 of 6", "holds, 6 of 6 as claimed"),
        ("holds on average", "6 of 6", "5 of 6", "holds on average, 5 of 6 as claimed"),
        ("undecided", "3 of 6", "3 of 6", "undecided, 3 of 6 run"),
        ("does not hold", "3 of 6", "2 of 6", "does not hold, 3 of 6 run"),
        ("not run", "0 of 6", "0 of 6", "not run"),
        ("not planned", "0 of 0", "", "–"),
    ],
)
def test_the_page_says_what_was_run(page, result, run, agree, expected):
    said = page(result=result, reason="", run=run, agree=agree)
    assert said.split("|")[3].strip() == expected


def test_the_page_says_why_a_claim_is_undecided(page):
    said = page(result="undecided", reason="one seed", run="6 of 6", agree="5 of 6")
    assert said.split("|")[3].strip() == "undecided, one seed, 5 of 6 as claimed"


def test_other_words_and_other_data_are_notes_below_the_table(whole):
    told = {"result": "holds", "reason": "", "run": "6 of 6", "agree": "6 of 6"}
    text = whole(**told, text="It is best of two", data="mnist: a half of it")
    assert "| holds, 6 of 6 as claimed [1, 2] |" in text
    notes = ["1. Tested as: It is best of two.", "2. Data: mnist: a half of it."]
    assert [line for line in text.splitlines() if line[:2] in ("1.", "2.")] == notes


def test_a_table_that_is_none_of_claims_is_refused(page):
    with pytest.raises(DataError, match=r"cannot read .*claims\.csv"):
        page(result="holds")


def test_the_page_has_the_rules_before_the_claims(tmp_path):
    text = claims_page([load_paper("who_to_trust", ROOT / "workflow/papers")], tmp_path)
    places = [text.index(part) for part in ("90 % confidence", "paired t test", "## Claims")]
    assert places == sorted(places)
    assert "The rule in full" not in text


def test_counts_tell_single_runs_from_reproduced_ones(make_run, make_artefact):
    words = ["reproduced", "single run, within", "single run, within", "stand-in data", "not run"]
    rows = pd.DataFrame({"verdict": words, "ours": float("nan")})
    claims = pd.DataFrame({"result": ["holds on average", "undecided"]})
    found = metrics(rows, claims, [make_artefact(make_run())])
    assert found["verdicts"] == {
        "reproduced": 1,
        "partly reproduced": 0,
        "inconclusive": 0,
        "not reproduced": 0,
        "single run, within": 2,
        "single run, outside": 0,
        "reduced scale": 0,
        "not run": 1,
        "stand-in data": 1,
    }
    assert found["claims"] == {
        "holds": 0,
        "holds on average": 1,
        "no difference larger than 1 point": 0,
        "no difference larger than 3 points": 0,
        "undecided": 1,
        "does not hold on average": 0,
        "does not hold": 0,
        "not run": 0,
        "not planned": 0,
    }


def test_a_table_without_runs_is_in_the_summary(make_run, make_artefact, tmp_path):
    claim = {
        "text": "UWA helps.",
        "from": "table9",
        "test": "greater",
        "options": {"left": {"method": "uwa"}, "right": {"method": "average"}},
    }
    axes = {"dataset": "mnist", "partition": "k_classes(2)", "seed": 0}
    missing = [{"before": 0, "axes": axes | {"method": method}} for method in ("average", "uwa")]
    empty = make_artefact(id="table9", claims={"c": claim}, missing=missing)
    reference = read_reference(ROOT / "workflow/reference/who_to_trust.csv")
    *_, summary = write_summary([empty, make_artefact(make_run(0.8))], reference, tmp_path)
    text = summary.read_text(encoding="utf-8")
    assert "| UWA helps. (ours, not in the paper) | not run" in text
    assert "No run decides a claim." in text
    assert read_json(tmp_path / "metrics.json")["claims"]["not run"] == 1
    with pytest.raises(ValueError, match="give at least one run"):
        make_artefact()
