"""Runs that are here stay, the others come, and what cannot come is named with its reason."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support.calls import RUNS, dvc, script

from fedlogit.commands import pull
from fedlogit.commands._cache import kept

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
    assert f"left alone: {half} is here and not finished; rm -r {half}; dvc pull" in done.stderr
    assert [path.name for path in half.iterdir()] == ["spec.json"]
    assert "; here: 1\n" in done.stdout


def test_what_an_interrupted_pull_left_empty_comes(away):
    for folder in away:
        folder.mkdir(parents=True)
    assert script("pull").returncode == 0
    assert all((folder / "result.json").exists() for folder in away)


def test_what_an_interrupted_pull_put_in_place_goes_again(away, monkeypatch):
    """Part of a run would count as one that was made here."""

    def interrupted(command: str, *targets: str) -> subprocess.CompletedProcess[str]:
        if command == "checkout":
            away[0].mkdir(parents=True)
            (away[0] / "spec.json").write_text("{}")
            raise KeyboardInterrupt
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(pull, "call_dvc", interrupted)
    outs = kept(RUNS.with_suffix(".dvc"))
    with pytest.raises(KeyboardInterrupt):
        pull.pull(RUNS, outs, whole=True, remote=None)
    assert not away[0].exists()


def test_a_run_that_was_changed_by_hand_stays_and_is_an_error(published):
    changed = published[0] / "rounds.csv"
    changed.write_text(changed.read_text().replace("0.", "0.9", 1))
    before = changed.read_bytes()
    done = script("pull")
    assert done.returncode == 2
    assert f"error: {changed} is damaged or truncated" in done.stderr
    assert f"rm -r {published[0]}; dvc pull {published[0]}" in done.stderr
    assert changed.read_bytes() == before


def test_what_the_remote_lacks_is_named_and_the_rest_comes(away):
    lacking, whole = away
    gone = objects(lacking)["rounds.csv"]
    gone.unlink()
    done = script("pull")
    assert done.returncode == 2
    assert f"error: {lacking} is missing; failed to transfer '{digest_of(gone)}'" in done.stderr
    assert "No such file or directory" in done.stderr
    assert len(done.stderr.splitlines()) == 1
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
        f"error: {first} is missing; rounds.csv is damaged in the remote ({digest_of(damaged)})",
        f"error: {second} is missing; the remote has no list of its files, {digest_of(tree)}",
    ]


def test_a_remote_that_does_not_answer_is_named(away):
    done = script("pull", "--remote", "lab")
    assert done.returncode == 2
    assert done.stderr.count("is missing; ") == 2
    assert "remote 'lab' doesn't exist" in done.stderr
    assert not any(folder.exists() for folder in away), "nothing was put in place"
