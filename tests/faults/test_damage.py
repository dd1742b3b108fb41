"""Bits that flip and files that end early: noticed and named, never taken for a result.

Downloads are in tests/data, logits and targets in tests/federation.
"""

import shutil
import warnings

import numpy as np
import pytest
import torch
from support.calls import script
from support.damaging import damages
from support.small import small_spec

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import write_json
from fedlogit.results.runs.run import read_run
from fedlogit.runs.checkpoint import load_checkpoint, save_checkpoint
from fedlogit.runs.client_files import load_weights


@pytest.fixture(scope="module")
def finished(digits, tmp_path_factory):
    """The folder of a finished run."""
    from fedlogit import methods
    from fedlogit.runs.context import RunOptions
    from fedlogit.runs.run import run
    from fedlogit.runs.setup import divide

    spec, folder = small_spec(export=["weights"]), tmp_path_factory.mktemp("run")
    options = RunOptions(torch.device("cpu"), progress=False)
    run(spec, methods.get(spec.method), digits, divide(spec, digits), folder, options)
    return folder


DAMAGED = [
    ("result.json", lambda text: text[:-9], "result.json is not valid JSON"),
    ("result.json", lambda text: "", "result.json is not valid JSON"),
    ("result.json", lambda text: "[]", "result.json is damaged: its digest does not match"),
    ("result.json", lambda text: text.replace("finished", "diverged", 1), "digest does not match"),
    ("rounds.csv", lambda text: "", "rounds.csv is damaged or truncated"),
    ("spec.json", lambda text: text[:-9], "spec.json is not valid JSON"),
    ("spec.json", lambda text: "{}", "spec.json: key 'dataset' is missing"),
]


@pytest.mark.parametrize(("name", "damage", "said"), DAMAGED)
def test_train_says_of_a_damaged_run_what_to_do_as_others_do(finished, name, damage, said):
    path, spec = finished / name, small_spec(export=["weights"])
    whole = path.read_bytes()
    write_json(finished.parent / "again.json", spec.model_dump(mode="json"))
    try:
        path.write_text(damage(whole.decode()))
        done = script("train", "--spec", f"{finished.parent}/again.json", "--out", str(finished))
        with pytest.raises(DataError) as error:
            read_run(finished, spec.digest())
    finally:
        path.write_bytes(whole)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {error.value}\n"
    assert said in done.stderr
    assert done.stderr.endswith(f"; remove {finished} and run it again\n")


@pytest.mark.parametrize("name", ["rounds.csv", "spec.json", "exports/weights.safetensors"])
def test_train_says_of_a_run_that_lacks_something(finished, tmp_path, name):
    """Weights need not be there, as caches do not keep them, but are not to be others."""
    folder, spec = tmp_path / "run", small_spec(export=["weights"])
    shutil.copytree(finished, folder)
    write_json(tmp_path / "spec.json", spec.model_dump(mode="json"))
    given = ("train", "--spec", str(tmp_path / "spec.json"), "--out", str(folder))
    (folder / name).unlink()
    lacking = script(*given)
    (folder / name).write_text("other")
    other = script(*given)
    assert lacking.returncode == (0 if "weights" in name else 2)
    assert other.returncode == 2
    is_json = name.endswith(".json")
    assert f"{folder / name} is {'not valid JSON' if is_json else 'damaged'}" in other.stderr
    assert f"remove {folder} and run it again" in other.stderr


def test_a_result_of_another_spec_is_not_this_run(train, tmp_path):
    one, other = train(tmp_path / "one"), train(tmp_path / "other", seed=1)
    for name in ("result.json", "rounds.csv"):
        shutil.copyfile(other / name, one / name)
    write_json(tmp_path / "spec.json", small_spec().model_dump(mode="json"))
    done = script("train", "--spec", str(tmp_path / "spec.json"), "--out", str(one))
    assert done.returncode == 2
    assert f"remove {one} and run it again" in done.stderr


@pytest.mark.parametrize("name", ["result.json", "rounds.csv", "spec.json"])
def test_a_damaged_result_is_never_taken(finished, name):
    spec = small_spec(export=["weights"])
    good = read_run(finished, spec.digest())
    for how in damages(finished / name, 60):
        try:
            read = read_run(finished, spec.digest())
        except FedlogitError:
            continue
        # A flip within white space, say.
        assert read.result == good.result, how
        assert read.spec == good.spec, how
        assert read.rounds.equals(good.rounds), how


def test_one_digit_of_an_accuracy(finished):
    path = finished / "result.json"
    text = path.read_text()
    at = text.index('"accuracy": 0.') + len('"accuracy": 0.')
    path.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    try:
        with pytest.raises(DataError, match=r"result\.json is damaged: its digest does not match"):
            read_run(finished, small_spec(export=["weights"]).digest())
    finally:
        path.write_text(text)


def test_weights_that_end_early(finished):
    path = finished / "exports" / "weights.safetensors"
    whole = path.read_bytes()
    for end in np.random.default_rng(1).integers(len(whole), size=20):
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match="not a readable file of weights"):
            load_weights(path, small_spec())
    path.write_bytes(whole)


def test_a_damaged_checkpoint_never_restores_another_state(federation, tmp_path):
    """Whatever is damaged in the newest, what is loaded is one of the two that were saved."""
    fed = federation()
    saved = {}
    for r in (1, 2):
        fed.round = r
        fed.train_private()
        saved[r] = fed.vectors()
        save_checkpoint(tmp_path, fed, [{"round": i + 1} for i in range(r)])
    other = federation()
    for how in damages(tmp_path / "checkpoint.safetensors", 40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rows = load_checkpoint(tmp_path, other)
        assert len(rows) == other.round, how
        assert len(rows) in (1, 2), how
        assert torch.equal(other.vectors(), saved[len(rows)]), how


def test_without_a_sound_checkpoint_a_run_begins_anew(train, federation, tmp_path):
    whole = train(tmp_path / "whole")
    fed = federation()
    fed.round = 1
    out = tmp_path / "out"
    out.mkdir()
    save_checkpoint(out, fed, [{"round": 1}])
    fed.round = 2
    save_checkpoint(out, fed, [{"round": 1}, {"round": 2}])
    for path in out.glob("checkpoint*"):
        path.write_bytes(path.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="not a readable checkpoint"):
        train(out)
    digest = small_spec().digest()
    one, other = (read_run(f, digest).rounds.filter(regex="^(?!seconds)") for f in (whole, out))
    assert one.equals(other)
