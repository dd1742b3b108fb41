"""One-shot runs in stages: the same bits as in one piece, and files that are checked."""

import dataclasses
import json
import shutil
import sys
from typing import ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.calls import script
from support.outcomes import exported_weights, outcome, same, untimed_rows
from support.refusals import refused
from support.resuming import steps_done, stopped_in_step
from support.small import built, small_spec
from support.waiting import until

from fedlogit import methods
from fedlogit.aggregation.targets import as_targets
from fedlogit.component import catalogue
from fedlogit.engine.float32 import configure_float32_matmul
from fedlogit.errors import DataError, Diverged, FedlogitError
from fedlogit.files import (
    load_npz,
    read_json,
    read_sealed,
    save_npz,
    write_json,
    write_sealed,
)
from fedlogit.methods.fedhkt import FedHKT
from fedlogit.methods.local import Local
from fedlogit.methods.one_shot import OneShot
from fedlogit.runs import stages
from fedlogit.runs.client_files import load_weights
from fedlogit.runs.context import RunOptions
from fedlogit.runs.logit_files import load_logits
from fedlogit.runs.provenance import imported_own_code
from fedlogit.runs.run import run
from fedlogit.runs.setup import divide
from fedlogit.runs.stages import (
    Precomputed,
    clients_spec,
    export_logits,
    in_stages,
    load_precomputed,
    remove_parts,
    train_clients,
)
from fedlogit.runs.target_files import save_targets

ONCE = {"rounds": 1, "export": ["weights"], "local": {"epochs": 4}}
OWN_NET = """
from fedlogit.models.mlp import Mlp


class Net(Mlp):
    pass
"""
METHODS = ["local", "feddf", "fedet", "fedhkt", "mine", "fedol(iterations=3)", "aggregator"]


def build(digits, spec, workers=1):
    configure_float32_matmul(torch.device("cpu"))  # as every job does first
    return built(spec, digits, workers=workers)


def weights_of(folder, spec, trained=None):
    """Return the models in a folder, of clients that are those of `spec`, or of `trained`."""
    digest = clients_spec(trained or spec).digest()
    return load_weights(folder / "weights.safetensors", spec, {digest})


@pytest.fixture(scope="module")
def clients(digits, tmp_path_factory):
    """A folder with trained clients and their answers, which several methods share."""
    folder = tmp_path_factory.mktemp("clients")
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    made = train_clients(build(digits, spec), folder)
    record = {"spec_digest": spec.digest(), "code_version": "0", **made}
    write_sealed(folder / "clients.json", record)
    export_logits(build(digits, spec), weights_of(folder, spec), folder)
    return folder


@pytest.mark.parametrize(
    ("call", "changes"), [*((call, {}) for call in METHODS), ("feddf", {"temperature": 3.0})]
)
def test_stages_give_the_same_bits(digits, train, clients, tmp_path, call, changes):
    spec = small_spec(method=call, **ONCE, **changes)
    method = methods.get(spec.method)
    whole = train(tmp_path / "whole", method=call, **ONCE, **changes)

    assert in_stages(spec)
    assert clients_spec(spec).digest() == clients_spec(small_spec(method="feddf", **ONCE)).digest()
    answers = load_logits(clients / "logits.npz")
    targets = None
    if call != "local":
        targets = tmp_path / "targets.npz"
        save_targets(
            as_targets(method.targets(answers.public), answers.public, call),
            answers,
            spec.method,
            targets,
        )
    given = load_precomputed(spec, clients / "weights.safetensors", clients / "logits.npz", targets)
    options = RunOptions(torch.device("cpu"), engine="loop", progress=False)
    folder = tmp_path / "staged"
    run(spec, method, digits, divide(spec, digits), folder, options, given)

    one, other = exported_weights(whole), exported_weights(folder)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    first, second = (read_json(path / "result.json") for path in (whole, folder))
    assert first["final"] == second["final"]
    assert first["bytes"] == second["bytes"]
    one, other = untimed_rows(whole), untimed_rows(folder)
    assert one == other
    assert "loss_private" in one[0]
    assert list(one[0]) == list(other[0]), "columns in the same order"
    assert second["provenance"]["logits_digest"] == answers.digest


