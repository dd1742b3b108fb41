"""Runs of version 0.1 get the names of now; what they computed stays to the byte."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from calls import RUNS, script

from fedlogit.files import json_digest, read_json, write_json

OPTIMIZER = {"lifetime": "run", "scrub": False}


def as_before(folder: Path, scale: str = "paper", kernel: str = "autograd") -> Path:
    """Rewrite a run as version 0.1 had it, and return its folder, named by its hash of then."""
    spec, result = read_json(folder / "spec.json"), read_json(folder / "result.json")
    spec["optimizer"] = {
        key: value
        for key, value in spec["optimizer"].items()
        if key not in ("reset_every", "zero_nonfinite_grads")
    } | OPTIMIZER
    spec |= {"scale": scale, "kernel": kernel}
    del result["digest"], result["provenance"]["engine"]
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
    result["provenance"]["spec_digest"] = digest
    old = folder.with_name(f"seed0-{digest[:8]}")
    shutil.copytree(folder, old)
    write_json(old / "spec.json", spec)
    write_json(old / "result.json", result | {"digest": json_digest(result)})
    return old


def test_a_run_is_moved_and_its_numbers_stay(project, finished):
    folder = finished(export=["weights"])
    before = {p: p.read_bytes() for p in folder.rglob("[!.]*") if p.is_file()}
    old = as_before(folder, kernel="native")
    shutil.rmtree(folder)
    done = script("migrate_runs")
    assert done.stdout == "1 runs of version 0.1, 0 of them there twice\n"
    assert not old.exists()
    after = {p: p.read_bytes() for p in folder.rglob("[!.]*") if p.is_file()}
    result = folder / "result.json"
    assert after.pop(result) != before.pop(result)
    assert after == before
    assert read_json(result)["provenance"]["engine"] == "native"
    assert script("publish").returncode == 0, "which checks every digest"
    assert script("migrate_runs").stdout.startswith("0 runs")


def test_two_runs_that_are_one_now_are_one(project, finished):
    folder = finished()
    as_before(folder, "quick")
    as_before(folder, "extended")
    shutil.rmtree(folder)
    done = script("migrate_runs")
    assert done.stdout == "2 runs of version 0.1, 1 of them there twice\n"
    assert [path.parent for path in RUNS.rglob("result.json")] == [folder]


def test_of_two_that_differ_the_later_is_kept_and_it_is_said(project, finished):
    folder = finished()
    first, second = as_before(folder, "quick"), as_before(folder, "extended")
    shutil.rmtree(folder)
    rounds = (second / "rounds.csv").read_text()
    (second / "rounds.csv").write_text(rounds.replace("0.", "0.9", 1))
    result = read_json(first / "result.json")
    del result["digest"]
    result["provenance"]["finished"] = "2999-01-01T00:00:00+00:00"
    write_json(first / "result.json", result | {"digest": json_digest(result)})
    assert "are one run with different numbers; the later is kept" in script("migrate_runs").stdout
    assert (folder / "rounds.csv").read_text() == rounds
