"""The README is a page, and what its badges say is so."""

from __future__ import annotations

import re
import tomllib

from documented import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def badge(name: str) -> str:
    """Return what a badge says; its picture and its text in the README say the same."""
    said = re.search(rf"!\[([^\]]+)\]\(docs/badges/{name}\.svg\)", README)[1]
    drawn = (ROOT / f"docs/badges/{name}.svg").read_text(encoding="utf-8")
    title = re.search("<title>(.+)</title>", drawn)[1]
    assert title.lower() == said.replace(":", "").lower()
    assert all(f">{word}</text>" in drawn for word in title.split(" ", 1))
    return title


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    snakefile = (ROOT / "workflow/Snakefile").read_text()
    assert badge("licence") == f"licence {project['license']}"
    assert badge("python") == f"Python {project['requires-python'].replace('>=', '≥ ')}"
    assert badge("snakemake") == f"Snakemake ≥ {re.search('min_version.+?([0-9.]+)', snakefile)[1]}"


def test_every_file_that_the_readme_links_to_is_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 30
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_number_of_the_comparisons_questions_is_true():
    comparison = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"^## (\d+)\. ", comparison, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    words = ["eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen"]
    assert f"has {words[len(numbers) - 8]} questions" in README
