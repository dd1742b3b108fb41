"""The page of a mutation test: counts, and every mutant that survives with the reason."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from mutation.forks import Outcome

NEEDED = 0.9
_HAND_WRITTEN = "## Hand-written mutants"
_SURVIVING = "## Surviving mutants of the sample"
OPERATORS = {
    "arg_removal": "an argument of a call left out, or None",
    "assignment": "a value assigned replaced by None",
    "augmented_assignment": "`+=` and the like replaced by `=`",
    "dict_arguments": "a key of `dict(…)` renamed",
    "if_exp": "a conditional expression's condition always or never true",
    "keywords": "`in`, `is`, `break`, `continue` replaced by another",
    "lambda": "a lambda that returns None",
    "match": "a case of a match left out",
    "name": "True and False exchanged",
    "number": "a number plus 1",
    "remove_unary_ops": "`not` or `~` left out",
    "string": "a string changed",
    "swap_op": "an operator or a comparison replaced by another",
    "symmetric_string_methods_swap": "a method of strings replaced by its mirror image",
    "unsymmetrical_string_methods_swap": "`split` and `rsplit` exchanged",
}
Result = tuple[dict, Outcome]


@dataclass(frozen=True)
class Rate:
    """How many mutants are killed."""

    killed: int
    all: int

    @property
    def share(self) -> float:
        """The share that is killed, 1 where there are none."""
        return self.killed / self.all if self.all else 1.0

    def __str__(self) -> str:
        return f"{self.killed} of {self.all} killed ({100 * self.share:.1f} %)"


def rate(results: Sequence[Result]) -> Rate:
    """Return how many of some mutants were killed."""
    return Rate(sum(outcome.status != "survived" for _, outcome in results), len(results))


def page(head: dict, results: Sequence[Result], reasons: Path, sample: int) -> str:
    """Return the page as markdown.

    Args:
        head: The sample's first line: seed, candidates by scope, tools, rules.
        results: Mutants and their outcomes, those with a name among them.
        reasons: YAML list of {file, function, removed, added, reason}.
        sample: How many were drawn; the test may have been stopped before it came to all.
    """
    known = Reasons(reasons)
    hand_written = [r for r in results if r[0]["scope"] == "hand-written"]
    drawn = [r for r in results if r[0]["scope"] != "hand-written"]
    lives = sorted(
        (mutant for mutant, outcome in drawn if outcome.status == "survived"),
        key=lambda mutant: (mutant["file"], mutant["start"]),
    )
    reasoned = sum(known.of(mutant) is not None for mutant in lives)
    tools = ", ".join(f"{name} {version}" for name, version in _tools(head).items())
    blocks = [
        "# Mutation tests",
        "A mutant is the library with one small change, made by a rule (a mutation operator). It is"
        " *killed* if at least one test fails, and *survives* if none does. `make mutation-test`"
        " draws a seeded sample of the mutants of the methods, the aggregators, the partitions, the"
        " verdicts and claims, the ledger and the merges, runs the tests of its part of the library"
        " on each, and writes this page.",
        f"Last run: {time.strftime('%Y-%m-%d')}, seed {head['seed']}, {tools}."
        f" **{rate(drawn)}**; at least {100 * NEEDED:.0f} % must be. Of the survivors,"
        f" {reasoned} of {len(lives)} are explained below. {_ends(drawn)}".rstrip(),
        _untested(len(drawn), sample),
        _counts("part", drawn, lambda m: m["scope"], lambda scope: scope, head["candidates"]),
        "By mutation operator:",
        _counts("operator", drawn, lambda m: m["operator"], lambda o: OPERATORS.get(o, o)),
        "## Left out by rule",
        head["rules"],
        _HAND_WRITTEN,
        _hand_written(hand_written),
        _SURVIVING,
        "The reasons are kept in `tests/mutants_survivors.yaml`.",
        _surviving(lives, known),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def with_hand_written(text: str, results: Sequence[Result]) -> str:
    """Return a page whose section on hand-written mutants has other outcomes."""
    before, _, rest = text.partition(f"{_HAND_WRITTEN}\n")
    _, _, after = rest.partition(f"{_SURVIVING}\n")
    section = f"{_HAND_WRITTEN}\n\n{_hand_written(results)}\n\n{_SURVIVING}\n"
    return f"{before}{section}{after}"


def _hand_written(results: Sequence[Result]) -> str:
    """Return how many hand-written mutants were killed, today, and by which tests."""
    return (
        f"Each breaks an algorithm, or a guarantee of engines and runs: {rate(results)} on"
        f" {time.strftime('%Y-%m-%d')}; all must be (`tests/mutants.yaml`).\n\n{_named(results)}"
    )


class Reasons:
    """Why mutants survive, by file, function and changed lines."""

    def __init__(self, file: Path) -> None:
        entries = yaml.safe_load(file.read_text("utf-8")) if file.exists() else None
        self._known = {_words(entry): " ".join(entry["reason"].split()) for entry in entries or []}

    def of(self, mutant: dict) -> str | None:
        """Return the reason, or None where nobody has given one."""
        return self._known.get(_words(mutant))


def _words(mutant: dict) -> tuple[str, ...]:
    keys = ("file", "function", "removed", "added")
    return tuple(" ".join(str(mutant[key]).split()) for key in keys)


def _tools(head: dict) -> dict[str, str]:
    here = {name: importlib.metadata.version(name) for name in ("pytest", "torch")}
    return head["tools"] | {"Python": platform.python_version()} | here


def _ends(results: Sequence[Result]) -> str:
    """Return how mutants were killed, where not by a test that fails."""
    said = {
        "import": "could not be imported",
        "timeout": "took more than three times as long as the tests of its part of the library",
        "crashed": "ended the process",
    }
    counts = {text: sum(o.status == status for _, o in results) for status, text in said.items()}
    parts = [f"{count} {text}" for text, count in counts.items() if count]
    return f"Among those killed: {', '.join(parts)}." if parts else ""


def _untested(tested: int, drawn: int) -> str:
    """Return that the run was ended early; "" if it came to all mutants that were drawn."""
    if tested == drawn:
        return ""
    return f"{tested} of the {drawn} mutants drawn were tested; the run was ended before the rest."


def _counts(
    title: str,
    results: Sequence[Result],
    group: Callable[[dict], str],
    label: Callable[[str], str],
    candidates: dict[str, int] | None = None,
) -> str:
    """Return a table of how many were killed, by group."""
    header = [title, *(["possible"] if candidates else []), "tested", "killed", "survived", "share"]
    rows = []
    for name in sorted({group(mutant) for mutant, _ in results}):
        found = rate([r for r in results if group(r[0]) == name])
        possible = [str(candidates.get(name, ""))] if candidates else []
        counts = [found.all, found.killed, found.all - found.killed]
        rows.append([label(name), *possible, *map(str, counts), f"{100 * found.share:.1f} %"])
    return _table(header, rows)


def _named(results: Sequence[Result]) -> str:
    rows = [
        [mutant["key"], "**survives**" if o.status == "survived" else f"`{o.by or o.status}`"]
        for mutant, o in results
    ]
    return _table(["mutant", "first test that fails"], rows) if rows else ""


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _surviving(lives: Sequence[dict], known: Reasons) -> str:
    """Return a row for each mutant that survives: where it is, its change, and why."""
    rows = [
        [
            f"`{mutant['file'].removeprefix('fedlogit/')}:{mutant['line']}`",
            _change(mutant),
            known.of(mutant) or "*Not explained.*",
        ]
        for mutant in lives
    ]
    return _table(["place in fedlogit/", "change", "why"], rows) if rows else ""


def _change(mutant: dict) -> str:
    """Return the lines that differ: ``old`` → ``new``, or those that were left out or added."""
    old, new = (
        [" ".join(line.split()) for line in mutant[key].splitlines()]
        for key in ("removed", "added")
    )
    gone = [line for line in old if line not in new]
    come = [line for line in new if line not in old]
    parts = ["<br>".join(f"`{line}`" for line in lines) for lines in (gone, come)]
    return " → ".join(part or "nothing" for part in parts)
