from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fedlogit.cli import command_names
from fedlogit.errors import FedlogitError
from fedlogit.files import write_json
from fedlogit.results.readme import with_block

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "workflow/reference/who_to_trust.csv"
PAPERS = ("who_to_trust", "celm")


@pytest.fixture
def call(python):
    """Return a function that runs a command, or a script."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        script = ROOT / "scripts" / f"{name}.py"
        what = ["-m", "fedlogit", name] if name in command_names() else [script]
        return subprocess.run(
            [str(part) for part in (python, *what, *arguments)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            check=False,
        )

    return run


@pytest.fixture
def artefact(tmp_path, make_run, make_artefact):
    """Return a function that writes an artefact of two methods."""

    def write(**changes) -> Path:
        runs = [make_run(a, method=m) for m, a in (("average", 0.6), ("uwa", 0.9))]
        claim = {
            "text": "UWA is better.",
            "from": "table1",
            "test": "greater",
            "options": {"left": {"method": "uwa"}, "right": {"method": "average"}},
        }
        made = make_artefact(*runs, scale="quick", claims={"uwa": claim}, **changes)
        path = tmp_path / f"{made.id}.json"
        write_json(path, made.model_dump(mode="json", by_alias=True))
        return path

    return write


def test_from_runs_to_the_final_summary(call, artefact, tmp_path):
    results = tmp_path / "results"
    table = results / "tables/who_to_trust/quick/table1"
    figure = results / "figures/who_to_trust/quick/figure1"
    summary = results / "summary/who_to_trust/quick"
    drawing = artefact(id="figure1", kind="figure", plot="accuracy_by_heterogeneity")
    steps = [
        ("table", "--artefact", artefact(), "--out", table),
        ("figure", "--artefact", drawing, "--reference", REFERENCE, "--out", figure),
        ("compare", "--artefacts", artefact(), "--reference", REFERENCE, "--out", summary),
        ("record", "--results", results),
        ("summary", "--scale", "quick", "--results", results, "--datasets", "mnist", "--", *PAPERS),
    ]
    for step in steps:
        done = call(*step)
        assert done.returncode == 0, done.stderr
    assert {path.suffix for path in table.parent.iterdir()} == {".csv", ".md", ".tex"}
    assert {path.suffix for path in figure.parent.iterdir()} == {".png", ".pdf", ".md"}
    made = ["claims.csv", "claims.md", "compare.csv", "compare.md", "metrics.json"]
    made += ["numbers.json", "summary.md"]
    assert sorted(path.name for path in summary.iterdir()) == made
    record = ["counts.md", "csv", "md", "pdf", "png"]
    assert sorted(path.name for path in results.glob("record.*")) == [f"record.{s}" for s in record]
    assert " 2 run at a reduced scale only " in (results / "record.counts.md").read_text()
    text = (results / "summary.md").read_text()
    assert "|0.8188|0.6000|1|-0.2188|reducedscale|" in text.replace(" ", "")
    assert "- Claims: 1 undecided" in text
    assert "quick/ (table1)" in text
    assert "quick/ (figure1)" in text
    said = done.stdout.splitlines()
    assert len(said) <= 10
    assert said[0].startswith("Made at scale quick: ")
    assert said[1] == (
        "  Who to Trust?: UWA on MNIST, 2 classes: test accuracy 0.9000, paper 0.9454;"
        " reduced scale: not judged"
    )
    assert f"Every number: {results}/summary.md; " in done.stdout
    assert "celm" not in text  # which has no such data set


def test_a_users_mistake_is_one_line(call, artefact, tmp_path):
    done = call("table", "--artefact", tmp_path / "none.json", "--out", tmp_path / "t")
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot read")
    assert len(done.stderr.splitlines()) == 1
    done = call("summary", "who_to_trust", "--scale", "paper", "--results", tmp_path)
    assert done.returncode == 2
    assert "run python -m fedlogit compare first" in done.stderr


def test_papers_and_scales_are_not_mixed(call, artefact, tmp_path):
    paths = [artefact(), artefact(id="other", paper="celm")]
    done = call("compare", "--artefacts", *paths, "--reference", REFERENCE, "--out", tmp_path)
    assert done.returncode == 2
    assert "one paper at one scale" in done.stderr


def test_readme_is_rewritten_and_checked(call, tmp_path):
    readme, part, picture = (tmp_path / name for name in ("README.md", "a.md", "plots/b.png"))
    readme.write_text("before\n<!-- results:begin -->\nold\n<!-- results:end -->\nafter\n")
    part.write_text("| new |\n")
    picture.parent.mkdir()
    picture.write_bytes(b"")
    arguments = ("readme_results", part, picture, "--readme", readme)
    assert call(*arguments, "--check").returncode == 1
    assert "old" in readme.read_text()
    assert call(*arguments).returncode == 0
    assert readme.read_text() == (
        "before\n<!-- results:begin -->\n"
        "| new |\n\n![b](plots/b.png)\n"
        "<!-- results:end -->\nafter\n"
    )
    assert call(*arguments, "--check").returncode == 0
    part.write_text("| newer |\n")
    assert call(*arguments, "--check").returncode == 1


@pytest.mark.parametrize(
    "text",
    ["no markers", "<!-- results:end --><!-- results:begin -->", "<!-- results:begin -->" * 2],
)
def test_a_readme_without_a_place_for_results_is_refused(text):
    with pytest.raises(FedlogitError, match="must have <!-- results:begin -->"):
        with_block(text, "block")


def test_a_block_of_another_name_is_left_alone():
    text = "<!-- results:begin -->\nold\n<!-- results:end -->\n"
    text += "<!-- speed:begin -->\n<!-- speed:end -->\n"
    changed = with_block(text, "5 x", "speed")
    assert changed == text.replace("<!-- speed:begin -->\n", "<!-- speed:begin -->\n5 x\n")
    with pytest.raises(FedlogitError, match="<!-- size:begin -->"):
        with_block(text, "", "size")
