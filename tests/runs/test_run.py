"""Runs: the folder describes itself; same spec, same bits; stopped, damaged, resumed."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from support.outcomes import outcome, rows, same
from support.refusals import refused
from support.resuming import ctrl_c, ctrl_c_heeded, rounds_done, stop_after, trained_in_pieces
from support.small import SMALL, small_spec
from support.waiting import until

from fedlogit import __version__, methods
from fedlogit.cli import call, run_main
from fedlogit.commands import train as train_command
from fedlogit.errors import DataError, Diverged, FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import load_npz, read_json, write_json
from fedlogit.methods import LogitFederation
from fedlogit.methods.average import Average
from fedlogit.papers.metric_names import TESTED_COLUMNS
from fedlogit.runs import outputs
from fedlogit.runs.checkpoint import load_checkpoint, save_checkpoint
from fedlogit.runs.provenance import _versions
from fedlogit.runs.run import check_folder
from fedlogit.runs.setup import divide
from fedlogit.stopping import PATIENCE, exit_on_signal, stop_after_round

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_describes_itself(train):
    folder = train(method="uwa", export=["aggregation", "logits", "test_logits", "weights"])
    spec = small_spec(method="uwa", export=["aggregation", "logits", "test_logits", "weights"])
    assert read_json(folder / "spec.json") == spec.model_dump(mode="json")
    result = read_json(folder / "result.json")
    assert result["status"] == "finished"
    assert result["provenance"]["spec_digest"] == spec.digest()
    assert result["final"]["accuracy"] == pytest.approx(
        sum(result["final"]["per_client"]) / 4, abs=1e-12
    )
    table = rows(folder)
    assert [row["round"] for row in table] == ["1", "2", "3"]
    # 4 clients x 60 points x 10 classes x 4 bytes, and UWA's 4 x 60 densities x 4 bytes.
    assert table[0]["bytes_up.logits"] == "9600"
    assert table[0]["bytes_up.densities"] == "960"
    assert table[0]["bytes_up"] == "10560"
    assert result["bytes"]["up"] == {"logits": 28800, "densities": 2880}
    kept = load_npz(folder / "exports" / "aggregation.npz")
    assert kept["weights"].shape == (4, 60)
    assert kept["owned"].sum(1).tolist() == [3, 3, 3, 3]
    assert load_npz(folder / "exports" / "logits.npz")["logits"].shape == (4, 60, 10)
    assert load_npz(folder / "exports" / "test_logits.npz")["logits"].shape == (4, 360, 10)
    assert not list(folder.glob("checkpoint*"))


class Keeps(LogitFederation):
    """Names an export of its own, and has another that it does not name."""

    exports: ClassVar[frozenset[str]] = frozenset({"spread"})

    def aggregate(self, fed, logits):
        fed.export("spread", deviations=logits.std(0))
        fed.export("unnamed", logits=logits)
        return logits.mean(0).softmax(1)


class ListsExports(Keeps):
    exports: ClassVar[list[str]] = ["spread"]


class SpellsExports(Keeps):
    exports = "spread"


def test_a_method_of_one_s_own_names_what_it_exports(train):
    folder = train(method=f"{__name__}:Keeps", export=["spread"])
    assert [path.name for path in (folder / "exports").iterdir()] == ["spread.npz"]
    assert list(read_json(folder / "result.json")["exports"]) == ["spread.npz"]
    assert load_npz(folder / "exports/spread.npz")["deviations"].shape == (60, 10)
    assert not (train(method=f"{__name__}:Keeps") / "exports").exists()


@pytest.mark.parametrize(
    ("method", "name", "said"),
    [
        (
            f"{__name__}:Keeps",
            "unnamed",
            f"export = 'unnamed': method {__name__}:Keeps has none to write; give some of logits,"
            " shapley, spread, test_logits, weights",
        ),
        ("uwa", "aggregations", "give some of aggregation, logits, shapley, test_logits, weights"),
        (f"{__name__}:Keeps", "theory", f"method {__name__}:Keeps has none to write"),
        ("average", "../weights", "export.0 = '../weights': should be a name"),
        *(
            (
                f"{__name__}:{name}",
                "spread",
                f"method {__name__}:{name}: exports = {given!r}: should be a set of names, such as"
                " frozenset({'mine'})",
            )
            for name, given in (("ListsExports", ["spread"]), ("SpellsExports", "spread"))
        ),
    ],
)
def test_an_export_that_a_method_does_not_name_is_refused(method, name, said):
    with refused(said):
        small_spec(method=method, export=[name])


def test_a_spec_that_a_refused_run_left_with_its_lock_is_no_other_run(tmp_path):
    write_json(tmp_path / "x/spec.json", small_spec().model_dump(mode="json"))
    (tmp_path / "x/.lock").touch()
    check_folder(small_spec(seed=1), tmp_path / "x")
    (tmp_path / "x/rounds.csv").touch()
    with refused("x holds the run "):
        check_folder(small_spec(seed=1), tmp_path / "x")


def test_the_seconds_of_a_run_are_those_of_its_rounds_in_the_last_column(train):
    folder = train()
    took = [float(row["seconds"]) for row in rows(folder)]
    told = read_json(folder / "result.json")["provenance"]["wall_seconds"]
    assert told == pytest.approx(sum(took), rel=1e-12)
    assert [*rows(folder)[0]][-1] == "seconds"


def test_a_result_has_the_division_of_the_data_and_its_roles(train, digits):
    split = divide(small_spec(partition="frm"), digits)
    assert read_json(train(partition="frm") / "result.json")["split"] == {
        "counts": split.counts.tolist(),
        "rare_classes": list(split.roles.rare_classes),
        "free_riders": [3],
    }
    assert split.roles.rare_classes


def test_a_result_has_the_memory_of_the_process_in_bytes(train):
    told = read_json(train(rounds=1) / "result.json")["provenance"]["peak_memory_bytes"]
    assert 5e7 < told < 1e12  # PyTorch alone takes more than the first


def test_what_a_method_would_export_is_written_only_if_the_spec_asks(train):
    folder = train(method="uwa")
    assert read_json(folder / "result.json")["exports"] == {}
    assert not (folder / "exports").exists()


def test_same_spec_same_bits_whatever_the_workers(train, tmp_path):
    a = train(tmp_path / "a", export=["weights"])
    b = train(tmp_path / "b", export=["weights"])
    c = train(tmp_path / "c", workers=3, export=["weights"])
    assert same(outcome(a), outcome(b))
    assert same(outcome(a), outcome(c))


def test_another_seed_gives_other_bits(train, tmp_path):
    a = train(tmp_path / "a", export=["weights"])
    b = train(tmp_path / "b", export=["weights"], seed=1)
    assert not same(outcome(a), outcome(b))


def test_the_global_generator_is_left_alone(train):
    before = torch.random.get_rng_state()
    train(method="meta_model(per_class=5)")
    assert torch.equal(before, torch.random.get_rng_state())


def test_evaluation_rounds(train):
    table = rows(train(rounds=5, evaluation={"every": 4, "rounds": [1]}))
    assert [bool(row["accuracy"]) for row in table] == [True, False, False, True, True]


def test_what_a_tested_round_adds_is_what_papers_may_ask_of_no_other(train):
    both = {"every": 2, "validation": 100, "with_test": True}
    spec = {"train_size": 600, "participation": 0.5, "evaluation": both}
    untested, tested = rows(train(**spec, rounds=2))
    assert {name for name, text in tested.items() if text and not untested[name]} == TESTED_COLUMNS


@pytest.mark.parametrize(
    ("tail", "tested"), [(0, [3, 5]), (1, [3, 5]), (2, [3, 4, 5]), (9, [1, 2, 3, 4, 5])]
)
def test_all_of_the_tail_is_tested(tail, tested):
    spec = small_spec(rounds=5, evaluation={"every": 3, "tail": tail})
    assert [r for r in range(1, 6) if spec.tests_in(r)] == tested


def test_diverging_stops_with_a_result_that_says_so(train):
    folder = train(optimizer={"name": "sgd", "lr": 1e30})
    result = read_json(folder / "result.json")
    assert result["status"] == "diverged"
    assert "round 1: loss of client" in result["message"]
    assert result["final"] == {}


class ForgetsInTheEnd(Average):
    """Its models are other ones after the last round."""

    def finish(self, fed):
        fed.load_vectors(torch.zeros_like(fed.vectors()))


@pytest.mark.parametrize(("method", "tests"), [("average", 2), (f"{__name__}:ForgetsInTheEnd", 3)])
def test_the_last_test_is_the_last_rounds_unless_models_have_changed(
    train, monkeypatch, method, tests
):
    done, evaluate = [], Federation.evaluate
    monkeypatch.setattr(Federation, "evaluate", lambda fed: done.append(fed.round) or evaluate(fed))
    folder = train(method=method, rounds=2)
    final, last = read_json(folder / "result.json")["final"], rows(folder)[-1]
    assert len(done) == tests
    assert (str(final["loss_test"]) == last["loss_test"]) is (tests == 2)


def test_what_diverges_only_when_it_is_exported_has_a_result_that_says_so(train, monkeypatch):
    """As that of an adversary that nobody tests, but whose logits are to be written."""

    def asked(fed):
        raise Diverged("logits of client 3 are not finite")

    monkeypatch.setattr("fedlogit.federation.Federation.test_logits", asked)
    folder = train(export=["weights", "test_logits"])
    result = read_json(folder / "result.json")
    assert result["message"] == "after round 3: logits of client 3 are not finite"
    assert (result["status"], result["final"], result["exports"]) == ("diverged", {}, {})
    assert not (folder / "exports").exists()


def test_a_checkpoint_restores_everything(federation, tmp_path):
    fed = federation(models=["resnet_light(1)"])
    fed.server_state["server"] = torch.arange(3.0)
    fed.round = 1
    fed.ledger.start(1)
    fed.ledger.up("logits", torch.zeros(2, 5))
    fed.train_private()
    save_checkpoint(tmp_path, fed, [{"round": 1, "accuracy": 0.1 + 0.2}])
    other = federation(models=["resnet_light(1)"])
    assert load_checkpoint(tmp_path, other) == [{"round": 1, "accuracy": 0.1 + 0.2}]
    assert other.round == 1
    assert other.ledger.totals() == fed.ledger.totals()
    assert torch.equal(other.server_state["server"], torch.arange(3.0))
    assert len(other.private_losses) == len(fed.clients)
    assert other.private_losses == fed.private_losses
    for f in (fed, other):  # the next round needs parameters, buffers and moments to agree
        f.round = 2
        f.train_private()
    for mine, theirs in zip(fed.clients, other.clients, strict=True):
        assert torch.equal(mine.vector, theirs.vector)
        assert torch.equal(mine.state().buffers, theirs.state().buffers)


def test_a_checkpoint_has_what_is_to_be_exported_and_no_more(federation, tmp_path):
    fed = federation(method="uwa", export=["aggregation"])
    fed.export("aggregation", weights=torch.ones(2))
    fed.export("probes", images=torch.ones(3))
    save_checkpoint(tmp_path, fed, [])
    other = federation(method="uwa", export=["aggregation"])
    load_checkpoint(tmp_path, other)
    assert list(other.exported) == ["aggregation"]
    assert other.exported["aggregation"]["weights"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "checkpoint.previous.safetensors"])
@pytest.mark.parametrize("further", [[], ["--restart"]])
def test_a_checkpoint_that_is_a_folder_is_refused_before_training(tmp_path, name, further):
    write_json(tmp_path / "spec.json", SMALL)
    (tmp_path / "run" / name).mkdir(parents=True)
    places = ["--spec", str(tmp_path / "spec.json"), "--out", str(tmp_path / "run")]
    with refused(f"{tmp_path / 'run' / name} is a folder; remove it, or give another folder"):
        call("train", [*places, "--data", str(tmp_path), *further])
    assert [path.name for path in (tmp_path / "run").iterdir()] == [name]


def test_a_damaged_checkpoint_falls_back_to_the_one_before(federation, tmp_path):
    fed = federation()
    fed.round = 1
    save_checkpoint(tmp_path, fed, [{"round": 1}])
    fed.round = 2
    save_checkpoint(tmp_path, fed, [{"round": 1}, {"round": 2}])
    newest = tmp_path / "checkpoint.safetensors"
    data = bytearray(newest.read_bytes())
    data[-100] ^= 1
    newest.write_bytes(data)
    with pytest.warns(UserWarning, match="damaged"):
        assert load_checkpoint(tmp_path, federation()) == [{"round": 1}]
    newest.write_bytes(data[:50])
    with pytest.warns(UserWarning, match="not a readable checkpoint.*; trying the one before"):
        assert load_checkpoint(tmp_path, federation()) == [{"round": 1}]
    newest.write_bytes(data[:50])
    (tmp_path / "checkpoint.previous.safetensors").unlink()
    with pytest.warns(UserWarning, match="not a readable checkpoint.*; the run starts anew"):
        assert load_checkpoint(tmp_path, federation()) == []


def test_a_kill_while_saving_after_a_damaged_checkpoint_costs_no_sound_one(
    federation, tmp_path, monkeypatch
):
    def is_killed(*_):
        raise KeyboardInterrupt

    fed = federation()
    for r in (1, 2):
        fed.round = r
        save_checkpoint(tmp_path, fed, [{"round": i + 1} for i in range(r)])
    newest = tmp_path / "checkpoint.safetensors"
    newest.write_bytes(newest.read_bytes()[:50])
    with pytest.warns(UserWarning, match="trying the one before"):
        rows = load_checkpoint(tmp_path, fed)
    monkeypatch.setattr("fedlogit.runs.checkpoint.save_tensors", is_killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, fed, rows)
    assert load_checkpoint(tmp_path, federation()) == [{"round": 1}]


def test_a_file_system_without_links_keeps_the_checkpoint_before_and_the_result(
    train, tmp_path, monkeypatch
):
    def refuses(self, target):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(Path, "hardlink_to", refuses)
    folder = tmp_path / "run"
    with stop_after(2, monkeypatch):
        train(folder, every=0, export=["weights"])
    saved = sorted(path.name for path in folder.glob("*checkpoint*"))
    assert saved == ["checkpoint.previous.safetensors", "checkpoint.safetensors"]
    (folder / "checkpoint.safetensors").unlink()
    with rounds_done(monkeypatch) as done:
        train(folder, every=0, export=["weights"])
    assert done == [2, 3]
    kept, shown = (folder / name for name in (".result.json", "result.json"))
    assert kept.read_bytes() == shown.read_bytes()
    assert not kept.samefile(shown)


def test_a_file_system_that_sets_no_modes_keeps_checkpoints_and_weights(
    train, tmp_path, monkeypatch
):
    def refuses(self, mode, **_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "chmod", refuses)
    folder = trained_in_pieces(train, tmp_path / "run", monkeypatch, after=1, export=["weights"])
    assert (folder / "exports/weights.safetensors").exists()


def test_a_checkpoint_of_another_spec_is_refused(federation, train, tmp_path):
    fed = federation()
    fed.round = 1
    (tmp_path / "x").mkdir()
    save_checkpoint(tmp_path / "x", fed, [])
    with pytest.raises(DataError, match=r"checkpoint\.safetensors belongs to another spec"):
        train(tmp_path / "x", seed=9)


def test_a_folder_of_another_run_is_refused(train, tmp_path):
    folder = train(tmp_path / "x")
    with pytest.raises(FedlogitError, match="holds the run"):
        train(folder, seed=1)
    with pytest.raises(FedlogitError, match="one of them is from another run"):
        train(tmp_path / "seed0-00000000")


def test_a_spec_that_was_refused_is_in_nobodys_way(train, tmp_path):
    with pytest.raises(FedlogitError, match="model lenet takes images"):
        train(tmp_path / "x", models=["lenet"])
    assert read_json(train(tmp_path / "x") / "result.json")["status"] == "finished"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"accuracy": 0.5}, r"log\(accuracy=…\) is a column that every run has"),
        (
            {"personalized_accuracy": 0.5},
            r"log\(personalized_accuracy=…\) is a column that every run",
        ),
        ({"seconds": 1.0}, r"log\(seconds=…\) is a column that every run has"),
        ({"mine": torch.ones(2)}, r"log\(mine=…\) got a Tensor; give a number"),
        ({"mine": "1"}, r"log\(mine=…\) got a str; give a number"),
    ],
)
def test_columns_of_ones_own_are_numbers_under_names_of_their_own(train, monkeypatch, values, said):
    average = methods.get(small_spec().method)
    monkeypatch.setattr(type(average), "round", lambda self, fed, r: fed.log(**values))
    with pytest.raises(FedlogitError, match=f"method average: {said}"):
        train()


def test_a_column_of_numpys_numbers_is_saved_as_pythons(train, monkeypatch, tmp_path):
    average = methods.get(small_spec().method)
    values = {"share": np.float32(0.1), "count": np.int64(3), "found": True}
    monkeypatch.setattr(type(average), "round", lambda self, fed, r: fed.log(**values))
    with stop_after(2, monkeypatch):
        train(tmp_path / "x", every=0)
    table = rows(train(tmp_path / "x", every=0))
    # 0.1 in single precision is 13421773 / 2^27.
    assert [float(row["share"]) for row in table] == [13421773 / 2**27] * 3
    assert {(row["count"], row["found"]) for row in table} == {("3", "1")}


OWN = """
from fedlogit.methods.average import Average
class Own(Average):
    def aggregate(self, fed, logits):
        fed.log(größe=0.5)
        return super().aggregate(fed, logits)
