"""Runs that are here stay, the others come, and what cannot come is named with its reason."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc_objects.fs import generic
from support.cached_runs import shown_at_quick
from support.calls import RUNS, dvc, script

from fedlogit.commands import _objects
from fedlogit.commands._cache import nonempty_listing
from fedlogit.commands._error_lines import print_first
from fedlogit.commands._objects import put_in_place
from fedlogit.errors import FedlogitError
from fedlogit.results.runs.finished import finished_runs

pytestmark = pytest.mark.slow  # DVC takes seconds to start

REMOTE = Path("dvc-remote/files/md5")


@pytest.fixture
def away(published) -> tuple[Path, Path]:
    """Folders of two published runs, of which nothing is left here."""
    shutil.rmtree(RUNS)
    shutil.rmtree(".dvc/cache")
    return published


def objects(folder: Path) -> dict[str, Path]:
    """Return the remote's files of a run by name; its list of files is called `tree`."""
    outs = yaml.safe_load(RUNS.with_suffix(".dvc").read_text())["outs"]
    (tree,) = (out["md5"] for out in outs if Path("results", out["path"]) == folder)
    named = {item["relpath"]: item["md5"] for item in json.loads(stored(tree).read_text())}
    return {name: stored(digest) for name, digest in (named | {"tree": tree}).items()}


def trees() -> dict[str, str]:
    """Return what the cache lists: of each run, the digest of the list of its files."""
    return {run: out["md5"] for run, out in nonempty_listing(RUNS.with_suffix(".dvc")).items()}


def digest_of(path: Path) -> str:
    return path.parent.name + path.name


def stored(digest: str) -> Path:
    return REMOTE / digest[:2] / digest[2:]


def test_a_run_made_here_stays_and_the_others_come(away, finished):
    mine, theirs = finished(), away[1]
    before = (mine / "result.json").read_bytes()
    plain = dvc("pull")
    assert (plain.returncode, theirs.exists()) == (1, False)
    done = script("pull")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cache: 2 finished runs")
    assert "; here: 2\n1 of them are not the published files" in done.stdout
    assert (mine / "result.json").read_bytes() == before
    assert (theirs / "result.json").exists()
    # The command that it names.
    says = "dvc pull --force FOLDER puts the published run in the place of yours"
    assert f"{says} (which is one: {mine})" in done.stdout
    assert dvc("pull", "--force", str(mine)).returncode == 0
    assert (mine / "result.json").read_bytes() != before
    assert "made here" not in script("pull").stdout


def test_a_run_that_is_not_finished_stays_and_is_named(away):
    half, _ = away
    half.mkdir(parents=True)
    (half / "spec.json").write_text("{}")
    done = script("pull")
    assert done.returncode == 0
    assert (
        f"left alone: {half} is here and not finished; rm -r {half}; python -m fedlogit pull"
        in done.stderr
    )
    assert [path.name for path in half.iterdir()] == ["spec.json"]
    assert "; here: 1\n" in done.stdout


def test_what_an_interrupted_pull_left_empty_comes(away):
    for folder in away:
        folder.mkdir(parents=True)
    assert script("pull").returncode == 0
    assert all((folder / "result.json").exists() for folder in away)


