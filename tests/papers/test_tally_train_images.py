"""The paper file of TallyTrain says what its tables on images are made of."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fedlogit.papers import expand, load_paper
from fedlogit.results.verdicts import claim_evidence, claim_names, claims

ROOT = Path(__file__).resolve().parents[2]
PAPER = load_paper("tally_train", ROOT / "workflow" / "papers")


def specs(id_: str, scale: str = "paper"):
    return [cell.spec for a in expand(PAPER, scale) if a.id == id_ for cell in a.cells]


def told(id_: str, *names: str, scale: str = "paper") -> list[tuple]:
    """Return these settings of each run of seed 0, in the table's order."""
    return [tuple(map(s.setting, names)) for s in specs(id_, scale) if s.seed == 0]


def test_common_settings_of_appendix_a():
    for id_ in ("table1", "table2", "table5", "table6", "ablation", "table11"):
        assert specs(id_), id_
        for spec in specs(id_):
            assert (spec.clients, spec.rounds, spec.batch, spec.local.steps) == (10, 3000, 32, 5)
            o = spec.optimizer
            assert (o.name, o.lr, o.weight_decay, o.reset_every) == ("adamw", 1e-3, 5e-4, "run")
            assert spec.partition.params["alpha"] == 0.5
            assert spec.public.size == {"cifar10": 2000, "cifar100": 10_000}[spec.dataset]
            assert not spec.same_init
            assert (spec.evaluation.every, spec.evaluation.tail) == (10, 100)
            assert spec.models[0].name == "resnet18"


def test_table_4_keeps_the_number_of_steps():
    names = ("dataset", "local.steps", "rounds", "method.probes_per_round", "method.warm_up")
    assert told("table4", "optimizer.lr", *names) == [
        (0.001, "cifar100", 5, 3000, 16, 300),
        (0.003, "cifar100", 5, 3000, 16, 300),
        (0.01, "cifar100", 5, 3000, 16, 300),
        (0.001, "cifar100", 50, 300, 128, 30),
        (0.003, "cifar100", 50, 300, 128, 30),
    ]
    assert {s.local.steps * s.rounds for s in specs("table4")} == {15_000}
    assert len(specs("table4")) == 15  # three seeds, so that its claim can be decided


def test_table_5_has_one_three_and_five_ranks():
    names = ("dataset", "method.signal", "method.k", "method.probes_per_round", "method.warm_up")
    assert told("table5", *names) == [
        ("cifar10", "votes", 1, 16, 300),  # what RC-FD is for one rank
        ("cifar10", "top_k", 3, 16, 300),
        ("cifar10", "top_k", 5, 16, 300),
    ]
    assert specs("table5")[0] in specs("table2"), "a run that is there already"
    assert len(specs("table5")) == 9  # three seeds, as Table 4


def test_table_6_sweeps_the_probes_of_a_round():
    found = told("table6", "dataset", "method.probes_per_round", "method.label_weight")
    assert found == [("cifar10", n, 0.5) for n in (4, 16, 64, 256)] + [
        ("cifar100", n, 0.5) for n in (8, 32, 128)
    ]
    assert {s.method.params["signal"] for s in specs("table6")} == {"votes"}


def test_the_ablation_of_appendix_d():
    names = ("dataset", "method.probes_per_round", "method.emphasis", "method.asymmetry")
    assert told("ablation", *names) == [
        ("cifar100", 32, beta_dis, beta_asy)
        for beta_dis, beta_asy in ((0, 0), (2, 0), (0, 0.5), (2, 0.5))
    ]


def test_table_11_is_the_full_grid():
    names = ("dataset", "method.merge_every", "method.proximal")
    assert sorted(told("table11", *names)) == [
        (dataset, m, mu)
        for dataset in ("cifar10", "cifar100")
        for m in (50, 200)
        for mu in (0.001, 0.01, 0.1)
    ]
    assert len(specs("table11")) == 36  # "36 runs total"
    assert told("table11", "method.signal", "method.warm_up", "method.label_weight") == (
        [("none", 0, 0.0)] * 12
    )


@pytest.mark.parametrize(
    ("scale", "names"), [("paper", ["resnet18", "tf_cnn"]), ("extended", ["lenet_bn", "tf_cnn"])]
)
def test_two_architectures_by_turns(scale, names):
    found = [spec for spec in specs("mixed", scale) if spec.seed == 0]
    assert [s.method.name for s in found] == ["tally_train", "tally_train", "local"]
    assert all([model.name for model in s.models] == names for s in found)
    assert all(s.method.params.get("merge_every") is None for s in found)


def test_every_merge_of_the_paper_is_tested_and_a_tenth_of_its_rounds():
    """An untested merge would hide FedAvg's peaks, between which its accuracy falls."""
    spacings = set()
    for spec in specs("table2"):
        spacing = spec.method.params.get("merge_every")
        spacings.add(spacing)
        assert all(spec.tests_in(r) for r in range(spacing, 3001, spacing)) if spacing else True
        assert sum(map(spec.tests_in, range(1, 3001))) == 290 + 100
    assert spacings == {None, 50, 200, 500}


