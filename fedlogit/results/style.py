"""The house style of every figure: fonts, colours, headers, and files that are the same each time.

Colours are those of Okabe and Ito and two dark ones of Tol, which stay apart under the common
colour blindnesses. A method has one colour and marker, and one place in the order, in all figures.
Methods of one paper, and those that the comparison draws as lines, differ in both. A method of the
language model (``lm_``) looks as it does on images. With other parameters a method keeps its colour
and has another marker. One that is not in the table comes last, with a pair that no method of the
table has; the pair depends on nothing but its name, unless the name of another method of the same
figure leads to it, too.

What is no method, such as a condition or a partition, has a colour of `CATEGORIES`.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from fedlogit.files import write_atomic
from fedlogit.results.method_order import family, in_order

__all__ = [
    "CATEGORIES",
    "GREY",
    "HUES",
    "INK",
    "MARKERS",
    "PALETTE",
    "Look",
    "category_look",
    "family",
    "grow",
    "header",
    "in_order",
    "look",
    "looks",
    "new_figure",
    "panel_title",
    "save_figure",
    "text_lines",
    "text_width",
    "use_house_style",
    "wrapped_panels",
]

INK = "#333333"
GREY = "#6b6b6b"
PALETTE = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "indigo": "#332288",
    "wine": "#882255",
    "grey": "#8a8a8a",
    "black": "#000000",
}
HUES = [colour for name, colour in PALETTE.items() if name not in ("grey", "black")]
CATEGORIES = ("#3f5a75", "#a3a02c", "#a8703d", "#a7b4c1")  # slate, olive, brown, silver
MARKERS = "osD^vP*Xph<>d8H"


class Look(NamedTuple):
    """How a method is drawn: colour and marker."""

    colour: str
    marker: str


_COLOURS = {
    "blue": {"average": "o", "shapfed": "s", "fedprox": "<"},
    "orange": {"uwa": "s", "uwa_em": "p", "fedet": "D"},
    "green": {
        **{"meta_model": "D", "meta_model_forest": "d", "meta_model_boosting": "h"},
        **{"cgsv": "P", "fedhkt": "s", "lm_bridge": ">"},
    },
    "vermillion": {
        **{"fedmd": "X", "lm_fedmd": "X", "unlabelled_fedmd": "s"},
        **{"cffl": "v", "mine": "o"},
    },
    "purple": {"fedol": "*", "rc_fd": "d"},
    "sky": {"fedavg": "^", "lm_fedavg": "^", "lm_fedavg_1": "P"},
    "indigo": {"tally_train": "v", "unlabelled": "o", "lm_tally_train": "v", "fedkt": "X"},
    "wine": {"celm": "p", "feddf": "P"},
    "grey": {"local": "h", "no_consensus": "8"},
    "black": {"fully_informed": "H"},
}
_LOOKS = {
    method: Look(PALETTE[colour], marker)
    for colour, methods in _COLOURS.items()
    for method, marker in methods.items()
}
_VOLATILE = ("CreationDate", "Creator", "Producer")
_NUMBERS = 0.65  # inches that the numbers and the name of a vertical axis take
_WIDEST = 10.4  # inches: in a wider figure letters are too small once it is as wide as a page

_STYLE: Any = {  # matplotlib types its keys as literals, which a dict display loses
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "pdf.fonttype": 42,  # text stays text: searchable, and accepted by publishers
    "savefig.dpi": 200,
}


def use_house_style() -> None:
    """Set the house style for all figures that this process makes from now on."""
    matplotlib.rcParams.update(_STYLE)


def look(method: str) -> Look:
    """Return the colour and marker of a method, the same in every figure."""
    return _LOOKS.get(method) or next(_choices(method))


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return the looks of the methods of one figure, no two the same, whatever their order.

    Of methods outside the table whose names lead to one look, the first by name has it, and the
    others the next that is free.
    """
    given = list(dict.fromkeys(methods))
    chosen = {method: _LOOKS[method] for method in given if method in _LOOKS}
    for method in sorted(set(given) - set(_LOOKS)):
        free = (pair for pair in _choices(method) if pair not in chosen.values())
        chosen[method] = next(free, look(method))
    return {method: chosen[method] for method in given}


def _choices(method: str) -> Iterator[Look]:
    """Yield all looks that no method of the table has, from where the method's name leads to.

    First come those of its own colour, if it is one of the table with other parameters.
    """
    code, known = zlib.crc32(method.encode()), _LOOKS.get(family(method))
    pairs = [Look(hue, marker) for marker in MARKERS for hue in HUES]
    free = [pair for pair in pairs if pair not in _LOOKS.values()]
    own_colour = [Look(known.colour, marker) for marker in MARKERS] if known else []
    for choices in ([pair for pair in own_colour if pair not in _LOOKS.values()], free):
        first = code % max(1, len(choices))
        yield from choices[first:] + choices[:first]


def category_look(place: int) -> Look:
    """Return how what is no method is drawn, by its place among others; after the last, the first.

    Args:
        place: From 0.
    """
    return Look(CATEGORIES[place % len(CATEGORIES)], MARKERS[place % len(MARKERS)])


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    panel: tuple[float, float] = (4.0, 3.0),
    share_x: bool = False,
    share_y: bool | Literal["row"] = False,
) -> tuple[Figure, np.ndarray]:
    """Return an empty figure in house style and its (rows, columns) array of axes.

    Where panels would be wider than a page together, they are narrower than wanted.

    Args:
        rows: Rows of panels.
        columns: Columns of panels.
        panel: Width and height of a panel in inches.
        share_x: Give all panels the same horizontal axis.
        share_y: Give all panels, or those of a row, the same vertical axis.
    """
    use_house_style()
    size = (min(max(panel[0] * columns, 5.2), _WIDEST), panel[1] * rows + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=share_y)


