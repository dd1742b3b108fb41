"""Archives of runs from others: checked to the byte, filed in their own folders, never executed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import tarfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.calls import script
from support.damaging import damages
from support.refusals import refused
from support.sealed import seal
from support.small import small_spec
from test_bombs import memory_below

from fedlogit.commands._many.archive import kind_of, pack, unpack
from fedlogit.commands._many.filing import files_of_runs
from fedlogit.errors import FedlogitError
from fedlogit.files import file_digest, json_digest, read_json, write_json
from fedlogit.locks import held
from fedlogit.results.runs.finished import check_run
from fedlogit.runs.paths import run_dir

SPEC = small_spec(rounds=1, method="uwa", export=["aggregation", "weights"])
RUN = str(run_dir(SPEC))
Member = tuple[tarfile.TarInfo, bytes]


@pytest.fixture(scope="module")
def runs(reference, tmp_path_factory) -> Path:
    """A folder of runs with one that has finished."""
    root = tmp_path_factory.mktemp("sent") / "runs"
    (root / RUN).parent.mkdir(parents=True)
    trained = reference(rounds=1, method="uwa", export=["aggregation", "weights"])
    (root / RUN).symlink_to(trained, target_is_directory=True)
    return root


@pytest.fixture
def archive(runs, tmp_path) -> Path:
    path = tmp_path / "runs.tar.gz"
    pack(path, "runs", files_of_runs(runs, [RUN]))
    return path


def members(path: Path) -> list[Member]:
    with tarfile.open(path) as archive:
        return [(info, archive.extractfile(info).read()) for info in archive]


def write(path: Path, content: list[Member]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for info, data in content:
            archive.addfile(info, io.BytesIO(data))


def listed(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Change the files of an archive, and list them as they then are, as an attacker would."""
    (head, listing), *rest = members(path)
    files = {info.name: data for info, data in rest}
    change(files)
    about = json.loads(listing)
    about["files"] = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
    }
    parts = {head.name: json.dumps(about).encode(), **files}
    write(path, [(member(name, len(data)), data) for name, data in parts.items()])


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, "/etc/passwd"
    return info


def filed(archive: Path) -> tuple[int, str, list[str]]:
    """Unpack into results of its own; return code, errors, and all files that are there then."""
    results = archive.parent / "results"
    done = script("unpack", str(archive), "--runs", str(results / "runs"))
    found = [str(p.relative_to(results)) for p in results.rglob("*") if p.is_file()]
    return done.returncode, done.stderr, sorted(found)


def test_an_honest_archive_is_filed_without_what_the_cache_does_not_keep(archive, runs):
    code, said, files = filed(archive)
    assert (code, said) == (0, "")
    names = ["exports/aggregation.npz", "result.json", "rounds.csv", "spec.json"]
    assert files == [f"runs/{RUN}/{name}" for name in names]
    for name in names:
        assert file_digest(archive.parent / "results/runs" / RUN / name) == file_digest(
            runs / RUN / name
        )


def test_the_same_runs_give_the_same_bytes(archive, runs, tmp_path):
    pack(tmp_path / "again.tar.gz", "runs", files_of_runs(runs, [RUN]))
    assert (tmp_path / "again.tar.gz").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("../out", tarfile.REGTYPE, "leads out of a folder"),
        ("/tmp/fedlogit-out", tarfile.REGTYPE, "leads out of a folder"),
        ("..\\out", tarfile.REGTYPE, "leads out of a folder"),
        ("C:\\out", tarfile.REGTYPE, "leads out of a folder"),
        ("a//b", tarfile.REGTYPE, "has no plain name"),
        (".bashrc", tarfile.REGTYPE, "has no plain name"),
        (f"{RUN}/spec.json", tarfile.SYMTYPE, "is not a regular file"),
        (f"{RUN}/spec.json", tarfile.LNKTYPE, "is not a regular file"),
        ("folder", tarfile.DIRTYPE, "is not a regular file"),
        ("device", tarfile.CHRTYPE, "is not a regular file"),
        ("pipe", tarfile.FIFOTYPE, "is not a regular file"),
        ("more", tarfile.REGTYPE, "'more' is given twice or not listed"),
        ("sparse", tarfile.GNUTYPE_SPARSE, "is sparse"),
    ],
)
def test_a_member_that_no_archive_of_ours_has(archive, name, kind, said):
    write(archive, [*members(archive), (member(name, kind=kind), b"")])
    code, error, files = filed(archive)
    assert (code, files) == (2, [])
    assert said in error
    assert error.count("\n") == 1
    assert {p.name for p in archive.parent.iterdir()} <= {archive.name, "results"}


