"""Clients' logits in a folder: computed once, by one process at a time, and never another set's."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.calls import script
from support.small import small_spec

from fedlogit.files import load_npz, read_json, read_sealed, save_npz, write_json, write_sealed
from fedlogit.locks import held, is_held
from fedlogit.runs import progress
from fedlogit.runs.logit_files import load_logits

SPEC = small_spec(method="feddf", rounds=1)


def job(name: str, data: Path, spec: Path, out: Path, *more: str) -> tuple[int, str]:
    """Run a job; return its code and all it says."""
    places = ("--spec", str(spec), "--data", str(data), "--out", str(out), *more)
    done = script(name, *places, "--device", "cpu", "--workers", "1", "--quiet")
    return done.returncode, done.stdout + done.stderr


def export(clients: Path, spec: Path | None = None) -> tuple[int, str]:
    weights = ("--weights", str(clients / "weights.safetensors"))
    return job("export_logits", clients.parent, spec or clients / "spec.json", clients, *weights)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """The folder of clients and their logits."""
    folder = tmp_path_factory.mktemp("exported")
    write_json(folder / "spec.json", SPEC.model_dump(mode="json"))
    code, said = job("train_clients", folder, folder / "spec.json", folder / "clients")
    loss = read_json(folder / "clients/clients.json")["loss_private"]
    clients = f"{folder / 'clients'}: {SPEC.clients} clients"
    assert (code, said) == (0, f"{clients}, private loss {loss:.4f}\n")
    code, said = export(folder / "clients")
    assert (code, said) == (0, f"{folder / 'clients'}: logits of {SPEC.clients} clients\n")
    return folder / "clients"


@pytest.fixture
def clients(exported, tmp_path) -> Path:
    """A copy, which a test may change."""
    return shutil.copytree(exported, tmp_path / "clients")


def written(clients: Path) -> list[tuple[int, bytes]]:
    """Return when the logits and their record were written, and what they are."""
    files = [clients / name for name in ("logits.npz", "logits.json")]
    return [(file.stat().st_mtime_ns, file.read_bytes()) for file in files]


def test_logits_that_are_there_are_not_computed_again(clients):
    """A process whose list of runs is older than the logits asks for them once more."""
    before = written(clients)
    assert export(clients) == (0, f"{clients} is finished\n")
    assert written(clients) == before


def test_a_second_process_waits_and_then_finds_them(clients):
    stored = [file.read_bytes() for file in sorted(clients.glob("logits.*"))]
    names = sorted(file.name for file in clients.glob("logits.*"))
    for name in names:
        (clients / name).unlink()
    said: list[tuple[int, str]] = []
    second = threading.Thread(target=lambda: said.append(export(clients)))
    with held(clients / ".lock", ""):
        second.start()
        second.join(1.5)
        assert second.is_alive()
        assert not list(clients.glob("logits.*"))
        for name, content in zip(names, stored, strict=True):
            (clients / name).write_bytes(content)
        before = written(clients)
    second.join(60)
    assert [code for code, _ in said] == [0]
    assert f"another process makes {clients}; waiting for it to end" in said[0][1]
    assert f"{clients} is finished" in said[0][1]
    assert written(clients) == before


def test_a_second_process_that_finds_the_clients_trained_leaves_the_lock(clients):
    """Else it would export beside the first, on a lock of its own."""
    with held(clients / ".lock", ""):
        code, said = job("train_clients", clients.parent, clients / "spec.json", clients)
        assert (code, said) == (0, f"{clients} is finished\n")
        assert is_held(clients / ".lock")


def half_replaced(clients: Path) -> None:
    """A process was killed after it had written other logits, before their record."""
    arrays = load_npz(clients / "logits.npz")
    save_npz(clients / "logits.npz", arrays | {"public_000": arrays["public_000"] + np.float32(1)})


def damaged(clients: Path) -> None:
    (clients / "logits.npz").write_bytes(b"PK\x03\x04")


def record_damaged(clients: Path) -> None:
    (clients / "logits.json").write_text("{}")


def of_other_weights(clients: Path) -> None:
    """The clients were trained again since."""
    record = read_sealed(clients / "logits.json", "")
    write_sealed(clients / "logits.json", record | {"weights_digest": "0" * 64})


@pytest.mark.parametrize("how", [half_replaced, damaged, record_damaged, of_other_weights])
def test_what_does_not_fit_the_clients_is_exported_again(clients, exported, how):
    how(clients)
    assert export(clients)[0] == 0
    again, before = load_logits(clients / "logits.npz"), load_logits(exported / "logits.npz")
    assert again.digest == before.digest
    assert read_json(clients / "logits.json") == read_json(exported / "logits.json")


def test_logits_of_other_clients_are_not_overwritten(clients, tmp_path):
    other = tmp_path / "other"
    write_json(
        tmp_path / "other.json",
        small_spec(method="feddf", rounds=1, seed=8).model_dump(mode="json"),
    )
    assert job("train_clients", tmp_path, tmp_path / "other.json", other)[0] == 0
    before = written(clients)
    weights = ("--weights", str(other / "weights.safetensors"))
    code, said = job("export_logits", tmp_path, other / "spec.json", clients, *weights)
    assert code == 2
    assert f"{clients} holds logits of other clients (spec " in said
    assert said.count("\n") == 1
    assert written(clients) == before


def test_another_spec_on_the_same_weights_exports_anew(clients, tmp_path):
    """Its public set may be another, so what is there is not what it asks for."""
    record = read_sealed(clients / "logits.json", "")
    write_sealed(clients / "logits.json", record | {"spec_digest": "0" * 64})
    code, said = export(clients)
    assert (code, said) == (0, f"{clients}: logits of {SPEC.clients} clients\n")
    assert read_sealed(clients / "logits.json", "") == record


def test_what_is_refused_leaves_no_folder(clients, tmp_path):
    (clients / "weights.safetensors").write_bytes(b"")
    weights = ("--weights", str(clients / "weights.safetensors"))
    code, said = job("export_logits", tmp_path, clients / "spec.json", tmp_path / "new", *weights)
    assert code == 2
    assert str(clients / "weights.safetensors") in said
    assert not (tmp_path / "new").exists()


def test_a_terminal_gets_no_bar_that_would_not_move(clients, monkeypatch):
    screen = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=screen))
    for path in clients.glob("logits.*"):
        path.unlink()
    places = ("--spec", str(clients / "spec.json"), "--data", str(clients.parent))
    weights = ("--weights", str(clients / "weights.safetensors"), "--out", str(clients))
    done = script("export_logits", *places, *weights, "--device", "cpu")
    assert (done.returncode, done.stderr) == (0, "")