def test_a_server_that_was_stopped_goes_on_with_the_next_iteration(
    digits, train, clients, tmp_path, monkeypatch
):
    call = "fedol(iterations=3)"
    spec = small_spec(method=call, **ONCE)
    given = load_precomputed(spec, clients / "weights.safetensors", clients / "logits.npz", None)
    options = RunOptions(torch.device("cpu"), engine="loop", progress=False)
    args = (spec, methods.get(spec.method), digits, divide(spec, digits), tmp_path / "staged")
    with stopped_in_step(2, monkeypatch, "signal"):
        run(*args, options, given)
    with steps_done(monkeypatch) as done:
        run(*args, options, given)
    assert done == ["iteration/3"]
    whole = train(tmp_path / "whole", method=call, **ONCE)
    assert same(outcome(tmp_path / "staged"), outcome(whole))


def test_clients_of_before_their_loss_was_kept_give_a_run_without_it(digits, clients, tmp_path):
    spec = small_spec(method="local", **ONCE)
    paths = [tmp_path / name for name in ("weights.safetensors", "logits.npz")]
    for path in (*paths, tmp_path / "logits.json"):
        path.write_bytes((clients / path.name).read_bytes())
    record = read_sealed(clients / "clients.json", "")
    assert record.pop("loss_private") > 0
    write_sealed(tmp_path / "clients.json", record)
    given = load_precomputed(spec, *paths, None)
    options = RunOptions(torch.device("cpu"), engine="loop", progress=False)
    folder = tmp_path / "run"
    run(spec, methods.get(spec.method), digits, divide(spec, digits), folder, options, given)
    assert "loss_private" not in untimed_rows(folder)[0]


def test_a_run_notes_the_compiler_of_its_clients_if_their_record_has_one(clients, tmp_path):
    spec = small_spec(method="local", **ONCE)
    paths = [tmp_path / name for name in ("weights.safetensors", "logits.npz")]
    for path in (*paths, tmp_path / "logits.json"):
        path.write_bytes((clients / path.name).read_bytes())
    record = read_sealed(clients / "clients.json", "")
    for facts, noted in (({}, None), ({"compiler": "g++ 12"}, "g++ 12")):
        write_sealed(tmp_path / "clients.json", record | facts)
        assert load_precomputed(spec, *paths, None).note.get("clients_compiler") == noted


DIVERGING = {
    "in training": {"optimizer": {"name": "sgd", "lr": 1e30}},
    "with its last step": {"optimizer": {"name": "sgd", "lr": 1e38}, "local": {"steps": 1}},
}


@pytest.mark.parametrize("call", ["feddf", "local"])
@pytest.mark.parametrize("how", DIVERGING)
def test_clients_that_diverge_are_a_result_as_in_one_piece(train, tmp_path, call, how):
    """Every job succeeds, so that Snakemake keeps what it made and the table shows the cell."""
    changes = {"method": call} | ONCE | DIVERGING[how]
    spec, clients, folder = small_spec(**changes), tmp_path / "clients", tmp_path / "run"
    whole = read_json(train(tmp_path / "whole", **changes) / "result.json")
    write_json(tmp_path / "spec.json", spec.model_dump(mode="json"))
    given = ("--spec", str(tmp_path / "spec.json"))
    common = (*given, "--data", str(tmp_path), "--device", "cpu", "--engine", "loop", "--quiet")
    weights, logits = str(clients / "weights.safetensors"), str(clients / "logits.npz")
    targets = str(tmp_path / "targets.npz")
    jobs = [
        ("train_clients", *common, "--out", str(clients)),
        ("export_logits", *common, "--weights", weights, "--out", str(clients)),
        ("aggregate", *given, "--logits", logits, "--out", targets),
        ("train", *common, "--out", str(folder), "--clients", str(clients), "--logits", logits,
         "--targets", targets),
    ]  # fmt: skip
    if call == "local":
        jobs = [*jobs[:2], jobs[3][:-2]]
    said: list[bool] = []
    for job in jobs:
        done = script(*job)
        assert not done.returncode, done.stderr
        said.append("diverged" in done.stdout)
    assert said == [how != "with its last step", *(True for _ in jobs[1:])]
    staged = read_json(folder / "result.json")
    assert (staged["status"], whole["status"]) == ("diverged", "diverged")
    # In one piece, `local` asks nobody about the public set, and notices on the test split.
    if (call, how) != ("local", "with its last step"):
        assert staged["message"] == whole["message"]
    assert (staged["final"], staged["bytes"]) == ({}, whole["bytes"])
    assert f"round 1: {read_json(clients / 'logits.json')['diverged']}" == staged["message"]
    made = ["clients.json", "logits.json", "logits.npz", "spec.json", "weights.safetensors"]
    assert sorted(p.name for p in clients.glob("[!.]*")) == made


