"""Public samples of another data set: joined on, normalised alike, of labels that nobody knows."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from support.gradients import after_step
from support.outcomes import outcome, same
from support.refusals import refused
from support.resuming import trained_in_pieces
from support.small import SMALL, built, small_spec

from fedlogit import methods
from fedlogit.data import UNKNOWN, card, load, with_probes
from fedlogit.errors import DataError, Diverged
from fedlogit.files import read_json
from fedlogit.runs.context import RunOptions
from fedlogit.runs.run import run
from fedlogit.runs.setup import divide
from fedlogit.spec import RunSpec

ELSEWHERE = {"size": 60, "stratified": False, "dataset": "photos8"}
UNLABELLED = "tally_train(warm_up=0, label_weight=0.0)"
ARM_C = "tally_train(warm_up=0, label_weight=0.3, anchors_per_round=4)"


def build(joined, method=UNLABELLED, **public):
    changes = {"method": method, "public": ELSEWHERE | public, "partition": "iid(90)"}
    spec = small_spec(**changes)
    return spec, built(spec, joined)


def test_images_come_after_the_own_ones_and_nobody_knows_their_labels(tiles, digits):
    _, joined = tiles
    assert np.array_equal(joined.x_train[:1437], digits.x_train)
    assert joined.x_train.shape == (1437 + 8480, 8, 8, 1)
    assert set(joined.y_train[1437:]) == {UNKNOWN}
    assert (joined.mean, joined.std, joined.classes) == (digits.mean, digits.std, 10)
    assert joined.probes_digest not in ("", digits.digest)


def test_a_stand_in_that_is_not_prepared_says_how_to_prepare_it(tmp_path, digits):
    assert card("tiny_imagenet32").stands_for == "stl10"
    with pytest.raises(DataError, match=r"tiny_imagenet32.npz does not exist; make it with"):
        with_probes(load_cifar_like(digits), "tiny_imagenet32", tmp_path)


def test_the_note_of_a_stand_in_follows_that_of_the_data_set(digits, tmp_path, monkeypatch):
    few = {"x_train": digits.x_train[:3]}
    monkeypatch.setattr("fedlogit.data.dataset.load_arrays", lambda *_: (few, "digest"))
    why, plain = card("tiny_imagenet32").note, load_cifar_like(digits)
    assert why
    for note, told in (("", f"public set: {why}"), ("resized", f"resized; public set: {why}")):
        own = dataclasses.replace(plain, note=note)
        assert with_probes(own, "tiny_imagenet32", tmp_path).note == told


def load_cifar_like(digits):
    """A data set under CIFAR-10's name, whose card says 32 x 32 x 3."""
    import dataclasses

    return dataclasses.replace(digits, name="cifar10")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"public": {"size": 60, "anchors": 5}}, "anchors go with images of another data set"),
        ({"public": {"size": 60, "dataset": "photos8"}}, "give stratified: false"),
        ({"public": ELSEWHERE | {"last": True}}, "neither classes, overlap nor last"),
        ({"public": ELSEWHERE | {"dataset": "digits"}}, "is the private data set too"),
        ({"public": ELSEWHERE | {"dataset": "mnist"}}, "28x28x1, those of digits 8x8x1"),
        ({"public": ELSEWHERE | {"dataset": "wikitext2"}}, "its samples are text"),
        ({"public": ELSEWHERE | {"dataset": "photo8"}}, "photos8"),
        (
            {"public": ELSEWHERE, "method": "tally_train(warm_up=0)"},
            "label_weight = 0.5: nobody knows the labels of probes from photos8; give",
        ),
        ({"public": ELSEWHERE, "method": ARM_C}, "anchors_per_round = 4: give at most"),
        ({"public": ELSEWHERE, "method": "fedavg"}, "needs public samples of digits itself"),
    ],
)
def test_bad_input_is_one_clear_line(changes, said):
    with refused(said):
        small_spec(**{"method": UNLABELLED} | changes)


def test_old_specs_and_divisions_keep_their_hashes():
    """The new fields are left out where they are not used."""
    spec = RunSpec.read(SMALL, "test")
    assert "dataset" not in spec.canonical().split('"public"')[1].split("}")[0]
    assert spec.split_key()["public"].keys() == {"size", "stratified", "classes", "overlap"}
    assert small_spec(method=UNLABELLED, public=ELSEWHERE).split_key()["public"]["dataset"]


