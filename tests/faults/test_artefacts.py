"""What jobs leave for each other is taken only as it was written: flips, NaN, reversed targets."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from support.calls import ROOT, script
from support.damaging import damages
from support.refusals import refused
from support.sealed import seal
from support.small import small_spec

from fedlogit.errors import DataError
from fedlogit.files import (
    array_digest,
    load_npz,
    read_json,
    read_sealed,
    save_npz,
    write_json,
    write_sealed,
)
from fedlogit.papers import run_dir
from fedlogit.results.runs.finished import check_run
from fedlogit.results.runs.run import read_run
from fedlogit.runs.client_files import load_weights
from fedlogit.runs.layout import NOT_KEPT
from fedlogit.runs.logit_files import load_logits
from fedlogit.runs.stages import load_precomputed
from fedlogit.runs.target_files import load_targets, save_targets
from fedlogit.runs.tensors import read_tensors, save_tensors, tensor_digest

SPEC = small_spec(method="feddf", rounds=1)
EXPORTS = ["aggregation", "test_logits", "weights"]


def options(folder: Path, spec: Path, out: Path) -> tuple[str, ...]:
    """Return what all scripts of stages are told."""
    places = ("--spec", str(spec), "--data", str(folder), "--out", str(out))
    return (*places, "--device", "cpu", "--workers", "1", "--quiet")


def made(name: str, *args: str) -> None:
    done = script(name, *args)
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> Path:
    """A folder with all that the stages before the last one leave."""
    folder = tmp_path_factory.mktemp("staged")
    write_json(folder / "spec.json", SPEC.model_dump(mode="json"))
    clients, logits = folder / "clients", str(folder / "clients" / "logits.npz")
    made("train_clients", *options(folder, folder / "spec.json", clients))
    weights = ("--weights", str(clients / "weights.safetensors"))
    made("export_logits", *options(folder, clients / "spec.json", clients), *weights)
    spec = ("--spec", str(folder / "spec.json"))
    made("aggregate", *spec, "--logits", logits, "--out", str(folder / "targets.npz"))
    return folder


@pytest.fixture
def stages(staged, tmp_path) -> Path:
    """A copy, which a test may damage."""
    return shutil.copytree(staged, tmp_path / "stages")


def taken(stages: Path) -> bytes:
    """Return all that the last stage takes over from those before."""
    clients = stages / "clients"
    given = load_precomputed(
        SPEC, clients / "weights.safetensors", clients / "logits.npz", stages / "targets.npz"
    )
    assert given.answers is not None
    assert given.targets is not None
    tensors = [given.answers.public, given.answers.points, given.targets.distributions]
    tensors += [given.targets.weights, *(v for w in given.weights for _, v in sorted(w.items()))]
    noted = json.dumps([given.note, given.data], sort_keys=True).encode()
    return noted + b"".join(value.numpy().tobytes() for value in tensors)


def distil(stages: Path) -> str:
    """Run the last stage; return what it says against it."""
    clients = stages / "clients"
    files = ("--clients", str(clients), "--logits", str(clients / "logits.npz"),
             "--targets", str(stages / "targets.npz"))  # fmt: skip
    done = script("train", *options(stages, stages / "spec.json", stages / "run"), *files)
    assert not done.returncode or done.stderr.count("\n") == 1
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    "name",
    ["clients/weights.safetensors", "clients/clients.json", "clients/logits.npz",
     "clients/logits.json", "targets.npz"],
)  # fmt: skip
def test_a_damaged_stage_is_never_taken(stages, name):
    good = taken(stages)
    said: list[str] = []
    for how in damages(stages / name, 40):
        try:
            found = taken(stages)
        except DataError as error:
            said.append(str(error))
            continue
        assert found == good, how  # within white space, say, or dates in an archive
    assert len(said) > 20
    assert all(Path(name).stem in line and "\n" not in line for line in said)
    assert all("; remove " in line for line in said)


def test_the_last_stage_names_what_its_result_rests_on(stages):
    assert distil(stages) == ""
    facts = read_json(stages / "run" / "result.json")["provenance"]
    answers = load_logits(stages / "clients" / "logits.npz")
    assert facts["logits_digest"] == answers.digest
    assert facts["targets_digest"] == str(load_npz(stages / "targets.npz")["digest"])
    versions = [facts[f"{who}_code_version"] for who in ("clients", "logits", "targets")]
    assert versions == [facts["code_version"]] * 3


def test_stages_give_what_one_piece_gives(stages):
    """Each as a command of its own; also the weights of the server, to the bit."""
    write_json(stages / "spec.json", read_json(stages / "spec.json") | {"export": ["weights"]})
    assert distil(stages) == ""
    made("train", *options(stages, stages / "spec.json", stages / "whole"))
    one, other = (read_json(stages / name / "result.json") for name in ("run", "whole"))
    assert one["final"] == other["final"]
    assert one["exports"] == other["exports"] != {}
    assert "logits_digest" not in other["provenance"]


@pytest.mark.parametrize(
    ("changes", "given", "said"),
    [
        ({}, ["clients"], "--clients: give --clients and --logits together, or neither"),
        ({}, ["logits", "targets"], "--logits: give --clients and --logits together"),
        ({}, ["targets"], "--targets: give --clients and --logits together"),
        ({"method": "fedavg", "rounds": 3}, ["clients", "logits"],
         "rounds = 3: a run that is not one-shot is not made in stages; leave out --clients and"
         " --logits"),
        ({"participation": 0.5}, ["clients", "logits"],
         "participation: a run in which clients are absent is not made in stages; leave out"),
    ],
)  # fmt: skip
def test_stages_that_do_not_fit_are_refused_before_anything_is_read(tmp_path, changes, given, said):
    write_json(tmp_path / "spec.json", SPEC.model_dump(mode="json") | changes)
    files = [part for name in given for part in (f"--{name}", str(tmp_path / "absent"))]
    done = script("train", *options(tmp_path, tmp_path / "spec.json", tmp_path / "run"), *files)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def change_weights(path: Path, change) -> None:
    """Change one client's weights, with a digest that fits."""
    tensors, header = read_tensors(path, "weights")
    name = next(n for n in sorted(tensors) if n.startswith("client1/"))
    tensors[name] = change(tensors[name])
    save_tensors(path, tensors, header | {"digest": tensor_digest(tensors)})


