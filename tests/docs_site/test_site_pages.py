"""What is done to pages before MkDocs reads them, and the pages that are made of models."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from fedlogit.errors import DataError
from fedlogit.frozen_config import FrozenConfig
from fedlogit.papers import Paper, expand, list_papers, load_paper
from fedlogit.results.record.numbers import read_record
from scripts.docs_site.docstrings import about, attributes
from scripts.docs_site.links import relinked, with_mentions_linked
from scripts.docs_site.markdown_dialect import for_mkdocs
from scripts.docs_site.reference import reference_pages
from scripts.docs_site.results_pages import gallery_pages, record_page
from scripts.docs_site.schema_tables import fields_table
from scripts.docs_site.staging import Stage

ROOT = Path(__file__).resolve().parents[2]
FIGURES = Path("results/figures")
PAPERS = list_papers(ROOT / "workflow/papers")
RANKED_LAST = "---\nsearch: {boost: 0.3}\n---\n"
# Called as in torch.optim, as the page says.
KNOWN = ["format", "name", "lr", "momentum", "weight_decay", "beta1", "beta2", "eps", "gamma"]


@cache
def reference() -> dict[str, str]:
    return dict(reference_pages())


@cache
def papers() -> dict[str, Paper]:
    return {name: load_paper(name, ROOT / "workflow/papers") for name in PAPERS}


class Wheel(FrozenConfig):
    """A wheel of ``n`` spokes.

    Attributes:
        spokes: How many
            there are.
        tyre: One | none.
    """

    spokes: Annotated[int, Field(gt=2)]
    tyre: str | None = None


class Rim(Wheel):
    """Another.

    Attributes:
        tyre: None here.
    """


@pytest.fixture
def stage(tmp_path):
    for name, text in {
        "docs/a.md": "# A\n[b](../results/b.md#c) [code](../lib/x.py) ![p](../results/p.png)\n",
        "results/b.md": "**B**\n\n[a](../docs/a.md)\n",
        "results/p.png": "picture",
        "lib/x.py": "x = 1\n",
        "docs/scales.md": "# Scales\n",
        "docs/run-folder.md": "# Files\n\n## What is made of runs\n",
        "docs/papers/celm.md": "# CELM\n",
        "results/tables/celm/paper/t.md": "**T**\n\n| A |\n|---|\n",
        "results/tables/celm/paper/t.csv": "A\n",
        "results/tables/celm/paper/t.tex": "A\n",
        "results/summary/celm/paper/summary.md": "## X, scale `paper`\n\n### Y\n",
        "results/summary/celm/paper/claims.md": "### Claims\n\nSee docs/a.md.\n\n### Evidence\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Stage(tmp_path, tmp_path / "out", {"celm": "CELM"})


def test_a_page_brings_along_what_it_links_to(stage):
    assert stage.add("docs/a.md") == "a.md"
    page = (stage.out / "a.md").read_text()
    assert page == "# A\n[b](results/b.md#c) [code](source/lib/x.py.md) ![p](results/p.png)\n"
    assert (stage.out / "results/b.md").read_text() == "# B\n\n[a](../a.md)\n"
    assert (stage.out / "results/p.png").read_text() == "picture"
    assert "x = 1" in (stage.out / "source/lib/x.py.md").read_text()


def test_a_link_to_nothing_is_refused(stage):
    (stage.root / "results/p.png").unlink()
    with pytest.raises(DataError, match=r"docs/a.md: a link names ../results/p.png"):
        stage.add("docs/a.md")


def test_a_table_says_where_it_is_from_and_how_it_is_made(stage):
    stage.add("results/tables/celm/paper/t.md")
    page = (stage.out / "results/tables/celm/paper/t.md").read_text()
    assert page.startswith(RANKED_LAST + "# T (CELM, scale `paper`)\n\n| A |\n")
    for link in ("../../../../papers/celm.md", "../../../../scales.md", "t.csv", "t.tex"):
        assert f"]({link})" in page
    config = "frozen=true partial=true papers=celm scale=paper"
    command = f"snakemake --cores all --config {config} -- results/tables/celm/paper/t.csv"
    assert f"\n{command}\n" in page


def test_a_part_of_a_page_gets_headings_from_the_first_level_on(stage):
    stage.add("results/summary/celm/paper/claims.md")
    page = (stage.out / "results/summary/celm/paper/claims.md").read_text()
    assert page.startswith(RANKED_LAST + "# Claims (CELM, scale `paper`)\n")
    assert "\n# Evidence" not in page
    assert "\n## Evidence\n" in page
    assert "See [docs/a.md](../../../../a.md)." in page
    stage.add("results/summary/celm/paper/summary.md")
    page = (stage.out / "results/summary/celm/paper/summary.md").read_text()
    assert page.startswith(RANKED_LAST + "# X, scale `paper`\n\n## Y\n")


def test_a_page_that_a_text_mentions_is_linked_where_it_exists():
    text = "See docs/a.md, [docs/a.md](x), `docs/a.md`, other/docs/a.md and docs/b.md."
    links = {"docs/a.md": "../a.md"}
    assert with_mentions_linked(text, links.get) == text.replace(
        "See docs/a.md", "See [docs/a.md](../a.md)"
    )


def test_pages_of_source_files_are_not_searched(stage):
    stage.add("lib/x.py")
    page = (stage.out / "source/lib/x.py.md").read_text()
    assert page.startswith("---\nsearch: {exclude: true}\n---\n# `lib/x.py`\n")


def test_links_in_code_and_to_elsewhere_stay():
    text = "[a](b.md) `[a](b.md)` [c](https://x.org) [d](#e)\n```\n[a](b.md)\n```\n[`f`](g.md#h)"
    assert relinked(text, lambda link: f"new/{link}") == text.replace(
        "[a](b.md) `", "[a](new/b.md) `"
    ).replace("g.md", "new/g.md")


@pytest.mark.parametrize(
    ("github", "mkdocs"),
    [
        ("text\n- a\n  b", "text\n\n- a\n    b"),
        ("1. a\n\n   ```sh\n   b\n     c\n   ```", "1. a\n\n    ```sh\n    b\n      c\n    ```"),
        ("- a\n  - b\n    c", "- a\n    - b\n        c"),
        ("- a\nlazy", "- a\n    lazy"),
        ("```\n- a\n  b\n```", "```\n- a\n  b\n```"),
    ],
)
def test_lists_are_indented_as_python_markdown_wants(github, mkdocs):
    assert for_mkdocs(github) == mkdocs


def test_a_docstring_is_taken_apart():
    assert about(Wheel) == "A wheel of `n` spokes."
    assert attributes(Wheel) == {"spokes": "How many there are.", "tyre": "One | none."}
    assert attributes(Rim)["tyre"] == "None here."


def test_a_models_keys_have_type_default_and_meaning():
    _, _, spokes, tyre = fields_table(Wheel).splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in (spokes, tyre)]
    assert cells == [
        ["`spokes`", "integer &gt; 2", "required", "How many there are."],
        ["`tyre`", "string or null", "`null`", "One &#124; none."],
    ]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("config", "| `checkpoint_seconds`"),
        ("spec", "## Participation"),
        ("paper-file", "## ScaledClaim"),
        ("methods", "## `uwa`\n\nUncertainty-weighted averaging."),
        ("partitions", "| `private_size`"),
        ("models", "## `lenet`\n\nLeNet-5"),
        ("datasets", "| `fashion_mnist`"),
        ("metrics", "| `balanced_accuracy`"),
        ("figures", "## `accuracy_by_round`"),
        ("figures", "`shade_warm_up`"),  # one of its options
        ("analyses", "## `answer`"),
        ("analyses", "`condition`"),  # an option of `lost`
        ("claim-tests", "`shrinking`"),
        ("commands", "| `--minutes MINUTES`"),
        ("result-file", "## Provenance"),
        ("library/aggregation", "::: fedlogit.aggregation.uwa"),
    ],
)
def test_the_reference_has_what_the_library_has(page, said):
    assert said in reference()[f"reference/{page}.md"]


def test_what_the_reference_links_to_within_a_page_stands_on_it():
    linked = {
        (page, target)
        for page, text in reference().items()
        for target in re.findall(r"\]\(#([^)]+)\)", text)
    }
    assert ("reference/figures.md", "level") in linked
    headed = {
        (page, heading.lower())
        for page, text in reference().items()
        for heading in re.findall(r"^#+ (\w+)$", text, re.MULTILINE)
    }
    assert linked <= headed


@pytest.mark.parametrize("paper", PAPERS)
def test_the_gallery_has_every_figure_with_a_command_that_makes_it(paper, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = dict(gallery_pages(papers(), FIGURES))[f"gallery/{paper}.md"]
    figures = sorted(FIGURES.glob(f"{paper}/*/*.png"))
    assert figures
    for path in figures:
        scale = path.parent.name
        # Without the first two settings the command would train what is missing.
        config = f"frozen=true partial=true papers={paper} scale={scale}"
        assert f"\nsnakemake --cores all --config {config} -- {path.as_posix()}\n" in text
        planned = expand(papers()[paper], scale)
        assert (path.stem, "figure") in {(artefact.id, artefact.kind) for artefact in planned}


def test_the_record_has_a_row_per_published_number():
    record = read_record(ROOT / "results")
    text = record_page(record, papers(), ROOT / "results/tables")
    lines = (ROOT / "results/record.csv").read_text().splitlines()
    assert text.count("<tr data-verdict=") == len(lines) - 1
    first = "<td>CELM</td><td>Table 1</td><td>test accuracy</td><td>Fashion-MNIST</td>"
    assert first in text
    links = set(re.findall(r'href="(results/tables/[^"]+)\.html"', text))
    assert "results/tables/celm/paper/table1" in links
    assert all((ROOT / f"{link}.md").exists() for link in links)
    assert "nan" not in text.lower().split("<table")[1]


@pytest.mark.parametrize("page", ["methods", "partitions", "models", "config", "spec"])
def test_every_key_of_the_reference_is_explained(page):
    rows = [
        line for line in reference()[f"reference/{page}.md"].splitlines() if line.startswith("| `")
    ]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    assert cells
    unexplained = {key for key, *_, meaning in cells if not meaning}
    assert unexplained <= {f"`{name}`" for name in KNOWN}
