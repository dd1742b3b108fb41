"""The gallery of the committed figures, and the record as a table that one can filter."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from fedlogit.papers import Paper
from fedlogit.papers.schema import JUDGED_SCALE
from fedlogit.results.metrics import metric_label
from fedlogit.results.pages.commands import command
from fedlogit.results.record.counts import counts_sentence
from fedlogit.results.record.numbers import as_comparison
from fedlogit.results.verdicts.comparison_table import comparison_table
from fedlogit.results.verdicts.rules import VERDICT_RULE

__all__ = ["gallery_pages", "record_page"]

_FILTERS = ("Paper", "Table", "Verdict")


def gallery_pages(papers: Mapping[str, Paper], figures: Path) -> Iterator[tuple[str, str]]:
    """Yield the gallery: a page with all figures small, and one per paper.

    Args:
        papers: All papers, by name.
        figures: The committed figures, ``<paper>/<scale>/<id>.png`` with a caption beside each.

    Yields:
        A page's place in the site, and its Markdown with links from the repository's root.
    """
    overview = [
        "# Gallery",
        "Every figure that the finished runs in this repository cover. A picture leads to its"
        " caption, its PDF and the command that draws it.",
    ]
    # Papers first, then our own comparison.
    for name, paper in sorted(papers.items(), key=lambda item: item[1].acm is None):
        files = sorted(figures.glob(f"{name}/*/[!.]*.png"), key=_order)
        if not files:
            continue
        cells = "\n".join(_small(file, f"results/figures/{name}") for file in files)
        grid = f'<div class="grid cards gallery" markdown>\n\n{cells}\n</div>'
        overview += [f"## {paper.short_name}", grid]
        yield f"gallery/{name}.md", _of_paper(paper, files)
    yield "gallery/index.md", "\n\n".join(overview)


def _order(file: Path) -> tuple[int, str, str]:
    """Put the scale `paper` first, then the others by name, and figures by id."""
    scale = file.parent.name
    return int(scale != JUDGED_SCALE), scale, file.stem


def _of_paper(paper: Paper, files: list[Path]) -> str:
    """Return the page of a paper's figures, by scale."""
    parts = [
        f"# Figures of {paper.short_name}",
        "The command below each figure draws it from the finished runs, which `make pull` fetches;"
        f" it trains nothing. [The paper's page](docs/papers/{paper.paper}.md) has the tables,"
        " the settings, and what came out.",
    ]
    for scale, those in groupby(files, lambda file: file.parent.name):
        parts += [f"## Scale `{scale}`", paper.scale(scale).summary, *map(_figure, those)]
    return "\n\n".join(parts)


def _small(file: Path, page: str) -> str:
    """Return a figure as an item of the overview, which leads to its section on a page."""
    title, _ = _title(file)
    picture = f"![{title}]({_path(file)}){{ loading=lazy }}"
    link = f"[{picture}]({page}#{_anchor(file)})"
    return f"-   {link}\n\n    {title} (`{file.parent.name}`)\n"


def _figure(file: Path) -> str:
    """Return the section of a figure: what it shows, and how to make it."""
    title, caption = _title(file)
    path = _path(file)
    return "\n\n".join(
        [
            f"### {title} {{ #{_anchor(file)} }}",
            f"[![{title}]({path})]({path})",
            caption,
            f"```bash\n{command(*file.parts[-3:-1], file)}\n```",
            f"[PDF]({path.removesuffix('.png')}.pdf)",
        ]
    )


def _title(file: Path) -> tuple[str, str]:
    """Return a figure's title and caption, from the page that was made with it."""
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    first, _, rest = text.strip().partition("\n")
    return first.strip("*# "), re.sub(r"!\[[^\]]*\]\([^)]*\)", "", rest).strip()


def _anchor(file: Path) -> str:
    return f"{file.parent.name}-{file.stem}"


def _path(file: Path) -> str:
    return file.as_posix()