def test_one_bit_of_a_weight(stages):
    path = stages / "clients" / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    weights = ("--weights", str(path))
    said = script("export_logits", *options(stages, stages / "spec.json", stages), *weights)
    assert said.returncode == 2
    assert f"{path} is damaged: its digest does not match; remove {path.parent}" in said.stderr
    assert said.stderr.count("\n") == 1


def test_weights_that_are_not_finite_do_not_answer(stages):
    path = stages / "clients" / "weights.safetensors"
    change_weights(path, lambda value: torch.full_like(value, torch.nan))
    weights = ("--weights", str(path))
    said = script("export_logits", *options(stages, stages / "spec.json", stages), *weights)
    assert said.returncode == 2
    assert "weight client1/" in said.stderr
    assert "is not finite" in said.stderr


def test_weights_without_the_digest_that_their_header_should_have(stages):
    path = stages / "clients" / "weights.safetensors"
    tensors, header = read_tensors(path, "weights")
    save_tensors(path, tensors, {"spec": header["spec"]})
    with refused("is damaged"):
        load_weights(path, SPEC)


def test_other_weights_than_those_that_answered(stages):
    change_weights(stages / "clients" / "weights.safetensors", lambda value: value + 1)
    assert "clients.json is of other clients than" in distil(stages)
    note = stages / "clients" / "clients.json"
    record = read_sealed(note, "")
    models = load_weights(stages / "clients" / "weights.safetensors", SPEC)
    named = {f"client{i}/{key}": v for i, own in enumerate(models) for key, v in own.items()}
    write_sealed(note, record | {"weights_digest": tensor_digest(named)})
    assert "logits.json is of other clients than" in distil(stages)


def test_answers_exported_under_the_run_s_own_spec_serve_it(stages):
    clients = stages / "clients"
    (clients / "logits.json").unlink()
    weights = ("--weights", str(clients / "weights.safetensors"))
    made("export_logits", *options(stages, stages / "spec.json", clients), *weights)
    assert read_json(clients / "logits.json")["spec_digest"] == SPEC.digest()
    assert distil(stages) == ""


def test_clients_of_another_division(stages):
    note = stages / "clients" / "clients.json"
    write_sealed(note, read_sealed(note, "") | {"split_digest": "0" * 64})
    assert "trained on other data: split_digest 000000000000… ->" in distil(stages)