@pytest.mark.parametrize("scale", ["quick", "extended"])
def test_the_tail_of_a_reduced_scale_has_whole_cycles_of_merges(scale):
    spacings = set()
    for artefact in expand(PAPER, scale):
        for spec in (cell.spec for cell in artefact.cells if cell.spec.rounds > 16):
            spacing, tail = spec.method.params.get("merge_every") or 1, spec.evaluation.tail
            assert tail % spacing == 0
            assert spec.rounds % spacing == 0, "the tail begins where a cycle does"
            spacings.add(spacing)
    assert spacings == {1, 5, 20} | ({40} if scale == "extended" else set())


def test_what_stands_in_for_data_is_not_trained_beside_them():
    tables = {"table3_tokens", "table9_standin", "table10_standin"}
    standins = tables | {"lm_accuracy_tokens", "lm_perplexity_tokens"}
    assert {a.id for a in expand(PAPER, "paper_standins")} == standins
    planned = {a.id for a in expand(PAPER, "paper")}
    assert planned == set(PAPER.artefacts) - standins - {"figure3_standin"}


@pytest.mark.parametrize("scale", ["paper", "extended"])
def test_a_trimmed_mean_is_no_median(scale):
    trims = {
        (s.clients, s.method.params["trim"])
        for s in specs("byzantine", scale) + specs("scaling_attack", scale)
    }
    assert trims == {(10 if scale == "paper" else 5, 0.2)}


@pytest.mark.parametrize(
    ("scale", "adversaries", "runs"), [("paper", (1, 4), 8), ("extended", (1,), 4)]
)
def test_a_scaling_attack_and_votes_that_have_no_scale(scale, adversaries, runs):
    names = ("signal", "rule", "adversaries", "attack", "magnitude")
    found = told("scaling_attack", *(f"method.{name}" for name in names), scale=scale)
    rules = ("mean", "trimmed_mean", "median")
    assert sorted(found) == sorted(
        [("votes", "mean", n, "confident", 1.0) for n in adversaries]
        + [("probabilities", rule, n, "confident", 100.0) for n in adversaries for rule in rules]
    )
    votes = {
        s.digest()
        for s in specs("scaling_attack", scale)
        if s.method.params["signal"] == "votes" and s.seed == 0
    }
    assert votes < {s.digest() for s in specs("byzantine", scale)}, "runs that are there already"
    assert len(found) == runs


@pytest.mark.parametrize(("scale", "peers", "most"), [("paper", 10, 4), ("extended", 5, 1)])
def test_fewer_than_half_of_the_peers_are_byzantine_and_the_runs_are_those_of_other_tables(
    scale, peers, most
):
    found = specs("tolerance", scale)
    assert {s.clients for s in found} == {peers}
    assert max(s.method.params["adversaries"] for s in found) == most < peers // 2
    others = {s.digest() for table in ("table2", "byzantine") for s in specs(table, scale)}
    assert {s.digest() for s in found if s.seed == 0} <= others


@pytest.mark.parametrize("scale", ["paper", "extended"])
def test_what_is_beside_fedprox_is_in_other_tables(scale):
    others = {s.digest() for table in ("table2", "table11") for s in specs(table, scale)}
    found = [s.digest() for s in specs("bridge_and_fedprox", scale)]
    assert set(found) <= others
    assert len(found) == 7 * (5 if scale == "extended" else 3)


@pytest.mark.parametrize("scale", ["paper", "quick", "extended"])
def test_every_claim_speaks_of_runs_that_the_scale_has(scale, monkeypatch):
    """Each claim whose table is made at a scale finds both of its sides there.

    At quick Table 2 has neither FedProx, FedDF nor FedAvg's rarest merges, and Table 1 has only
    CIFAR-10; at paper, only CIFAR-100.
    """
    seen, lacking = set(), set()
    monkeypatch.setattr(claim_names, "measured_on", lambda artefact: "test")
    for artefact in expand(PAPER, scale):
        read = artefact.as_artefact("runs")
        options = [c.options for c in read.claims.values()]
        sides = [o for given in options for o in (given, given["left"], given["right"])]
        metrics = {o.get("metric", "accuracy") for o in sides}
        frame = pd.DataFrame([run.axes for run in read.runs])
        frame = frame.assign(diverged=False, dataset_note="", **dict.fromkeys(metrics, 0.5))
        frame["lacks"] = [()] * len(frame)
        monkeypatch.setattr(claim_evidence, "collect", lambda artefact, frame=frame, **_: frame)
        rows = claims.judge_claims(read)
        seen |= set(rows["id"])
        silent = rows["evidence"].str.contains("not run|not planned") | (rows["evidence"] == "")
        lacking |= set(rows["id"][silent])
    of_table1 = {"hard_beats_soft", "votes_add", "soft_labels_do_not"}
    of_fedprox = {f"fedprox_{often}{peak}" for often in (50, 200) for peak in ("", "_peak")}
    of_table2 = {"rarer_merges", "feddf_collapse", *of_fedprox}
    without = {
        "quick": {*of_table1, "tail_above_peak", *of_table2},
        "paper": {f"{name}_cifar10" for name in of_table1},
    }
    assert lacking == without.get(scale, set())
    if scale == "paper":
        assert seen == set(PAPER.claims)
