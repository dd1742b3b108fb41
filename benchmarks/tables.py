"""The bench's table, as CSV and Markdown, and its picture of ratios."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row
from benchmarks.workloads import WORKLOADS
from fedlogit.files import write_atomic
from fedlogit.results.style import PALETTE, new_figure, save_figure, use_house_style

__all__ = ["draw", "read", "write"]


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


def _markdown(rows: Sequence[Row]) -> list[str]:
    lines = [
        "# Speed: a round beside plain PyTorch and other frameworks",
        "",
        f"On {rows[0]['machine']}; float32. One turn of each after the other; median of n turns, "
        "and ratios of neighbouring turns.",
    ]
    head = [key for key in rows[0] if key not in ("workload", "code", "machine")]
    for name in dict.fromkeys(str(row["workload"]) for row in rows):
        lines += [
            "", f"**{name}**: {WORKLOADS[name].title}.", "",
            "| " + " | ".join(h.replace("_", " ") for h in head) + " |",
            "|" + "---|" * len(head),
        ]  # fmt: skip
        lines += [
            "| " + " | ".join(str(row[h]) if row[h] != "" else "–" for h in head) + " |"
            for row in rows
            if row["workload"] == name
        ]
    return lines


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw how many times as fast as the plain loop everybody is, a panel for each workload."""
    use_house_style()
    names = list(dict.fromkeys(str(row["workload"]) for row in rows))
    key = "times_as_fast_as_the_plain_loop"
    played = {n: [r for r in rows if r["workload"] == n and r[key] != ""] for n in names}
    most = max(len(found) for found in played.values())
    figure, axes = new_figure(len(names), panel=(7.5, 0.7 + 0.28 * most))
    panels = axes[:, 0]
    for panel, name in zip(panels, names, strict=True):
        found = sorted(played[name], key=lambda row: float(str(row[key])))
        values = [float(str(row[key])) for row in found]
        ours = [str(row["contestant"]).startswith("fedlogit") for row in found]
        colours = [PALETTE["blue"] if own else PALETTE["grey"] for own in ours]
        bars = panel.barh([str(row["contestant"]) for row in found], values, color=colours)
        panel.bar_label(bars, [f"{v:g}×" for v in values], padding=3)
        panel.axvline(1, color=PALETTE["black"], linewidth=0.8)
        panel.set_title(f"{name}: {WORKLOADS[name].title}", loc="left")
    panels[-1].set_xlabel("times as fast as a plain PyTorch loop over tensors (same turn)")
    save_figure(figure, stem)