def test_the_first_of_two_alike_and_an_archive_that_ends_early(archive):
    whole = members(archive)
    write(archive, [*whole, whole[1]])
    assert "is given twice or not listed" in filed(archive)[1]
    write(archive, whole[:-1])
    assert "runs.tar.gz is cut off: " in filed(archive)[1]
    write(archive, whole[1:])
    assert "it has no manifest.json" in filed(archive)[1]


def test_damage_never_files_another_run(archive):
    good = archive.read_bytes()
    refusals = []
    for how in damages(archive, 40):
        folder = archive.parent / how.replace(" ", "-")
        folder.mkdir()
        try:
            unpack(archive, folder)
        except FedlogitError as error:
            refusals.append(str(error))
    assert len(refusals) >= 35  # the header's time and the like decide nothing
    assert not [line for line in refusals if "\n" in line]
    assert archive.read_bytes() == good


def test_a_bomb_is_refused_before_it_is_in_memory(tmp_path):
    path, size = tmp_path / "bomb.tar.gz", 1 << 28
    entry = {"size": size, "sha256": "0" * 64}
    about = {"kind": "runs", "made_by": "x", "files": {"a/b/c/d/spec.json": entry}}
    listing = json.dumps(about).encode()
    with gzip.open(path, "wb", 1) as file:
        for name, content in (("manifest.json", listing), ("a/b/c/d/spec.json", bytes(size))):
            file.write(member(name, len(content)).tobuf())
            file.write(content + bytes(-len(content) % 512))
    with refused("bomb.tar.gz is refused: it unpacks to 268,435,456 bytes"), memory_below(1 << 24):
        unpack(path, tmp_path / "out", limit=1 << 20)
    about["files"]["a/b/c/d/spec.json"]["size"] = 10  # and then it is as large all the same
    write(path, [(member("manifest.json", len(listing := json.dumps(about).encode())), listing),
                 (member("a/b/c/d/spec.json", 1 << 22), bytes(1 << 22))])  # fmt: skip
    with refused("a/b/c/d/spec.json is not what manifest.json says"):
        unpack(path, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("spec.json"))


@pytest.mark.parametrize("name", ["result.json", "rounds.csv", "spec.json"])
def test_a_table_or_record_that_would_fill_the_memory_is_refused_before_it_is_read(archive, name):
    size = (1 << 24) + 1
    listed(archive, lambda files: files.update({f"{RUN}/{name}": b"[" * size}))
    with (
        refused(f"'{RUN}/{name}' has {size:,} bytes; of JSON and CSV at most 16,777,216 are taken"),
        memory_below(1 << 22),
    ):
        unpack(archive, archive.parent / "out")
    assert not (archive.parent / "out").exists()


@pytest.mark.parametrize(
    "listing", [b"[]", b"{", b"[" * 100_000, b'{"kind": "other"}', b'{"format": 2}', b"\xff"]
)
def test_a_manifest_that_is_none(tmp_path, listing):
    path = tmp_path / "x.tar.gz"
    write(path, [(member("manifest.json", len(listing)), listing)])
    with refused("x.tar.gz"):
        kind_of(path)


def test_what_is_no_archive(tmp_path):
    (tmp_path / "x.tar.gz").write_text("text")
    with refused("x.tar.gz is damaged"):
        kind_of(tmp_path / "x.tar.gz")
    with refused("nowhere.tar.gz does not exist"):
        kind_of(tmp_path / "nowhere.tar.gz")