def record_page(record: pd.DataFrame, papers: Mapping[str, Paper], tables: Path) -> str:
    """Return the page of all published numbers beside ours.

    Args:
        record: As from `fedlogit.results.record.numbers.read_record`.
        papers: All papers, for titles and labels.
        tables: The committed tables, ``<paper>/<scale>/<id>.md``, to which our numbers lead.
    """
    rows = pd.concat([_rows(of, papers[str(name)]) for name, of in record.groupby("paper")])
    pages = [_table_page(tables, *of) for of in record[["paper", "scale", "table"]].to_numpy()]
    pages = list(pd.Series(pages, index=record.index)[rows.index])
    return "\n\n".join(
        [
            "---\nhide: [navigation, toc]\n---",
            "# The record, as a table",
            counts_sentence(record),
            "[How to read it](docs/record.md) also describes what was tried where numbers were not"
            " reproduced. Our numbers link to their tables. [record.csv](results/record.csv) also"
            " has the intervals and [the runs](docs/run-folder.md#what-is-made-of-runs) behind each"
            " number.",
            _filters(rows),
            f'<div class="record" data-search-exclude>\n{_table(rows, pages)}\n</div>',
            VERDICT_RULE,
            "A number of ours at a reduced scale is shown next to the paper's and gets no verdict."
            " *n* is the number of runs, one per seed.",
        ]
    )


def _rows(of: pd.DataFrame, paper: Paper) -> pd.DataFrame:
    """Return a paper's numbers as strings."""
    shown = comparison_table(as_comparison(of), paper.labels, whole=True)
    return pd.DataFrame(
        {
            "Paper": paper.short_name,
            "Table": of["table"].map(paper.short_title),
            "Metric": [
                paper.labels.get(metric) or metric_label(metric, paper.samples(dataset))
                for metric, dataset in zip(of["metric"], of["dataset"], strict=True)
            ],
            "Data": shown["Dataset"],
            "Partition": shown["Partition"],
            "Method": shown["Method"].str.cat(of["where"].map(_setting)),
            "Reported": shown["Paper"],
            "Ours": shown["Ours"],
            "n": shown["n"].replace("0", "–"),
            "Difference": shown["Difference"],
            "Verdict": of["verdict"],
            "Scale": of["scale"].replace("", "–"),
            "Why": of["why"],
        }
    )


def _table_page(tables: Path, paper: str, scale: str, table: str) -> str:
    """Return where the site has the table with a number; "" where there is none."""
    there = (tables / paper / scale / f"{table}.md").exists()
    return f"results/tables/{paper}/{scale}/{table}.html" if there else ""


def _setting(where: str) -> str:
    return f" ({where})" if where else ""


def _filters(rows: pd.DataFrame) -> str:
    """Return a form: a choice for each of `_FILTERS`, and a text to look for."""
    fields = [
        f'<label>{key} <select data-column="{list(rows.columns).index(key)}">'
        f'<option value="">all</option>{"".join(map(_option, dict.fromkeys(rows[key])))}'
        "</select></label>"
        for key in _FILTERS
    ]
    text = '<label>Text <input type="search" placeholder="celm cifar-10"></label>'
    count = f'<output aria-live="polite">{len(rows)} of {len(rows)} numbers</output>'
    return f'<form class="record-filter">{"".join(fields)}{text}{count}</form>'


def _option(value: str) -> str:
    return f"<option>{html.escape(value)}</option>"


def _table(rows: pd.DataFrame, pages: Sequence[str]) -> str:
    """Return the table in HTML; our numbers are links to `pages`, where there are some."""
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in rows.columns)
    body = "\n".join(map(_table_row, rows.to_dict("records"), pages))
    head = f"<thead><tr>{head}</tr></thead>"
    return f'<table id="record" class="record-table">\n{head}\n<tbody>\n{body}\n</tbody></table>'


def _table_row(row: Mapping[str, object], page: str) -> str:
    cells = {key: html.escape(str(value)) for key, value in row.items()}
    if page:
        cells["Ours"] = f'<a href="{page}">{cells["Ours"]}</a>'
    shown = "".join(f"<td>{cell}</td>" for cell in cells.values())
    return f'<tr data-verdict="{cells["Verdict"]}">{shown}</tr>'
