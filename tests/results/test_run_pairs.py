"""Runs of one spec in two folders: how far their numbers are apart, and since which round."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from support.refusals import refused
from support.sealed import seal

from fedlogit.cli import main
from fedlogit.files import read_json, write_json
from fedlogit.results.run_pairs import counts, differences, pairs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def both(make_run, tmp_path):
    """Return two folders with the same run of four rounds, and how to change the second's."""
    folder = make_run([0.2, 0.4, 0.5, 0.6]).dir
    again = shutil.copytree(folder.parent, tmp_path / "again") / folder.name

    def change(column=None, number=None, value=None, **provenance):
        if column:
            rounds = pd.read_csv(again / "rounds.csv")
            rounds.loc[number - 1, column] = value
            rounds.to_csv(again / "rounds.csv", index=False)
        result = read_json(again / "result.json")
        if number == 4:
            result["final"][column] = value
        result["provenance"] |= provenance
        write_json(again / "result.json", result)
        seal(again)

    return folder.parent, again.parent, change


def _diff(capsys, *arguments):
    code = main(["diff", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_a_copy_is_equal_in_every_round(both, capsys):
    one, other, _ = both
    code, out = _diff(capsys, one, other)
    assert code == 0
    assert "4 of 4" in out
    assert "runs in both folders: 1, equal in every round: 1" in out
    assert "differs by 0.00 points in the median, 0.00 at most" in out


def test_rounds_are_equal_up_to_the_first_that_is_not(both, capsys):
    one, other, change = both
    change("accuracy", 3, 0.51)
    assert "2 of 4" in _diff(capsys, one, other)[1]


def test_a_difference_is_the_second_less_the_first(both, capsys, tmp_path):
    one, other, change = both
    change("accuracy", 4, 0.57)
    change(device="another", engine="native", code_version="0.9.0+other")
    _, out = _diff(capsys, one, other, "--csv", tmp_path / "diff.csv")
    assert "3 of 4" in out
    assert " -3.00 " in out
    assert "differs by 3.00 points in the median, 3.00 at most" in out
    row = pd.read_csv(tmp_path / "diff.csv").iloc[0]
    assert (row["first"], row["second"]) == (0.6, 0.57)
    assert (row["first_device"], row["second_device"]) == ("CPU test", "another")
    assert (row["first_engine"], row["second_engine"]) == ("loop", "native")
    assert row["second_code"] == "0.9.0+other"


def test_a_run_that_diverged_is_not_equal_to_one_that_went_on(make_run, tmp_path):
    """Its two rounds are, of the four of the other; in whichever folder it is."""
    whole = make_run([0.2, 0.4, 0.5, 0.6]).dir.parent
    folder = shutil.copytree(whole, tmp_path / "whole")
    cut = make_run([0.2, 0.4, 0.5, 0.6], rows=2, status="diverged").dir.parent
    for one, other in ((cut, folder), (folder, cut)):
        frame = differences(pairs(one, other), "accuracy")
        assert frame[["equal_rounds", "rounds"]].to_numpy().tolist() == [[2, 4]]
        assert (
            counts(frame, "accuracy", "test") == "runs in both folders: 1, equal in every round: 0"
        )


def test_the_median_and_the_largest_are_of_all_pairs_whichever_is_ahead():
    # 3, 0 and 1 points apart: a median of 1, a mean of 1.33, and none is 3 ahead.
    frame = pd.DataFrame(
        {"difference": [-0.03, 0.0, 0.01], "equal_rounds": [1, 4, 2], "rounds": [4, 4, 4]}
    )
    assert counts(frame, "accuracy", "test") == (
        "runs in both folders: 3, equal in every round: 1;"
        " test accuracy differs by 1.00 points in the median, 3.00 at most"
    )


def test_seconds_and_columns_of_one_version_alone_are_no_difference(both, capsys):
    one, other, change = both
    change("seconds", 1, 1e6)
    change("new_column", 1, 1.0)
    assert "4 of 4" in _diff(capsys, one, other)[1]


def test_other_data_fail(both, capsys):
    one, other, change = both
    change(split_digest="of another partition")
    code, out = _diff(capsys, one, other)
    assert code == 1
    assert out.splitlines()[4].split()[-1] == "differ"


def test_other_normalisations_fail_where_both_are_known(both, capsys, tmp_path):
    one, other, change = both
    change(normalised_by={"mean": [0.5], "std": [0.5]})
    assert _diff(capsys, one, other)[0] == 0  # older results do not have theirs
    older = shutil.copytree(other, tmp_path / "normalised")
    change(normalised_by={"mean": [0.25], "std": [0.5]})
    assert _diff(capsys, older, other)[0] == 1


def test_runs_in_one_folder_alone_are_left_out(both, make_run, capsys):
    one, other, _ = both
    make_run(seed=7)
    assert "runs in both folders: 1," in _diff(capsys, one, other)[1]


def test_folders_without_a_common_run_are_refused(make_run, tmp_path):
    folder = make_run().dir.parent
    (tmp_path / "empty").mkdir()
    with refused("no run there has the spec of a finished run in"):
        main(["diff", str(folder), str(tmp_path / "empty")])
    with refused("is not a folder"):
        main(["diff", str(folder), str(tmp_path / "nowhere")])


def test_what_the_docs_say_of_runs_on_another_cpu_is_in_their_table():
    found = pd.read_csv(ROOT / "results/trained_again_other_cpu.csv")
    points = (100 * found["difference"]).round(6)  # 0.182 - 0.172 is a point, and a little more
    apart = points.abs()
    gained = points[found["run"].str.contains("classes_per_client2.*/fedol/")]
    page = " ".join((ROOT / "docs/randomness.md").read_text().split())
    for said in (
        f"we trained {len(found)} published runs of the comparison",
        f"differs by {apart.median():.2f} points in the median, by at most 1 point in"
        f" {(apart <= 1).sum()} runs and by {apart.max():.2f} points at most",
        f"{points.mean():.2f} points with a standard error of {points.sem():.2f}",
        "gained {:.2f}, {:.2f} and {:.2f}.".format(*gained),
    ):
        assert said in page, said
    assert (found["equal_rounds"] == 0).all()
    assert found["same_bytes"].all()
    assert found["same_data"].all()
    assert (found["first_device"] != found["second_device"]).all()


def test_what_the_docs_say_of_average_on_mnist_is_in_its_table():
    found = pd.read_csv(ROOT / "results/trained_again_average.csv")
    gained, again = 100 * found["difference"], 100 * found["second"]
    page, findings = (
        " ".join((ROOT / "docs" / name).read_text().split())
        for name in ("randomness.md", "findings.md")
    )
    assert "is higher by {:.1f}, {:.1f} and {:.1f} points.".format(*gained) in page
    assert "they have {:.1f}, {:.1f} and {:.1f} instead of".format(*again) in findings
    assert found["same_data"].all()
    assert (found["first_device"] != found["second_device"]).all()


def test_what_the_docs_say_of_published_runs_is_in_their_table():
    found = pd.read_csv(ROOT / "results/trained_again.csv")
    points = (100 * found["difference"]).round(6)  # 0.182 - 0.172 is a point, and a little more
    apart = points.abs()
    page = " ".join((ROOT / "docs/randomness.md").read_text().split())
    for said in (
        f"we trained {len(found)} published runs",
        f"{found['first_code'].nunique()} versions of the code",
        f"accuracy differs by {apart.median():.2f} points in the median",
        f"at most 1 point in {(apart <= 1).sum()} runs",
        f"at most 3 points in {(apart <= 3).sum()}.",
        f"({apart.nlargest(2).iloc[0]:.1f} points)",
        f"({apart.nlargest(2).iloc[1]:.1f} points)",
        f"{points.mean():.2f} points with a standard error of {points.sem():.2f}",
    ):
        assert said in page, said
    assert (found["equal_rounds"] == found["rounds"]).sum() == 1
    assert (~found["same_bytes"]).sum() == 1
    assert found["same_data"].all()


def test_the_heading_says_on_which_samples_accuracy_is(make_run, tmp_path, capsys):
    folder = make_run(text={"vocabulary": 300, "length": 8}).dir.parent
    _, out = _diff(capsys, folder, shutil.copytree(folder, tmp_path / "again"))
    assert out.startswith("Validation accuracy\n")
    assert "; validation accuracy differs by" in out
