"""Links of a page and paths that it mentions, outside of its code."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["relinked", "with_mentions_linked"]

_CODE = re.compile(
    r"(^ *(?P<fence>```+|~~~+).*?^ *(?P=fence) *$|<!--.*?-->|`+[^`]*`+)", re.M | re.S
)
_LINK = re.compile(r"(?<=\]\()([^()\s]+)(?=(?:\s+\"[^\"]*\")?\))")
_WHOLE_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
_MENTION = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md\b")
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
    return _replaced(_LINK, one, text, _blanked(_CODE, text))


def with_mentions_linked(text: str, link: Callable[[str], str | None]) -> str:
    """Return a page in which paths such as ``docs/claims.md``, in plain text, are links.

    Args:
        text: Markdown.
        link: From such a path to the link, or None if it is to stay as it is.
    """

    def one(match: re.Match[str]) -> str:
        found = link(match[0])
        return f"[{match[0]}]({found})" if found else match[0]

    return _replaced(_MENTION, one, text, _blanked(_WHOLE_LINK, _blanked(_CODE, text)))


def _blanked(what: re.Pattern[str], text: str) -> str:
    return what.sub(lambda found: "\0" * len(found[0]), text)


def _replaced(
    what: re.Pattern[str], by: Callable[[re.Match[str]], str], text: str, blank: str
) -> str:
    """Replace in `text` what is found in `blank`, which is as long."""
    out, end = [], 0
    for match in what.finditer(blank):
        out += [text[end : match.start()], by(match)]
        end = match.end()
    return "".join([*out, text[end:]])