def test_answers_that_are_not_finite_are_passed_on(digits, clients, tmp_path, monkeypatch):
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    fed = build(digits, spec)
    models = load_weights(clients / "weights.safetensors", spec)

    def overflow(self, points):
        raise Diverged("logits of client 2 are not finite")

    monkeypatch.setattr(type(fed), "logits", overflow)
    for name in ("weights.safetensors", "clients.json"):
        (tmp_path / name).write_bytes((clients / name).read_bytes())
    export_logits(fed, models, tmp_path)
    paths = (tmp_path / "weights.safetensors", tmp_path / "logits.npz")
    assert load_precomputed(spec, *paths, None).diverged == "logits of client 2 are not finite"
    save_npz(paths[1], {"diverged": np.array("another reason")})
    with refused("is not what logits.json describes"):
        load_precomputed(spec, *paths, None)


def test_weights_whose_reason_to_diverge_was_changed_are_refused(digits, tmp_path):
    spec = clients_spec(small_spec(method="feddf", **ONCE | DIVERGING["in training"]))
    train_clients(build(digits, spec), tmp_path)
    path = tmp_path / "weights.safetensors"
    with pytest.raises(Diverged, match="loss of client 0 in private training is"):
        load_weights(path, spec, {spec.digest()})
    path.write_bytes(path.read_bytes().replace(b"loss of client 0", b"loss of client 1"))
    with refused("is damaged: its digest does not match"):
        load_weights(path, spec, {spec.digest()})


def test_a_run_in_which_clients_are_absent_is_not_made_in_stages():
    spec = small_spec(method="feddf", participation=0.5, **ONCE)
    assert not in_stages(spec)
    with refused("participation: a run in which clients are absent is not made in stages"):
        clients_spec(spec)


def test_a_run_of_several_rounds_is_not_made_in_stages():
    spec = small_spec(method="feddf", rounds=2)
    assert not in_stages(spec)
    with refused("method feddf with rounds = 2: a run that is not one-shot is not made in stages"):
        clients_spec(spec)


class Sure(OneShot):
    """Distils the clients' mean, as all of these do; nothing else is its own."""

    def targets(self, logits):
        return logits.softmax(-1).mean(0)


class HoldsOut(Sure):
    holdout: ClassVar[float] = 0.2


class Begins(Sure):
    def init(self, fed):
        fed.broadcast(fed.clients[0].state())


class OwnRound(Sure):
    def round(self, fed, r):
        fed.train_private(proximal_mu=0.1)
        self.exchange(fed, fed.logits(fed.public))


class Averages(Sure):
    def after_training(self, fed):
        fed.broadcast(fed.merge())


class Groups(FedHKT):
    def after_training(self, fed):
        fed.broadcast(fed.merge())


class TrainsTwice(Local):
    def round(self, fed, r):
        fed.train_private()
        fed.train_private(part=2)


@pytest.mark.parametrize("kind", [HoldsOut, Begins, OwnRound, Averages, Groups, TrainsTwice])
def test_clients_that_do_more_than_those_of_local_are_not_made_in_stages(kind):
    spec = small_spec(method=f"{__name__}:{kind.__name__}", **ONCE)
    assert not in_stages(spec)
    said = f"method {spec.method.name}: a run whose clients keep samples back or do more than train"
    with refused(f"{said} before they predict is not made in stages; train it in one piece"):
        clients_spec(spec)


