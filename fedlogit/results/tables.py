"""Tables: mean ± standard deviation over seeds, as CSV (all digits), Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.metric_names import is_counted, is_share
from fedlogit.papers.options import Printed
from fedlogit.results.analyses import analyse
from fedlogit.results.collect import collect, distinct_values, sources, summarise
from fedlogit.results.formatting import markdown, sentence, spread, write_csv, write_text
from fedlogit.results.metric_words import metric_sentences
from fedlogit.results.metrics import metric_label
from fedlogit.results.provenance import provenance
from fedlogit.results.runs.gathered import measured_on

__all__ = [
    "cell_of_run",
    "linked_table",
    "table_and_caption",
    "table_caption",
    "tidy",
    "write_table",
]

_GREEK = dict(zip("αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", (
    "alpha", "beta", "gamma", "delta", "varepsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "pi", "rho", "varsigma", "sigma", "tau", "upsilon", "varphi",
    "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon",
    "Phi", "Psi", "Omega",
), strict=True))  # fmt: skip
_LIKE_LATIN = dict(zip("οΑΒΕΖΗΙΚΜΝΟΡΤΧ", "oABEZHIKMNOPTX", strict=True))  # have no command
_TEX = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
    "–": "--",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "×": r"$\times$",
    "²": "$^2$",
    "⌊": r"$\lfloor$",
    "⌋": r"$\rfloor$",
    "\xa0": "~",
    **{letter: rf"$\{command}$" for letter, command in _GREEK.items()},
    **{letter: f"${latin}$" for letter, latin in _LIKE_LATIN.items()},
}
_PDFLATEX = r"[^\0-ſ‘’‚“”„—…•€™]"  # what it does not know: what is neither Latin nor punctuation
_TEX_NEEDS = "% \\usepackage{array,booktabs,longtable,multirow}\n"
_LABEL = re.compile("[^a-z0-9]+")  # what a label has a hyphen for
_LONGEST_FLOAT = 45  # rows on a page, beside a caption and two of headings
_LONGEST_LINE = 24  # letters of a cell that need not wrap


def write_table(artefact: Artefact, out: Path) -> list[Path]:
    """Write ``out.csv``, ``out.md`` and ``out.tex``.

    Args:
        artefact: A table; its options are ``percent`` (print shares in per cent; by default as
            fractions) and ``decimals``.
        out: The three paths without their suffix.

    Returns:
        The paths written.

    Raises:
        DataError: if a run is missing or damaged.
        FedlogitError: if the artefact is no table.
    """
    if artefact.analysis:
        return _write_analysis(artefact, out)
    if not artefact.rows or not artefact.columns:
        raise FedlogitError(f"{artefact.name}: a table needs axes in 'rows' and in 'columns'")
    frame = collect(artefact, gaps=True)
    cells = tidy(artefact, frame)
    grid = _grid(artefact, cells, _texts(artefact, cells))
    caption = table_caption(artefact, frame)
    return _write(artefact, out, _with_reasons(artefact, cells), grid, caption)


def _write_analysis(artefact: Artefact, out: Path) -> list[Path]:
    found = analyse(artefact)
    grid = found.shown.set_index(list(found.shown.columns[: found.heads]))
    sentences = [artefact.caption.strip().rstrip("."), *found.sentences]
    sentences += [sentence(sources(provenance(artefact))), sentence(artefact.not_run)]
    caption = ". ".join(filter(None, sentences)) + "."
    more = {name: shown.set_index(shown.columns[0]) for name, shown in found.more.items()}
    return _write(artefact, out, found.numbers, grid, caption, found.right, more)


def _write(
    artefact: Artefact,
    out: Path,
    numbers: pd.DataFrame,
    grid: pd.DataFrame,
    caption: str,
    right: Sequence[str] | None = None,
    more: Mapping[str, pd.DataFrame] | None = None,
) -> list[Path]:
    below = (more or {}).items()
    titled = [
        (artefact.title, _pipes(grid, right)),
        *((name, _pipes(each)) for name, each in below),
    ]
    text = "\n\n".join([*(f"**{title}**\n\n{table}" for title, table in titled), caption])
    latex = [_latex(artefact, grid, caption, right)]
    latex += [_latex(artefact, each, "", None, part=name) for name, each in below]
    return [
        write_csv(out.with_name(f"{out.name}.csv"), numbers),
        write_text(out.with_name(f"{out.name}.md"), text),
        write_text(out.with_name(f"{out.name}.tex"), _needs(latex) + "\n".join(latex)),
    ]


def table_and_caption(text: str) -> tuple[str, str]:
    """Return the table, in Markdown, and the caption of a text that `write_table` wrote.

    With further tables and their titles, if there are any.
    """
    lines = text.splitlines()
    of_tables = [place for place, line in enumerate(lines) if line.startswith("|")] or [0]
    start, end = of_tables[0], of_tables[-1] + 1
    return "\n".join(lines[start:end]), "\n".join(lines[end:]).strip()


def linked_table(artefact: Artefact, frame: pd.DataFrame, prefix: str) -> str:
    """Return a table in Markdown whose numbers are links, to ``#<prefix><cell>``.

    Args:
        artefact: The table.
        frame: Its runs, as from `collect`.
        prefix: What the anchors begin with; their ends are those of `cell_of_run`.
    """
    cells = tidy(artefact, frame)
    places = cells.groupby("metric", sort=False).cumcount()
    found = zip(_texts(artefact, cells), places, strict=True)
    texts = [f"[{text}](#{prefix}{place})" for text, place in found]
    return _pipes(_grid(artefact, cells, texts))


def cell_of_run(artefact: Artefact, frame: pd.DataFrame) -> pd.Series:
    """Return, for each run of a frame, the number of the table's cell that it belongs to.

    Cells count from 0 in order of appearance; those of several metrics of the same runs are one.
    """
    return frame.groupby(_axes(artefact), sort=False, dropna=False).ngroup()


def _axes(artefact: Artefact) -> list[str]:
    every = [*(artefact.rows or ()), *(artefact.columns or ())]
    return [axis for axis in every if axis != "metric"]


def tidy(artefact: Artefact, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per cell of a table: its axes, metric, mean, std, n, diverged, provenance."""
    axes = _axes(artefact)
    cells = pd.concat([_cells_of_metric(frame, axes, metric) for metric in artefact.shown])
    columns = ["scale", "device", "engine", "precision", "dataset_note", "code_version"]
    columns = [column for column in columns if column not in axes]  # precision may be an axis
    groups = frame.groupby(axes, sort=False, dropna=False)
    where = groups.agg(dict.fromkeys(columns, distinct_values))
    return cells.merge(where.reset_index(), on=axes, how="left", validate="many_to_one")


