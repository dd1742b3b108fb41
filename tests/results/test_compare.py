from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.compared import compare
from support.refusals import refused
from support.sealed import seal

from fedlogit.errors import DataError
from fedlogit.files import read_json, write_json
from fedlogit.papers import expand, load_paper
from fedlogit.results.dvc_metrics import numbers
from fedlogit.results.verdicts.comparison_table import (
    comparison_markdown,
    comparison_table,
    tables_in_percent,
)
from fedlogit.results.verdicts.published import read_reference, unambiguous
from fedlogit.results.verdicts.rules import VERDICT_RULE

REPOSITORY = Path(__file__).parents[2]
HEAD = "table,dataset,partition,method,metric,mean,std"


@pytest.fixture
def reference(tmp_path):
    def make(*lines: str, head: str = HEAD) -> pd.DataFrame:
        path = tmp_path / "reference.csv"
        path.write_text("\n".join([head, *lines]) + "\n")
        return read_reference(path)

    return make


def test_only_a_place_with_different_numbers_is_ambiguous():
    methods = ["average", "uwa", "uwa", "meta_model", "meta_model"]
    numbers = pd.DataFrame({"method": methods, "mean": [0.8, 0.9, 0.9, 0.6, 0.7]})
    assert unambiguous(numbers, ["method"]).to_dict("list") == {
        "method": ["average", "uwa"],
        "mean": [0.8, 0.9],
    }


def test_a_number_is_joined_with_its_runs(make_run, make_artefact, reference):
    runs = [make_run(a, seed=i) for i, a in enumerate([0.80, 0.82, 0.84])]
    other = make_run(0.1, method="uwa")
    row = compare(
        [make_artefact(*runs, other)],
        reference("table1,mnist,k_classes(2),average,accuracy,0.8188,"),
    ).iloc[0]
    assert row["ours"] == pytest.approx(0.82)
    assert row["std"] == pytest.approx(0.02)
    assert row["difference"] == pytest.approx(0.0012)
    assert (row["n"], row["verdict"], row["scale"]) == (3, "inconclusive", "paper")


def test_a_number_names_its_runs_their_hours_and_the_versions_of_their_code(
    make_run, make_artefact, reference
):
    runs = [make_run(0.8, seed=seed) for seed in (0, 1)]
    told = read_json(runs[1].dir / "result.json")
    told["provenance"] |= {"code_version": "0.2.0+def", "wall_seconds": 1800.0}
    told["provenance"] |= {"clients_wall_seconds": 3600.0}
    write_json(runs[1].dir / "result.json", told)
    seal(runs[1].dir)
    lines = [f"table1,mnist,k_classes(2),{method},accuracy,0.8," for method in ("average", "uwa")]
    rows = compare([make_artefact(*runs)], reference(*lines))
    ours, other = rows.to_dict("records")
    assert ours["hours"] == pytest.approx(12.5 / 3600 + 0.5 + 1)
    assert ours["code_versions"] == "0.1.0+abc; 0.2.0+def"
    assert ours["runs"] == " ".join(sorted(run.dir.name.rpartition("-")[2] for run in runs))
    assert np.isnan(other["hours"])
    assert other["code_versions"] == other["runs"] == other["counterpart"] == ""


def test_tables_keep_the_order_of_the_published_numbers(make_run, make_artefact, reference):
    lines = [f"{table},mnist,k_classes(2),average,accuracy,0.8," for table in ("table2", "table1")]
    rows = compare([make_artefact(make_run(0.8))], reference(*lines))
    assert rows["table"].tolist() == ["table2", "table1"]


