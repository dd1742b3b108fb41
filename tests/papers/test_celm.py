"""The paper file of CELM says what the paper says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fedlogit.papers import expand, load_paper
from fedlogit.results.verdicts.claim_tests import TESTS, Comparison
from fedlogit.results.verdicts.claim_tests import cells as cells_of

ROOT = Path(__file__).resolve().parents[2]
PAPER = load_paper("celm", ROOT / "workflow" / "papers")


def cells(id_: str, scale: str = "paper"):
    return next(a for a in expand(PAPER, scale) if a.id == id_).cells


def test_hyper_parameters_of_section_5():
    spec = next(c.spec for c in cells("table1") if c.axes["dataset"] == "fashion_mnist")
    assert (spec.clients, spec.rounds, spec.batch, spec.local.epochs) == (5, 100, 128, 1)
    assert (spec.optimizer.name, spec.optimizer.lr, spec.optimizer.momentum) == ("sgd", 0.1, 0)
    assert spec.schedule.factor(50) == 1
    assert spec.schedule.factor(51) == pytest.approx(0.1)
    cifar = next(c.spec for c in cells("table1") if c.axes["dataset"] == "cifar10")
    isic = cells("table1_fedisic")[0].spec
    for spec in (cifar, isic):
        assert spec.rounds == 200
        assert [spec.schedule.factor(r) for r in (50, 51, 200)] == pytest.approx([1, 0.1, 0.1])
    assert (isic.clients, isic.rounds, isic.optimizer.lr) == (6, 200, 0.01)
    celm = next(c.spec for c in cells("table1") if c.axes["method"] == "celm")
    assert celm.method.params["steps"] == 200
    assert celm.method.params["warm_up"] == 0.05


@pytest.mark.parametrize(
    ("id_", "count"),
    [
        ("table1", 2 * 5 * 5 * 3),
        ("table2", 2 * 5 * 3),
        ("table3", 2 * 2 * 4 * 3),
        ("table4", 15),
        ("table5", 2 * 5 * 3),
        ("table6", 2 * 3 * 5 * 3),
        ("table7", 5 * 5 * 3),
        ("table8", 4 * 5 * 3),
        ("table4_rounds", 4),
        ("table4_switches", 2 * 8 + 2 * 3),
        ("switches_sls", 12 + 3),
        ("switches_cifar10", 2 * 3),
        ("switches_cifar10_other", 2 * 2 + 1),
        ("switches_cifar10_schedule", 2 * 4 + 2 * 5),
        ("switches_cffl", 2 * 5 * 3),
        ("switches_twenty", 2 * (9 + 3)),
        ("switches_maverick", 4 + 7 + 5),
        ("switches_riders", 5 + 9 + 2 * 4 - 1),
        ("switches_warm_up_riders", 3 * 3),
    ],
)
def test_every_table_has_its_cells(id_, count):
    assert len(cells(id_)) == count


def test_a_warm_up_of_5_percent_is_table_1_s_run():
    shared = {c.spec.digest() for c in cells("table1")}
    five = [c for c in cells("table8") if c.axes["method"] == "celm(warm_up=0.05)"]
    assert len(five) == 4 * 3
    assert {c.spec.digest() for c in five} <= shared


def test_one_decay_is_what_the_rule_that_was_fixed_before_its_runs_says():
    """docs/findings.md: over six cells it must be nearer to the paper by more than a point."""
    keys = ["partition", "method"]
    ours = pd.read_csv(ROOT / "results/tables/celm/paper/switches_cifar10_schedule.csv")
    paper = pd.read_csv(ROOT / "workflow/reference/celm.csv")
    paper = paper[(paper["table"] == "table1") & (paper["dataset"] == "cifar10")]
    both = ours.merge(paper, on=keys, suffixes=("", "_paper"), validate="many_to_one")
    under_pls = both["partition"].eq("pls_cifar10") & both["method"].isin(["fedavg", "celm"])
    six = both[both["partition"].eq("sls") | under_pls]
    distance = (
        (six["mean"] - six["mean_paper"]).abs().groupby(six["schedule.once"]).agg(["mean", "size"])
    )
    assert distance["size"].tolist() == [6, 6]
    every_50, once = distance["mean"]
    assert every_50 - once > 0.01
    said = f"the mean distance is {100 * once:.1f} points instead of {100 * every_50:.1f}"
    assert said in (ROOT / "docs/findings.md").read_text()


def test_the_numbers_of_cifar10_in_the_findings_are_those_of_the_files():
    """Each row of the table in docs/findings.md, cell by cell, to the digit that it shows."""
    tables = ROOT / "results/tables/celm/paper"
    once = pd.read_csv(tables / "switches_cifar10_schedule.csv")
    whole = pd.read_csv(tables / "table1.csv")
    paper = pd.read_csv(ROOT / "workflow/reference/celm.csv")
    whole, paper = (t[t["dataset"] == "cifar10"] for t in (whole, paper))
    paper = paper[paper["table"] == "table1"]
    one, every = (once[once["schedule.once"] == value] for value in (True, False))
    lines = (ROOT / "docs/findings.md").read_text().split("| | FedAvg | CFFL | CGSV |")[1]
    assert [line.strip(" |").split(" | ") for line in lines.splitlines()[2:10]] == [
        ["SLS, the paper's", *_shown(paper, "sls", spread=False)],
        ["one decay, three seeds", *_shown(whole, "sls", spread=True)],
        ["one decay, seed 42", *_shown(one, "sls", spread=False)],
        ["one every 50 rounds", *_shown(every, "sls", spread=False)],
        ["PLS, the paper's", *_shown(paper, "pls_cifar10", spread=True)],
        ["one decay, three seeds", *_shown(whole, "pls_cifar10", spread=True)],
        ["one decay, seed 42", *_shown(one, "pls_cifar10", spread=False)],
        ["one every 50 rounds", *_shown(every, "pls_cifar10", spread=False)],
    ]


def _shown(table: pd.DataFrame, partition: str, *, spread: bool) -> list[str]:
    """Return the methods' accuracies of a partition in %, as the findings show them."""
    rows = table[table["partition"] == partition].set_index("method")
    shown = []
    for method in ("fedavg", "cffl", "cgsv", "shapfed", "celm"):
        if method not in rows.index:
            shown.append("–")
            continue
        mean, std = (
            round(100 * rows.loc[method, key], 6) for key in ("mean", "std")
        )  # not 28.749…
        shown.append(f"{mean:.1f} ± {std:.1f}" if spread else f"{mean:.1f}")
    return shown


