"""The cache in the repository is whole: what a clone pulls is what the runs say they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from support.calls import ROOT

from fedlogit.commands._cache import read_listing
from fedlogit.commands.publish import LIMIT
from fedlogit.data import DATASETS
from fedlogit.papers import run_dir
from fedlogit.spec import RunSpec

OBJECTS = ROOT / "dvc-remote" / "files" / "md5"


def content(digest: str) -> bytes:
    data = (OBJECTS / digest[:2] / digest[2:]).read_bytes()
    assert hashlib.md5(data).hexdigest() == digest.removesuffix(".dir")
    return data


@pytest.mark.slow
def test_every_published_run_is_there_and_named_by_its_spec():
    outs = read_listing(ROOT / "results" / "runs.dvc").values()
    assert outs
    for out in outs:
        files = {f["relpath"]: content(f["md5"]) for f in json.loads(content(out["md5"]))}
        assert {"spec.json", "rounds.csv", "result.json"} <= set(files), out["path"]
        spec = RunSpec.read(json.loads(files["spec.json"]), out["path"])
        assert out["path"] == f"runs/{run_dir(spec)}"
        result = json.loads(files["result.json"])
        assert result["provenance"]["spec_digest"] == spec.digest()
        assert result["status"] in ("finished", "diverged")


def test_the_cache_is_small_and_git_has_no_run_beside_it():
    objects = [path for path in OBJECTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in objects) < LIMIT * 1e6
    assert f"beyond {LIMIT} MB" in (ROOT / "docs" / "cache.md").read_text()
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "/results/runs" in ignored


def test_each_data_set_of_a_published_run_can_be_kept_in_a_labs_remote_alone():
    """`dvc pull` of one file fails if the remote lacks any of its outputs."""
    published = {run.split("/")[0] for run in read_listing(ROOT / "results" / "runs.dvc")}
    kept = {path.stem for path in (ROOT / "data").glob("[!.]*.dvc")}
    assert kept == published - {"sklearn_docs"}, "which comes with scikit-learn"
    for name in kept:
        outs = yaml.safe_load((ROOT / "data" / f"{name}.dvc").read_text())["outs"]
        assert [out["path"] for out in outs] == [
            f"prepared/{name}.{end}" for end in ("json", "npz")
        ]
        assert name in DATASETS


def test_dvc_never_phones_home():
    for folder in (".dvc", "data/.dvc"):
        lines = [line.strip() for line in Path(ROOT, folder, "config").read_text().splitlines()]
        assert {"analytics = false", "check_update = false"} <= set(lines)
