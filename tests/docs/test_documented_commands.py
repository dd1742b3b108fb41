"""Every command that the documentation names is run as it stands, or a table says why not."""

from __future__ import annotations

import ast
import json
import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from documented import PAGES, PAPER_PAGES, ROOT, applied, blocks, make_targets
from reader import Reader

NOT_RUN = yaml.safe_load(Path(__file__).with_name("not_run.yaml").read_text())
LANGUAGES = {"bash", "python", "yaml", "json", "diff", "csv", "text", "bibtex"}
# Papers of config.yaml, where a page is about another than the first.
PAPERS = {"docs/add-an-aggregator.md": ["who_to_trust", "fedol"]}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git, or no checkout to clone")
    with ExitStack() as stack:
        yield Reader(tmp_path_factory.mktemp("docs"), stack)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_a_page_can_be_followed_from_top_to_bottom(reader, page):
    reader.configure(PAPERS.get(page, ["who_to_trust"]))
    for block in blocks(page):
        if block.title:
            reader.write(block)
        for command in block.commands:
            entry = NOT_RUN.get(command, {"instead": command})
            said = reader.run(entry["instead"]) if "instead" in entry else ""
            made = re.search(r"^python -m fedlogit .* --out (\S+)", command, re.S)
            if made and command not in NOT_RUN:
                assert made[1] in said.rpartition("\n")[2], f"{command} does not end by naming it"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAPER_PAGES)
def test_what_a_papers_page_commands_can_be_planned(reader, page):
    text = (ROOT / page).read_text()
    # No run is here, so what draws from the cache is planned with training.
    text = text.replace("frozen=true partial=true ", "")
    commands = re.findall(r"`snakemake --cores all (--config .+?) -- (\S+)`", text)
    assert commands
    for config in sorted({config for config, _ in commands}):
        files = " ".join(file for said, file in commands if said == config)
        reader.run(f"snakemake -n --quiet all {config} -- {files}")


@pytest.mark.parametrize("page", PAGES)
def test_every_target_of_make_that_is_named_is_there(page):
    for target in make_targets(page):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), target


def test_every_exception_is_a_documented_command():
    there = {command for page in PAGES for block in blocks(page) for command in block.commands}
    assert there >= NOT_RUN.keys()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is_and_can_be_read(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page}:{block.line}"
        if block.language == "python":
            ast.parse("class Example:\n" + block.text if block.text.startswith(" ") else block.text)
        if block.language == "json":
            json.loads(block.text)
        if block.language == "yaml":
            assert yaml.safe_load(block.text), f"{page}:{block.line}"


def test_blocks_are_split_where_a_command_ends():
    (block,) = [b for b in blocks("docs/add-a-method.md") if "trial/median" in b.text]
    (command,) = block.commands
    assert command.endswith("\nEOF")


def test_a_diff_changes_what_it_says():
    assert applied("a\nb\nc\nd\n", " a\n-b\n+B\n@@\n d\n+e\n") == "a\nB\nc\nd\ne\n"
    with pytest.raises(AssertionError, match="there 0 times, not once"):
        applied("a\nb\n", " c\n+d\n")
