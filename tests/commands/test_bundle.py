"""What travels to a machine that has neither Snakemake nor network."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.calls import script
from support.many import folder_of, specs_of
from support.small import TEXT, small_spec

from fedlogit.commands._many.archive import kind_of, unpack
from fedlogit.commands._many.inputs import modules_of
from fedlogit.component import ComponentRef
from fedlogit.data import load_arrays
from fedlogit.files import save_npz, write_json
from fedlogit.runs.paths import run_dir, split_dir


@pytest.fixture
def bundle(tmp_path):
    """Return a function that bundles the specs of a folder; what it leaves is in ``out``."""

    def call(*options: str):
        places = ("--data", f"{tmp_path}/data", "--results", f"{tmp_path}/results")
        given = (f"{tmp_path}/specs", *places, "--out", f"{tmp_path}/out")
        return script("bundle", *given, *options)

    return call


def prepared(folder: Path) -> None:
    """Put digits, which need no preparation, where prepared data sets lie."""
    arrays, _ = load_arrays("digits", folder)
    save_npz(folder / "data/digits.npz", arrays)
    write_json(folder / "data/digits.json", {})


def archives(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "out").glob("*"))


def test_specs_of_missing_runs_divisions_once_and_an_archive_for_each_data_set(tmp_path, bundle):
    prepared(tmp_path)
    changes = [{}, {"method": "uwa"}, {"seed": 1}, {"seed": 2}]
    *missing, finished = specs_of(tmp_path / "specs", *changes)
    write_json(folder_of(tmp_path, finished) / "result.json", {})
    done = bundle()
    assert done.returncode == 0, done.stderr
    assert archives(tmp_path) == ["digits.tar.gz", "specs.tar.gz"]
    assert kind_of(tmp_path / "out/specs.tar.gz") == "inputs"
    found = unpack(tmp_path / "out/specs.tar.gz", tmp_path / "there").files
    assert set(found) == {f"specs/{run_dir(spec)}.json" for spec in missing} | {
        f"partitions/{split_dir(spec)}/indices.npz" for spec in missing
    }
    assert len(found) == 5  # two runs share a division
    data = unpack(tmp_path / "out/digits.tar.gz", tmp_path / "there").files
    assert set(data) == {"data/digits.json", "data/digits.npz"}


@pytest.mark.parametrize("named", [(), ("digits",)])
def test_data_that_are_there_stay(tmp_path, bundle, named):
    prepared(tmp_path)
    specs_of(tmp_path / "specs", {})
    bundle("--without-data", *named)
    assert archives(tmp_path) == ["specs.tar.gz"]


@pytest.mark.parametrize(("seeds", "said"), [([0], "1 run is"), ([0, 1], "2 runs are")])
def test_one_run_is_not_called_runs(tmp_path, bundle, seeds, said):
    prepared(tmp_path)
    specs_of(tmp_path / "specs", *({"seed": seed} for seed in seeds))
    *_, last = bundle("--without-data").stdout.splitlines()
    assert last == f"{said} ready to travel in {tmp_path}/out"


def test_modules_outside_fedlogit_that_the_specs_need_are_named_in_one_line(tmp_path, bundle):
    method = {"name": "aggregator", "params": {"function": "examples.median:median"}}
    specs_of(tmp_path / "specs", {}, {"method": method, "rounds": 1})
    *_, told, last = bundle().stdout.splitlines()
    assert told.startswith("Not in these archives: examples.median, which the specs name; commit")
    assert last == f"2 runs are ready to travel in {tmp_path}/out"


def test_names_of_methods_partitions_and_models_lead_to_their_modules():
    spec = small_spec()
    own = spec.model_copy(update={"method": ComponentRef(name="trimmed:TrimmedMean")})
    lib = spec.model_copy(update={"method": ComponentRef(name="fedlogit.methods.uwa:UWA")})
    assert modules_of([own, lib, spec]) == ["trimmed"]
    models = (ComponentRef(name="mine.models:Small"),)
    part = ComponentRef(name="split:By", params={"of": ["other:f"]})
    assert modules_of([spec.model_copy(update={"models": models, "partition": part})]) == [
        "mine.models",
        "other",
        "split",
    ]


def test_nothing_is_written_when_all_is_finished(tmp_path, bundle):
    (spec,) = specs_of(tmp_path / "specs", {})
    write_json(folder_of(tmp_path, spec) / "result.json", {})
    assert bundle().stdout == "1 run is finished; there is nothing to bundle\n"
    assert archives(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataset": "mnist", "partition": "iid"}, "mnist.json does not exist; make it with py"),
        (TEXT | {"method": "fedavg"}, "sklearn_docs.bpe300.json does not exist; tokenise sklearn_"),
    ],
)
def test_data_that_are_missing_are_named_with_what_makes_them(tmp_path, bundle, changes, said):
    specs_of(tmp_path / "specs", changes)
    done = bundle()
    assert done.returncode == 2
    assert said in done.stderr
    assert archives(tmp_path) == []


def test_of_many_specs_that_are_none_the_first_are_told_a_line_each(tmp_path, bundle):
    (tmp_path / "specs").mkdir()
    for number in range(7):
        (tmp_path / f"specs/x{number}.json").write_text("{}")
    done = bundle()
    assert done.returncode == 2
    *first, rest = done.stderr.splitlines()
    files = [f"{tmp_path}/specs/x{number}.json: " for number in range(5)]
    assert [
        line for line, file in zip(first, files, strict=True) if f"error: {file}" in line
    ] == first
    everything = tmp_path / "results/bundle.errors.txt"
    assert rest == f"and 2 more: {everything}"
    assert everything.read_text().count("\n") == 7
    assert archives(tmp_path) == []


def test_a_data_set_to_leave_out_that_no_run_needs_is_refused(tmp_path, bundle):
    prepared(tmp_path)
    specs_of(tmp_path / "specs", {})
    done = bundle("--without-data", "digts")
    assert done.returncode == 2
    assert "unknown data set of --without-data 'digts'; did you mean 'digits'?" in done.stderr
    assert not (tmp_path / "out").exists()