def test_a_one_shot_method_of_ones_own_that_changes_no_client_is_made_in_stages():
    assert in_stages(small_spec(method=f"{__name__}:Sure", **ONCE))
    built_in = catalogue("fedlogit.methods", methods.Method)
    one_shot = [name for name, cls in built_in.items() if cls.one_shot]
    assert {"local", "fedhkt", "fedol"} < set(one_shot)
    for name in one_shot:
        assert in_stages(small_spec(method=name, **ONCE))


def test_stopped_clients_go_on(digits, clients, tmp_path, monkeypatch):
    """Two of four clients are done when the job is killed; the others follow, to the same bits."""
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    saved = []

    def dies(path, *given):
        if len(saved) == 2:
            raise KeyboardInterrupt
        saved.append(path)
        original(path, *given)

    original = stages.save_part
    with monkeypatch.context() as patch:
        patch.setattr(stages, "save_part", dies)
        with pytest.raises(KeyboardInterrupt):
            train_clients(build(digits, spec), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "part-0.safetensors",
        "part-1.safetensors",
    ]
    fed = build(digits, spec, workers=2)
    made = train_clients(fed, tmp_path)
    remove_parts(len(fed.clients), tmp_path)
    record = read_sealed(clients / "clients.json", "")
    assert made == {key: record[key] for key in ("weights_digest", "loss_private")}
    assert [p.name for p in tmp_path.iterdir()] == ["weights.safetensors"]
    one, other = (load_file(p / "weights.safetensors") for p in (clients, tmp_path))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_clients_do_not_wait_for_each_other(digits, tmp_path, monkeypatch):
    """All train in one call, the costliest first, and each is saved while others still train."""
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    fed = build(digits, spec, workers=2)
    run = fed.engine.run

    def last_waits(task):
        if task.client.index == 3:
            until(lambda: len(list(tmp_path.glob("part-*"))) == 3, seconds=20)
        return run(task)

    monkeypatch.setattr(fed.engine, "run", last_waits)
    train_clients(fed, tmp_path)
    assert len(list(tmp_path.glob("part-*"))) == 4


def test_the_first_client_that_diverged_is_named_whoever_did_so_first(
    digits, tmp_path, monkeypatch
):
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    fed = build(digits, spec, workers=2)
    run = fed.engine.run

    def diverges(task):
        if task.client.index in (1, 3):
            raise Diverged(f"loss of client {task.client.index} is nan")
        return run(task)

    monkeypatch.setattr(fed.engine, "run", diverges)
    assert train_clients(fed, tmp_path)["diverged"] == "loss of client 1 is nan"


def test_finished_clients_whose_job_failed_are_not_trained_again(tmp_path, monkeypatch):
    """Slurm ended the job too late for training, but Snakemake has deleted its outputs."""
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    write_json(tmp_path / "spec.json", spec.model_dump(mode="json"))
    places = ("--spec", str(tmp_path / "spec.json"), "--out", str(tmp_path / "x"))
    command = (*places, "--data", str(tmp_path), "--device", "cpu", "--workers", "2", "--quiet")
    done = script("train_clients", *command)
    assert not done.returncode, done.stderr
    outputs = [tmp_path / "x" / name for name in ("weights.safetensors", "clients.json")]
    before = [path.read_bytes() for path in outputs]
    for path in outputs:
        path.unlink()
    monkeypatch.setattr("fedlogit.runs.stages.train_clients", None)
    done = script("train_clients", *command)
    assert not done.returncode, done.stderr
    assert "had finished before; its files are put back" in done.stderr
    assert [path.read_bytes() for path in outputs] == before


