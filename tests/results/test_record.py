"""Every published number is answered: by a verdict, a number at a reduced scale, or why not."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from support.refusals import refused

from fedlogit.config import Settings
from fedlogit.errors import DataError, FedlogitError
from fedlogit.papers import Plan, list_papers, load_paper
from fedlogit.results.pages.record import deviating_numbers, record_page
from fedlogit.results.record.counts import (
    OUTCOMES,
    caveats,
    counts,
    counts_sentence,
    counts_table,
    is_trained,
)
from fedlogit.results.record.files import record_markdown, write_record
from fedlogit.results.record.notes import Notes, read_notes
from fedlogit.results.record.numbers import read_record, record
from fedlogit.results.record.picture import bars, draw_record, plotted_shares
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts.published import published, read_reference

ROOT = Path(__file__).parents[2]
PAPERS, REFERENCES = ROOT / "workflow/papers", ROOT / "workflow/reference"
KEYS = ["paper", "table", "dataset", "partition", "method", "where", "metric"]
# Seeds .818, .820, .822 against .8265 ± .002 of 3: the interval is ± .00348 (test_compare.py).
PUBLISHED = """table,dataset,partition,method,metric,mean,std,n
table1,mnist,k_classes(2),average,accuracy,0.8265,0.002,3
table1,mnist,k_classes(2),uwa,accuracy,0.5,,
table1,mnist,k_classes(5),uwa,accuracy,0.6,,
table1,cifar10,k_classes(2),average,accuracy,0.3,,
"""
NOTES = """
not_run:
  - {rows: {paper: who_to_trust}, why: nobody had time}
  - {rows: {paper: who_to_trust, dataset: [cifar10]}, why: it is for a GPU}
deviations:
  - {title: Average, rows: [{paper: who_to_trust, method: average}], text: Seeds were changed.}