def test_votes_on_tiles_are_learnt_from_and_their_accuracy_is_unknown(tiles):
    _, fed = build(tiles[1])
    before = fed.vectors()
    fed.round = 1
    fed.ledger.start(1)
    probes = fed.probes(16)
    assert (probes >= 1437).all()
    assert math.isnan(fed.accuracy(fed.logits(probes), probes)[0])
    methods.get(fed.spec.method).consensus_step(fed, 1)
    assert not torch.equal(before, fed.vectors())
    assert "consensus_accuracy" not in fed.take_log()


@pytest.mark.slow
def test_arm_c_has_the_gradient_of_the_papers_loss(tiles):
    """α CE over the 4 anchors + (1 - α) KL over all 16, by autograd, with plain SGD."""
    spec, fed = build(tiles[1], ARM_C, anchors=20)
    for client in fed.clients:
        client.optimizer = torch.optim.SGD([client.vector], 0.1)
        client.settings = client.settings.model_copy(update={"lr": 0.1})
    fed.round = 1
    fed.ledger.start(1)
    probes = fed.probes(16, 4)
    assert (probes[:4] < 1437).all()
    assert (probes[4:] >= 1437).all()
    peer, x, y = fed.clients[0], fed.data.inputs(probes), fed.labels(probes)
    h = torch.nn.functional.one_hot(fed.logits(probes).argmax(-1), 10).float().mean(0)
    logs = peer.model(x).log_softmax(1)
    kl = (h * (h.clamp_min(1e-30).log() - logs)).sum(1).mean()
    loss = 0.3 * torch.nn.functional.nll_loss(logs[:4], y[:4]) + 0.7 * kl
    wanted = after_step(peer, loss)
    methods.get(spec.method).consensus_step(fed, 1)
    assert torch.allclose(peer.vector, wanted, atol=1e-6)


def test_a_run_records_both_data_sets_and_resumes_to_the_same_bits(
    tiles, train, tmp_path, monkeypatch
):
    joined = tiles[1]
    given = {"method": UNLABELLED, "public": ELSEWHERE, "data": joined, "export": ["weights"]}
    whole = train(tmp_path / "whole", **given)
    pieces = trained_in_pieces(train, tmp_path / "pieces", monkeypatch, after=2, **given)
    assert same(outcome(whole), outcome(pieces))
    told = read_json(whole / "result.json")["provenance"]
    assert told["probes_digest"] == joined.probes_digest


def test_tiles_need_no_preparation(tmp_path):
    assert len(with_probes(load("digits", tmp_path), "photos8", tmp_path).x_train) == 9917


@pytest.mark.parametrize("call", ["uwa(validation=0.2)", "meta_model(per_class=9)", "fedkt(1, 1)"])
def test_methods_of_logits_learn_from_them_and_call_no_answer_right(tiles, call):
    spec, fed = build(tiles[1], call)
    fed.start_round(1)
    methods.get(spec.method).round(fed, 1)
    logged = fed.take_log()
    assert not [name for name in logged if "accuracy" in name]
    assert all(math.isfinite(value) for value in logged.values())


def test_one_shot_methods_learn_from_them_too(tiles, tmp_path):
    changes = {"method": "fedol(iterations=2)", "rounds": 1, "local": {"epochs": 5}}
    spec = small_spec(**changes, public=ELSEWHERE, partition="iid(90)")
    division, options = divide(spec, tiles[1]), RunOptions(torch.device("cpu"), progress=False)
    run(spec, methods.get(spec.method), tiles[1], division, tmp_path, options)
    head, row = (tmp_path / "rounds.csv").read_text().splitlines()
    assert "pseudo_share_2" in head
    assert "public_accuracy" not in head
    assert "nan" not in row


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_minibatch_without_a_known_label_learns_from_soft_targets_alone(tiles, engine):
    _, joined = tiles
    changes = {"public": ELSEWHERE | {"anchors": 4}, "partition": "iid(90)", "batch": 8}
    fed = built(small_spec(method=ARM_C, **changes), joined, engine=engine)
    fed.start_round(1)
    uniform = torch.full((len(fed.public), 10), 0.1)
    fed.distil(fed.public, uniform, label_weight=0.5)
    assert math.isfinite(fed.take_log()["loss_distil"])
    assert fed.vectors().isfinite().all()


def test_where_no_label_is_known_the_loss_is_no_number(tiles):
    fed = build(tiles[1])[1]
    fed.start_round(1)
    with pytest.raises(Diverged, match="loss of client 0 in distillation is nan"):
        fed.distil(fed.public, None, label_weight=1.0)
