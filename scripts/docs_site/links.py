"""Links of a page, outside of its code."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["relinked"]

_CODE = re.compile(
    r"(^ *(?P<fence>```+|~~~+).*?^ *(?P=fence) *$|<!--.*?-->|`+[^`]*`+)", re.M | re.S
)
_LINK = re.compile(r"(?<=\]\()([^()\s]+)(?=(?:\s+\"[^\"]*\")?\))")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.I)


def relinked(text: str, target: Callable[[str], str]) -> str:
    """Return a page with every relative link replaced.

    Args:
        text: Markdown.
        target: From a link without its ``#anchor`` to the link that takes its place.
    """

    def one(match: re.Match[str]) -> str:
        path, hash_, anchor = match[1].partition("#")
        return match[1] if _ELSEWHERE.match(match[1]) else target(path) + hash_ + anchor

    # A link's text may itself be code, so code is blanked out and not cut out.
    blank = _CODE.sub(lambda code: "\0" * len(code[0]), text)
    out, end = [], 0
    for match in _LINK.finditer(blank):
        out += [text[end : match.start()], one(match)]
        end = match.end()
    return "".join([*out, text[end:]])
