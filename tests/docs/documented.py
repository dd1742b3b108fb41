"""What the documentation tells a reader to type: its fenced blocks, and its tables of commands.

A block's language says what a reader does with it. ``bash`` is run, command by command. One with a
``title="path"`` is a file: ``python``, ``csv`` and the like are written, the top-level keys of
``yaml`` are put into the file that is there, and ``diff`` changes it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAPER_PAGES = sorted(f"docs/papers/{path.name}" for path in ROOT.glob("docs/papers/*.md"))
_DOCS = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")}
PAGES = ["README.md", "config/README.md", *sorted(_DOCS - set(PAPER_PAGES))]
_PROGRAM = re.compile(r"(make|snakemake|python|dvc)\b(?! [a-z]+ing)")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block, or a row of a table of commands.

    Attributes:
        page: The page, relative to the repository.
        line: Where it begins.
        language: As the fence says; ``bash`` for a row of a table.
        title: The file that it is, or "".
        text: What it holds, without the indentation of a list around it.
    """

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands, each with its continued lines or here-document and without comments."""
        return list(_commands(self.text)) if self.language == "bash" else []


@cache
def blocks(page: str) -> list[Block]:
    """Return the blocks of a page and the commands in its tables, from top to bottom."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = list(_rows(page, text))
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.map:
            language, _, rest = token.info.partition(" ")
            title = re.search(r'title="([^"]+)"', rest)
            where = (page, token.map[0] + 1)
            found.append(Block(*where, language, title[1] if title else "", token.content))
    return sorted(found, key=lambda block: block.line)


def _rows(page: str, text: str) -> Iterator[Block]:
    """Yield the commands of tables whose second column is ``command``."""
    wanted = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        wanted = line.startswith("|") and (wanted or cells[1:] == ["command"])
        for code in _CODE.findall(cells[-1]) if wanted else ():
            if _PROGRAM.match(code):
                yield Block(page, number, "bash", "", code)


def make_targets(page: str) -> list[str]:
    """Return the targets of `make` that a page's sentences name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return sorted(set(re.findall(r"`make ([a-z-]+)[^`]*`", text)))


def _commands(text: str) -> Iterator[str]:
    """Split a block where bash has read a whole command."""
    pending = ""
    for line in text.splitlines():
        pending += ("\n" if pending else "") + line
        if not pending.strip() or pending.startswith("#"):
            pending = ""
        elif _whole(pending):
            yield re.sub(r"\s+# .*$", "", pending)
            pending = ""
    assert not pending, f"not a whole command: {pending}"


def _whole(text: str) -> bool:
    here = re.search(r"<<(\w+)", text)
    if text.endswith("\\") or (here and not text.endswith(f"\n{here[1]}")):
        return False
    return not subprocess.run(["bash", "-nc", text], capture_output=True, check=False).returncode


def applied(text: str, diff: str) -> str:
    """Return a file's text after a diff whose hunks each occur in it once.

    Lines begin with a blank (as it is), ``-`` (taken out) or ``+`` (put in); ``@@`` begins a hunk.
    """
    for hunk in diff.split("@@\n"):
        lines = [line or " " for line in hunk.splitlines()]
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        assert {line[0] for line in lines} <= set(" +-"), hunk
        assert text.count(before) == 1, f"there {text.count(before)} times, not once:\n{before}"
        text = text.replace(before, after)
    return text