def test_a_pull_that_is_interrupted_leaves_no_part_of_a_run(away, monkeypatch):
    """It would count as one that was made here."""
    copy, files = shutil.copyfile, len(objects(away[0])) - 1

    def interrupted(source: str, target: Path) -> None:
        copied.append(copy(source, target))
        if len(copied) == files + 1:  # the second run's first file
            raise KeyboardInterrupt

    copied: list[object] = []
    monkeypatch.setattr(_objects, "copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put_in_place(RUNS, trees(), remote=None)
    there = [folder for folder in away if folder.exists()]
    assert len(there) == 1
    assert {path.name for path in there[0].iterdir()} >= {"result.json", "rounds.csv", "spec.json"}
    assert not any(path.name.startswith(".") for path in RUNS.rglob("*"))


@pytest.mark.parametrize("begun", [True, False])
def test_a_run_that_a_job_begins_meanwhile_stays_and_the_rest_comes(away, monkeypatch, begun):
    """The folder of the other case cannot be made, for a file is in its place."""
    (first, *_), there = trees(), RUNS / next(iter(trees())) / ".lock"
    place = _objects._Objects.place

    def races(self: Any, tree: object, folder: Path) -> None:
        place(self, tree, folder)
        if not any(RUNS.glob("[!.]*")):
            where = there if begun else there.parent
            where.parent.mkdir(parents=True)
            where.write_text("")

    monkeypatch.setattr(_objects._Objects, "place", races)
    why = "is here now; it stays" if begun else "it cannot be written: Not a directory"
    assert put_in_place(RUNS, trees(), remote=None) == {first: why}
    assert [*finished_runs(RUNS)] == sorted({*away} - {RUNS / first})
    assert there.exists() == begun


def test_what_a_killed_pull_left_is_no_run_and_goes(away):
    left = RUNS / ".pull/run/result.json"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    assert not list(finished_runs(RUNS))
    assert put_in_place(RUNS, trees(), remote=None) == {}
    assert [*finished_runs(RUNS)] == sorted(away)
    assert not left.exists()


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ([{"md5": "0" * 32, "relpath": "../../out.json"}], f"names ../../out.json, {'0' * 32}"),
        ([{"md5": "0" * 32, "relpath": "/out.json"}], f"names /out.json, {'0' * 32}"),
        ([{"md5": "../../../out", "relpath": "a.json"}], "names a.json, ../../../out"),
        ([{"relpath": "a.json"}], "names a.json, None"),
        ({"md5": "0" * 32}, "is none"),
        (7, "is none"),
    ],
)
def test_a_list_of_files_that_leaves_its_folder_or_is_none_is_refused(away, listed, why):
    listed = json.dumps(listed).encode()
    digest = hashlib.md5(listed).hexdigest() + ".dir"
    stored(digest).parent.mkdir(exist_ok=True)
    stored(digest).write_bytes(listed)
    (run, *_) = trees()
    found = put_in_place(RUNS, {run: digest}, remote=None)
    assert found == {run: f"the list of its files {why} ({digest})"}
    assert not any(path.name.startswith("out") for path in Path().rglob("*"))


def test_a_remote_that_does_not_answer_is_asked_once(away, monkeypatch):
    asked = []

    def silent(fs: object, paths: list[str], *args: object, **kwargs: Any) -> None:
        asked.append(paths)
        for path, target in zip(paths, args[1], strict=True):
            kwargs["on_error"](path, target, TimeoutError("no answer"))

    monkeypatch.setattr(generic, "transfer", silent)
    where = f"remote cache ({Path('dvc-remote/files/md5').resolve()})"
    why = f"nothing could be fetched from {where}: no answer"
    assert put_in_place(RUNS, trees(), remote=None) == dict.fromkeys(trees(), why)
    assert [len(paths) for paths in asked] == [1]


def test_a_disk_that_is_full_is_one_line_and_no_fault_of_the_remote(away, monkeypatch):
    def full(fs: object, paths: list[str], *args: object, **kwargs: Any) -> None:
        for path, target in zip(paths, args[1], strict=True):
            half = Path(target).with_name(f".{'x' * 22}.tmp")
            half.write_text("half")
            kwargs["on_error"](path, target, OSError(errno.ENOSPC, "No space left", path))

    monkeypatch.setattr(generic, "transfer", full)
    cache = Path(".dvc/cache/files/md5").resolve()
    done = script("pull")
    assert (done.returncode, done.stderr) == (2, f"error: cannot write {cache}: No space left\n")
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize("command", ["pull", "publish"])
def test_a_remote_that_there_is_not_is_refused_whatever_is_missing(published, command):
    done = script(command, "--remote", "cahce")
    assert done.returncode == 2
    assert done.stderr == (
        "error: unknown remote of DVC 'cahce'; did you mean 'cache'? (one of: cache)\n"
    )