@pytest.mark.parametrize(
    "moment", ["runs.finishing.keep_outputs", "commands.train_clients.remove_parts"]
)
def test_clients_whose_job_is_stopped_in_its_last_seconds_are_not_trained_again(
    tmp_path, monkeypatch, moment
):
    spec = clients_spec(small_spec(method="feddf", **ONCE))
    write_json(tmp_path / "spec.json", spec.model_dump(mode="json"))
    places = ("--spec", str(tmp_path / "spec.json"), "--out", str(tmp_path / "x"))
    command = (*places, "--data", str(tmp_path), "--device", "cpu", "--engine", "loop", "--quiet")

    def stopped(*_):
        raise KeyboardInterrupt

    def trains(self):
        raise AssertionError("they should have been kept")

    with monkeypatch.context() as patch:
        patch.setattr(f"fedlogit.{moment}", stopped)
        with pytest.raises(KeyboardInterrupt):
            script("train_clients", *command)
    assert not (tmp_path / "x/clients.json").exists()
    monkeypatch.setattr("fedlogit.federation.Federation.train_private", trains)
    done = script("train_clients", *command)
    assert not done.returncode, done.stderr
    assert ("had finished before" in done.stderr) == moment.endswith("remove_parts")
    made = ["clients.json", "spec.json", "weights.safetensors"]
    assert sorted(p.name for p in (tmp_path / "x").glob("[!.]*")) == made


def _change(arrays, key, value):
    return {**arrays, key: value}


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda a: _change(a, "public_001", a["public_001"][:-1]), "client 1: public .* 59 rows"),
        (lambda a: _change(a, "public_002", a["public_002"][:, :9]), "client 2: .* 9 classes"),
        (lambda a: _change(a, "test_000", a["test_000"][:, :9]), "client 0: test .* 9 classes"),
        (lambda a: _change(a, "public_003", a["public_003"] * np.nan), "client 3: .* not finite"),
        (lambda a: _change(a, "public_000", a["public_000"][0]), r"client 0: .* shape \(10,\)"),
        (lambda a: _change(a, "public_000", a["public_000"] + 1), "its digest differs"),
        (lambda a: {k: v for k, v in a.items() if k != "points"}, "has no 'points'"),
        (lambda a: {"points": a["points"]}, "has no logits"),
        (lambda a: {"points": a["points"], "logits": a["public_000"]}, "has no logits"),
        (
            lambda a: {k: v for k, v in a.items() if k != "public_001"},
            "has no public logits of client 1",
        ),
    ],
)
def test_logits_that_are_not_what_they_should_be(clients, tmp_path, break_it, said):
    arrays = load_npz(clients / "logits.npz")
    save_npz(tmp_path / "logits.npz", break_it(arrays))
    (tmp_path / "logits.json").write_text((clients / "logits.json").read_text())
    with pytest.raises(DataError, match=said) as error:
        load_logits(tmp_path / "logits.npz")
    assert "logits.npz" in str(error.value)


def test_answers_to_another_question_are_refused(digits, clients, tmp_path):
    other = small_spec(method="feddf", **ONCE | {"seed": 1})
    weights = weights_of(clients, small_spec(method="feddf", **ONCE))
    given = Precomputed(weights, load_logits(clients / "logits.npz"))
    options = RunOptions(torch.device("cpu"), engine="loop", progress=False)
    with pytest.raises(FedlogitError, match="other public samples"):
        run(
            other, methods.get(other.method), digits, divide(other, digits), tmp_path, options,
            given,
        )  # fmt: skip


def test_clients_and_targets_of_another_run_are_refused(clients, tmp_path):
    """Same clients' number, same public set, but trained for longer; targets of other logits."""
    spec = small_spec(method="feddf", **ONCE)
    longer = small_spec(method="feddf", **ONCE | {"local": {"epochs": 5}})
    paths = (clients / "weights.safetensors", clients / "logits.npz")
    with pytest.raises(DataError, match="belongs to another spec"):
        load_precomputed(longer, *paths, None)
    answers = load_logits(paths[1])
    other = dataclasses.replace(answers, digest="0" * 64)
    uniform = torch.full((60, 10), 0.1)
    made = as_targets(uniform, answers.public, "f")
    save_targets(made, other, spec.method, tmp_path / "targets.npz")
    with pytest.raises(DataError, match="targets made of other logits"):
        load_precomputed(spec, *paths, tmp_path / "targets.npz")


