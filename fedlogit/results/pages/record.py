"""A page of Markdown on the record: how to read it, and what was tried where numbers deviate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers import Paper
from fedlogit.results.formatting import markdown, sentence
from fedlogit.results.metrics import metric_label
from fedlogit.results.pages.templating import render
from fedlogit.results.record.counts import (
    caveats,
    counts_sentence,
    counts_table,
    margin_units,
)
from fedlogit.results.record.notes import Notes, read_notes
from fedlogit.results.record.numbers import as_comparison, read_record
from fedlogit.results.record.orders import orders_sentence, orders_table, recorded_orders
from fedlogit.results.record.other_readings import decided_by_rounding, divided_by_n
from fedlogit.results.verdicts.comparison_table import RIGHT, comparison_table
from fedlogit.results.verdicts.number_rows import RecordedNumber, recorded_numbers
from fedlogit.results.verdicts.orders import ORDER_RULE
from fedlogit.results.verdicts.rules import PARTLY, UNJUDGED, Verdict

__all__ = ["deviating_numbers", "record_page"]

_NOTHING = "No experiment was made yet."


def record_page(papers: Sequence[Paper], results: Path, references: Path) -> str:
    """Return the page.

    Args:
        papers: Their files.
        results: The folder with the record that was committed.
        references: The folder with the notes on published numbers.

    Raises:
        DataError: if there is no record.
    """
    rows, notes = read_record(results), read_notes(references)
    by_name = {paper.paper: paper for paper in papers}
    if unknown := sorted({*rows["paper"]} - {*by_name}):
        raise DataError(
            f"{results / 'record.csv'}: paper {unknown[0]!r} has no file; run make redraw"
        )
    return render(
        "record.md",
        counts=counts_sentence(rows),
        caveats=caveats(rows, notes),
        by_paper=counts_table(rows, by_name),
        order_rule=ORDER_RULE,
        orders=_orders(recorded_orders(rows, by_name, results), by_name),
        unjudged=_unjudged_table(rows, by_name),
        on_gpu=_on_gpu(rows["device"]),
        derived=_reproduced_and_derived(rows, notes),
        by_rounding=_other_verdicts(decided_by_rounding(rows, references), by_name),
        divided=_other_verdicts(divided_by_n(rows, references), by_name),
        groups=list(_deviation_groups(rows, by_name, notes)),
    )


def _orders(pairs: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return how many pairs of methods are in which order, in words and by table."""
    if pairs.empty:
        return "No pair of methods was run."
    return f"{orders_sentence(pairs)}\n\n{orders_table(pairs, papers)}"


def _on_gpu(devices: pd.Series) -> str:
    """Return how many numbers have runs that were made on a GPU."""
    each = devices.str.split("; ").explode()
    found = each[~each.str.match("CPU|$")]
    if found.empty:
        return "No run behind these numbers was made on a GPU."
    numbers = "number has" if found.index.nunique() == 1 else "numbers have"
    return (
        f"{found.index.nunique()} {numbers} runs made on a GPU ({', '.join(sorted(set(found)))});"
        f" [what they took](cluster.md#what-a-gpu-has-shown)."
    )


def _other_verdicts(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return a row for each verdict that might be another, with what it might be."""
    if rows.empty:
        return ""
    numbers = recorded_numbers(rows)
    table = {
        "Number": [_number_name(number, papers[number["paper"]]) for number in numbers],
        "Printed": rows["printed"],
        "Ours": [f"{number['ours']:.4g}" for number in numbers],
        "Verdict": rows["verdict"],
        "Or": rows["others"],
    }
    return markdown(pd.DataFrame(table), right=["Printed", "Ours"])


def _number_name(number: RecordedNumber, paper: Paper) -> str:
    """Return where a published number stands: ``CELM, Table 3: AUROC of CGSV, FRM``."""
    title = paper.short_title(number["table"])
    method, dataset, partition = (
        paper.labels.get(name, name)
        for name in (number["method"], number["dataset"], number["partition"])
    )
    place = ", ".join(filter(None, (method, dataset, partition)))
    label = metric_label(number["metric"], paper.samples(number["dataset"]))
    return f"{paper.short_name}, {title}: {label} of {place}"


def _reproduced_and_derived(rows: pd.DataFrame, notes: Notes) -> str:
    """Return how many of the reproduced numbers a setting was derived from."""
    reproduced = rows[rows["verdict"] == Verdict.REPRODUCED]
    return f"{int(notes.settings_from(reproduced).sum())} of the {len(reproduced)}"


def deviating_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that did not come out, or that several runs leave beyond 3 points."""
    far = rows["difference"].abs() > PARTLY * margin_units(rows)
    judged = rows["verdict"].isin([Verdict.NOT_REPRODUCED, Verdict.SINGLE_RUN_OUTSIDE])
    return rows[judged | (far & (rows["verdict"] == Verdict.INCONCLUSIVE))]


def _deviation_groups(
    rows: pd.DataFrame, papers: Mapping[str, Paper], notes: Notes
) -> Iterator[dict[str, str]]:
    """Yield each deviation that is still one, with its numbers; last those that no note is on."""
    left = deviating_numbers(rows)
    for deviation in notes.deviations:
        found = deviation.match(left)
        if found.any():
            yield {
                "title": deviation.title,
                "rows": _number_table(left[found], papers),
                "text": deviation.text,
            }
        left = left[~found]
    if len(left):
        yield {"title": "Others", "rows": _number_table(left, papers), "text": _NOTHING}


def _number_table(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return numbers as one table, each paper's by its own labels."""
    parts = []
    for name, part in rows.groupby("paper", sort=False):
        paper = papers[str(name)]
        titles = part["table"].map(paper.short_title)
        table = comparison_table(as_comparison(part), paper.labels, whole=True)
        table = table.drop(columns=["Table", "Metric"], errors="ignore")
        table.insert(0, "Table", paper.short_name + ", " + titles)
        labels = [
            sentence(metric_label(number["metric"], paper.samples(number["dataset"])))
            for number in recorded_numbers(part)
        ]
        table.insert(1, "Metric", labels)
        parts.append(table)
    whole = pd.concat(parts).fillna("–")
    return markdown(whole, right=set(RIGHT) & set(whole.columns))


def _unjudged_table(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return a row for each reason, with its numbers, by paper and data set."""
    keys = ["paper", "dataset", "verdict", "why"]
    found = rows[rows["verdict"].isin(UNJUDGED)].groupby(keys, sort=False)
    table = []
    for key, part in found:
        name, dataset, verdict, why = map(str, key)
        paper = papers[name]
        row = {"Paper": paper.short_name, "Dataset": paper.labels.get(dataset, dataset)}
        table.append(row | {"Numbers": str(len(part)), "": verdict, "Why": why})
    return markdown(pd.DataFrame(table), right=["Numbers"]) if table else "All have one."