"""


@pytest.mark.slow
def test_a_column_is_utf_8_whatever_the_locale(tmp_path):
    (tmp_path / "own_column.py").write_text(OWN, encoding="utf-8")
    write_json(tmp_path / "spec.json", SMALL | {"method": "own_column:Own"})
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        command(tmp_path / "spec.json", tmp_path / "run", tmp_path), check=False,
        env=os.environ | plain | {"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "größe" in (tmp_path / "run/rounds.csv").read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.5, "a float; give a tensor, which a"),
        (np.ones(2), "a ndarray; give a tensor, which a"),
        (torch.ones(2, dtype=torch.bfloat16), "of torch.bfloat16; give float32, or another type"),
        (torch.ones(2).to_sparse(), "a sparse tensor; give a dense one, which a"),
    ],
)
def test_memory_that_no_checkpoint_saves_is_refused_after_the_first_round(
    train, monkeypatch, value, said
):
    average = methods.get(small_spec().method)
    done = []

    def round_(self, fed, r):
        done.append(r)
        fed.server_state["mine"] = value

    monkeypatch.setattr(type(average), "round", round_)
    with refused(f"method average: server_state['mine'] is {said}"):
        train(every=0)
    assert done == [1]


def command(spec: Path, out: Path, data: Path, python: Path | str = sys.executable) -> list[str]:
    script = str(ROOT / "scripts" / "train.py")
    places = ["--spec", str(spec), "--out", str(out), "--data", str(data)]
    ways = ["--device", "cpu", "--workers", "2", "--checkpoint-seconds", "0", "--quiet"]
    return [str(python), script, *places, *ways]


def test_what_killed_attempts_left_half_written_is_removed(train, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    half = [folder / ".checkpoint.4711.safetensors", folder / ".tmpq3IyMK"]  # safetensors' own
    (folder / "exports").mkdir()
    half += [folder / "exports" / ".weights.815.safetensors", folder / "..result.7.json"]
    for path in half:
        path.write_bytes(b"half")
    train(folder)
    assert not any(path.exists() for path in half)
    assert (folder / ".result.json").exists()


def test_hidden_files_of_others_are_left_alone(train, tmp_path):
    folder = tmp_path / "run"
    mine = [folder / name for name in (".notes.2024.txt", "own/.spec.1.json", "own/.tmpabcdef")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    train(folder)
    assert all(path.exists() for path in mine)


def test_a_folder_of_other_files_is_refused_before_anything_is_written(tmp_path):
    write_json(tmp_path / "spec.json", SMALL)
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.tex").write_text("mine")
    _, *given = command(tmp_path / "spec.json", out, tmp_path)
    with pytest.raises(FedlogitError, match=r"thesis holds chapter.tex and no run; give a folder"):
        call("train", given[1:])
    assert [path.name for path in out.iterdir()] == ["chapter.tex"]


@pytest.mark.parametrize("name", [".lock", "rounds.csv", "exports/aggregation.npz"])
def test_a_folder_that_was_pulled_in_part_is_trained(tmp_path, name):
    write_json(tmp_path / "spec.json", SMALL)
    out = tmp_path / "run"
    (out / name).parent.mkdir(parents=True)
    (out / name).touch()
    _, *given = command(tmp_path / "spec.json", out, tmp_path)
    assert call("train", given[1:]) == 0


def stopped_by(kill: signal.Signals, call: list[str], out: Path) -> int:
    """Start a run, send it a signal once it has two checkpoints, and return its exit code."""
    process = subprocess.Popen(
        call,
        stderr=subprocess.DEVNULL,
        # In the background of a shell without job control, the tests ignore it, and all they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until((out / "checkpoint.previous.safetensors").exists, process=process, every=0.005)
    os.kill(process.pid, kill)
    return process.wait(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_stopped_run_resumes_to_the_same_bits(reference, tmp_path, python, kill):
    changes = {"rounds": 80, "export": ["weights"], "method": "fedavg"}
    write_json(tmp_path / "spec.json", SMALL | changes)
    whole = reference(**changes)
    for attempt in range(5):  # of which on a busy machine some may end before they are stopped
        out = tmp_path / f"out{attempt}"
        code = stopped_by(kill, command(tmp_path / "spec.json", out, tmp_path), out)
        if not (out / "result.json").exists():
            break
    expected = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGUSR1: 138}
    assert code == expected[kill]
    assert not (out / "result.json").exists()
    again = subprocess.run(command(tmp_path / "spec.json", out, tmp_path, python), check=False)
    assert again.returncode == 0
    assert same(outcome(whole), outcome(out))


def test_ctrl_c_saves_the_round_that_it_came_in(train, reference, tmp_path, monkeypatch, capfd):
    folder = tmp_path / "x"
    with ctrl_c(monkeypatch, round_number=2), pytest.raises(SystemExit) as stopped:
        train(folder, export=["weights"])
    assert stopped.value.code == 130
    said = capfd.readouterr().err
    assert "Ctrl-C again does not wait" in said
    assert "after round 2 of 3; the same command goes on" in said
    with rounds_done(monkeypatch) as done:
        train(folder, export=["weights"])
    assert done == [3]
    assert same(outcome(folder), outcome(reference(export=["weights"])))


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("during", ["_write_rows", "_last_test", "_exported"])
def test_a_run_whose_training_is_done_is_saved_before_it_stops(
    train, tmp_path, monkeypatch, during, asked
):
    """No checkpoint has the last round, and a run of one round has none at all."""
    original = getattr(outputs, during)

    def interrupted(*given):
        signal.raise_signal(asked)
        return original(*given)

    monkeypatch.setattr(outputs, during, interrupted)
    with ctrl_c_heeded(), exit_on_signal():
        folder = train(tmp_path / "x", rounds=1, export=["weights"])
    assert read_json(folder / "result.json")["status"] == "finished"


def test_a_second_ctrl_c_does_not_wait_for_the_round(train, tmp_path, monkeypatch):
    with ctrl_c(monkeypatch, round_number=2, times=2), pytest.raises(KeyboardInterrupt):
        train(tmp_path / "x")
    assert not list((tmp_path / "x").glob("checkpoint*"))


def test_a_second_ctrl_c_counts_while_the_first_is_answered(monkeypatch):
    """A handler may itself be interrupted by the next signal."""
    monkeypatch.setattr(os, "write", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), ctrl_c_heeded(), stop_after_round():
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_does_not_wait_for_ever(monkeypatch):
    def long_round() -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr("fedlogit.stopping.PATIENCE", 0.05)
    with pytest.raises(KeyboardInterrupt), ctrl_c_heeded(), stop_after_round():
        long_round()


def test_patience_ends_with_the_round(monkeypatch):
    with ctrl_c_heeded(), stop_after_round() as asked:
        signal.raise_signal(signal.SIGINT)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= PATIENCE
    assert asked == [signal.SIGINT]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_ctrl_c_is_ignored_where_the_process_ignores_it(train, tmp_path):
    """A shell without job control has those in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert (train(tmp_path / "x") / "result.json").exists()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        with stop_after_round() as asked:
            signal.raise_signal(signal.SIGINT)
        assert asked == []
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_finished_run_is_left_alone(train, tmp_path, python):
    folder = train(tmp_path / "x")
    write_json(tmp_path / "spec.json", SMALL)
    before = (folder / "result.json").stat().st_mtime_ns
    done = subprocess.run(command(tmp_path / "spec.json", folder, tmp_path, python), check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0
    assert done.stdout == f"{folder} is finished\n"
    assert (folder / "result.json").stat().st_mtime_ns == before


def test_a_finished_run_says_when_the_code_is_another_now(train, tmp_path, monkeypatch, capsys):
    folder = train(tmp_path / "x")
    write_json(tmp_path / "spec.json", SMALL)
    monkeypatch.setattr(train_command, "imported_code_version", lambda: "0.0.0+other")
    given = ("--spec", tmp_path / "spec.json", "--out", folder, "--data", tmp_path)
    call("train", list(map(str, given)))
    said = capsys.readouterr().out
    assert said.startswith(f"{folder} is finished, by other code (code_version {__version__}+")
    assert said.endswith("0.0.0+other); remove it to train it anew\n")


def test_a_finished_run_whose_job_failed_is_not_trained_again(train, tmp_path, capsys):
    """Slurm ended the job too late for training, but Snakemake has deleted its output."""
    folder = train(tmp_path / "x", export=["weights"])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / "result.json").unlink()
    train(folder, export=["weights"])
    assert "had finished before; its result is put back" in capsys.readouterr().err
    # Also the seconds that rounds took, which no second training would repeat.
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_run_killed_as_it_tidied_up_leaves_no_checkpoint(train, tmp_path):
    folder = train(tmp_path / "x")
    before = {path.name for path in folder.rglob("*")}
    (folder / "result.json").unlink()
    (folder / "checkpoint.previous.safetensors").touch()
    (folder / ".result.123.json").touch()
    train(folder)
    assert {path.name for path in folder.rglob("*")} == before


