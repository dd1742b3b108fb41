"""Settings are chosen on training samples that nobody has, not on the test split."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from support.calls import script
from support.outcomes import rows
from support.refusals import refused
from support.small import SMALL, TEXT, built, small_spec

from fedlogit.cli import call
from fedlogit.results.metrics import value
from fedlogit.results.runs.run import read_run

GIVEN = {"train_size": 600, "public": {"size": 60}, "partition": "dir_client(0.5)"}


def scored_on(spec, digits) -> np.ndarray:
    """Return the training samples whose images are what is tested on."""
    found = built(spec, digits).data.x_test.permute(0, 2, 3, 1).numpy()
    return np.array([np.flatnonzero((digits.x_train == x).all((1, 2, 3)))[0] for x in found])


def test_validation_samples_are_neither_private_nor_public(digits):
    spec = small_spec(**GIVEN, evaluation={"validation": 100})
    federation = built(spec, digits)
    chosen = scored_on(spec, digits)
    held = np.concatenate([c.private.numpy() for c in federation.clients])
    assert len(federation.data.test_labels) == len(np.unique(chosen)) == 100
    assert not np.isin(chosen, held).any()
    assert not np.isin(chosen, federation.public.numpy()).any()
    assert federation.data.test_labels.tolist() == digits.y_train[chosen].tolist()


def test_validation_samples_have_each_class_by_its_share_of_those_that_are_left(digits):
    spec = small_spec(**GIVEN, evaluation={"validation": 100})
    federation = built(spec, digits)
    held = np.concatenate([c.private.numpy() for c in federation.clients])
    left = np.setdiff1d(np.arange(len(digits.y_train)), [*held, *federation.public.tolist()])
    found, there = (
        np.bincount(digits.y_train[which], minlength=10)
        for which in (scored_on(spec, digits), left)
    )
    assert (np.abs(found - 100 * there / len(left)) < 1).all()


def test_the_division_and_the_training_are_those_of_the_run_that_is_tested(digits):
    tuned = small_spec(**GIVEN, evaluation={"validation": 100})
    tested = small_spec(**GIVEN)
    assert tuned.split_key() == tested.split_key()
    assert tuned.digest() != tested.digest()
    pairs = zip(built(tuned, digits).clients, built(tested, digits).clients, strict=True)
    assert all(np.array_equal(a.private, b.private) for a, b in pairs)


def test_another_seed_is_scored_on_other_samples(digits):
    specs = (small_spec(**GIVEN, evaluation={"validation": 100}, seed=seed) for seed in (0, 1))
    a, b = (scored_on(spec, digits) for spec in specs)
    assert not np.array_equal(a, b)


def test_without_samples_left_there_is_nothing_to_choose_on(digits):
    whole = {"partition": "dir_client(0.5)", "public": {"size": 60}}
    have = "the clients and the public set have"
    all_of = f"{have} all of the 1437 training samples"
    all_but = f"{have} all but 837 of the 1437 training samples"
    for given, validation, said in (
        (whole, 100, f"{all_of}; give a train_size of at most 1337"),
        (whole, 5000, f"{all_of}; give fewer than 1437, and a train_size that leaves them"),
        (GIVEN, 838, f"{all_but}; give at most 837, or give a train_size of at most 599"),
        (GIVEN, 5000, f"{all_but}; give at most 837"),
    ):
        with refused(f"evaluation.validation = {validation}: {said}"):
            built(small_spec(**given, evaluation={"validation": validation}), digits)
    built(small_spec(**GIVEN, evaluation={"validation": 837}), digits)
    built(small_spec(**whole, train_size=1337, evaluation={"validation": 100}), digits)


def test_a_run_that_has_no_samples_to_validate_on_leaves_no_folder(tmp_path):
    spec = SMALL | {"evaluation": {"validation": 100}, "partition": "dir_client(0.5)"}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    given = ["--spec", str(tmp_path / "spec.json"), "--data", str(tmp_path / "prepared")]
    with refused("evaluation.validation = 100: the clients and the public set have"):
        call("train", [*given, "--out", str(tmp_path / "run"), "--device", "cpu"])
    assert not (tmp_path / "run").exists()


def test_two_sets_to_score_on_are_refused():
    with refused("give either test_size or evaluation.validation, or both and evaluation.with_"):
        small_spec(test_size=9, evaluation={"validation": 9})
    with refused("with_test = True has no effect without validation"):
        small_spec(evaluation={"with_test": True})


BOTH = GIVEN | {"evaluation": {"validation": 100, "with_test": True}}


def test_accuracy_on_both_is_that_of_a_run_on_each(train):
    alone = GIVEN | {"evaluation": {"validation": 100}}
    on_both, on_test, on_validation = (rows(train(**given)) for given in (BOTH, GIVEN, alone))
    for both, test, validation in zip(on_both, on_test, on_validation, strict=True):
        assert float(both["validation_accuracy"]) == pytest.approx(float(validation["accuracy"]))
        for column in ("accuracy", "balanced_accuracy", "loss_test"):
            assert both[column] == test[column]
        assert "validation_accuracy" not in test


@pytest.mark.parametrize("call", ["fedavg", "feddf"])
def test_a_global_or_server_s_model_is_validated_too(train, call):
    *_, last = rows(train(**BOTH, method=call))
    assert 0 < float(last["validation_accuracy"]) <= 1


def test_a_text_is_validated_by_position(train):
    spec = TEXT | {"method": "local", "evaluation": {"validation": 30, "with_test": True}}
    *_, last = rows(train(**spec, rounds=1))
    assert 0 < float(last["validation_accuracy"]) <= 1


def test_both_sets_may_be_smaller(digits):
    spec = small_spec(**BOTH, test_size=50)
    federation = built(spec, digits)
    assert (len(federation.validation), len(federation.data.test_labels)) == (100, 50)


def test_accuracy_in_the_best_validated_round_by_hand(train):
    given = BOTH | {"rounds": 4}
    run = read_run(train(**given), small_spec(**given).digest())
    table = run.rounds.copy()
    table["accuracy"] = [0.1, 0.4, 0.3, 0.2]
    table["validation_accuracy"] = [0.5, 0.7, 0.9, 0.9]  # the first of the best counts
    assert value(replace(run, rounds=table), "accuracy_at_best_validation") == 0.3


def test_without_validation_there_is_no_best_round(train):
    run = read_run(train(**GIVEN), small_spec(**GIVEN).digest())
    with refused("accuracy_at_best_validation needs both accuracies; give evaluation: {validation"):
        value(run, "accuracy_at_best_validation")


def test_a_run_without_a_column_that_others_have_is_told_which_have_it(train):
    run = read_run(train(**GIVEN), small_spec(**GIVEN).digest())
    earlier = replace(run, rounds=run.rounds.drop(columns="personalized_accuracy"))
    with refused("has no validation_accuracy; only runs with evaluation: {validation: n, "):
        value(run, "validation_accuracy")
    with refused("has no personalized_accuracy; texts and runs of earlier code have none"):
        value(earlier, "personalized_accuracy@1")


def test_a_run_that_was_not_tested_does_not_say_test_accuracy(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SMALL | {"evaluation": {"validation": 60}, "rounds": 1}))
    done = script("train", "--spec", str(path), "--out", str(tmp_path / "run"), "--quiet")
    assert "finished, validation accuracy 0." in done.stdout