# Seeds .818, .820, .822: s = .002. With a paper's ± of .002 and n = 3 the 90 % interval is
# ± 2.132 x .002 √(2/3) = .00348; without ± it is ± 2.920 x .002 √(2/3) = .00477; without n, too,
# ± 2.920 x .002 √(4/3) = .00674; with ± but no n ± 6.314 x .002/√2 = .00893.
@pytest.mark.parametrize(
    ("paper", "expected", "half"),
    [
        ("0.8265,0.002,3", "reproduced", 0.00348),
        ("0.8265,,3", "partly reproduced", 0.00477),
        ("0.8265,,", "partly reproduced", 0.00674),
        ("0.8435,,", "inconclusive", 0.00674),
        ("0.815,0.002,", "partly reproduced", 0.00893),
        ("0.87,0.002,3", "not reproduced", 0.00348),
    ],
)
def test_verdicts_use_both_spreads(make_run, make_artefact, reference, paper, expected, half):
    runs = [make_run(a, seed=i) for i, a in enumerate([0.818, 0.820, 0.822])]
    line = f"table1,mnist,k_classes(2),average,accuracy,{paper}"
    row = compare([make_artefact(*runs)], reference(line, head=f"{HEAD},n")).iloc[0]
    assert row["verdict"] == expected
    assert row["high"] - row["difference"] == pytest.approx(half, abs=2e-5)
    assert row["difference"] - row["low"] == pytest.approx(half, abs=2e-5)


# 400 bytes a round for 4 clients are 100 of a client.
def test_counted_bytes_of_one_run_are_judged(make_run, make_artefact, reference):
    line = "table1,mnist,k_classes(2),average,{},{},"
    lines = reference(line.format("bytes_up", 100), line.format("accuracy", 0.5))
    rows = compare([make_artefact(make_run(0.5))], lines)
    assert rows["verdict"].tolist() == ["reproduced", "single run, within"]
    assert rows["low"].isna().all()


def test_a_published_number_of_one_seed_is_compared_with_that_seed(
    make_run, make_artefact, reference
):
    line = "table1,mnist,k_classes(2),average,accuracy,0.6,,seed=1"
    runs = [make_run(a, seed=i) for i, a in enumerate([0.2, 0.6])]
    row = compare([make_artefact(*runs)], reference(line, head=f"{HEAD},where")).iloc[0]
    assert (row["ours"], row["n"]) == (0.6, 1)


def test_numbers_that_differ_only_in_further_axes_all_are_in_dvcs_file(
    make_run, make_artefact, reference
):
    line = "table1,mnist,k_classes(2),average,accuracy,0.6,,"
    lines = (f"{line}seed=0", f"{line}seed=1", line)
    runs = [make_run(a, seed=i) for i, a in enumerate([0.2, 0.6])]
    rows = compare([make_artefact(*runs)], reference(*lines, head=f"{HEAD},where"))
    found = numbers(rows)["table1"]["mnist"]["k_classes(2)"]["average"]
    assert found == {
        "seed=0": {"accuracy": 0.2},
        "seed=1": {"accuracy": 0.6},
        "accuracy": 0.4,
    }


def test_a_shortened_setting_stands_for_the_published_one(make_run, make_artefact, reference):
    runs = [make_run(0.1 * size, public={"size": size}) for size in (2, 5)]
    axes = {"public.size": {"20": 2, "50": 5}}
    artefact = make_artefact(*runs, scale="quick", stands_for={"axes": axes})
    line = "table1,mnist,k_classes(2),average,accuracy,0.5,,public.size={}"
    sizes = (20, 50, 2, 5, 7)
    rows = compare([artefact], reference(*map(line.format, sizes), head=f"{HEAD},where"))
    # 2 and 5 are there under their own names, too: that is another published number's setting.
    assert rows["ours"].round(3).tolist()[:4] == [0.2, 0.5, 0.2, 0.5]
    assert rows["counterpart"].tolist()[:2] == ["public.size=2", "public.size=5"]
    assert rows["verdict"].tolist() == ["reduced scale"] * 4 + ["not run"]
    assert "| public.size=2 " in comparison_markdown(rows, [artefact])
    found = numbers(rows)["table1"]["mnist"]["k_classes(2)"]["average"]["public.size=20"]
    assert found == {"public.size=2": {"accuracy": 0.2}}