@pytest.mark.parametrize("what", ["rounds.csv", "exports/weights.safetensors", ".result.json"])
def test_a_run_that_is_not_whole_is_trained_again(train, tmp_path, capsys, what):
    folder = train(tmp_path / "x", export=["weights"])
    whole = outcome(folder)
    (folder / "result.json").unlink()
    (folder / what).write_bytes((folder / what).read_bytes()[:-9])
    train(folder, export=["weights"])
    assert "put back" not in capsys.readouterr().err
    assert same(outcome(folder), whole)


def test_other_code_trains_again(train, tmp_path, capsys, monkeypatch):
    folder = train(tmp_path / "x")
    (folder / "result.json").unlink()
    monkeypatch.setattr("fedlogit.runs.provenance.imported_code_version", lambda: "other")
    train(folder)
    assert "put back" not in capsys.readouterr().err
    assert read_json(folder / "result.json")["provenance"]["code_version"] == "other"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "avarage"}, "unknown method 'avarage'; did you mean 'average'?"),
        ({"method": "fedmd"}, "give tally_train(signal='probabilities')"),
        ({"local": {"epochs": 0.5}}, "local.epochs = 0.5: should be a whole number; for a part of"),
        ({"dataset": "digit"}, "unknown dataset 'digit'; did you mean 'digits'?"),
        ({"partition": "k_class(2)"}, "unknown partition 'k_class'; did you mean 'k_classes'?"),
        ({"models": ["lenett"]}, "unknown model 'lenett'; did you mean 'lenet'?"),
        ({"seed": 0.5}, "seed = 0.5"),
        ({"rounds": "three"}, "rounds = 'three'"),
        ({"round": 3}, "unknown key 'round'; did you mean 'rounds'?"),
        ({"method": "uwa(variance_floor=0)"}, "variance_floor = 0"),
        ({"method": "uwa(floor=1)"}, "unknown key 'floor'"),
        ({"public": None}, "method average needs a public set"),
        ({"export": ["aggregation"]}, "export = 'aggregation': method"),
    ],
)
def test_bad_specs_get_one_line(tmp_path, python, change, message):
    write_json(tmp_path / "spec.json", SMALL | change)
    out = tmp_path / "out"
    done = subprocess.run(command(tmp_path / "spec.json", out, tmp_path, python), check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"batch": 10**30}, "batch"),
        ({"rounds": 2**31}, "rounds"),
        ({"evaluation": {"tail": 10**30}}, "evaluation.tail"),
        ({"participation": {"number": 10**30}}, "participation.number"),
        ({"text": {"vocabulary": 10**20, "length": 1}}, "text.vocabulary"),
    ],
)
def test_numbers_beyond_what_libraries_count_are_refused(change, key):
    with pytest.raises(FedlogitError, match=rf"{key} = \d+: Input.* or equal to 2147483647$"):
        small_spec(**change)