def change_targets(path: Path, **changes) -> None:
    """Change targets, with a digest that fits."""
    arrays = load_npz(path) | {key: np.array(value) for key, value in changes.items()}
    del arrays["digest"]
    digest = array_digest(*(arrays[name] for name in sorted(arrays)))
    save_npz(path, arrays | {"digest": np.array(digest)})


def test_reversed_targets_are_refused(stages):
    path = stages / "targets.npz"
    arrays = load_npz(path)
    save_npz(path, arrays | {"distributions": arrays["distributions"][::-1]})
    assert f"{path} is damaged: its digest does not match; remove {path}" in distil(stages)
    assert not (stages / "run" / "result.json").exists()


def test_targets_of_another_method_or_of_other_logits(stages):
    change_targets(stages / "targets.npz", logits_digest="0" * 64)
    assert "made of other logits" in distil(stages)
    made("aggregate", "--function", "fedlogit.aggregation.average:average_probabilities",
         "--logits", str(stages / "clients" / "logits.npz"),
         "--out", str(stages / "targets.npz"))  # fmt: skip
    assert "targets made by {" in distil(stages)


def test_targets_of_the_same_method_with_another_parameter(stages):
    three, four = (small_spec(method=f"fedol(iterations={n})", rounds=1) for n in (3, 4))
    answers = load_logits(stages / "clients" / "logits.npz")
    targets, _ = load_targets(stages / "targets.npz", answers, SPEC.method)
    save_targets(targets, answers, three.method, stages / "targets.npz")
    load_targets(stages / "targets.npz", answers, three.method)
    with refused("targets made by {"):
        load_targets(stages / "targets.npz", answers, four.method)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("distributions", lambda found: found[:5], "returned shape (5, 10) with ("),
        ("distributions", lambda found: found * np.nan, "no distribution for public sample 0"),
        ("distributions", lambda found: -found, "no distribution for public sample 0"),
        ("distributions", lambda found: np.ones((len(found), 11), np.float32) / 11, "shape ("),
        ("distributions", lambda found: np.array(["a"]), "distributions are of <U1, should be"),
        ("distributions", lambda found: found.astype(int), "distributions are of int64, should be"),
        ("distributions", lambda found: np.float32(3), "returned shape () with ("),
        ("weights", lambda found: found[:3], "with (3,) weights"),
        ("weights", lambda found: found * np.nan, "no distribution for public sample 0"),
        ("weights", lambda found: -found, "no distribution for public sample 0"),
        ("code_version", lambda found: np.array(["a", "b"]), "code_version should be a text"),
        ("code_version", lambda found: np.array("\x1b[2J"), "code_version should be a text"),
    ],
)
def test_targets_that_no_aggregator_gives_are_refused_though_their_digest_fits(
    stages, name, change, said
):
    path, answers = stages / "targets.npz", load_logits(stages / "clients" / "logits.npz")
    change_targets(path, **{name: change(load_npz(path)[name])})
    with refused(said) as refusal:
        load_targets(path, answers, SPEC.method)
    assert str(refusal.value).startswith(f"{path}: ")
    assert str(refusal.value).endswith(f"; remove {path} and aggregate again")


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("clients.json", "spec_digest", None, "key 'spec_digest' is missing"),
        ("clients.json", "weights_digest", None, "key 'weights_digest' is missing"),
        ("clients.json", "wall_seconds", "x", "wall_seconds = 'x': Input should be a valid number"),
        ("clients.json", "wall_seconds", -1, "wall_seconds = -1: Input should be greater than"),
        ("clients.json", "engine", 5, "engine = 5: should be a text"),
        ("clients.json", "device", "\x1b[2J", "should be a text of one line"),
        ("clients.json", "loss_private", "low", "loss_private = 'low': Input should be a valid"),
        ("logits.json", "spec_digest", None, "key 'spec_digest' is missing"),
        ("logits.json", "code_version", ["a"], "code_version = ['a']: Input should be a valid"),
        ("logits.json", "weights_digest", 5, "weights_digest = 5: should be a text"),
    ],
)
def test_records_of_stages_that_lack_a_key_or_have_another_value(stages, name, key, value, said):
    path = stages / "clients" / name
    record = read_sealed(path, "") | {key: value}
    write_sealed(path, {k: v for k, v in record.items() if v is not None})
    with refused(f"{path}: ") as refusal:
        taken(stages)
    assert said in str(refusal.value)
    assert "; remove " in str(refusal.value)