def test_a_table_on_other_data_stands_for_another_and_is_not_judged(
    make_run, make_artefact, reference
):
    run = make_run(0.5, dataset="digits")
    standing = {"table": "table1", "axes": {"dataset": {"mnist": "digits"}}}
    standin = make_artefact(run, id="standin", stands_for=standing)
    line = reference("table1,mnist,k_classes(2),average,accuracy,0.5,")
    row = compare([standin], line).iloc[0]
    assert (row["ours"], row["verdict"]) == (0.5, "stand-in data")
    assert row["counterpart"] == "standin; dataset=digits"
    own = compare([standin, make_artefact(make_run(0.4))], line).iloc[0]
    assert (own["ours"], own["counterpart"]) == (0.4, "")


def test_runs_without_an_axis_of_a_number_are_not_its_runs(make_run, make_artefact, reference):
    line = "table1,mnist,k_classes(2),average,accuracy,0.5,,public.size=60"
    row = compare([make_artefact(make_run(0.5))], reference(line, head=f"{HEAD},where")).iloc[0]
    assert (row["n"], row["verdict"]) == (0, "not run")


def test_one_run_on_stand_in_data_is_enough_for_no_verdict(make_run, make_artefact, reference):
    runs = [make_run(0.5, seed=0), make_run(0.5, seed=1), make_run(0.5, seed=2, note="a stand-in")]
    line = "table1,mnist,k_classes(2),average,accuracy,0.5,"
    row = compare([make_artefact(*runs)], reference(line)).iloc[0]
    assert (row["n"], row["verdict"]) == (3, "stand-in data")


def test_bytes_are_judged_whatever_the_samples_are(make_run, make_artefact, reference):
    line = "table1,mnist,k_classes(2),average,{},{},"
    lines = reference(line.format("bytes_up", 100), line.format("accuracy", 0.5))
    rows = compare([make_artefact(make_run(0.5, note="a stand-in"))], lines)
    assert rows["verdict"].tolist() == ["reproduced", "stand-in data"]


@pytest.mark.parametrize(
    ("scale", "changes", "expected"),
    [
        ("quick", {}, "reduced scale"),
        ("paper", {"note": "a stand-in"}, "stand-in data"),
        ("paper", {"status": "diverged"}, "diverged"),
        ("paper", {"method": "uwa"}, "not run"),
    ],
)
def test_what_cannot_be_judged_says_why(
    make_run, make_artefact, reference, scale, changes, expected
):
    line = reference("table1,mnist,k_classes(2),average,accuracy,0.5,")
    rows = compare([make_artefact(make_run(0.5, **changes), scale=scale)], line)
    assert rows["verdict"].item() == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "other scale"),
        ({"note": "a stand-in"}, "stand-in data"),
        ({"status": "diverged"}, "diverged"),
    ],
)
def test_a_scale_of_the_papers_size_is_not_called_reduced(
    make_run, make_artefact, reference, changes, expected
):
    line = reference("table1,mnist,k_classes(2),average,accuracy,0.5,")
    of = make_artefact(make_run(0.5, **changes), scale="ten_seeds", reduced=False)
    assert compare([of], line)["verdict"].item() == expected


def test_a_table_that_was_not_made_is_not_run(make_run, make_artefact, reference):
    rows = compare([make_artefact(make_run())], reference("table9,mnist,,average,accuracy,0.5,"))
    assert rows["verdict"].item() == "not run"
    assert math.isnan(rows["ours"].item())


def test_a_number_after_a_round_that_no_run_has_is_not_run(make_run, make_artefact, reference):
    line = "table1,mnist,k_classes(2),average,accuracy@9,0.6,"
    row = compare([make_artefact(make_run([0.4, 0.5, 0.6]))], reference(line)).iloc[0]
    assert (row["verdict"], row["n"]) == ("not run", 0)


def test_numbers_without_runs_are_told_in_a_sentence(make_run, make_artefact, reference):
    lines = (
        "table1,mnist,k_classes(2),average,accuracy,0.5,",
        "table9,mnist,,average,accuracy,0.5,",
        "table9,mnist,,uwa,accuracy,0.5,",
    )
    artefact = make_artefact(make_run(0.5))
    rows = compare([artefact], reference(*lines))
    text = comparison_markdown(rows, [artefact])
    assert "Not run at this scale: 2 of 3 published numbers (table9 on mnist: 2)." in text
    assert text.count("| mnist") == 1