def test_logits_on_a_public_set_that_there_is_not_are_refused():
    with refused("export of public logits needs a public set; give public: {size: n}"):
        small_spec(method="local", export=["logits"], public=None)


def test_a_device_that_is_not_there(tmp_path, python):
    write_json(tmp_path / "spec.json", SMALL)
    arguments = command(tmp_path / "spec.json", tmp_path / "out", tmp_path, python)
    arguments[arguments.index("cpu")] = "cuda:7"
    done = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "device = 'cuda:7' is not there (this machine has: cpu" in done.stderr


@pytest.mark.parametrize(
    ("engine", "options", "advice"),
    [
        ("loop", [], "lower batch (now 32)"),
        (
            "stacked",
            ["--runs-per-gpu", "3"],
            "lower runs_per_gpu (now 3) or batch (now 32), or take engine = 'loop' (now 'stacked')",
        ),
    ],
)
def test_a_device_without_enough_memory(tmp_path, monkeypatch, capsys, engine, options, advice):
    def loss(*_):
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1 GiB."
        )

    monkeypatch.setattr("fedlogit.engine.task.ClientTask.loss", loss)
    write_json(tmp_path / "spec.json", SMALL)
    out = tmp_path / "out"
    _, *arguments = command(tmp_path / "spec.json", out, tmp_path)
    monkeypatch.setattr(sys, "argv", [*arguments, *options, "--engine", engine])
    with pytest.raises(SystemExit) as stop:
        run_main(partial(call, "train"))
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "error: device = 'cpu' is out of memory (CUDA out of memory. Tried to allocate 2.00 GiB): "
        f"{advice}\n"
    )
    assert not (out / "result.json").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": ["mlp(hidden=[2000000000])"]}, "can't allocate memory: you tried to allocate"),
        ({"models": ["mlp_net(pad=1000000000)"]}, "Storage size calculation overflowed"),
        ({"server": {"model": "mlp(hidden=[2000000000])", "epochs": 1}, "method": "feddf"},
         "can't allocate memory: you tried to allocate"),
    ],
)  # fmt: skip
def test_a_model_too_large_for_the_memory_is_one_line(tmp_path, change, said):
    write_json(tmp_path / "spec.json", SMALL | {"rounds": 1} | change)
    _, *given = command(tmp_path / "spec.json", tmp_path / "out", tmp_path)
    with pytest.raises(FedlogitError, match=rf"^device = 'cpu' is out of memory \({said}") as error:
        call("train", given[1:])
    assert str(error.value).endswith(
        ": lower batch (now 32), or take smaller models or fewer clients"
    )
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out" / "result.json").exists()