def test_published_numbers_belong_to_cells_that_are_run():
    published = pd.read_csv(ROOT / "workflow/reference/celm.csv")
    for table, rows in published.groupby("table"):
        known = {
            tuple(c.axes[axis] for axis in ("dataset", "partition", "method")) for c in cells(table)
        }
        found = set(rows[["dataset", "partition", "method"]].itertuples(index=False, name=None))
        assert found == known, table


def published() -> pd.DataFrame:
    """Return the paper's means as if each were a run of one seed."""
    frame = pd.read_csv(ROOT / "workflow/reference/celm.csv")
    axes = ["table", "dataset", "partition", "method"]
    wide = frame.pivot_table(index=axes, columns="metric", values="mean").reset_index()
    nothing = pd.Series([()] * len(wide), wide.index, dtype=object)
    return wide.assign(seed=42, diverged=False, missing=False, lacks=nothing)


NOT_IN_ITS_TABLES = {
    "contrast",
    "fewer_steps",
    "later_evidence_worse",
    "local_heads",
    "longer_estimates_better",
    "more_than_similarity",
    "more_than_size",
    "more_than_size_twenty",
    "no_more_bytes",
    "slower",
}
"""Claims about a picture, or that the paper has no numbers for."""


@pytest.mark.parametrize("key", sorted(PAPER.claims.keys() - NOT_IN_ITS_TABLES))
def test_every_claim_agrees_with_the_papers_own_numbers(key):
    claim, numbers = PAPER.claims[key], published()
    options = Comparison.read(claim.options, key)
    frame = numbers[numbers["table"] == claim.source]
    found = [
        evidence
        for cell in cells_of(options, frame)
        for evidence in TESTS[claim.test](options, cell, frame, str)
    ]
    assert found
    assert all(evidence.agrees for evidence in found), [e.text for e in found if not e.agrees]


def test_rounds_of_table_4_are_those_of_the_warm_up():
    (run, *_) = cells("table4_rounds")
    assert run.spec.method.params["warm_up"] * run.spec.rounds == 5
    assert {f"jsd@{r}" for r in range(1, 6)} <= set(PAPER.tables["table4_rounds"].metrics)
    assert {c.spec.digest() for c in cells("table4_rounds")} <= {
        c.spec.digest() for c in cells("table4")
    }


def test_table_4_with_switches_needs_no_runs_of_its_own_on_fashion_mnist():
    others = ("switches", "models", "table8", "figure6")
    known = {c.spec.digest() for id_ in others for c in cells(id_)}
    own = [c.spec for c in cells("table4_switches") if c.spec.dataset == "fashion_mnist"]
    assert {spec.digest() for spec in own} <= known


def test_table_4_and_figure_5_share_the_runs_of_fed_isic2019():
    whole, table4, figure5 = (
        {c.spec.digest() for c in cells(id_) if c.spec.dataset == "fed_isic2019"}
        for id_ in ("table1_fedisic", "table4", "figure5")
    )
    assert table4
    assert table4 <= whole
    assert figure5
    assert figure5 <= table4


def test_table_4_of_cifar10_is_of_the_warm_up_of_table_1_s_runs():
    whole, warm_up = (
        [c.spec for c in cells(id_) if c.spec.dataset == "cifar10" and c.spec.method.name == "celm"]
        for id_ in ("table1", "table4")
    )
    assert {spec.rounds for spec in warm_up} == {round(0.05 * spec.rounds) for spec in whole}
    assert all(spec.rounds < spec.schedule.every for spec in warm_up), "the rate has not fallen yet"
    ends = {"rounds", "method", "evaluation", "schedule"}
    left = {spec.model_dump_json(exclude=ends) for spec in warm_up}
    assert left <= {spec.model_dump_json(exclude=ends) for spec in whole}
    for spec in (*whole, *warm_up):
        assert spec.method.params["warm_up"] == (1 if spec.rounds == 10 else 0.05)
        assert spec.schedule.every > 10  # no decay in either