def _cells_of_metric(frame: pd.DataFrame, axes: list[str], metric: str) -> pd.DataFrame:
    cells = summarise(frame, axes, metric)
    cells.insert(len(axes), "metric", metric)
    return cells


def _grid(artefact: Artefact, cells: pd.DataFrame, text: Sequence[str]) -> pd.DataFrame:
    """Return the table as printed, its rows and columns in order of appearance.

    Args:
        artefact: The table.
        cells: Its cells, as from `tidy`.
        text: What each cell says.
    """
    rows, columns = list(artefact.rows or ()), list(artefact.columns or ())
    texts = _with_reasons(artefact, cells.assign(text=text)).fillna({"text": "n/a"})
    for axis in [*rows, *columns]:
        # A column's head is its value alone; that of rows names their axis.
        printed = partial(artefact.full_label if axis in columns else artefact.label, axis=axis)
        found = list(texts[axis].drop_duplicates())
        if artefact.cannot and axis != "metric":
            found = [*dict.fromkeys([*artefact.in_order(axis), *found])]
        texts[axis] = pd.Categorical(
            texts[axis].map(printed), categories=list(dict.fromkeys(map(printed, found)))
        )
    # Values may share a label, as a method with other probes on another data set; cells may not.
    if (again := texts.duplicated([*rows, *columns])).any():
        shared = ", ".join(map(str, texts.loc[again, [*rows, *columns]].iloc[0]))
        raise FedlogitError(f"{artefact.name}: two cells share the labels {shared}")
    grid = texts.pivot_table(
        index=rows, columns=columns, values="text", aggfunc="first", observed=True
    )
    grid.index.names = [artefact.label(name) for name in grid.index.names]
    grid.columns = pd.Index(
        [", ".join(name) if isinstance(name, tuple) else name for name in grid.columns]
    )
    return grid.fillna("")


