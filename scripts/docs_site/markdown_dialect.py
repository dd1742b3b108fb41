"""From the Markdown that GitHub reads to that of Python-Markdown, which MkDocs uses.

They differ in lists: Python-Markdown wants what belongs to an item indented by four columns, not by
the width of its marker, and an empty line between a paragraph and a list.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

__all__ = ["for_mkdocs"]

_MARKER = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")


def for_mkdocs(text: str) -> str:
    """Return a page with its lists indented as Python-Markdown wants them; all else as it is."""
    lines = text.split("\n")
    indents = [(0, 0)] * len(lines)  # columns to take off, columns to put on
    before: set[int] = set()  # lines before which there is an empty one
    depth = 0
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type in ("bullet_list_open", "ordered_list_open") and token.map:
            before.add(token.map[0])
        if token.type == "list_item_close":
            depth -= 1
        if token.type != "list_item_open" or token.map is None:
            continue
        depth += 1
        first, end = token.map
        off, on = indents[first]
        marker = _MARKER.match(lines[first][off:])
        width = len(marker[0]) if marker else 2
        for number in range(first + 1, end):
            indents[number] = (off + width, on + 4)
    out: list[str] = []
    for number, line in enumerate(lines):
        off, on = indents[number]
        spaces = min(off, len(line) - len(line.lstrip(" ")))  # a lazy continuation has fewer
        if number in before and out and out[-1].strip() and not _MARKER.match(out[-1]):
            out.append("")
        out.append(" " * on + line[spaces:] if line.strip() else "")
    return "\n".join(out)