def test_tables_and_data_sets_are_printed_by_name_and_no_column_is_empty(
    make_run, make_artefact, reference
):
    lines = ("table1,mnist,k_classes(2),average,accuracy,0.5,", "table1,cifar10,,uwa,accuracy,0.5,")
    labels = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
    named = make_artefact(make_run(0.5), title="Table 1: accuracy", labels=labels)
    text = comparison_markdown(compare([named], reference(*lines)), [named])
    assert "(Table 1 on CIFAR-10: 1)" in text
    assert "Setting" not in text


def test_an_empty_partition_matches_any(make_run, make_artefact, reference):
    run = make_run(0.98, method="fully_informed", partition="iid")
    rows = compare(
        [make_artefact(run)], reference("table1,mnist,,fully_informed,accuracy,0.9797,0.0018")
    )
    assert rows["verdict"].item() == "single run, within"


def test_one_seed_is_told(make_run, make_artefact, reference):
    artefact = make_artefact(make_run(0.82))
    rows = compare([artefact], reference("table1,mnist,k_classes(2),average,accuracy,0.8188,"))
    text = comparison_markdown(rows, [artefact])
    cells = [cell.strip() for cell in text.splitlines()[4].strip("|").split("|")]
    shown = [
        "mnist",
        "2 classes",
        "Average",
        "0.8188",
        "0.8200",
        "1",
        "+0.0012",
        "single run, within",
    ]
    assert cells == shown
    assert "scale: paper; 1 seed; device: CPU test; engine: loop" in text
    assert VERDICT_RULE in text


def test_a_row_of_several_runs_shows_its_interval(make_run, make_artefact, reference):
    artefact = make_artefact(*(make_run(a, seed=i) for i, a in enumerate([0.818, 0.820, 0.822])))
    line = "table1,mnist,k_classes(2),average,accuracy,0.81,,3"
    rows = compare([artefact], reference(line, head=f"{HEAD},n"))
    shown = comparison_table(rows, {}).iloc[0]
    # .01 ± .00477, as above
    assert shown["90 % interval"] == "+0.0052 to +0.0148"
    assert (shown["n"], shown["Verdict"]) == ("3", "partly reproduced")


def test_shares_are_in_per_cent_where_the_table_prints_them_so(make_run, make_artefact, reference):
    runs = [make_run(a, seed=i) for i, a in enumerate([0.818, 0.820, 0.822])]
    artefact = make_artefact(*runs, options={"percent": True})
    share = "table1,mnist,k_classes(2),average,accuracy,0.81,0.02,3"
    rows = compare([artefact], reference(share, head=f"{HEAD},n"))
    text = comparison_markdown(rows, [artefact])
    assert "| 81.00 ± 2.00 % | 82.00 ± 0.20 % |" in text
    assert "+1.00 |" in text
    assert "Differences of numbers in %, and their intervals, are in percentage points." in text
    plain = comparison_markdown(rows, [make_artefact(*runs)])
    assert "| 0.8100 ± 0.0200 | 0.8200 ± 0.0020 |" in plain
    assert "percentage points" not in plain
    count = "table1,mnist,k_classes(2),average,bytes_up,100,,"
    counted = compare([artefact], reference(count, head=f"{HEAD},n"))
    assert "%" not in comparison_table(counted, {}, percent={"table1"}).iloc[0]["Ours"]


def test_a_table_that_stands_for_another_decides_how_its_numbers_are_printed(
    make_run, make_artefact
):
    standing = make_artefact(
        make_run(), id="other", options={"percent": True}, stands_for={"table": "table9"}
    )
    assert tables_in_percent([standing, make_artefact(make_run())]) == {"table9"}


