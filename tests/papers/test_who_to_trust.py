"""The paper file of *Who to Trust?* says what the paper says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fedlogit.papers import expand, list_papers, load_paper
from fedlogit.results.figures import figure_names

PAPERS = Path(__file__).resolve().parents[2] / "workflow" / "papers"


def cells(scale: str, id_: str):
    artefacts = expand(load_paper("who_to_trust", PAPERS), scale)
    return next(a for a in artefacts if a.id == id_).cells


@pytest.mark.parametrize("name", list_papers(PAPERS))
def test_every_scale_of_every_paper_expands(name):
    paper = load_paper(name, PAPERS)
    for scale in paper.scales:
        for artefact in expand(paper, scale):
            assert artefact.cells


def test_table1_has_the_papers_cells_and_hyper_parameters():
    # §4.1: 2 data sets x k in {2, 5, 8} x 3 methods, and a reference per data set; 3 seeds.
    table = cells("paper", "table1")
    assert len(table) == (2 * 3 * 3 + 2) * 3
    spec = next(
        c.spec for c in table if c.axes["dataset"] == "cifar10" and c.axes["method"] == "uwa"
    )
    assert (spec.clients, spec.rounds, spec.batch, spec.public.size) == (20, 50, 128, 5000)
    assert (spec.local.epochs_in(1), spec.local.epochs_in(2)) == (20, 5)  # A.1
    assert (spec.optimizer.name, spec.optimizer.lr, spec.optimizer.beta1) == ("adam", 1e-3, 0.9)
    assert spec.partition.params["private_size"] == 10_000  # A.2
    mnist = next(c.spec for c in table if c.axes["dataset"] == "mnist")
    assert (mnist.local.epochs_in(1), mnist.local.epochs_in(2)) == (10, 1)
    assert mnist.method.name == "average"


def test_lenet_has_tanh_at_paper_and_relu_where_it_was_planned_with_it():
    others = ("class_sets", "optimizer_state", "temperature", "initial_weights")
    forms = {
        (scale, id_): {
            c.spec.models[0].name for c in cells(scale, id_) if c.spec.dataset == "mnist"
        }
        for scale, ids in {
            "paper": ("table1", "baselines", *others),
            "reduced": ("table1", "temperature", "initial_weights"),
            "extended": ("table1", "class_sets", "optimizer_state"),
        }.items()
        for id_ in ids
    }
    tanh = [("paper", "table1"), ("paper", "baselines")]
    assert forms == {place: {"lenet_tanh" if place in tanh else "lenet"} for place in forms}


def reference(scale: str):
    return next(c.spec for c in cells(scale, "table1") if c.axes["method"] == "fully_informed")


def test_reference_sees_as_many_images_as_a_client():
    # §4.3: public data plus local dataset, 5,000 + 10,000
    spec = reference("paper")
    assert spec.clients == 1
    assert (spec.partition.name, spec.partition.params["size"]) == ("iid", 10_000)
    assert spec.public.size == 5000
    assert spec.rounds * spec.local.epochs == 50
    assert spec.local.first_epochs is None


def test_reduced_has_all_cells_of_table1_with_five_seeds():
    paper = {str(sorted(c.axes.items())) for c in cells("paper", "table1")}
    runs = Counter(str(sorted(c.axes.items())) for c in cells("reduced", "table1"))
    assert runs == dict.fromkeys(paper, 5)
    client = next(c.spec for c in cells("reduced", "table1")).partition.params["private_size"]
    assert reference("reduced").partition.params["size"] == client


def test_extended_holds_what_the_paper_leaves_open_in_small_runs():
    paper = load_paper("who_to_trust", PAPERS)
    runs = {c.spec.digest(): c.spec for a in expand(paper, "extended") for c in a.cells}
    by_size = dict.fromkeys([("mnist", seed) for seed in (1, 2, 3, 4)], 4 * 3)
    assert Counter((s.dataset, s.seed) for s in runs.values()) == {("mnist", 0): 33, **by_size}
    for spec in runs.values():
        # Samples that all clients train on, of which a thread does some 10,000 a second.
        epochs = spec.local.epochs_in(1) + (spec.rounds - 1) * spec.local.epochs_in(2)
        private = spec.partition.params.get("private_size", 10_000)
        assert spec.clients * (epochs * private + spec.rounds * spec.public.size) <= 400_000
    assert {a.id for a in expand(paper, "extended")} >= {
        "class_sets", "optimizer_state", "public_size", "public_coverage", "aggregators",
        "ensembles",
    }  # fmt: skip


def test_tables_share_runs():
    shared = {c.spec.digest() for c in cells("paper", "table1")}
    for id_ in ("table1_round10", "figure1", "curves", "payload", "uwa_weights"):
        assert {c.spec.digest() for c in cells("paper", id_)} <= shared
    public = {c.spec.digest() for c in cells("paper", "public_size")}
    assert len(public & shared) == 2 * 3 * 3  # the size of the paper, 3 methods, 3 seeds


def test_smoke_runs_every_method_on_embedded_data():
    paper = load_paper("who_to_trust", PAPERS)
    runs = [cell for artefact in expand(paper, "smoke") for cell in artefact.cells]
    assert {cell.spec.dataset for cell in runs} == {"digits"}
    assert {cell.axes["method"].split("(")[0] for cell in runs} == set(paper.methods)


def test_every_plot_exists():
    for name in list_papers(PAPERS):
        for figure in load_paper(name, PAPERS).figures.values():
            assert figure.plot in figure_names()
