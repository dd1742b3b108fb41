"""The paper file of TallyTrain says what §4.6 and appendix I say of the language model."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch

from fedlogit import models
from fedlogit.papers import expand, load_paper

ROOT = Path(__file__).resolve().parents[2]
PAPER = load_paper("tally_train", ROOT / "workflow" / "papers")


def cells(id_: str, scale: str = "paper"):
    return next(a for a in expand(PAPER, scale) if a.id == id_).cells


@pytest.mark.parametrize("table", ["table3", "table3_tokens"])
def test_hyper_parameters_of_appendix_i(table):
    found = cells(table, "paper" if table == "table3" else "paper_standins")
    assert len(found) == 5 * 3
    for spec in (c.spec for c in found):
        assert (spec.clients, spec.rounds, spec.batch, spec.local.steps) == (8, 3000, 16, 5)
        assert (spec.text.vocabulary, spec.text.length, spec.text.evaluation_split) == (
            2048,
            256,
            "valid",
        )
        o = spec.optimizer
        assert (o.name, o.lr, o.beta1, o.beta2) == ("adamw", 3e-4, 0.9, 0.999)
        assert (o.weight_decay, o.clip, o.reset_every) == (0.01, 1.0, "run")
        assert o.zero_nonfinite_grads
        assert spec.models[0].params == {
            "layers": 6, "width": 256, "heads": 8, "expansion": 4, "context": 256,
        }  # fmt: skip
        assert spec.partition.name == "contiguous"
        assert spec.public.last
        assert not spec.same_init
        assert (spec.evaluation.every, spec.evaluation.tail) == (10, 600)


def test_its_scores_are_of_the_validation_split_and_those_of_images_of_the_test_split():
    assert {cell.spec.samples for cell in cells("table3")} == {"validation"}
    assert {cell.spec.samples for cell in cells("table2")} == {"test"}
    samples = {"validation": {"wikitext2", "wikitext2_tokens", "sklearn_docs"}}
    samples["test"] = PAPER.datasets.keys() - samples["validation"]
    for said, names in samples.items():
        assert {PAPER.samples(name) for name in names} == {said}


@pytest.mark.slow
def test_the_model_has_the_published_number_of_parameters():
    """The count that Table 3's gigabytes of merges come from; weights without numbers."""
    spec = cells("table3")[0].spec
    shape, classes = (spec.text.length,), spec.text.vocabulary
    with torch.device("meta"):
        model = models.get(spec.models[0]).network(shape, classes)
    assert sum(p.numel() for p in model.parameters()) == 5_839_360
    assert {p.device.type for p in model.parameters()} == {"meta"}


def test_methods_of_table_3():
    params = {c.axes["method"]: c.spec.method.params for c in cells("table3")}
    told = ("signal", "probes_per_round", "warm_up", "label_weight", "merge_every")
    assert {m: tuple(p[key] for key in told) for m, p in params.items()} == {
        "lm_tally_train": ("votes", 32, 300, 0.5, None),
        "lm_fedmd": ("probabilities", 32, 300, 0.5, None),
        "lm_fedavg": ("none", 16, 0, 0.0, 200),
        "lm_bridge": ("votes", 32, 300, 0.5, 200),
        "lm_fedavg_1": ("none", 16, 0, 0.0, 1),
    }
    merging = [p["merge_cost"] for p in params.values() if p["merge_every"]]
    assert merging == ["mesh"] * 3


def test_the_public_set_is_five_per_cent_of_the_tokens():
    assert cells("table3")[0].spec.public.size == 177_689 // 256
    assert cells("table3_tokens", "paper_standins")[0].spec.public.size == round(
        3_531_518 // 256 * 0.05
    )


def test_published_numbers_belong_to_cells_that_are_run():
    published = pd.read_csv(ROOT / "workflow/reference/tally_train.csv")
    for table, columns in {"table3": 2, "table3_bytes": 1}.items():
        rows = published[published["table"] == table]
        assert set(rows["method"]) == {c.axes["method"] for c in cells(table)}
        assert len(rows) == 5 * columns


def test_quick_needs_no_network():
    found = cells("table3", "quick")
    assert {c.spec.dataset for c in found} == {"sklearn_docs"}
    assert {c.axes["method"] for c in found} == {c.axes["method"] for c in cells("table3")}
    merges = {c.spec.method.params["merge_every"] for c in found}
    assert merges == {None, 1, 5}