def _with_reasons(artefact: Artefact, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells and those that cannot be, whose reason is in a column `cannot`."""
    if not artefact.cannot:
        return cells
    lacking = [
        {axis: place.axes[axis] for axis in _axes(artefact)}
        | {"metric": metric, "n": 0, "diverged": 0, "cannot": place.why}
        for metric in artefact.shown
        for place in artefact.cannot
    ]
    both = pd.concat([cells.assign(cannot=""), pd.DataFrame(lacking)], ignore_index=True)
    return both.astype(cells.dtypes[["n", "diverged"]].to_dict())


def _texts(artefact: Artefact, cells: pd.DataFrame) -> list[str]:
    """Return what each cell says; of one that lacks seeds which others have, also how many it has.

    A single seed has no spread, which tells it, unless the metric is printed without one.
    """
    printed = artefact.read_options(Printed)
    most = (cells["n"] + cells["diverged"]).max()
    texts = []
    for row in cells.to_dict("records"):
        text = spread(
            row["mean"],
            row["std"],
            row["metric"],
            percent=printed.percent,
            decimals=printed.decimals,
        )
        lacks_seeds = 0 < row["n"] < most - row["diverged"]
        if lacks_seeds and (row["n"] > 1 or is_counted(row["metric"])):
            text += f" (n = {row['n']})"
        texts.append(f"{text} †{row['diverged']}" if row["diverged"] else text)
    return texts


def table_caption(artefact: Artefact, frame: pd.DataFrame) -> str:
    """Return a caption: what is shown, how it was summarised, and where it comes from.

    Args:
        artefact: A table without `analysis`.
        frame: Its runs, as from `collect`.
    """
    cells = tidy(artefact, frame)
    texts = _texts(artefact, cells)
    shares = [is_share(metric) for metric in artefact.shown]
    percent = artefact.read_options(Printed).percent
    mean = "mean ± standard deviation" if any("±" in text for text in texts) else "mean"
    over = f"{mean} over seeds" if cells["n"].max() > 1 else "one seed"
    samples = measured_on(artefact)
    if len(shares) == 1:
        unit = " in %" if percent and shares[0] else ""
        shown = [f"{sentence(metric_label(artefact.shown[0], samples))}{unit}, {over}"]
    else:
        unit = "" if not percent or not any(shares) else "in %" if all(shares) else "shares in %"
        shown = [
            *metric_sentences(artefact, samples),
            sentence(", ".join(filter(None, (over, unit)))),
        ]
    parts = [artefact.caption.strip().rstrip("."), *shown, *_seed_sentences(cells, texts)]
    parts += _dataset_sentences(artefact, frame)
    parts += [sentence(sources(frame)), sentence(artefact.not_run), artefact.why_cannot]
    if cells["diverged"].any():
        parts.append("†k: training diverged for k seeds, which are not in the mean")
    if ((cells["n"] == 0) & (cells["diverged"] == 0)).any():
        parts.append("–: these runs do not have the metric")
    return ". ".join(filter(None, parts)) + "."


def _seed_sentences(cells: pd.DataFrame, texts: Sequence[str]) -> list[str]:
    """Say how to tell numbers of fewer seeds from the others of a table."""
    single = (cells["n"] == 1) & ~cells["metric"].map(is_counted)
    told = ["Numbers without ± are of one seed"] if single.any() and cells["n"].max() > 1 else []
    return [*told, *(["n: seeds, where fewer"] if any("(n = " in text for text in texts) else [])]


def _dataset_sentences(artefact: Artefact, frame: pd.DataFrame) -> list[str]:
    """Name the data set of a table that has one, unless its rows, columns or texts do."""
    names = list(frame["dataset"].drop_duplicates().map(artefact.label))
    named = {"dataset"} & {*(artefact.rows or ()), *(artefact.columns or ())}
    if named or len(names) > 1 or names[0] in f"{artefact.title} {artefact.caption}":
        return []
    return [f"Data set: {names[0]}"]


def _pipes(grid: pd.DataFrame, right: Sequence[str] | None = None) -> str:
    """Return a grid as a table of Markdown, without what a row's head repeats of the one above.

    Args:
        grid: What is printed, as text.
        right: The columns that are aligned at the right; None is all of them.
    """
    flat = grid.reset_index().astype(str)
    repeated = pd.Series(data=True, index=flat.index)
    for name in grid.index.names[:-1]:
        repeated &= flat[name] == flat[name].shift()
        flat[name] = flat[name].mask(repeated, "")
    return markdown(flat, right=grid.columns if right is None else right)


def _latex(
    artefact: Artefact,
    grid: pd.DataFrame,
    caption: str,
    right: Sequence[str] | None,
    part: str = "",
) -> str:
    """Return the table with booktabs rules, on several pages if it is long.

    Args:
        artefact: The table.
        grid: What is printed, as text.
        caption: What stands above it after its title.
        right: As of `_pipes`.
        part: What a further table is called, besides the artefact.
    """
    plain = grid.rename_axis(index=[_tex(name) for name in grid.index.names])
    styler = plain.style.format(_tex).format_index(_tex, axis=0).format_index(_tex, axis=1)
    is_long = len(plain) > _LONGEST_FLOAT
    name = f"{artefact.title}: {part}" if part else artefact.title
    title, whole = _tex(name), _tex(f"{name}. {caption}".strip())
    label = f"tab:{artefact.paper}-{artefact.id}"
    text = styler.to_latex(
        hrules=True,
        caption=whole,
        label=f"{label}-{_LABEL.sub('-', part.lower()).strip('-')}" if part else label,
        position=None if is_long else "tbp",
        position_float=None if is_long else "centering",
        environment="longtable" if is_long else None,
        column_format=_column_format(grid, right),
        multirow_align="t",
    )
    # pandas would have the whole caption again on each page of a long table.
    return text.replace(rf"\caption[]{{{whole}}}", rf"\caption[]{{{title} (continued)}}")


def _needs(latex: Sequence[str]) -> str:
    """Return comments that say what a document needs to have these tables in it."""
    foreign = sorted(set(re.findall(_PDFLATEX, "".join(latex))))
    if not foreign:
        return _TEX_NEEDS
    said = "lualatex and a font with these letters, which pdflatex does not know"
    return f"{_TEX_NEEDS}% {said}: {' '.join(foreign)}\n"


def _column_format(grid: pd.DataFrame, right: Sequence[str] | None) -> str:
    """Return how LaTeX aligns columns: numbers at the right, texts at the left, long ones wrap."""
    columns = [*grid.columns] if right is None else [*right]
    texts = [name for name in grid.columns if name not in columns]
    long = [name for name in texts if grid[name].str.len().max() > _LONGEST_LINE]
    width = f"{min(0.3, 0.7 / max(1, len(long))):.2f}"
    wrapped = rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}"
    formats = ["r" if name in columns else wrapped if name in long else "l" for name in grid]
    return "l" * grid.index.nlevels + "".join(formats)


def _tex(text: object) -> str:
    """Return a text in LaTeX; what is bold or code in Markdown is so there, too."""
    written = "".join(_TEX.get(c, c) for c in str(text))
    written = re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", written)
    written = re.sub(r"`(.+?)`", _typewriter, written)
    # A row ends in \\, which takes what follows in brackets, or a star, for its own.
    return "{}" + written if written[:1] in ("[", "*") else written


def _typewriter(code: re.Match[str]) -> str:
    straight = code[1].replace("'", r"\textquotesingle{}")  # LaTeX's own would be a curly one
    return rf"\texttt{{{straight}}}"
