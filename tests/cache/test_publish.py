"""Finished runs go into the cache and come back; damage on either way is named and refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from support.cached_runs import shown_at_quick
from support.calls import RUNS, dvc, script

from fedlogit.commands import _cache
from fedlogit.errors import FedlogitError
from fedlogit.files import json_digest, write_json
from fedlogit.locks import held

pytestmark = pytest.mark.slow  # DVC takes seconds to start

LISTING = Path("results/runs.dvc")


def listed() -> list[str]:
    return [out["path"] for out in yaml.safe_load(LISTING.read_text())["outs"]]


def slowed(folder: Path) -> Path:
    """Let a run say that it took a second more; return its folder."""
    result = json.loads((folder / "result.json").read_text())
    result["provenance"]["wall_seconds"] += 1
    del result["digest"]
    write_json(folder / "result.json", result | {"digest": json_digest(result)})
    return folder


def test_only_whole_runs_are_published_and_once(project, finished):
    whole, misnamed, damaged = (finished(seed=seed) for seed in range(3))
    quick, unfinished = finished(seed=5), finished(seed=3)
    shown_at_quick(5)
    (unfinished / "result.json").unlink()
    moved = misnamed.with_name("seed1-00000000")
    misnamed.rename(moved)
    rounds = (damaged / "rounds.csv").read_text()
    (damaged / "rounds.csv").write_text(rounds[: len(rounds) // 2])
    done = script("publish")
    assert done.returncode == 2
    assert (
        "1 runs published, 0 were; left out 1 that nothing but smoke or quick needs" in done.stdout
    )
    assert f"error: refused {moved}: its spec belongs to {misnamed}" in done.stderr
    assert f"error: refused {damaged / 'rounds.csv'} is damaged or truncated" in done.stderr
    assert listed() == [str(whole.relative_to("results"))]
    shutil.rmtree(moved)
    shutil.rmtree(damaged)
    done = script("publish", "--with", "quick")
    assert done.returncode == 0, done.stderr
    assert "1 runs published, 1 were; left out 0 that nothing but smoke needs" in done.stdout
    assert str(quick.relative_to("results")) in listed()
    assert list(Path("results").glob("*-new.dvc")) == []


def test_other_seeds_and_precisions_of_a_scale_are_left_out_with_it(project, finished):
    shown_at_quick(5)
    file = Path("workflow/papers/pilot.yaml")
    paper = yaml.safe_load(file.read_text())
    paper["scales"]["paper"]["overrides"] = {"rounds": 1}
    file.write_text(yaml.safe_dump(paper))
    other, half = finished(seed=6), finished(seed=5, precision="bf16")
    at_paper, anybodys = finished(seed=5, rounds=1), finished(seed=5, rounds=2)
    done = script("publish")
    assert "2 runs published, 0 were; left out 2" in done.stdout, done
    runs = {str(run.relative_to("results")) for run in (at_paper, anybodys)}
    assert {*listed()} == runs
    assert script("publish", "--with", "quick").returncode == 0
    assert {*listed()} == runs | {str(run.relative_to("results")) for run in (other, half)}


def test_runs_come_back_and_others_stay(published, finished):
    before = {p: p.read_bytes() for f in published for p in f.glob("[!.]*.[jc]s*")}
    mine = finished(seed=7)
    for folder in published:
        shutil.rmtree(folder)
    shutil.rmtree(".dvc/cache")
    done = dvc("pull")
    assert done.returncode == 0, done.stderr
    assert before == {p: p.read_bytes() for f in published for p in f.iterdir()}
    assert (mine / "result.json").exists()
    assert script("cached").stdout.startswith("cache: 2 finished runs")
    shutil.rmtree(mine)  # no table or figure of any paper needs these two
    assert "2 of them no table or figure needs any more (--prune" in script("publish").stdout
    assert "2 taken off the list" in script("publish", "--prune").stdout
    assert listed() == []


def test_a_run_that_differs_is_not_published_silently(published):
    folder = slowed(published[0])
    before = LISTING.read_text()
    done = script("publish")
    assert done.returncode == 0
    assert "not published again, although they differ" in done.stderr
    assert folder.name in done.stderr
    assert LISTING.read_text() == before
    refused = dvc("pull")
    assert refused.returncode == 1
    assert f"{folder}/result.json" in refused.stderr
    assert "0 runs published" not in script("publish", "--replace").stdout
    assert LISTING.read_text() != before
    assert dvc("pull").returncode == 0


def test_the_folder_of_runs_may_be_given_from_the_root(published):
    slowed(published[0])
    before = LISTING.read_text()
    runs = ("--runs", str(RUNS.resolve()))
    for name in ("cached", "pull"):
        said = script(name, *runs).stdout
        assert "1 of them are not the published files" in said, name
        assert f"(which is one: {published[0].resolve()})" in said
    assert f"{published[0].relative_to(RUNS)}\n" in script("publish", *runs).stderr
    done = script("publish", "--replace", *runs)
    assert "1 runs published, 1 were" in done.stdout
    assert LISTING.read_text() != before


def test_what_cannot_be_replaced_stays_listed(published):
    slowed(published[0])
    before = LISTING.read_text()
    done = script("publish", "--replace", "--remote", "lab")
    assert (done.returncode, LISTING.read_text()) == (2, before)
    assert "not published again, although they differ" in script("publish").stderr


def test_a_remote_in_the_repository_has_a_limit_and_others_have_none(published, finished):
    before, folder = LISTING.read_text(), finished(seed=7)
    size = sum(out["size"] for out in yaml.safe_load(before)["outs"]) / 1e6
    done = script("publish", "--limit", f"{size:.6f}")
    assert done.returncode == 2
    assert done.stderr.startswith("error: with 1 new runs dvc-remote, of which every clone has a")
    assert f" MB, more than {size:g}; push to a remote elsewhere (--remote)" in done.stderr
    assert LISTING.read_text() == before
    assert dvc("remote", "add", "lab", "../lab").returncode == 0
    done = script("publish", "--limit", f"{size:.6f}", "--remote", "lab")
    assert done.stdout.endswith(f"then git add {LISTING} results (docs/cache.md)\n"), done.stderr
    assert str(folder.relative_to("results")) in listed()


def test_what_is_taken_off_counts_no_more(published, finished):
    shown_at_quick(7)
    new = finished(seed=7)
    limit = sum(path.stat().st_size for path in new.rglob("[!.]*")) / 1e6
    done = script("publish", "--with", "quick", "--limit", f"{limit:.6f}", "--prune")
    assert done.returncode == 0, done.stderr
    assert listed() == [str(new.relative_to("results"))]


def test_what_publishes_nothing_names_no_next_step(published):
    assert "Next: " not in script("publish").stdout
    said = f"Next: make redraw, then git add {LISTING} results dvc-remote (docs/cache.md)\n"
    assert script("publish", "--prune").stdout.endswith(said)


def test_what_a_killed_publish_left_goes(published):
    left = [LISTING.with_name(name) for name in ("runs-new.dvc", ".runs.12.dvc", ".runs-new.1.dvc")]
    for path in left:
        shutil.copy(LISTING, path)
    done = script("publish")
    assert done.returncode == 0, done.stderr
    assert not [path for path in left if path.exists()]


def test_locks_that_dvc_wrote_when_the_disk_was_full_stop_no_later_publish(published, finished):
    finished(seed=2)
    Path(".dvc/tmp/rwlock").write_text("")
    done = script("publish")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(listed()) == 3


@pytest.mark.parametrize("path", ["mine.txt", "../rwlock", ".dvc/config"])
def test_no_other_file_that_dvc_names_is_removed(project, monkeypatch, path):
    kept = Path(path)
    kept.touch()
    said = f"ERROR: Unable to read RWLock-file {path!r}. JSON structure is corrupted\n"
    failed = subprocess.CompletedProcess([], 255, "", said)
    monkeypatch.setattr(_cache.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(FedlogitError, match="dvc status failed: Unable to read"):
        _cache.dvc("status")
    assert kept.exists()


def test_objects_that_a_push_left_half_written_go(published, finished):
    objects = Path("dvc-remote/files/md5")
    (half := objects / "ff" / f".{'x' * 20}_-.tmp").parent.mkdir(exist_ok=True)
    half.write_text("half")
    (other := half.with_name(".keep.tmp")).write_text("somebody's")
    finished(seed=2)
    assert script("publish").returncode == 0
    assert (half.exists(), other.exists()) == (False, True)


def test_damage_is_named(published):
    first, second = published
    # A remote whose disk rots: the object no longer is what its name says.
    digest = yaml.safe_load(LISTING.read_text())["outs"][0]["md5"]
    tree = json.loads(Path("dvc-remote/files/md5", digest[:2], digest[2:]).read_text())
    item = next(entry["md5"] for entry in tree if entry["relpath"] == "rounds.csv")
    Path("dvc-remote/files/md5", item[:2], item[2:]).write_text("round\n1\n")
    shutil.rmtree(".dvc/cache")
    shutil.rmtree(RUNS)
    done = dvc("pull")
    assert done.returncode == 1
    broken = RUNS.parent / listed()[0]
    assert str(broken) in done.stderr
    assert not (broken / "rounds.csv").exists()
    told = script("cached")
    assert told.returncode == 2
    assert f"error: {broken} is missing; python -m fedlogit pull {broken}" in told.stderr
    # A run that lost a file after it was pulled.
    (whole,) = {first, second} - {broken}
    (whole / "rounds.csv").unlink()
    told = script("cached")
    assert f"error: cannot read {whole / 'rounds.csv'}" in told.stderr


def test_a_remote_that_does_not_answer_lists_nothing(project, finished):
    finished()
    assert dvc("remote", "add", "lab", "https://localhost:9/lab").returncode == 0
    done = script("publish", "--remote", "lab")
    assert done.returncode == 2
    assert done.stderr.startswith("error: dvc push failed: ")
    assert not LISTING.exists()


def test_a_folder_without_papers_takes_no_run_off_the_list(published):
    before = LISTING.read_text()
    for options in (["--prune"], []):
        done = script("publish", "--papers", "nosuch", *options)
        said = "error: there is no nosuch/*.yaml; give the folder of the papers' files\n"
        assert (done.returncode, done.stderr) == (2, said)
    assert LISTING.read_text() == before


def test_a_scale_that_no_paper_has_is_refused_with_the_nearest(published):
    before = LISTING.read_text()
    done = script("publish", "--with", "smoke", "qick")
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown scale 'qick'; did you mean 'quick'? (one of: ")
    assert LISTING.read_text() == before


def test_two_that_publish_at_once_both_add_to_the_list(project, finished):
    mine = str(finished().relative_to("results"))
    theirs = {"path": f"{mine[:-1]}{int(mine[-1] == '0')}", "md5": f"{'0' * 32}.dir", "size": 1}
    with ThreadPoolExecutor() as pool:
        with held(LISTING.with_name(".publish.lock"), ""):
            other = pool.submit(script, "publish")
            with pytest.raises(TimeoutError):
                other.result(timeout=10)
            LISTING.write_text(yaml.safe_dump({"outs": [theirs]}))
        assert other.result().returncode == 0, other.result().stderr
    assert sorted(listed()) == sorted([mine, theirs["path"]])