def test_targets_without_a_digest(stages):
    arrays = load_npz(stages / "targets.npz")
    del arrays["digest"]
    save_npz(stages / "targets.npz", arrays)
    assert "or without a digest; remove" in distil(stages)


def test_targets_of_a_function_serve_the_method_that_names_it(stages):
    function = "fedlogit.aggregation.average:average_probabilities"
    path, logits = stages / "targets.npz", stages / "clients" / "logits.npz"
    made("aggregate", "--function", function, "--logits", str(logits), "--out", str(path))
    spec = small_spec(method=f"aggregator(function={function!r})", rounds=1)
    weights = stages / "clients" / "weights.safetensors"
    assert load_precomputed(spec, weights, logits, path).targets is not None


def test_targets_of_a_function_that_has_changed_since(stages, tmp_path, monkeypatch, own_modules):
    """Such as the median that a user replaced before removing the run."""
    source = "def median(logits):\n    return logits.softmax(2).mean(0)\n"
    (tmp_path / "own_median.py").write_text(source)
    method = small_spec(method="aggregator('own_median:median')", rounds=1).method
    answers, path = load_logits(stages / "clients" / "logits.npz"), stages / "targets.npz"
    targets, _ = load_targets(path, answers, SPEC.method)
    save_targets(targets, answers, method, path)
    load_targets(path, answers, method)
    (tmp_path / "own_median.py").write_text(source.replace("softmax(2)", "softmax(2).square()"))
    load_targets(path, answers, method)  # what this process has imported is the same
    monkeypatch.delitem(sys.modules, "own_median")
    with refused(f"{path}: targets made by other code than that of {method} now; remove {path}"):
        load_targets(path, answers, method)
    assert "own_code" in load_npz(path)


def test_targets_that_do_not_say_by_which_code_serve_the_library_alone(
    stages, tmp_path, own_modules
):
    """They are older than this entry."""
    (tmp_path / "own_median.py").write_text(
        "def median(logits):\n    return logits[0].softmax(1)\n"
    )
    method = small_spec(method="aggregator('own_median:median')", rounds=1).method
    answers, path = load_logits(stages / "clients" / "logits.npz"), stages / "targets.npz"
    assert "own_code" not in load_npz(path)
    load_targets(path, answers, SPEC.method)
    change_targets(path, method=json.dumps(method.model_dump(mode="json"), sort_keys=True))
    with refused("targets made by other code"):
        load_targets(path, answers, method)


