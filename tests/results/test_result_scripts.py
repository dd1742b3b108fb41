from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import rmtree

import pytest

from fedlogit.cli import command_names
from fedlogit.config import Settings
from fedlogit.errors import FedlogitError
from fedlogit.files import write_json
from fedlogit.papers import Plan
from fedlogit.papers.artefact import RunRef
from fedlogit.results.pages.fill import filled_page

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "workflow/reference/who_to_trust.csv"
PAPERS = ("who_to_trust", "celm")


@pytest.fixture
def call(python):
    """Return a function that runs a command, or a script."""

    def run(name: str, *arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        script = ROOT / "scripts" / f"{name}.py"
        what = ["-m", "fedlogit", name] if name in command_names() else [script]
        return subprocess.run(
            [str(part) for part in (python, *what, *arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            check=False,
        )

    return run


@pytest.fixture
def planned(tmp_path, make_run):
    """Return a function that makes the run of Table 1 with two classes that a paper plans."""

    def make(method: str, accuracy: float) -> RunRef:
        settings = Settings(papers=("who_to_trust",), scale="quick")
        results = tmp_path / "results"
        table = Plan(settings, ROOT / "workflow/papers", results).artefact(
            "who_to_trust", "quick", "table1"
        )
        axes = {"dataset": "mnist", "partition": "k_classes(2)", "method": method}
        (cell,) = (cell for cell in table.cells if axes.items() <= cell.axes.items())
        spec = cell.spec.model_dump(mode="json")
        made = make_run([accuracy] * cell.spec.rounds, axes=axes, **spec)
        place = results / "runs" / cell.run
        place.parent.mkdir(parents=True, exist_ok=True)
        rmtree(place, ignore_errors=True)  # of an artefact before
        return made.model_copy(update={"dir": made.dir.rename(place)})

    return make


@pytest.fixture
def artefact(tmp_path, planned, make_artefact):
    """Return a function that writes an artefact of two methods."""

    def write(**changes) -> Path:
        runs = [planned(m, a) for m, a in (("average", 0.6), ("uwa", 0.9))]
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
    made += ["numbers.json", "orders.csv", "summary.md"]
    assert sorted(path.name for path in summary.iterdir()) == made
    record = ["counts.md", "csv", "md", "orders.csv", "papers.md", "pdf", "png"]
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
        "  Who to Trust?: UWA on MNIST, 2 classes per client: test accuracy 0.9000, paper 0.9454;"
        " reduced scale: not judged"
    )
    assert f"Every number: {results}/summary.md; " in done.stdout
    assert "celm" not in text  # which has no such data set
    config = tmp_path / "config.yaml"  # lists may be blocks, too
    config.write_text("papers:\n- who_to_trust\n- celm\nscale: quick\ndatasets:\n- mnist\n")
    again = call("summary", "--config", config, "--results", results, "--")
    left_out = "left out: celm (no run on mnist at scale quick)\n"
    assert (again.stdout, again.stderr) == (done.stdout, left_out)
    config.write_text("papers:\n- celm\nscale: paper\nseeds: null\n")
    given = ("--scale", "quick", "--datasets", "mnist", "--", "who_to_trust")
    again = call("summary", "--config", config, "--results", results, *given)
    assert (again.stdout, again.stderr) == (done.stdout, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scale: 3\n", "config.yaml: scale = 3: "),
        ("- quick\n", "config.yaml: should be a mapping"),
        ("paper: celm\n", "config.yaml: unknown key 'paper'; did you mean 'papers'"),
    ],
)
def test_a_wrong_configuration_is_one_line(call, tmp_path, text, said):
    (tmp_path / "config.yaml").write_text(text)
    done = call("summary", "--config", tmp_path / "config.yaml", "--results", tmp_path / "results")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_a_users_mistake_is_one_line(call, artefact, tmp_path):
    done = call("table", "--artefact", tmp_path / "none.json", "--out", tmp_path / "t")
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot read")
    assert len(done.stderr.splitlines()) == 1
    done = call("summary", "who_to_trust", "--scale", "paper", "--results", tmp_path)
    assert done.returncode == 2
    assert "run python -m fedlogit compare first" in done.stderr


@pytest.mark.parametrize(
    ("command", "option"),
    [("redraw", "--papers"), ("record", "--papers"), ("summary", "--papers-folder")],
)
def test_a_folder_without_papers_is_one_line(call, tmp_path, command, option):
    done = call(command, option, tmp_path, "--results", tmp_path / "results")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: there is no {tmp_path}/*.yaml; give the folder")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_papers_and_scales_are_not_mixed(call, artefact, tmp_path):
    paths = [artefact(), artefact(id="figure4", paper="celm")]
    done = call("compare", "--artefacts", *paths, "--reference", REFERENCE, "--out", tmp_path)
    assert done.returncode == 2
    assert "one paper at one scale" in done.stderr


@pytest.mark.parametrize("command", ["compare", "page"])
def test_one_table_planned_with_two_settings_is_given_once(call, artefact, tmp_path, command):
    """As a pattern of files gives it where another call has planned, too."""
    newer = artefact()
    older = newer.rename(tmp_path / "table1.older.json")
    artefact()
    done = call(command, "--artefacts", older, newer, "--out", tmp_path / "out")
    said = (
        f"error: table1 of who_to_trust at scale quick is given twice: {older} and {newer}; give"
        " one of them (make clean removes old plans)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["compare", "page"])
def test_a_plan_of_what_a_paper_no_longer_has_is_refused(call, artefact, tmp_path, command):
    """It stays in results/plan, where a pattern of files finds it."""
    folder = tmp_path / "papers"
    folder.mkdir()
    text = (ROOT / "workflow/papers/who_to_trust.yaml").read_text()
    (folder / "who_to_trust.yaml").write_text(text)
    old = artefact(id="table9")
    given = ("--artefacts", old, "--papers", folder, "--out", tmp_path / "out")
    done = call(command, *given)
    said = (
        f"error: {old}: {folder}/who_to_trust.yaml plans no table9 at scale quick; leave the file"
        " out (make clean removes old plans)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not (tmp_path / "out").exists()
    assert call(command, *given[:2], "--papers", tmp_path / "none", *given[4:]).returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\ntable1,", "\ntable9,", "column table: unknown table 'table9'; did you mean 'table1'"),
        (",uwa,", ",uva,", "column method: unknown method 'uva'; did you mean 'uwa'"),
    ],
)
def test_published_numbers_of_what_a_paper_lacks_are_not_compared(
    call, artefact, tmp_path, old, new, said
):
    reference, out = tmp_path / "reference.csv", tmp_path / "out"
    reference.write_text(REFERENCE.read_text().replace(old, new))
    done = call("compare", "--artefacts", artefact(), "--reference", reference, "--out", out)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {reference}, row ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()


def test_blocks_of_a_page_are_written_and_checked(call, tmp_path):
    page, part, picture = (tmp_path / name for name in ("docs/page.md", "a.md", "plots/b.png"))
    page.parent.mkdir()
    page.write_text(
        "before\n<!-- made from a.md plots/b.png -->\nold\n<!-- end -->\nbetween\n"
        "<!-- made from a.md -->\n<!-- end -->\nafter\n"
    )
    part.write_text("| new |\n")
    picture.parent.mkdir()
    picture.write_bytes(b"")
    arguments = ("fill_pages", "docs/page.md")
    done = call(*arguments, "--check", cwd=tmp_path)
    assert done.returncode == 1
    assert "docs/page.md differs" in done.stderr
    assert "old" in page.read_text()
    assert call(*arguments, cwd=tmp_path).returncode == 0
    assert page.read_text() == (
        "before\n<!-- made from a.md plots/b.png -->\n"
        "| new |\n\n![b](../plots/b.png)\n"
        "<!-- end -->\nbetween\n<!-- made from a.md -->\n| new |\n<!-- end -->\nafter\n"
    )
    assert call(*arguments, "--check", cwd=tmp_path).returncode == 0
    described = page.read_text().replace("![b]", "![Accuracy by round]")
    page.write_text(described)
    assert call(*arguments, cwd=tmp_path).returncode == 0
    assert page.read_text() == described
    part.write_text("| newer |\n")
    assert call(*arguments, "--check", cwd=tmp_path).returncode == 1
    picture.with_suffix(".md").write_text("**Title**\n\n![Title](b.png)\n\nA caption.\n")
    assert call(*arguments, cwd=tmp_path).returncode == 0
    assert "**Title**\n\n![Title](../plots/b.png)\n\nA caption.\n<!--" in page.read_text()


def test_titles_that_are_the_same_in_a_block_have_their_scale_behind_them(tmp_path):
    names = [f"paper/{name}" for name in ("quick/a.png", "extended/a.png", "quick/b.png")]
    for name in names:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        title = f"Figure {file.stem}"
        text = f"**{title}**\n\n![{title}]({file.name})\n\nA caption.\n"
        file.with_suffix(".md").write_text(text)
    (tmp_path / "page.md").write_text(
        f"<!-- made from {' '.join(names)} -->\n<!-- end -->\n"
        f"<!-- made from {names[0]} -->\n<!-- end -->\n"
    )
    text = filled_page(tmp_path / "page.md", tmp_path)
    assert re.findall(r"\*\*(.+)\*\*\n\n!\[(.+)\]", text) == [
        (f"Figure {title}", f"Figure {title}")
        for title in ("a, scale `quick`", "a, scale `extended`", "b", "a")
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no block", "no block; one begins with <!-- made from FILE"),
        ("<!-- made from a.md -->", "the block made from a.md has no <!-- end -->"),
        ("<!-- made from a.md --><!-- made from a.md --><!-- end -->", "made from a.md has no"),
        ("<!-- made from b.md --><!-- end -->", "b.md does not exist; make it first"),
        ("<!-- made from c.csv --><!-- end -->", "c.csv is neither .md nor .png"),
    ],
)
def test_a_page_that_cannot_be_filled_is_refused(tmp_path, text, said):
    (tmp_path / "page.md").write_text(text)
    (tmp_path / "a.md").write_text("| new |\n")
    (tmp_path / "c.csv").write_text("new\n")
    with pytest.raises(FedlogitError, match=said):
        filled_page(tmp_path / "page.md", tmp_path)