def test_a_file_that_is_not_there_is_not_packed(tmp_path):
    with refused(f"cannot read {tmp_path / 'x'}: No such file"):
        pack(tmp_path / "x.tar.gz", "runs", {"x": tmp_path / "x"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["payload.py", "exports/payload.py", "exports/payload.npz.so"])
def test_code_beside_a_run(archive, name):
    listed(archive, lambda files: files.update({f"{RUN}/{name}": b"import os"}))
    code, said, files = filed(archive)
    assert (code, files) == (2, [])
    assert f"'{RUN}/{name}' is not a file of a finished run" in said


@pytest.mark.parametrize("where", ["there", "missing", "wrong"])
def test_a_name_that_commands_the_terminal_is_not_printed(archive, where):
    name = f"a/b/c/\x1b]0;owned\x07\nerror: {archive}: all is well/spec.json"
    listed(archive, lambda files: files.update({name: b"{}"}))
    (head, listing), *rest = members(archive)
    if where == "missing":
        write(archive, [(head, listing), *rest[:-1]])
    if where == "wrong":
        about = json.loads(listing)
        about["files"][name]["size"] = -1
        listing = json.dumps(about).encode()
        write(archive, [(member("manifest.json", len(listing)), listing), *rest])
    code, said, files = filed(archive)
    assert (code, files) == (2, [])
    assert said == f"error: {archive} is refused: its member {name!r} has no plain name\n"


def test_a_run_in_another_runs_folder(archive):
    other = RUN[:-8] + "00000000"

    def moved(files: dict[str, bytes]) -> None:
        for name in list(files):
            files[name.replace(RUN, other)] = files.pop(name)

    listed(archive, moved)
    code, said, files = filed(archive)
    assert (code, files) == (2, [])
    assert said.startswith(f"error: {archive}: refused {other}: {other}: its spec belongs to ")


def test_numbers_that_were_changed(archive):
    name = f"{RUN}/result.json"

    def better(files: dict[str, bytes]) -> None:
        result = json.loads(files[name])
        files[name] = json.dumps(result | {"status": "diverged"}).encode()

    listed(archive, better)
    said = filed(archive)[1]
    assert f"error: {archive}: refused {RUN}: {name} is damaged: its digest does not" in said
    assert "run it again" not in said  # it was never here


def test_values_that_no_run_has_are_not_filed_though_their_digests_agree(archive):
    name = f"{RUN}/result.json"

    def sealed(files: dict[str, bytes]) -> None:
        result = json.loads(files[name])
        result.pop("digest")
        result["provenance"]["device"] = "\x1b[2JHi"
        files[name] = json.dumps(result | {"digest": json_digest(result)}).encode()

    listed(archive, sealed)
    code, said, files = filed(archive)
    assert (code, files) == (2, [])
    assert rf"{name}: provenance.device = '\x1b[2JHi': should be a text of one line" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["aggregation.npz", "more.npz"])
def test_an_export_that_the_result_does_not_list(archive, name, tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    data = pickle.dumps(Bomb())
    listed(archive, lambda files: files.update({f"{RUN}/exports/{name}": data}))
    code, said, files = filed(archive)
    assert (code, files) == (2, [])
    assert "result.json" in said
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "export",
    ["/etc/hostname", "../../spec.npz", "../spec.npz", "a\\b.npz", ".npz", "..", "x.npz\n", "x.py"],
)
def test_an_export_elsewhere_is_never_read(archive, export):
    name = f"{RUN}/result.json"

    def elsewhere(files: dict[str, bytes]) -> None:
        result = json.loads(files[name])
        result.pop("digest")
        result["exports"][export] = "0" * 64
        files[name] = json.dumps(result | {"digest": json_digest(result)}).encode()

    listed(archive, elsewhere)
    code, said, files = filed(archive)
    assert (code, files) == (2, [])
    assert f"{name}: exports lists {export!r}, should be a plain name" in said
    assert said.count("\n") == 1


def test_an_export_that_is_a_pipe_is_refused_and_not_waited_for(archive):
    filed(archive)
    root = archive.parent / "results/runs"
    export = root / RUN / "exports/aggregation.npz"
    export.unlink()
    os.mkfifo(export)
    with refused(f"{export} is no regular file; remove {root / RUN} and run it again"):
        check_run(root, root / RUN)


def test_a_run_that_is_here_stays_and_another_outcome_is_refused(archive):
    filed(archive)
    here = archive.parent / "results/runs" / RUN / "result.json"
    result = read_json(here)
    result["provenance"]["wall_seconds"] += 1
    write_json(here, result)
    seal(here.parent)
    before = here.read_bytes()
    assert filed(archive)[:2] == (0, "")  # trained here, with the same outcome
    assert here.read_bytes() == before
    result["final"]["accuracy"] += 0.001
    write_json(here, result)
    seal(here.parent)
    before = here.read_bytes()
    code, said, _ = filed(archive)
    assert code == 2
    assert said.startswith(
        f"error: {archive}: refused {RUN}: a run with another outcome is here, which stays"
    )
    assert here.read_bytes() == before


