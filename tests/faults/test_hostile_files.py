"""Files from others: nothing in them is executed, and nothing is written outside its folder."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from support.calls import script
from support.refusals import refused
from support.small import small_spec

from fedlogit.data.raw import Raw
from fedlogit.data.sources import read_sources
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import load_npz, read_json
from fedlogit.papers import load_paper
from fedlogit.partition import Split
from fedlogit.runs.checkpoint import load_checkpoint
from fedlogit.runs.client_files import load_weights
from fedlogit.runs.logit_files import load_logits
from fedlogit.yaml_files import load_yaml


class Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.fixture
def mark(tmp_path):
    """Yield a path that exists only if something from a file was executed."""
    path = tmp_path / "executed"
    yield path
    assert not path.exists()


def pickles(folder: Path, mark: Path) -> dict[str, Path]:
    """Return files that unpickle to a `Bomb`, in each way arrays are stored."""
    bomb = Bomb(mark)
    plain, zipped, array, tensors = (folder / f"{n}.npz" for n in ("plain", "zip", "array", "pt"))
    plain.write_bytes(pickle.dumps(bomb))
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("client_000.npy", pickle.dumps(bomb))
    np.savez(array, client_000=np.array([bomb], dtype=object), points=np.array([bomb], object))
    torch.save({"weights": bomb}, tensors)
    return {path.stem: path for path in (plain, zipped, array, tensors)}


def test_the_bomb_goes_off_where_it_is_unpickled(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "executed")))
    assert (tmp_path / "executed").exists()


@pytest.mark.parametrize("how", ["plain", "zip", "array", "pt"])
def test_pickles_posing_as_arrays(tmp_path, mark, how):
    path = pickles(tmp_path, mark)[how]
    for read in (load_npz, Split.load, load_logits):
        with pytest.raises(DataError, match=path.name) as error:
            read(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("how", ["plain", "pt"])
def test_pickles_posing_as_weights(tmp_path, mark, how, federation):
    path = pickles(tmp_path, mark)[how]
    with pytest.raises(DataError, match="not a readable file of weights"):
        load_weights(path, small_spec())
    path.rename(tmp_path / "checkpoint.safetensors")
    with pytest.warns(UserWarning, match="not a readable checkpoint"):
        assert load_checkpoint(tmp_path, federation()) == []


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:pathlib.Path.touch [{mark}]",
        "!!python/object/new:pathlib.PosixPath [{mark}]",
        "!!python/name:os.system ''",
        "!!python/module:os ''",
    ],
)
def test_yaml_that_constructs_objects(tmp_path, mark, tag):
    text = tag.replace("{mark}", str(mark))
    path = tmp_path / "p.yaml"
    path.write_text(f"paper: {text}\n")
    for read in (load_yaml, lambda p: load_paper("p", p.parent), lambda p: read_sources("tiny", p)):
        with pytest.raises(FedlogitError, match="not valid YAML: could not determine a constr"):
            read(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("paper: Müller\n".encode("latin-1"), "p.yaml is not UTF-8"),
        (b"title: 2001-99-99\n", "p.yaml is not valid YAML: month must be in 1..12"),
    ],
)
def test_yaml_in_another_encoding_or_with_a_date_that_is_none(tmp_path, content, said):
    path = tmp_path / "p.yaml"
    path.write_bytes(content)
    for read in (load_yaml, lambda p: load_paper("p", p.parent), lambda p: read_sources("tiny", p)):
        with refused(said):
            read(path)


# Python's own parser ends at about 1,000; from 200 on, pydantic's does.
@pytest.mark.parametrize("depth", [500, 100_000])
def test_json_that_is_nested_too_deeply(tmp_path, depth):
    path = tmp_path / "spec.json"
    path.write_text(f'{{"dataset": {"[" * depth}{"]" * depth}}}')
    done = script("train", "--spec", str(path), "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path}")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_json_that_would_fill_the_memory_is_not_read(tmp_path):
    path = tmp_path / "result.json"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)  # a hole, which takes no room
    with refused("result.json is refused: it has 67,108,865 bytes of JSON, more than 67,108,864"):
        read_json(path)


def test_snakemake_reads_config_yaml_without_constructing(tmp_path, mark):
    from snakemake.common.configfile import load_configfile
    from snakemake.exceptions import WorkflowError

    path = tmp_path / "config.yaml"
    path.write_text(f"papers: !!python/object/apply:os.mknod [{mark}]\n")
    with pytest.raises(WorkflowError):
        load_configfile(str(path))


@pytest.mark.parametrize("name", ["../../out", "/tmp/fedlogit-out", "a/../../../out", "..\\out"])
def test_paths_that_climb_out_of_a_zip(tmp_path, name):
    folder = tmp_path / "deep" / "raw"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        archive.writestr(name, b"1")
        archive.writestr("wanted", b"2")
    before = set(Path("/tmp").glob("fedlogit-out"))
    with pytest.raises(DataError, match=r"^x\.zip is refused: its member .* leads out"):
        Raw(folder).read(["wanted"])
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["x.zip"]
    assert set(Path("/tmp").glob("fedlogit-out")) == before
