"""What figures say."""

from __future__ import annotations

from matplotlib.figure import Figure

__all__ = ["header_text"]


def header_text(figure: Figure) -> str:
    """Return the title of a figure and the notes below it, without line breaks."""
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())