@pytest.mark.parametrize("ours", [0.81, 0.81 - 1e-9, 0.81 + 1e-9])
def test_a_difference_that_is_printed_as_zero_has_no_sign(make_run, make_artefact, reference, ours):
    line = "table1,mnist,k_classes(2),average,accuracy,0.81,"
    rows = compare([make_artefact(make_run(ours))], reference(line))
    assert comparison_table(rows, {}).iloc[0]["Difference"] == "0.0000"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("table1,mnist,,average,accuracy,81.88,", "column mean: accuracy = 81.88 must be a fract"),
        ("table1,mnist,,average,accuracy,many,", "row 2, column mean: 'many' must be a number"),
        ("table1,mnist,,average,accuracy,-0.5,", "row 2, column mean: accuracy = -0.5 must be a"),
        ("table1,mnist,,average,bytes_up,many,", "row 2, column mean: 'many' must be a number"),
        ("table1,mnist,,average,bytes_up,inf,", "row 2, column mean: 'inf' must be a number"),
        ("table1,mnist,,average,accuracy,,", "row 2, column mean: '' must be a number"),
        (
            "table1,mnist,,average,accuracy,0.5,-1",
            "row 2, column std: '-1' must be a number from 0",
        ),
        ("table1,mnist,,average,accuracy,0.5,inf", "row 2, column std: 'inf' must be a number"),
        ("table1,mnist,,average,accuracy,0.5,abc", "row 2, column std: 'abc' must be a number"),
        ("table1,mnist,,average,accuracy,0.5,2.1", "column std: accuracy = 2.1 must be a fraction"),
        ("table1,mnist,,average,,0.5,", "row 2: metric is empty; name one"),
    ],
)
def test_a_wrong_reference_names_the_row(reference, line, message):
    with pytest.raises(DataError, match=message):
        reference(line)


@pytest.mark.parametrize("n", ["0", "-3", "1.5", "abc", "inf"])
def test_a_wrong_number_of_runs_names_the_row(reference, n):
    with refused(f"row 2, column n: {n!r} must be a whole number from 1, or empty"):
        reference(f"table1,mnist,,average,accuracy,0.5,0.1,{n}", head=f"{HEAD},n")


def test_a_row_with_a_cell_too_many_is_refused(reference):
    with refused("row 2 has more cells than there are columns"):
        reference("table1,mnist,,average,accuracy,0.5,0.1,3")


def test_comments_and_empty_lines_count_as_rows_of_a_reference(reference):
    good = "table1,mnist,,average,accuracy,0.5,"
    wrong = good.replace("0.5", "50").replace("average", "uwa")
    with refused("row 7, column mean: accuracy = 50 must be a fraction, from 0 to 1"):
        reference("# Table 1", good, "", "# as printed", wrong, head=f"# From the paper\n{HEAD}")
    lines = ("# Table 1", good, "", "# as printed", good)
    with refused("row 7 is of the same number as row 4: table1, mnist, average, accuracy; give"):
        reference(*lines, head=f"# From the paper\n{HEAD}")


def test_a_reference_without_a_column_names_it(reference, tmp_path):
    with pytest.raises(DataError, match="column 'std' is missing"):
        reference("table1,mnist,,average,accuracy,0.5", head=HEAD.removesuffix(",std"))
    with pytest.raises(DataError, match=r"cannot read .*none.csv"):
        read_reference(tmp_path / "none.csv")


def test_who_to_trust_has_all_published_numbers_under_the_names_of_its_grid():
    published = read_reference(REPOSITORY / "workflow/reference/who_to_trust.csv")
    assert len(published) == 20  # Table 1: 2 x 3 x 3; §4.3: 2
    # Column sums of Table 1 as printed: for k=2, .8188 + .9454 + .9597 + .3093 + .4881 + .6258.
    sums = published.groupby("partition")["mean"].sum()
    assert sums["k_classes(2)"] == pytest.approx(4.1471)
    assert sums["k_classes(5)"] == pytest.approx(5.1467)
    assert sums["k_classes(8)"] == pytest.approx(5.4003)
    paper = load_paper("who_to_trust", REPOSITORY / "workflow/papers")
    table1 = next(a for a in expand(paper, "paper", seeds=(0,)) if a.id == "table1")
    keys = ["dataset", "partition", "method"]
    grid = {tuple(cell.axes.get(key, "iid") for key in keys) for cell in table1.cells}
    assert set(published.replace("", "iid")[keys].itertuples(index=False, name=None)) == grid