def test_a_run_that_has_begun_here_is_finished_by_the_one_that_arrives(archive):
    folder = archive.parent / "results/runs" / RUN
    folder.mkdir(parents=True)
    (folder / "checkpoint.safetensors").write_bytes(b"half")
    code, _, files = filed(archive)
    assert code == 0
    assert not [name for name in files if "checkpoint" in name]
    assert f"runs/{RUN}/result.json" in files


@pytest.mark.parametrize("name", ["specs/x.json", "data/a/b.npz", "code.py", "data/x.py"])
def test_inputs_that_are_none(tmp_path, name):
    (tmp_path / "file").write_text("{}")
    pack(tmp_path / "x.tar.gz", "inputs", {name: tmp_path / "file"})
    done = script("unpack", str(tmp_path / "x.tar.gz"), "--out", str(tmp_path / "there"))
    assert done.returncode == 2
    assert "is neither a spec nor a partition nor a prepared data set" in done.stderr
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("name", ["mnist.npz", "wikitext2.bpe-300.npz", "mnist.json"])
def test_prepared_data_that_are_not_what_their_name_says(tmp_path, name):
    (tmp_path / "file").write_text("none")
    pack(tmp_path / "x.tar.gz", "inputs", {f"data/{name}": tmp_path / "file"})
    done = script("unpack", str(tmp_path / "x.tar.gz"), "--out", str(tmp_path / "there"))
    assert done.returncode == 2
    assert f"data/{name} is " in done.stderr
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(("given", "said"), [("", "is empty"), ("folder", "folder is a folder")])
def test_paths_of_no_archive(tmp_path, given, said):
    (tmp_path / "folder").mkdir()
    done = script("unpack", given and str(tmp_path / given))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_one_input_that_is_none_leaves_the_others_where_they_are(tmp_path):
    data = tmp_path / "mnist.json"
    write_json(data, {})
    (tmp_path / "broken.npz").write_text("none")
    path, there = tmp_path / "x.tar.gz", tmp_path / "there"
    broken = "partitions/a/b/c/indices.npz"
    pack(path, "inputs", {"data/mnist.json": data, broken: tmp_path / "broken.npz"})
    done = script("unpack", str(path), "--out", str(there))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path}: {broken} is not a readable .npz archive")
    assert done.stderr.count("\n") == 1
    assert not there.exists()


def test_what_a_killed_unpack_left_goes_with_the_next(archive):
    left = archive.parent / "results/.unpack-0123/a/b.npz"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    assert filed(archive)[:2] == (0, "")
    assert [path.name for path in (archive.parent / "results").iterdir()] == ["runs"]


def test_the_folder_of_an_unpack_that_goes_on_is_left_alone(archive):
    live = archive.parent / "results/.unpack-0123"
    live.mkdir(parents=True)
    there = []
    with ThreadPoolExecutor() as pool:
        with held(live.with_name(".unpack.lock"), ""):
            other = pool.submit(filed, archive)
            time.sleep(1)
            there.append(live.exists())
        assert other.result()[0] == 0
    assert there == [True]
    assert not live.exists()


def test_inputs_are_checked_and_what_is_there_stays(tmp_path):
    write_json(tmp_path / "spec.json", SPEC.model_dump(mode="json"))
    data = tmp_path / "mnist.json"
    write_json(data, {})
    path, there = tmp_path / "x.tar.gz", tmp_path / "there"
    files = {"data/mnist.json": data, f"specs/{RUN}.json": tmp_path / "spec.json"}
    pack(path, "inputs", files)
    for said in ("2 files filed in", "0 files filed in"):
        assert said in script("unpack", str(path), "--out", str(there)).stdout
    (there / "data/mnist.json").write_text("other")
    done = script("unpack", str(path), "--out", str(there))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path}: refused data/mnist.json: ")
    pack(path, "inputs", {f"specs/{RUN[:-1]}0.json": tmp_path / "spec.json"})
    done = script("unpack", str(path), "--out", str(there))
    assert "its spec belongs to specs/" in done.stderr
