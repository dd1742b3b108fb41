"""The bench's table, as CSV and Markdown, and its picture of ratios."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.ticker import FixedLocator, NullLocator

from benchmarks.rows import FASTEST, Row
from benchmarks.workloads import WORKLOADS
from fedlogit.files import write_atomic
from fedlogit.results.style import (
    PALETTE,
    header,
    new_figure,
    save_figure,
    use_house_style,
)

__all__ = ["draw", "read", "summary", "write"]


def read(path: Path) -> list[Row]:
    """Return the rows of an earlier table."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(rows: Sequence[Row], folder: Path) -> None:
    """Write `speed.csv` and `speed.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomic(folder / "speed.csv") as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with write_atomic(folder / "speed.md") as part:
        part.write_text("\n".join(_markdown(rows)) + "\n")
    with write_atomic(folder / "summary.md") as part:
        part.write_text(summary(rows) + "\n")


def summary(rows: Sequence[Row]) -> str:
    """Return a table for each machine: how many times as fast the default engine is.

    The default engine, which `auto` takes, is a workload's first row.
    """
    machines = dict.fromkeys(str(row["machine"]) for row in rows)
    return "\n\n".join(
        f"On {machine}; float32. Speed-up of the default engine:\n\n"
        + "\n".join(_ratios([r for r in rows if r["machine"] == machine]))
        for machine in machines
    )


def _ratios(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table with a row for each workload."""
    yield (
        "| | Workload | over a plain PyTorch loop | over the fastest of the other frameworks"
        " | share of the machine's limit |"
    )
    yield "|---|---|---|---|---|"
    peers = {
        row["workload"]: f" ({row['implementation']})" for row in rows if row["note"] == FASTEST
    }
    for name in _workloads(rows):
        row = _default_engine(rows, name)
        loop = _shown(row["times_as_fast_as_the_plain_loop"], ".1f")
        peer = _shown(row["times_as_fast_as_the_fastest_peer"], ".1f") + peers.get(name, "")
        limit = _shown(row["share_of_limit"], ".2f")
        yield f"| {name} | {WORKLOADS[name].title} | {loop} | {peer} | {limit} |"


def _default_engine(rows: Sequence[Row], workload: str) -> Row:
    """Return a workload's first row."""
    return next(row for row in rows if row["workload"] == workload)


def _shown(value: object, form: str) -> str:
    """Return a number of a row, or a dash where there is none."""
    return "–" if value == "" else format(float(str(value)), form)


def _workloads(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["workload"]) for row in rows))


def _markdown(rows: Sequence[Row]) -> list[str]:
    lines = [
        "All implementations of a workload (engines, plain loops, frameworks) were measured in one "
        "run of the benchmark, in float32 unless marked bf16: one timed repetition of each after "
        "the other; median of n repetitions, and ratios of neighbouring ones.",
    ]
    head = [key for key in rows[0] if key not in ("workload", "code", "machine")]
    for name in _workloads(rows):
        own = [row for row in rows if row["workload"] == name]
        lines += [
            "", f"**{name}**: {WORKLOADS[name].title}.", "",
            f"Code {own[0]['code']}, on {own[0]['machine']}.", "",
            "| " + " | ".join(map(_heading, head)) + " |",
            "|" + "---|" * len(head),
        ]  # fmt: skip
        lines += [
            "| " + " | ".join(str(row[h]) if row[h] != "" else "–" for h in head) + " |"
            for row in own
            if row["seconds_median"] != ""
        ]
        lines += _absent(own)
    return lines


def _heading(column: str) -> str:
    """Return what a column is called above a table."""
    return column.replace("_", " ").replace("mib", "MiB")


def _absent(own: Sequence[Row]) -> list[str]:
    """Return a sentence for each reason why somebody was not measured."""
    who: dict[str, list[str]] = {}
    for row in own:
        if row["seconds_median"] == "":
            who.setdefault(str(row["note"]), []).append(str(row["implementation"]))
    if not who:
        return []
    told = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in who.items())
    return ["", f"Not measured: {told}."]


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw how many times as fast as the plain loop all are, a line for each workload."""
    use_house_style()
    key = "times_as_fast_as_the_plain_loop"
    names = _workloads(rows)
    figure, axes = new_figure(panel=(8.0, max(3.2, 0.9 + _ROW * len(names))))
    panel = axes[0, 0]
    measured = [row for row in rows if row[key] != ""]
    implementations = sorted(
        dict.fromkeys(str(row["implementation"]) for row in measured), key=_kind
    )
    peers = [who for who in implementations if _kind(who) == 2]
    for who in implementations:
        own = [row for row in measured if row["implementation"] == who]
        # Or peers hide each other.
        below = 0.2 + 0.55 * peers.index(who) / len(peers) if who in peers else 0.0
        panel.plot(
            [float(str(row[key])) for row in own],
            [names.index(str(row["workload"])) + below for row in own],
            _MARKERS.get(who, "x"), color=PALETTE[_COLOURS[_kind(who)]], label=who,
        )  # fmt: skip
    titles = [f"{name}: {WORKLOADS[name].title.partition(':')[0]}" for name in names]
    panel.set_yticks(range(len(names)), titles)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter("{x:g}")
    panel.axvline(1, color=PALETTE["black"], linewidth=0.8)
    panel.set_xlabel("Times as fast as a plain PyTorch loop over tensors")
    if measured:
        panel.legend(loc="upper left", bbox_to_anchor=(1, 1))
    repeated = sorted({int(str(row["n"])) for row in measured})
    n = (
        f"n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{repeated[0]}"
        + (f" to {repeated[-1]}" if len(repeated) > 1 else "")
        if measured
        else ""
    )
    subtitle = (
        f"{_machines(rows)}. Median of the ratios of neighbouring repetitions, {n}; speed.md has"
        " the seconds of the fastest and the slowest"
    )
    header(figure, "Speed-up over a plain PyTorch loop", subtitle)
    save_figure(figure, stem)


_ROW = 0.46  # inches
_COLOURS = ("blue", "orange", "grey")
_MARKERS = {
    **{"fedlogit, native": "o", "fedlogit, loop": "s", "fedlogit, unpadded": "D"},
    **{"fedlogit, loop, bf16": "P", "plain PyTorch, tensors": "^"},
    **{"plain PyTorch, dataloader": "v", "plain PyTorch, transforms": "d", "FedJAX": "*"},
    **{"Flower, 1 CPU per client": "X", "Flower, 2 CPUs per client": "p", "pfl-research": "h"},
    **{"FedLab": "<", "fluke": ">"},
}
"""An implementation's marker, the same on every machine, whoever else was measured there."""


def _kind(who: str) -> int:
    """Return the place of an implementation's kind: ours, a plain loop, another framework."""
    return 0 if who.startswith("fedlogit") else 1 if who.startswith("plain") else 2


def _machines(rows: Sequence[Row]) -> str:
    """Return each machine, after the first one with the workloads that were measured on it."""
    on: dict[str, list[str]] = {}
    for name in _workloads(rows):
        on.setdefault(str(_default_engine(rows, name)["machine"]), []).append(name)
    first, *others = on
    return ". ".join([f"On {first}", *(f"{', '.join(on[m])}: on {m}" for m in others)])
