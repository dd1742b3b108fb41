"""Where a published number stands is checked against the paper's file before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.calls import script
from support.refusals import refused

from fedlogit.papers import list_papers, load_paper
from fedlogit.papers.published import check_published, check_published_files

WORKFLOW = Path(__file__).parents[2] / "workflow"
HEAD = "table,dataset,partition,method,metric,where,mean,std,n\n"
# A table of TallyTrain's with an axis `public.size`.
ROW = "table8,cifar10,,tally_train,accuracy,{},0.5,,\n"


def numbers(folder: Path, where: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "tally_train.csv"
    path.write_text(HEAD + ROW.format(where))
    return path


def check(path: Path) -> None:
    """Check the file, without what stands for numbers of other tables."""
    paper = load_paper("tally_train", WORKFLOW / "papers")
    scales = {name: scale for name, scale in paper.scales.items() if name == "paper"}
    check_published(path, paper.model_copy(update={"scales": scales}))


def test_the_published_numbers_of_all_papers_are_right():
    papers = [load_paper(name, WORKFLOW / "papers") for name in list_papers(WORKFLOW / "papers")]
    check_published_files(papers, WORKFLOW / "reference")


@pytest.mark.parametrize("where", ["", "public.size=2000", " public.size = 2000 ; seed=0"])
def test_axes_and_values_that_runs_have_are_right(tmp_path, where):
    check(numbers(tmp_path, where))


def test_a_file_that_excel_saved_is_read(tmp_path):
    path = numbers(tmp_path, "public.size=2000")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    check(path)


@pytest.mark.parametrize("where", ["foo", "=3", "public.size=", "public.size=2000;;seed=0", ";"])
def test_what_is_no_axis_with_a_value_is_refused(tmp_path, where):
    path = numbers(tmp_path, where)
    with refused(f"{path}, row 2, column where: {where!r} must be like public.size=500; seed=0"):
        check(path)


def test_an_axis_that_is_there_twice_is_refused(tmp_path):
    with refused("each axis once"):
        check(numbers(tmp_path, "public.size=2000; public.size=5000"))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("public.siz=2000", "row 2, column where: unknown axis 'public.siz'"),
        ("public.size=2001", "row 2, column where, axis public.size: unknown value '2001'"),
        ("public.size=2000.0", "row 2, column where, axis public.size: unknown value '2000.0'"),
        ("seed=٠", "row 2, column where, axis seed: '٠' must be a whole number from 0"),
        ("seed=first", "row 2, column where, axis seed: 'first' must be a whole number from 0"),
    ],
)
def test_an_axis_or_value_that_no_run_has_is_refused(tmp_path, where, said):
    with refused(said):
        check(numbers(tmp_path, where))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",cifar10,", ",cifar1,", "row 2, column dataset: unknown dataset 'cifar1'; did you mean"),
        (",tally_train,", ",taly_train,", "column method: unknown method 'taly_train'; did you"),
        (",accuracy,", ",acuracy,", "row 2, column metric: unknown metric 'acuracy'; did you mean"),
        (",accuracy,", ",,", "row 2: metric is empty; name one"),
        (",0.5,", ",50,", "row 2, column mean: accuracy = 50 must be a fraction, from 0 to 1"),
        (",0.5,,", ",0.5,2.5,", "row 2, column std: accuracy = 2.5 must be a fraction, from 0"),
        (",n\n", ",N\n", "tally_train.csv: unknown column 'N' (one of: dataset,"),
        (",n\n", ",mean\n", "tally_train.csv: column 'mean' is given twice; give it once"),
        (",0.5,", ",٠.5,", "row 2, column mean: '٠.5' must be a number"),
        (",0.5,,", ",0.5,,1_0", "row 2, column n: '1_0' must be a whole number from 1, or empty"),
    ],
)
def test_a_number_that_no_run_can_be_compared_with_is_refused(tmp_path, old, new, said):
    path = numbers(tmp_path, "")
    check(path)
    path.write_text(path.read_text().replace(old, new))
    with refused(said):
        check(path)


@pytest.mark.parametrize("name", ["record", "redraw"])
def test_commands_check_it_too(tmp_path, name):
    papers, results = tmp_path / "papers", tmp_path / "results"
    for folder in (papers, results):
        folder.mkdir()
    (papers / "tally_train.yaml").write_text((WORKFLOW / "papers/tally_train.yaml").read_text())
    path = numbers(tmp_path / "reference", "public.siz=2000")
    places = ("--papers", papers, "--results", results, "--references", path.parent)
    done = script(name, *map(str, places))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path}, row 2, column where: unknown axis 'public.siz'")