"""


def plan_of(results: Path, *papers: str) -> Plan:
    settings = Settings(papers=papers, scale="paper", frozen=True, partial=True)
    return Plan(settings, PAPERS, results)


@pytest.fixture
def references(tmp_path) -> Path:
    folder = tmp_path / "reference"
    folder.mkdir()
    (folder / "who_to_trust.csv").write_text(PUBLISHED)
    (folder / "notes.yaml").write_text(NOTES)
    return folder


@pytest.fixture
def compared(tmp_path, references, make_run, make_artefact):
    """Return a function that compares runs at a scale, as `fedlogit compare` does."""

    def compare(scale: str, *runs) -> None:
        folder = tmp_path / "results/summary/who_to_trust" / scale
        artefact = make_artefact(*runs, scale=scale)
        write_summary([artefact], read_reference(references / "who_to_trust.csv"), folder)

    return compare


@pytest.fixture
def answered(tmp_path, references, compared, make_run) -> pd.DataFrame:
    """The record of four numbers: one reproduced, a single run, one at a reduced scale, one not."""
    average = [make_run(a, seed=i) for i, a in enumerate([0.818, 0.820, 0.822])]
    compared("paper", *average, make_run(0.9, method="uwa"))
    compared("quick", make_run(0.1), make_run(0.5, method="uwa", partition="k_classes(5)"))
    results = tmp_path / "results"
    return record(plan_of(results, "who_to_trust"), references, results)


def test_each_number_has_its_answer(answered):
    assert answered["published"].tolist() == [0.8265, 0.5, 0.6, 0.3]
    assert answered["verdict"].tolist() == [
        *("reproduced", "single run, outside", "reduced scale", "not run")
    ]
    assert answered["scale"].tolist() == ["paper", "paper", "quick", ""]
    assert answered["ours"].tolist()[:3] == pytest.approx([0.82, 0.9, 0.5])
    assert (answered["n"].tolist(), answered["planned"].tolist()) == ([3, 1, 1, 0], [3] * 4)


def test_each_number_leads_to_its_runs(answered):
    # Runs of 12.5 s each: three seeds, one, one at the scale quick, none.
    assert answered["hours"].tolist()[:3] == pytest.approx([37.5 / 3600, 12.5 / 3600, 12.5 / 3600])
    assert pd.isna(answered["hours"][3])
    assert answered["code_versions"].tolist() == ["0.1.0+abc"] * 3 + [""]
    assert answered["runs"].str.split().str.len().tolist() == [3, 1, 1, 0]


def test_a_comparison_that_does_not_say_its_runs_hours_is_refused(
    tmp_path, references, compared, make_run
):
    compared("paper", make_run(0.8))
    path = tmp_path / "results/summary/who_to_trust/paper/compare.csv"
    pd.read_csv(path).drop(columns="hours").to_csv(path, index=False)
    with refused(f"{path}: column 'hours' is missing; run make redraw"):
        record(plan_of(tmp_path / "results", "who_to_trust"), references, tmp_path / "results")


def test_the_interval_is_that_of_the_verdict(answered):
    row = answered.iloc[0]
    assert row["difference"] == pytest.approx(-0.0065)
    assert (row["low"], row["high"]) == pytest.approx((-0.00998, -0.00302), abs=2e-5)


def test_a_number_without_a_verdict_says_why(answered):
    assert answered["why"].tolist() == [
        "",
        "1 of 3 runs",
        "at quick only, which is not judged; at paper 0 of 3 runs; nobody had time",
        "0 of 3 runs; it is for a GPU",
    ]


def test_of_reduced_scales_that_with_more_seeds_is_shown(tmp_path, references, compared, make_run):
    seeds = [make_run(a, method="uwa", seed=i) for i, a in enumerate((0.3, 0.5))]
    compared("quick", *seeds)
    compared("extended", make_run(0.7, method="uwa"))
    compared("smoke", *seeds, make_run(0.9, method="uwa", seed=2))
    results = tmp_path / "results"
    row = record(plan_of(results, "who_to_trust"), references, results).iloc[1]
    assert (row["scale"], row["n"], row["ours"]) == ("quick", 2, pytest.approx(0.4))


def test_of_reduced_scales_with_equally_many_seeds_the_last_is_shown(
    tmp_path, references, compared, make_run
):
    for scale, accuracy in (("extended", 0.7), ("quick", 0.4)):  # which the file has first
        compared(scale, make_run(accuracy, method="uwa"))
    results = tmp_path / "results"
    row = record(plan_of(results, "who_to_trust"), references, results).iloc[1]
    assert (row["scale"], row["ours"]) == ("extended", pytest.approx(0.7))


def test_one_run_of_the_papers_scale_is_shown_before_more_of_a_reduced_one(
    tmp_path, references, compared, make_run
):
    compared("quick", *(make_run(0.4, method="uwa", seed=seed) for seed in range(3)))
    compared("paper", make_run(0.9, method="uwa"))
    results = tmp_path / "results"
    row = record(plan_of(results, "who_to_trust"), references, results).iloc[1]
    assert (row["scale"], row["n"], row["ours"]) == ("paper", 1, pytest.approx(0.9))


def test_a_comparison_with_other_published_numbers_is_refused(
    tmp_path, references, compared, make_run
):
    compared("paper", make_run(0.8))
    (references / "who_to_trust.csv").write_text(PUBLISHED.replace("0.8265", "0.8266"))
    results = tmp_path / "results"
    with pytest.raises(DataError, match="not of the published numbers that are there now"):
        record(plan_of(results, "who_to_trust"), references, results)


@pytest.mark.parametrize("damage", ["", "table,dataset,partition,method,metric\n"])
def test_a_damaged_comparison_is_one_line(tmp_path, references, damage):
    path = tmp_path / "results/summary/who_to_trust/paper/compare.csv"
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    with refused(f"cannot read {path}: "):
        record(plan_of(tmp_path / "results", "who_to_trust"), references, tmp_path / "results")


def test_without_published_numbers_there_is_no_record(tmp_path):
    assert write_record(plan_of(tmp_path, "who_to_trust"), tmp_path / "none", tmp_path) == []


def test_the_counts_are_told_in_words(answered):
    assert counts_sentence(answered) == (
        "Of 4 published numbers, 1 are decided: 1 reproduced. Undecided: 1 with a single run (0"
        " within 3 points). Not judged: 1 run at a reduced scale only and 1 not run."
    )
    assert counts_sentence(answered[3:]) == (
        "Of 1 published numbers, none are decided. Not judged: 1 not run."
    )
    assert counts_sentence(answered[:1]).endswith("1 are decided: 1 reproduced.")


def test_verdicts_that_say_little_are_counted(answered):
    """1 in every run; an interval of ±.04, and one of ±.03, the limit; of bytes no caveat on 1."""
    rows = answered.assign(
        metric=["accuracy", "accuracy", "accuracy", "bytes_up"],
        verdict=["reproduced", "inconclusive", "inconclusive", "reproduced"], ours=[1, 0.8, 0, 1],
        std=[0.0, 0.1, 0.0, 0.0], low=[0.0, 0.06, -0.03, 0.0], high=[0.0, 0.14, 0.03, 0.0],
    )  # fmt: skip
    assert caveats(rows, Notes()) == [
        "Of the 2 reproduced numbers, 1 need no training (bytes and distances) and 1 are shares"
        " that are 0 or 1 in every run; a number may be in several of these groups,"
        " and 0 are in none.",
        "Of the 2 inconclusive ones, 1 have"
        " an interval wider than ±3 points: too few seeds to be reproduced or partly reproduced,"
        " whatever the mean.",
    ]
    assert "shares" not in "".join(caveats(rows.assign(std=0.01), Notes()))
    # Of a perplexity of 100 a point is 1: ±2.9 could be a verdict, ±3.1 could not.
    wide = {"metric": "perplexity", "published": 100.0, "low": [-2.9, -3.1], "high": [2.9, 3.1]}
    (inconclusive,) = caveats(rows[1:3].assign(**wide), Notes())
    assert inconclusive.startswith("Of the 2 inconclusive ones, 1 have an interval wider than")
    assert caveats(rows[2:3], Notes()) == []
    failed = rows.assign(verdict="not reproduced", published_std=[0.1, None, None, None])
    assert caveats(failed, Notes()) == [
        "Of the 4 not reproduced, 1 need no training and 2 have no ± in the paper, whose spread is"
        " then taken as zero."
    ]


def test_numbers_that_gave_a_setting_are_no_evidence(answered):
    rows = answered.assign(verdict=["reproduced", "reproduced", "not run", "reproduced"], std=0.01)
    gave = Notes.read({"derived": [{"paper": "who_to_trust", "method": "uwa"}]}, "notes")
    uwa = int((rows[rows["verdict"] == "reproduced"]["method"] == "uwa").sum())
    assert uwa
    assert caveats(rows, gave) == [
        f"Of the 3 reproduced numbers, {uwa} are no independent evidence, as a setting was"
        f" inferred from them; a number may be in several of these groups, and {3 - uwa} are in"
        " none."
    ]
    counted = rows.assign(metric="bytes_up")  # some are both, and count once
    assert caveats(counted, gave)[-1].endswith(
        "; a number may be in several of these groups, and 0 are in none."
    )
    assert caveats(rows, Notes()) == []


def test_numbers_that_need_no_training_have_a_row_of_their_own(answered):
    counted = answered.assign(metric=["accuracy", "bytes_up", "jsd_uniform", "jsd"])
    counted["verdict"] = ["not reproduced", "reproduced", "not reproduced", "single run, outside"]
    assert is_trained(counted).tolist() == [True, False, False, True]
    papers = plan_of(Path("results"), "who_to_trust").papers
    head, _, *rows = counts_table(counted, papers).splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in (head, *rows)]
    assert cells == [
        ["Published numbers", "All", "Reproduced", "Not reproduced", "Single run, outside"],
        ["Who to Trust?, from training", "2", "–", "1", "1"],
        ["Who to Trust?, bytes and distances", "2", "1", "1", "–"],
        ["all", "4", "1", "2", "1"],
    ]


def test_the_picture_counts_what_the_table_has(answered):
    found = bars(answered)
    assert found.sum().to_dict() == counts(answered)
    assert list(found.columns) == list(OUTCOMES)
    figure = draw_record(answered, {"who_to_trust": load_paper("who_to_trust", PAPERS)})
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [
        *("1 reproduced", "1 single run, outside", "1 reduced scale, not judged", "1 not run")
    ]
    assert "1 of 4 decided" in [text.get_text() for text in figure.axes[1].texts], "one seed"
    assert figure.texts[0].get_text().replace("\n", " ") == (
        "1 of 4 published numbers are decided: 1 from training (1 reproduced, 0 partly, 0 not);"
        " 1 are inconclusive or of one seed"
    )


def test_the_title_of_the_picture_has_numbers_that_need_no_training_apart(answered):
    """Of the two with a verdict, one is of bytes, and reproduced; the other a single run."""
    rows = answered.assign(metric=["payload_megabytes", *answered["metric"][1:]])
    figure = draw_record(rows, {"who_to_trust": load_paper("who_to_trust", PAPERS)})
    assert figure.texts[0].get_text().replace("\n", " ") == (
        "1 of 4 published numbers are decided: 0 from training (0 reproduced, 0 partly, 0 not),"
        " 1 of bytes and distances, without training (1 reproduced, 0 not); 1 are inconclusive or"
        " of one seed"
    )


def test_an_entry_of_the_pictures_legend_has_the_point_and_the_bar_of_its_outcome(answered):
    figure = draw_record(answered, {"who_to_trust": load_paper("who_to_trust", PAPERS)})
    points = figure.legends[0].get_lines()
    swatches = figure.legends[0].findobj(Rectangle)
    assert len(points) == len(swatches) == 4
    assert [line.get_marker() for line in points] == ["o", "X", ".", "|"]
    drawn = {bar.get_facecolor() for bar in figure.axes[1].patches if bar.get_width()}
    assert {swatch.get_facecolor() for swatch in swatches} == drawn
    assert [swatch.get_hatch() or "" for swatch in swatches] == ["", "xxxx", "----", ""]


def test_axes_of_the_picture_are_in_per_cent(answered):
    axes = draw_record(answered, {"who_to_trust": load_paper("who_to_trust", PAPERS)}).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()][1:3] == ["20%", "40%"]


def test_the_picture_has_ours_above_the_papers(answered):
    axes = draw_record(answered, {"who_to_trust": load_paper("who_to_trust", PAPERS)}).axes[0]
    points = {tuple(line.get_xydata()[0]) for line in axes.lines if len(line.get_xydata()) == 1}
    assert {(0.5, 0.9), (0.6, 0.5), (0.3, -0.02)} < points  # the last, not run, is a tick below


def test_an_interval_that_leaves_the_picture_has_a_triangle(answered):
    """Above 1.01 for .8265 + .7, below -.04 for .6 - .7; the one of .5 stays inside."""
    assert answered["published"].tolist() == [0.8265, 0.5, 0.6, 0.3]
    rows = answered.assign(low=[0.1, -0.53, -0.7, 0.0], high=[0.7, 0.5, 0.1, 0.0])
    axes = draw_record(rows, {"who_to_trust": load_paper("who_to_trust", PAPERS)}).axes[0]
    lines = [line for line in axes.lines if line.get_marker() in ("v", "^")]
    points = {(line.get_marker(), *xy) for line in lines for xy in line.get_xydata()}
    assert points == {("^", 0.8265, 1.01), ("v", 0.6, -0.04)}


def test_both_halves_of_the_picture_fill_its_height(answered):
    figure = draw_record(answered, {"who_to_trust": load_paper("who_to_trust", PAPERS)})
    figure.draw_without_rendering()
    assert all(axes.get_position().height > 0.6 for axes in figure.axes)


def test_only_shares_are_points():
    rows = pd.DataFrame({"metric": ["accuracy", "emd", "payload_megabytes"]})
    assert plotted_shares(rows)["metric"].tolist() == ["accuracy"]


def test_the_page_of_numbers_has_each_table_once(answered):
    text = record_markdown(answered, {"who_to_trust": load_paper("who_to_trust", PAPERS)})
    assert text.count("### Table 1") == 1
    assert text.count("| Average") + text.count("| UWA") == 4
    assert "reduced scale (quick)" in text
    assert "- Not run (1 of 4): 0 of 3 runs; it is for a GPU." in text
    assert "- Ours (2): scale paper, on CPU test." in text


def test_the_page_tells_what_was_tried_where_numbers_deviate(tmp_path, references, answered):
    results = tmp_path / "results"
    papers = [load_paper("who_to_trust", PAPERS)]
    write_record(plan_of(results, "who_to_trust"), references, results)
    first, _, *details = (results / "record.counts.md").read_text().splitlines()
    assert first == counts_sentence(answered)
    assert details
    assert all(detail.startswith("- Of ") for detail in details)
    text = record_page(papers, results, references)
    assert "Seeds were changed." not in text  # Average is reproduced
    assert text.partition("### Others")[2].count("| Who to Trust?, Table 1") == 1
    assert "No experiment was made yet." in text
    assert "No run behind these numbers was made on a GPU." in text
    changed = read_record(results).assign(verdict="not reproduced")
    changed.loc[:1, "device"] = ["CPU one; NVIDIA H200", "NVIDIA H200"]
    changed.to_csv(results / "record.csv", index=False)
    text = record_page(papers, results, references)
    assert "Seeds were changed." in text
    assert "2 numbers have runs made on a GPU (NVIDIA H200)" in text


def test_the_page_names_each_gpu_once_and_counts_its_numbers(tmp_path, references, answered):
    results = tmp_path / "results"
    write_record(plan_of(results, "who_to_trust"), references, results)
    changed = read_record(results)
    changed.loc[1, "device"] = "NVIDIA H200; CPU one; NVIDIA A100; NVIDIA H200"
    changed.to_csv(results / "record.csv", index=False)
    text = record_page([load_paper("who_to_trust", PAPERS)], results, references)
    assert "1 number has runs made on a GPU (NVIDIA A100, NVIDIA H200)" in text


def test_a_number_on_which_two_notes_are_has_the_first(tmp_path, references, answered):
    """Average on MNIST: the first is also on CIFAR-10, the second on UWA, none on the last."""
    rows = "[{paper: who_to_trust, partition: k_classes(2), dataset: mnist}]"
    note = f"  - {{title: Two classes, rows: {rows}, text: Tried.}}\n"
    (references / "notes.yaml").write_text(NOTES + note)
    results = tmp_path / "results"
    write_record(plan_of(results, "who_to_trust"), references, results)
    read_record(results).assign(verdict="not reproduced").to_csv(
        results / "record.csv", index=False
    )
    text = record_page([load_paper("who_to_trust", PAPERS)], results, references)
    groups = text[text.index("### Average") :].split("### ")[1:]
    assert [group.splitlines()[0] for group in groups] == ["Average", "Two classes", "Others"]
    assert [group.count("| Who to Trust?, Table 1") for group in groups] == [2, 1, 1]
    assert "Seeds were changed." in groups[0]
    assert "Tried." in groups[1]


# 3 points of a share; of a distance, 3 % of the paper's: .079 * .03 = .00237.
@pytest.mark.parametrize(
    ("metric", "published", "difference", "expected"),
    [
        ("accuracy", 0.8, -0.031, True),
        ("accuracy", 0.8, 0.029, False),
        ("emd", 0.079, 0.0024, True),
        ("emd", 0.079, 0.0023, False),
    ],
)
def test_what_several_runs_leave_far_off_deviates_too(metric, published, difference, expected):
    row = {"metric": metric, "published": published, "difference": difference}
    rows = pd.DataFrame([row | {"verdict": "inconclusive"}])
    assert (len(deviating_numbers(rows)) == 1) is expected
    assert deviating_numbers(rows.assign(verdict="partly reproduced")).empty
    assert len(deviating_numbers(rows.assign(verdict="not reproduced"))) == 1


def test_a_key_of_notes_that_is_none_is_refused(tmp_path):
    (tmp_path / "notes.yaml").write_text("not_run: [{rows: {paper: celm, tabel: x}, why: y}]")
    with pytest.raises(FedlogitError, match="tabel"):
        read_notes(tmp_path)


def test_no_record_says_what_makes_one(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*; run make redraw"):
        read_record(tmp_path)


def test_papers_have_short_names():
    papers = [load_paper(path.stem, PAPERS) for path in sorted(REFERENCES.glob("*.csv"))]
    assert [p.short_name for p in papers] == ["CELM", "FedOL", "TallyTrain", "Who to Trust?"]


@pytest.fixture(scope="module")
def all_published() -> pd.DataFrame:
    parts = [published(REFERENCES, name).assign(paper=name) for name in list_papers(PAPERS)]
    return pd.concat(parts)


def test_the_committed_record_has_every_published_number_once(all_published):
    rows = read_record(ROOT / "results")
    assert not rows.duplicated(KEYS).any()
    assert len(rows) == len(all_published)
    wanted = all_published[[*KEYS, "mean"]].itertuples(index=False, name=None)
    assert set(rows[[*KEYS, "published"]].itertuples(index=False, name=None)) == set(wanted)
    assert (rows.loc[rows["verdict"] == "not run", "why"] != "").all()


@pytest.mark.slow
def test_before_anything_ran_every_number_says_what_is_planned(tmp_path, all_published):
    rows = record(plan_of(tmp_path, *list_papers(PAPERS)), REFERENCES, tmp_path)
    assert len(rows) == len(all_published)
    assert set(rows["verdict"]) == {"not run"}
    assert rows["planned"].isin([1, 3]).all()
    assert rows["why"].str.match("0 of (1 run|3 runs)").all()


def test_every_note_is_about_a_published_number(all_published):
    notes = read_notes(REFERENCES)
    selected = [*(note.rows for note in notes.not_run), *notes.derived]
    selected += [rows for deviation in notes.deviations for rows in deviation.rows]
    for rows in selected:
        for key in KEYS[1:5]:
            assert set(getattr(rows, key)) <= set(all_published[key]), rows
        assert rows.match(all_published).any(), rows