def test_an_error_that_is_not_of_memory_stays_what_it_is(tmp_path, monkeypatch):
    def loss(*_):
        raise RuntimeError("a fault of the code")

    monkeypatch.setattr("fedlogit.engine.task.ClientTask.loss", loss)
    write_json(tmp_path / "spec.json", SMALL)
    _, *given = command(tmp_path / "spec.json", tmp_path / "out", tmp_path)
    with pytest.raises(RuntimeError, match=r"^a fault of the code$"):
        call("train", [*given[1:], "--engine", "loop"])


def test_json_that_is_not_json(tmp_path, python):
    (tmp_path / "spec.json").write_text(json.dumps(SMALL)[:-5])
    arguments = command(tmp_path / "spec.json", tmp_path / "out", tmp_path, python)
    done = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "is not valid JSON" in done.stderr


def test_others_may_read_weights_as_they_may_read_the_rest(train, tmp_path):
    folder = train(tmp_path / "x", export=["weights"])
    modes = {path.stat().st_mode for path in folder.rglob("*") if path.is_file()}
    assert len(modes) == 1


def test_models_that_would_be_nobodys_are_refused():
    """They would change a run's hash and nothing else."""
    models = [f"mlp(hidden=[{width}])" for width in range(1, 6)]
    with refused("models = mlp(hidden=[1]), ") as error:
        small_spec(models=models)
    assert str(error.value).endswith(": with clients = 4 give at most 4")
    assert len(small_spec(models=models[:4]).models) == 4


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("average", {"scikit_learn"}),
        ("uwa(fit='flow')", {"scikit_learn", "zuko"}),
        ("tally_train(warm_up=0, topology='regular', degree=2)", {"scikit_learn", "networkx"}),
    ],
)
def test_further_libraries_that_decide_bits_are_named(monkeypatch, method, wanted):
    monkeypatch.setattr("fedlogit.runs.provenance.version", lambda library: f"{library} 1.2")
    found = _versions(small_spec(method=method))
    assert found.keys() == wanted
    assert all(version.endswith(" 1.2") for version in found.values())
