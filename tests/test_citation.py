"""The files that tell catalogues what this is agree with each other and with the package."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml
from support.calls import ROOT

import fedlogit

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_is_told_everywhere():
    bibtex = re.search(r"version = \{(.+?)\}", (ROOT / "docs/index.md").read_text())[1]
    told = [PROJECT["version"], CITATION["version"], CODEMETA["version"], ZENODO["version"], bibtex]
    assert {*map(str, told)} == {fedlogit.__version__}


def test_the_version_and_its_date_are_those_of_the_newest_release_in_the_changelog():
    version, date = re.search(
        r"^## ([\d.]+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    ).groups()
    assert (version, date) == (fedlogit.__version__, str(CITATION["date-released"]))
    assert CODEMETA["datePublished"] == date


@pytest.mark.parametrize("found", [CODEMETA | {"title": CODEMETA["name"]}, ZENODO])
def test_title_abstract_and_keywords_are_those_to_cite(found):
    assert found["title"] == CITATION["title"]
    assert found["description"] == CITATION["abstract"].strip()
    assert found["keywords"] == CITATION["keywords"]


def test_authors_and_licence_are_those_to_cite():
    authors = [author["name"] for author in CITATION["authors"]]
    assert [author["name"] for author in CODEMETA["author"]] == authors
    assert [author["name"] for author in ZENODO["creators"]] == authors
    assert f"Copyright (c) 2026 {authors[0]}" in (ROOT / "LICENSE").read_text()
    assert {CITATION["license"], ZENODO["license"], PROJECT["license"]} == {"MIT"}
    assert CODEMETA["license"] == "https://spdx.org/licenses/MIT"
    assert CODEMETA["runtimePlatform"] == f"Python {PROJECT['requires-python']}"


def test_the_papers_are_those_to_cite():
    papers = [reference["url"] for reference in CITATION["references"]]
    assert CODEMETA["referencePublication"] == papers
    assert [related["identifier"] for related in ZENODO["related_identifiers"]] == papers
