"""The record: every published number once, at the best scale that has a run of it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from support.refusals import refused

from fedlogit.papers import list_papers, load_paper
from fedlogit.results.compare import read_reference
from fedlogit.results.record import OUTCOMES, in_words, record, record_markdown, write_record
from fedlogit.results.record_figure import LOOKS, record_figure

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "workflow/papers"
REFERENCES = ROOT / "workflow/reference"
REFERENCE = """table,dataset,partition,method,metric,mean,std
t,digits,iid,celm,accuracy,0.80,0.01
t,digits,iid,fedavg,accuracy,0.70,
t,digits,iid,cffl,accuracy,0.60,
"""
HEAD = "table,dataset,partition,method,metric,paper,ours,std,difference,n,low,high,verdict,scale"
SCALES = {  # celm is judged, fedavg is run at a reduced scale only, cffl not at all
    "paper": """t,digits,iid,celm,accuracy,0.80,0.81,0.01,0.01,3,-0.01,0.03,partly reproduced,paper
t,digits,iid,fedavg,accuracy,0.70,,,,0,,,not run,
t,digits,iid,cffl,accuracy,0.60,,,,0,,,not run,
""",
    "quick": """t,digits,iid,celm,accuracy,0.80,0.20,,-0.6,1,,,reduced scale,quick
t,digits,iid,fedavg,accuracy,0.70,0.30,,-0.4,1,,,reduced scale,quick
t,digits,iid,cffl,accuracy,0.60,,,,0,,,not run,
""",
}


@pytest.fixture
def celm():
    return {"celm": load_paper("celm", PAPERS)}


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    """Comparisons at two scales, and what was published."""
    for scale, rows in SCALES.items():
        path = tmp_path / "summary/celm" / scale / "compare.csv"
        path.parent.mkdir(parents=True)
        lines = [f"{line},CPU" for line in rows.splitlines()]
        path.write_text("\n".join([f"{HEAD},device", *lines]) + "\n")
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference/celm.csv").write_text(REFERENCE)
    return tmp_path / "summary", tmp_path / "reference"


def test_the_scale_of_the_paper_comes_first_and_the_rest_says_why(folders, celm):
    summaries, references = folders
    rows = record(summaries, celm, references).set_index("method")
    assert rows["verdict"].to_dict() == {
        "celm": "partly reproduced",
        "fedavg": "reduced scale",
        "cffl": "not run",
    }
    assert rows["ours"].dropna().to_dict() == {"celm": 0.81, "fedavg": 0.30}
    assert rows["scale"].to_dict() == {"celm": "paper", "fedavg": "quick", "cffl": ""}
    assert rows["why"].to_dict() == {
        "celm": "",
        "fedavg": "only run at a reduced scale, which is not judged",
        "cffl": "no finished run",
    }
    assert rows["paper_std"].dropna().to_dict() == {"celm": 0.01}


def test_the_counts_in_words_are_those_of_the_rows(folders, celm):
    assert in_words(record(folders[0], celm, folders[1])) == (
        "Of 3 published numbers 1 have runs of ours at the paper's scale: 1 partly reproduced."
        " Of the others: 1 reduced scale, 1 not run."
    )


def test_the_picture_has_a_number_for_each_outcome_and_a_point_for_each_share(folders, celm):
    rows = record(folders[0], celm, folders[1])
    bars, points = record_figure(rows, {"celm": "CELM"}, "").axes
    assert [text.get_text() for text in bars.texts] == ["1", "1", "1"]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["CELM, 3 numbers"]
    drawn = {(x, y) for line in points.lines for x, y in line.get_xydata()}
    assert drawn == {(0, 0), (1, 1), (0.80, 0.81), (0.70, 0.30)}


def test_every_outcome_has_a_look():
    assert set(LOOKS) == set(OUTCOMES)


def test_a_comparison_that_lacks_a_number_is_refused(folders, celm):
    path = folders[0] / "celm/quick/compare.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with refused("lacks published numbers of celm; run make redraw"):
        record(folders[0], celm, folders[1])


def test_a_number_that_is_there_twice_is_refused(folders, celm):
    path = folders[0] / "celm/quick/compare.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    with refused("has a published number twice"):
        record(folders[0], celm, folders[1])


def test_without_published_numbers_nothing_is_written(tmp_path, celm):
    assert write_record(tmp_path, celm, tmp_path, tmp_path / "record") == []


def test_the_committed_record_has_every_published_number_once():
    papers = {name: load_paper(name, PAPERS) for name in list_papers(PAPERS)}
    rows = pd.read_csv(ROOT / "results/record.csv", keep_default_na=False)
    for path in REFERENCES.glob("*.csv"):
        theirs = read_reference(path)
        ours = rows[rows["paper_name"] == path.stem]
        keys = ["table", "dataset", "partition", "method", "where", "metric"]
        assert ours[keys].to_numpy().tolist() == theirs[keys].to_numpy().tolist()
        assert ours["paper"].astype(float).tolist() == theirs["mean"].tolist()
    assert (rows["why"] != "").equals(~rows["verdict"].str.endswith("reproduced"))
    text = (ROOT / "results/record.md").read_text(encoding="utf-8")
    assert (
        text
        == record_markdown(
            pd.read_csv(ROOT / "results/record.csv").fillna(
                dict.fromkeys(["partition", "where", "scale", "why"], "")
            ),
            papers,
        ).rstrip("\n")
        + "\n"
    )