def wrapped_panels(
    number: int,
    across: int,
    *,
    panel: tuple[float, float],
    share_x: bool = False,
    share_y: bool = False,
) -> tuple[Figure, np.ndarray, list[Axes]]:
    """Return a figure whose panels are in rows as even as can be, and those that are drawn in.

    Args:
        number: How many panels there are; the rest of the last row is hidden.
        across: Panels in a row, at most.
        panel: Width and height of a panel in inches.
        share_x: As of `new_figure`.
        share_y: As of `new_figure`.

    Returns:
        The figure, its array of axes (rows, columns), and the first `number` of them.
    """
    rows = -(-number // across)
    size = (rows, -(-number // rows))
    figure, grid = new_figure(*size, panel=panel, share_x=share_x, share_y=share_y)
    for axes in grid.flat[number:]:
        axes.set_visible(False)
    return figure, grid, list(grid.flat[:number])


def header(figure: Figure, title: str, subtitle: str) -> None:
    """Write a bold title and a grey subtitle above the panels, and make room for them."""
    width, height = figure.get_size_inches()
    bold, plain = FontProperties(size=11.5, weight="bold"), FontProperties(size=8.5)
    top, below = text_lines(title, width - 0.2, bold), text_lines(subtitle, width - 0.2, plain)
    tall = 0.12 + 0.22 * len(top) + 0.17 * len(below)
    height += tall
    figure.set_size_inches(width, height)
    engine = figure.get_layout_engine()
    if engine is None:
        _shrink(figure, 1 - tall / height)
    else:
        engine.set(rect=(0, 0, 1, 1 - tall / height))  # type: ignore[call-arg]
    left = 0.1 / width
    figure.text(left, 1 - 0.08 / height, "\n".join(top), font=bold, va="top")
    start = 0.1 + 0.22 * len(top)
    figure.text(left, 1 - start / height, "\n".join(below), font=plain, color=GREY, va="top")


def grow(figure: Figure, inches: float) -> None:
    """Make a figure taller, for its legend; its header, if it has one, stays at the top."""
    width, height = figure.get_size_inches()
    share = height / (height + inches)
    figure.set_size_inches(width, height + inches)
    for text in figure.texts:
        text.set_y(1 - (1 - text.get_position()[1]) * share)
    engine = figure.get_layout_engine()
    if engine is not None:
        top = engine.get()["rect"][3]
        engine.set(rect=(0, 0, 1, 1 - (1 - top) * share))  # type: ignore[call-arg]


def panel_title(figure: Figure, axes: Axes, text: str, across: int, *, beside: float = 0.0) -> None:
    """Write a title above a panel, in as many lines as it takes to stay within it.

    Args:
        figure: The panel's.
        axes: The panel.
        text: The title.
        across: Panels in a row, which have numbers beside the first.
        beside: Inches that something else beside the panels takes.
    """
    width = (figure.get_figwidth() - _NUMBERS - beside) / across
    font = axes.title.get_fontproperties()
    lines = [line for part in text.split("\n") for line in text_lines(part, width, font)]
    axes.set_title("\n".join(lines))


def text_lines(text: str, width: float, font: FontProperties) -> list[str]:
    """Return a text in lines of whole words, no wider than `width` inches."""
    # Points, of which an inch has 72: letters are drawn at whole pixels, and the last one's width
    # counts with the space behind it.
    limit = 70 * width + 1
    lines: list[str] = []
    for word in text.split(" "):  # words joined by a no-break space stay together
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and 72 * text_width(longer, font) <= limit:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def text_width(text: str, font: FontProperties) -> float:
    """Return how wide a line of text is, in inches."""
    wide, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(wide) / 72


def _shrink(figure: Figure, share: float) -> None:
    """Keep axes and texts that were placed by hand at their size in inches, below a header."""
    for axes in figure.axes:
        x, y, wide, tall = axes.get_position().bounds
        axes.set_position((x, y * share, wide, tall * share))
    for text in figure.texts:
        text.set_y(text.get_position()[1] * share)


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write ``path.png`` (200 dpi) and ``path.pdf`` atomically; no time stamp, so no false change.

    Args:
        figure: A finished figure.
        path: Where to; any suffix is replaced.

    Returns:
        The two paths written.

    Raises:
        FedlogitError: if they cannot be written; then neither is.
    """
    png, pdf = Path(path).with_suffix(".png"), Path(path).with_suffix(".pdf")
    # In memory first: on a full disk matplotlib's writer of PDF fails in a way of its own.
    image, page = io.BytesIO(), io.BytesIO()
    figure.savefig(image, format="png", dpi=200, metadata={"Software": None})
    figure.savefig(page, format="pdf", metadata=dict.fromkeys(_VOLATILE))
    with write_atomic(png) as of_image, write_atomic(pdf) as of_page:  # both, or neither
        of_image.write_bytes(image.getvalue())
        of_page.write_bytes(page.getvalue())
    return [png, pdf]