def test_a_folder_that_is_read_only_is_one_line(away, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", ".dvc/tmp")

    monkeypatch.setattr(_objects, "Repo", refuse)
    with pytest.raises(FedlogitError, match=r"cannot write \.dvc/tmp: Read-only file system"):
        put_in_place(RUNS, trees(), remote=None)


def test_lines_of_what_is_wrong_are_told_where_nothing_can_be_written(tmp_path, capsys):
    (tmp_path / "logs").write_text("a file where a folder should be")
    print_first([f"line {n}" for n in range(7)], tmp_path / "logs/cache.txt")
    told = capsys.readouterr().err.splitlines()
    assert told[:5] == [f"line {n}" for n in range(5)]
    assert told[5].startswith(f"and 2 more: cannot write {tmp_path}/logs/cache.txt: ")


def test_a_run_that_was_changed_by_hand_stays_and_is_an_error(published):
    changed = published[0] / "rounds.csv"
    changed.write_text(changed.read_text().replace("0.", "0.9", 1))
    before = changed.read_bytes()
    done = script("pull")
    assert done.returncode == 2
    assert f"error: {changed} is damaged or truncated" in done.stderr
    assert f"rm -r {published[0]}; python -m fedlogit pull {published[0]} has" in done.stderr
    assert changed.read_bytes() == before


def test_what_the_remote_lacks_is_named_and_the_rest_comes(away):
    lacking, whole = away
    gone = objects(lacking)["rounds.csv"]
    gone.unlink()
    done = script("pull")
    assert done.returncode == 2
    why = f"remote cache has no rounds.csv ({digest_of(gone)})"
    assert done.stderr.splitlines() == [f"error: {lacking} is missing; {why}"]
    assert (whole / "result.json").exists()
    assert not lacking.exists()


def test_what_is_damaged_in_the_remote_is_named(away):
    first, second = away
    damaged = objects(first)["rounds.csv"]
    damaged.chmod(0o644)
    damaged.write_text("round\n1\n")
    tree = objects(second)["tree"]
    tree.unlink()
    done = script("pull")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"error: {first} is missing; rounds.csv is damaged in remote cache ({digest_of(damaged)})",
        f"error: {second} is missing; remote cache has no list of its files ({digest_of(tree)})",
    ]


@pytest.mark.parametrize("name", ["rounds.csv", "tree"])
def test_what_is_damaged_in_the_cache_here_is_fetched_again(published, name):
    """DVC would take it for what its name says, so that each remedy would bring the damage back."""
    damaged = Path(".dvc/cache/files/md5", objects(published[0])[name].relative_to(REMOTE))
    before = damaged.read_bytes()
    damaged.chmod(0o644)
    damaged.write_text("round\n1\n")
    shutil.rmtree(published[0])
    done = script("pull", str(published[0]))
    assert done.returncode == 0, done.stderr
    assert damaged.read_bytes() == before
    assert (published[0] / "rounds.csv").read_bytes() == objects(published[0])[
        "rounds.csv"
    ].read_bytes()


def test_only_what_is_asked_for_comes(away):
    mine, other = away
    assert mine.parent == other.parent
    done = script("pull", str(mine.relative_to(RUNS)))
    assert done.stdout.startswith("of 2 published runs 1 are asked for\ncache: 1 finished runs, ")
    assert (mine.exists(), other.exists()) == (True, False)
    done = script("pull", str(mine.parent))
    assert done.stdout.startswith("cache: 2 finished runs")
    assert other.exists()


def test_a_folder_without_published_runs_is_refused(away):
    done = script("pull", "digitz")
    said = "unknown folder of published runs 'digitz'; did you mean 'digits'? (one of: digits)"
    assert (done.returncode, done.stderr) == (2, f"error: {said}\n")
    elsewhere = script("pull", "/elsewhere/digits")
    assert elsewhere.stderr == "error: /elsewhere/digits is not in results/runs, where runs are\n"
    assert script("pull", ".").stderr == "error: . is not in results/runs, where runs are\n"


def test_the_runs_of_a_paper_come_and_those_that_are_not_published_are_counted(away):
    shown_at_quick(1)
    done = script("pull", "--paper", "pilot", "--scale", "quick")
    assert done.returncode == 0, done.stderr
    assert [folder.exists() for folder in away] == [False, True]
    shown_at_quick(1, 2)
    done = script("pull", "--paper", "pilot", "--scale", "quick")
    assert done.stdout.startswith("not published: 1 of the 2 runs asked for\nof 2 published")
    done = script("pull", "--paper", "pilot", "--scale", "quick", "--seeds", "2")
    said = "error: none of the 1 runs asked for is published\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("options", [["digits", "--paper", "pilot"], ["--seeds", "1"]])
def test_half_of_what_asks_for_a_paper_is_refused(away, options):
    done = script("pull", *options)
    assert done.returncode == 2
    assert "--paper and --scale" in done.stderr
    assert not any(folder.exists() for folder in away)


def test_a_remote_that_does_not_answer_is_named(away):
    assert dvc("remote", "add", "lab", "https://localhost:9/lab").returncode == 0
    done = script("pull", "--remote", "lab")
    assert done.returncode == 2
    assert done.stderr.count("is missing; ") == 2
    assert "remote lab (" in done.stderr or "'lab'" in done.stderr
    assert not any(folder.exists() for folder in away), "nothing was put in place"
