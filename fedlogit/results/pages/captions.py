"""Captions of tables and figures on pages: as HTML, and in short for those who cannot see one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from fedlogit.papers.artefact import Artefact

__all__ = ["Place", "alt_text", "caption_html"]

_SENTENCE_END = re.compile(r"(?<=[.?!]) +(?=[A-Z])")


class Place(NamedTuple):
    """Where a table or figure stands on a page, and under which heading."""

    anchor: str
    title: str


def caption_html(text: str, places: Mapping[str, Place]) -> Markup:
    """Return a caption as HTML: code and emphasis are marked, all else is shown as it is.

    Args:
        text: With Markdown's marks of code and emphasis.
        places: The tables and figures of the page, by id; code that is such an id is a link.
    """
    inline = MarkdownIt("zero").enable(["backticks", "emphasis"])
    inline.add_render_rule("code_inline", _code)
    return Markup(inline.renderInline(text, {"places": places}))  # noqa: S704 - it escapes


def _code(
    _: RendererProtocol, tokens: Sequence[Token], place: int, __: OptionsDict, env: Any
) -> str:
    """Return what replaces the renderer's own code, with a link where there is something."""
    code = Markup("<code>{}</code>").format(tokens[place].content)
    found = env["places"].get(tokens[place].content)
    if found is None:
        return code
    return Markup('<a href="#{}" title="{}">{}</a>').format(found.anchor, found.title, code)


def alt_text(artefact: Artefact) -> str:
    """Return a figure's title and the first sentence of its caption, without marks of code."""
    about = _SENTENCE_END.split(artefact.caption.strip())[0].replace("`", "")
    return f"{artefact.title.rstrip('.')}. {about}" if about else artefact.title
