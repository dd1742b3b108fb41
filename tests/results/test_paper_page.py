"""The page of a paper: which scale it shows, and why."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fedlogit.papers import load_paper
from fedlogit.results.pages.paper import paper_page
from fedlogit.results.record.numbers import preferred
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts.published import read_reference

ROOT = Path(__file__).parents[2]
PAPERS = ("who_to_trust", "celm", "fedol", "tally_train")
CLAIM = {
    "text": "UWA is better.",
    "from": "table1",
    "test": "greater",
    "options": {"left": {"method": "uwa"}, "right": {"method": "average"}},
}


@pytest.mark.parametrize(
    ("scales", "shown"),
    [
        ([], None),
        ([(0, 1)], 0),
        ([(0, 5), (1, 1)], 1),  # what decides comes before seeds
        ([(0, 1), (0, 5), (0, 3)], 1),
        ([(2, 3), (2, 3), (1, 5)], 1),  # of equals the last
    ],
)
def test_the_scale_that_decides_most_is_shown_then_that_with_most_seeds(scales, shown):
    assert preferred(dict(enumerate(scales))) == shown


@pytest.fixture
def summed(tmp_path, make_run, make_artefact):
    """Return a function that sums up runs of a scale, seeds of each method."""

    def sum_up(scale: str, seeds: int, *, claims: bool = True) -> None:
        methods = ("average", "uwa") if claims else ("average",)
        runs = [
            make_run(0.3 + 0.3 * (m == "uwa") + 0.001 * seed, method=m, seed=seed)
            for m in methods
            for seed in range(seeds)
        ]
        artefact = make_artefact(*runs, scale=scale, claims={"mm_best": CLAIM} if claims else {})
        reference = read_reference(ROOT / "workflow/reference/who_to_trust.csv")
        write_summary([artefact], reference, tmp_path / "results/summary/who_to_trust" / scale)

    return sum_up


@pytest.fixture
def told(tmp_path):
    """Return a function that gives what the page says came out."""

    def tell() -> str:
        page = paper_page(
            load_paper("who_to_trust", ROOT / "workflow/papers"), tmp_path / "results"
        )
        return page.partition("## Expected and obtained")[2]

    return tell


def test_without_results_there_is_one_sentence(told):
    assert told().strip() == "No results are committed yet."


def test_numbers_are_of_the_scale_with_verdicts_and_claims_of_that_which_decides_most(summed, told):
    summed("quick", 1)
    summed("reduced", 5)
    summed("paper", 3, claims=False)
    said = told()
    assert "- Of 20 published numbers 1 have a verdict; verdicts are given at scale `paper`" in said
    assert (
        "- Of 1 claims 1 are decided at scale `reduced`, more than at any other (`quick` 0 of 1)."
        in said
    )
    numbers, claims = said.split("### Claims")
    assert "Ours: scale: paper; 3 seeds" in numbers
    assert "Scale: reduced; 5 seeds" in claims
    assert "| UWA is better. (ours, not in the paper) | holds" in claims
    assert said.count("/summary.md)") == 3


def test_claims_that_a_scale_does_not_plan_are_not_among_those_that_it_may_decide(
    summed, told, tmp_path
):
    summed("reduced", 5)
    path = tmp_path / "results/summary/who_to_trust/reduced/claims.csv"
    claims = pd.read_csv(path)
    pd.concat([claims, claims.assign(id="other", result="not planned")]).to_csv(path, index=False)
    assert "- Of 1 claims 1 are decided at scale `reduced`." in told()


def test_without_a_verdict_the_reduced_scale_with_most_seeds_is_shown(summed, told):
    summed("extended", 5)
    summed("quick", 1)
    said = told()
    assert "- No number was run at scale `paper`, so none has a verdict; shown is scale" in said
    assert "`extended`, which has the most seeds (5)." in said
    assert "Ours: scale: extended; 5 seeds" in said


def test_where_no_run_decides_a_claim_the_page_says_so(summed, told):
    summed("paper", 3, claims=False)
    said = told()
    assert said.strip().endswith("### Claims\n\nNo run decides a claim yet.")
    assert "Claims at scale" not in said


def test_the_page_says_in_acms_terms_what_this_is(tmp_path):
    papers = {name: load_paper(name, ROOT / "workflow/papers") for name in PAPERS}
    said = {name: paper_page(paper, tmp_path / "results") for name, paper in papers.items()}
    for name, paper in papers.items():
        assert paper.acm is not None, name
        assert f"\n\n{paper.acm.sentences}\n\n## What is implemented" in said[name]
        assert "(v1.1) a replication: another team, artefacts of its own. " in said[name]
    assert "fd_aggregators, which could not be obtained" in said["who_to_trust"]
    study = paper_page(load_paper("comparison", ROOT / "workflow/papers"), tmp_path / "results")
    assert "ACM" not in study


@pytest.mark.parametrize("about", ["", "Divide like me."])
def test_a_partition_from_outside_has_a_row(tmp_path, monkeypatch, about):
    module = f"own_part{len(about)}"  # a module is imported once
    said = f'"""{about}"""' if about else "..."
    (tmp_path / f"{module}.py").write_text(
        f"from fedlogit.partition.iid import Iid\n\n\nclass Mine(Iid):\n    {said}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    paper = load_paper("who_to_trust", ROOT / "workflow/papers")
    own = paper.model_copy(update={"partitions": {"own": f"{module}:Mine"}})
    page = paper_page(own, tmp_path / "results")
    assert [cell.strip() for cell in _row(page, "`own`")] == ["`own`", f"`{module}:Mine`", about]


def _row(page: str, first: str) -> list[str]:
    """Return the cells of the row that begins with `first`."""
    line = next(line for line in page.splitlines() if line.startswith(f"| {first} "))
    return line.split("|")[1:-1]
