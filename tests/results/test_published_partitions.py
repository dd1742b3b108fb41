"""results/partitions.csv: each partition that a published run has, which can be made again."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.calls import ROOT
from support.refusals import refused
from support.small import small_spec

from fedlogit.data import load, load_arrays, with_probes
from fedlogit.data.download import download
from fedlogit.data.prepare import prepare
from fedlogit.data.sources import SOURCES, Mirror, read_sources
from fedlogit.data.tokens import tokenise
from fedlogit.partition import divide
from fedlogit.spec import SplitSpec, Text
from scripts.partitions import main, table

ROWS = list(csv.DictReader((ROOT / "results" / "partitions.csv").open(encoding="utf-8")))
NAMES = sorted({row["partition"].partition("/")[0] for row in ROWS})
PREPARED = ROOT / "data" / "prepared"
MIRROR = os.environ.get("FEDLOGIT_MIRROR")


def record(digest: str, **changes) -> tuple[dict, dict]:
    spec = small_spec(**changes).model_dump(mode="json")
    return spec, {"provenance": {"split_digest": digest}}


def test_runs_on_one_partition_are_counted_together():
    same = [record("aa", method=method) for method in ("average", "uwa")]
    rows = list(csv.DictReader(io.StringIO(table([*same, record("bb", seed=9)]))))
    assert [(row["digest"], row["runs"]) for row in rows] == [("aa", "2"), ("bb", "1")]
    assert [row["partition"].partition("/")[0] for row in rows] == ["digits", "digits"]
    settings = SplitSpec.read(json.loads(rows[1]["settings"]), "settings")
    assert settings == small_spec(seed=9).split_spec()


def test_runs_on_one_partition_with_other_indices_are_refused():
    with refused("have different indices"):
        table([record("aa"), record("bb", method="uwa")])


@pytest.mark.slow
def test_the_committed_file_is_what_published_runs_say():
    assert main(["--root", str(ROOT), "--check"]) == 0


def _from_mirror(name: str, folder: Path) -> None:
    """Prepare a data set from the mirror alone, or skip; other sources may be far away."""
    entries = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))[name]
    if entries[0]["kind"] == "embedded":  # it comes with a library
        return
    (source,) = [source for source in read_sources(name) if isinstance(source, Mirror)]
    if not MIRROR or not all((Path(MIRROR) / file).is_file() for file in source.paths(name)):
        pytest.skip(f"{name} is not in data/prepared, and FEDLOGIT_MIRROR names no mirror with it")
    mirrors = {name: [entry for entry in entries if entry["kind"] == "mirror"]}
    (folder / "sources.yaml").write_text(json.dumps(mirrors))
    download(name, folder / "raw" / name, Path(MIRROR), folder / "sources.yaml")
    prepare(name, folder / "raw" / name, folder)


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory) -> Callable[[str, Text | None], Path]:
    """A function that returns the folder of a prepared data set, or skips."""
    folder = tmp_path_factory.mktemp("prepared")

    def of(name: str, text: Text | None = None) -> Path:
        tokens = f"{name}.bpe{text.vocabulary}.npz" if text else f"{name}.npz"
        if (PREPARED / tokens).exists():
            return PREPARED
        if not (folder / f"{name}.npz").exists():
            _from_mirror(name, folder)
        if text and not (folder / tokens).exists():
            texts, _ = load_arrays(name, folder)
            tokenise(texts, text.vocabulary, name).save(folder, name, text.vocabulary)
        return folder

    return of


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_published_partition_is_made_again_with_the_same_digest(folder_of, name):
    """The first seed of each. A NumPy with another stream of random numbers would differ."""
    of_name = [row for row in ROWS if row["partition"].startswith(f"{name}/")]
    first = {row["partition"].rpartition("/")[0]: row for row in reversed(of_name)}
    for row in first.values():
        spec = SplitSpec.read(json.loads(row["settings"]), "settings")
        data = load(name, folder_of(name, spec.text), spec.text)
        if spec.public and spec.public.dataset:
            data = with_probes(data, spec.public.dataset, folder_of(spec.public.dataset))
        assert divide(spec, data).digest == row["digest"], row["partition"]