def test_weights_of_other_clients_are_refused(clients):
    five = small_spec(method="feddf", **ONCE | {"clients": 5})
    with pytest.raises(DataError, match="no weights of client 4"):
        weights_of(clients, five, small_spec(method="feddf", **ONCE))
    three = small_spec(method="feddf", **ONCE | {"clients": 3})
    with pytest.raises(DataError, match=r"has weights of client 3 \(of 3\)"):
        weights_of(clients, three, small_spec(method="feddf", **ONCE))
    with pytest.raises(DataError, match="belongs to another spec"):
        weights_of(clients, small_spec(method="feddf", **ONCE | {"seed": 7}))
    (clients / "broken.safetensors").write_bytes(b"not weights")
    with pytest.raises(DataError, match="not a readable file of weights"):
        load_weights(clients / "broken.safetensors", five)


def test_logits_json_says_what_is_there(clients):
    note = json.loads((clients / "logits.json").read_text())
    assert note["shape"] == [4, 60, 10]
    assert note["logits_digest"] == load_logits(clients / "logits.npz").digest


def test_a_run_names_the_code_and_data_that_its_clients_and_their_answers_are_of(clients, tmp_path):
    for name in ("weights.safetensors", "logits.npz"):
        shutil.copy(clients / name, tmp_path)
    made = {"code_version": "1", "own_code": {"lab": "aa"}, "device": "CPU test", "engine": "loop"}
    made |= {"wall_seconds": 2.5, "started": "2026-01-02"}
    data = {f"{what}_digest": what for what in ("dataset", "tokenizer", "probes", "split")}
    trained, answered = (
        read_sealed(clients / f"{name}.json", "") for name in ("clients", "logits")
    )
    write_sealed(tmp_path / "clients.json", trained | made | data)
    write_sealed(tmp_path / "logits.json", answered | {"code_version": "2"})
    paths = (tmp_path / "weights.safetensors", tmp_path / "logits.npz", None)
    given = load_precomputed(small_spec(method="local", **ONCE), *paths)
    assert given.note == {f"clients_{key}": value for key, value in made.items()} | {
        "logits_digest": answered["logits_digest"],
        "logits_code_version": "2",
    }
    assert given.data == data


def test_clients_of_a_model_that_has_changed_since_are_refused(
    digits, tmp_path, monkeypatch, own_modules
):
    """Weights trained with ReLU fit the same network with tanh."""
    (tmp_path / "own_net.py").write_text(OWN_NET)
    once = ONCE | {"models": ["own_net:Net(hidden=[8])"], "local": {"epochs": 1}}
    spec = small_spec(method="local", **once)
    of = {"spec_digest": clients_spec(spec).digest(), "code_version": "0"}
    made = of | train_clients(build(digits, clients_spec(spec)), tmp_path)
    own = imported_own_code(spec.model_dump(mode="json"))
    write_sealed(tmp_path / "clients.json", made | {"own_code": own | {"own_cut": "of a split"}})
    export_logits(build(digits, spec), weights_of(tmp_path, spec), tmp_path)
    paths = (tmp_path / "weights.safetensors", tmp_path / "logits.npz", None)
    assert load_precomputed(spec, *paths).weights
    (tmp_path / "own_net.py").write_text(f"{OWN_NET}# now with tanh\n")
    monkeypatch.delitem(sys.modules, "own_net")  # as in the process that goes on
    with refused("clients.json: the models are of other code: own_net ") as refusal:
        load_precomputed(spec, *paths)
    assert str(refusal.value).endswith(f"; remove {tmp_path} and give the same command again")
    write_sealed(tmp_path / "clients.json", made)
    with refused("own_net none -> "):
        load_precomputed(spec, *paths)


def test_the_logits_that_a_run_exports_are_answers(clients, tmp_path):
    arrays = load_npz(clients / "logits.npz")
    public = np.stack([arrays[name] for name in sorted(arrays) if name.startswith("public_")])
    exported = {"logits": public, "points": arrays["points"], "labels": arrays["points"] % 10}
    save_npz(tmp_path / "logits.npz", exported)
    answers = load_logits(tmp_path / "logits.npz")
    assert answers.public.numpy().tolist() == public.tolist()
    assert len(answers.test) == 0