def test_a_function_that_gives_no_targets_is_named(stages, monkeypatch):
    (stages / "summed.py").write_text("def of(logits):\n    return logits.sum(2)\n")
    monkeypatch.syspath_prepend(stages)
    logits, out = stages / "clients" / "logits.npz", stages / "none.npz"
    done = script(
        "aggregate", "--function", "summed:of", "--logits", str(logits), "--out", str(out)
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: aggregator summed:of returned shape (")
    assert not out.exists()


def test_an_ensemble_has_a_digest_and_takes_no_damaged_logits(stages):
    logits, out = stages / "clients" / "logits.npz", stages / "ensemble.json"
    function = "fedlogit.aggregation.average:average_probabilities"
    command = ("--function", function, "--logits", str(logits), "--out", str(out))
    made("ensemble", *command)
    assert read_sealed(out, "")["logits_digest"] == load_logits(logits).digest
    out.write_text(out.read_text().replace('"test_samples": 3', '"test_samples": 4'))
    with refused("is damaged: its digest does not match; again"):
        read_sealed(out, "again")
    save_npz(logits, load_npz(logits) | {"points": np.arange(60)})
    assert "its digest differs; remove" in script("ensemble", *command).stderr


def test_stopped_clients_go_on_only_with_the_same_code(stages, tmp_path, monkeypatch):
    from fedlogit.runs import provenance
    from fedlogit.runs import stages as runs_in_stages

    original, saved = runs_in_stages.save_part, []

    def dies(path, *given):
        if saved:
            raise KeyboardInterrupt
        saved.append(path)
        original(path, *given)

    command = options(stages, stages / "spec.json", tmp_path / "x")
    with monkeypatch.context() as patch:
        patch.setattr(runs_in_stages, "save_part", dies)
        with pytest.raises(KeyboardInterrupt):
            script("train_clients", *command)
    (part,) = saved
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "imported_code_version", lambda: "other")
        said = script("train_clients", *command)
        assert said.returncode == 2
        assert "-> other; to start anew, remove" in said.stderr
        assert f"remove {part.parent}/part-*.safetensors" in said.stderr
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert f"{part.name} is damaged" in script("train_clients", *command).stderr
    part.write_bytes(whole)
    made("train_clients", *command)
    one, other = (f / "weights.safetensors" for f in (tmp_path / "x", stages / "clients"))
    assert read_tensors(one, "")[1] == read_tensors(other, "")[1]


@pytest.fixture
def exported(train, tmp_path) -> Path:
    """A finished run with exports, where its hash says."""
    changes = {"method": "uwa", "export": EXPORTS, "rounds": 1}
    return train(tmp_path / run_dir(small_spec(**changes)), **changes)


@pytest.mark.parametrize(
    "name", ["aggregation.npz", "test_logits.npz", "weights.safetensors"]
)  # fmt: skip
def test_a_damaged_export_is_refused(exported, tmp_path, name):
    path = exported / "exports" / name
    check_run(tmp_path, exported)
    for _ in damages(path, 6):
        with refused(f"{path} is damaged"):
            check_run(tmp_path, exported)
        if name.endswith("npz"):
            run = read_run(exported, small_spec(method="uwa", export=EXPORTS, rounds=1).digest())
            with refused(f"{path} is damaged"):
                run.export(path.stem)
        else:
            with pytest.raises(DataError, match=r"damaged|not a readable|no weights"):
                load_weights(path, small_spec())


def test_weights_that_are_not_there_are_no_reason_to_remove_the_run(exported):
    path = exported / "weights.safetensors"
    with refused(f"{path} does not exist; did you mean {exported}/exports/weights.safetensors?"):
        load_weights(path, small_spec())
    path = exported / "exports" / "weight.safetensors"
    with pytest.raises(DataError) as error:
        load_weights(path, small_spec())
    assert str(error.value) == f"{path} does not exist"


def test_logits_that_are_not_there_are_no_reason_to_export_them_again(tmp_path):
    write_json(tmp_path / "logits.json", {})
    with pytest.raises(DataError) as error:
        load_logits(tmp_path / "logit.npz")
    assert str(error.value) == f"{tmp_path / 'logit.npz'} does not exist"
    with refused(f"remove {tmp_path / 'logits.json'} and export the logits again"):
        load_logits(tmp_path / "logits.npz")


def test_an_export_that_is_missing_or_not_listed(exported, tmp_path):
    folder = exported / "exports"
    (folder / "weights.safetensors").unlink()  # which the cache does not keep
    run = check_run(tmp_path, exported)
    save_npz(folder / "evidence.npz", {"evidence": np.zeros(1)})
    with refused("result.json has another digest of it, or none"):
        run.export("evidence")
    (folder / "aggregation.npz").unlink()
    with refused("aggregation.npz is missing, but result.json lists it"):
        check_run(tmp_path, exported)


def test_what_the_cache_does_not_keep_is_what_dvc_leaves_out():
    kept_out = [line.rpartition("/exports/")[2] for line in (ROOT / ".dvcignore").open()]
    assert {line.strip() for line in kept_out if "exports" not in line} >= {*NOT_KEPT}


def test_a_run_made_before_results_listed_exports_is_still_read(exported, tmp_path):
    result = read_json(exported / "result.json")
    del result["exports"]
    write_json(exported / "result.json", result)
    seal(exported)
    path = exported / "exports" / "weights.safetensors"
    save_tensors(path, read_tensors(path, "weights")[0])  # which had no header either
    found = check_run(tmp_path, exported).export("aggregation", "weights")
    assert found["weights"].shape == (4, 60)
    assert len(load_weights(path, small_spec())) == 4


def test_train_clients_says_of_damaged_ones_what_to_do(stages):
    note = stages / "clients" / "clients.json"
    note.write_text(note.read_text()[:-9])
    done = script("train_clients", *options(stages, stages / "spec.json", note.parent))
    assert done.returncode == 2
    assert f"{note} is not valid JSON" in done.stderr
    assert done.stderr.endswith(f"; remove {note.parent} and give the same command again\n")
