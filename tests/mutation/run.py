"""Test each mutant with the tests of its scope, and write a page with the counts and survivors.

PYTHONPATH=tests python tests/mutation/run.py --sample .mutation/sample.jsonl --work .mutation

The hand-written mutants of `tests/mutants.yaml` are always tested; without `--sample`, only these,
and only their section of the page is written. Outcomes are kept in the work
folder, so that a run that was stopped resumes; a scope whose library code or tests have changed
starts over. The exit code is 1 if a hand-written mutant survives, or more than a tenth of the
sample.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import yaml
from mutation.forks import Change, Outcome, Run, Tree, digest, import_libraries
from mutation.page import NEEDED, page, rate, with_hand_written

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 3  # times as long as all tests of a scope take without a mutation
_GRACE = 30.0  # seconds more


class Record:
    """Outcomes by mutant, a JSON line each.

    Args:
        path: The file.
        states: A digest by scope; outcomes of another state of code or tests do not count.
    """

    def __init__(self, path: Path, states: dict[str, str]) -> None:
        self._path, self._states = path, states
        self.outcomes: dict[str, Outcome] = {}
        for line in path.read_text("utf-8").splitlines() if path.exists() else []:
            entry = json.loads(line)
            key, scope, state = (entry.pop(name) for name in ("key", "scope", "state"))
            if states.get(scope) == state:
                self.outcomes[key] = Outcome(**entry)

    def add(self, key: str, scope: str, outcome: Outcome) -> None:
        """Remember an outcome."""
        self.outcomes[key] = outcome
        line = {"key": key, "scope": scope, "state": self._states[scope], **asdict(outcome)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def named(file: Path, root: Path) -> list[dict]:
    """Return the mutants of a list, as those of a sample are.

    Raises:
        ValueError: if what a mutant replaces does not stand in its file once.
    """
    found = []
    for entry in yaml.safe_load(file.read_text("utf-8")) if file.exists() else []:
        text = (root / entry["file"]).read_text("utf-8")
        if text.count(entry["old"]) != 1:
            raise ValueError(f"{file.name}: {entry['name']}: `old` stands not once in its file")
        start = text.index(entry["old"])
        found.append(
            {
                "key": entry["name"], "scope": "hand-written", "file": entry["file"],
                "line": text.count("\n", 0, start) + 1, "start": start,
                "end": start + len(entry["old"]), "new": entry["new"],
                "removed": entry["old"], "added": entry["new"], "tests": [entry["tests"]],
            }
        )  # fmt: skip
    return found


def tests_of(mutant: dict, scopes: dict[str, dict], root: Path) -> list[str]:
    """Return the test files of a mutant, the closest first."""
    if "tests" in mutant:
        return list(mutant["tests"])
    scope, module = scopes[mutant["scope"]], Path(mutant["file"]).stem
    files = files_of(scope, root)
    own = [file for file in files if Path(file).name.startswith(f"test_{module}")]
    return list(dict.fromkeys([*own, *scope.get("first", {}).get(module, "").split(), *files]))


def files_of(scope: dict, root: Path) -> list[str]:
    """Return all test files of a scope."""
    found: list[Path] = []
    for pattern in scope["tests"]:
        for path in sorted(root.glob(pattern)):
            found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return [path.relative_to(root).as_posix() for path in found]


def limits(
    scopes: dict[str, dict], tree: Tree, work: Path, record: Record, root: Path, workers: int
) -> dict[str, float]:
    """Return how long tests of each scope may take; they must pass without a mutation.

    Raises:
        RuntimeError: if they do not.
    """
    waiting = [name for name in scopes if _as_it_is(name) not in record.outcomes]
    waiting.sort(key=lambda name: len(files_of(scopes[name], root)))  # the last is the first
    running: dict[str, Run] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                name = waiting.pop()
                tests, log = files_of(scopes[name], root), work / f"as_it_is_{name}"
                running[name] = Run(tree.folder, tests, 3600, log, compiled=True)
            for name, run in list(running.items()):
                if outcome := run.poll():
                    del running[name]
                    if outcome.status != "survived":
                        why = f"{outcome.by or outcome.status}; see {work}/as_it_is_{name}"
                        raise RuntimeError(f"tests of {name} fail without a mutation: {why}")
                    record.add(_as_it_is(name), name, outcome)
                    print(f"{name}: its tests take {outcome.seconds:.0f} s", flush=True)
            time.sleep(0.02)
    finally:
        for run in running.values():
            run.stop()
    return {name: _GRACE + _PATIENCE * record.outcomes[_as_it_is(name)].seconds for name in scopes}


def _as_it_is(scope: str) -> str:
    return f"as it is: {scope}"


class Trial:
    """A mutant that is tested in a tree."""

    def __init__(
        self, mutant: dict, tests: Sequence[str], limit: float, tree: Tree, log: Path
    ) -> None:
        self.mutant = mutant
        self._change = ExitStack()
        place = mutant["file"], mutant["start"], mutant["end"], mutant["new"]
        self._change.enter_context(tree.changed(Change(*place)))
        self.run = Run(tree.folder, tests, limit, log)

    def ended(self) -> Outcome | None:
        """Return how it ended and take the change back, or None while it runs."""
        outcome = self.run.poll()
        if outcome:
            self._change.close()
        return outcome


def try_all(
    jobs: Sequence[tuple[dict, list[str], float]], trees: Sequence[Tree], work: Path, record: Record
) -> None:
    """Test mutants, as many at a time as there are trees."""
    waiting, done = list(reversed(jobs)), 0
    running: dict[int, Trial] = {}
    try:
        while waiting or running:
            for place, tree in enumerate(trees):
                if place not in running and waiting:
                    running[place] = Trial(*waiting.pop(), tree, work / f"mutant_{place}")
                elif place in running and (outcome := running[place].ended()):
                    mutant, done = running.pop(place).mutant, done + 1
                    record.add(mutant["key"], mutant["scope"], outcome)
                    said = f"{done}/{len(jobs)} {outcome.status} {outcome.seconds:.1f} s"
                    print(f"{said} {mutant['file']}:{mutant['line']} {outcome.by}", flush=True)
            time.sleep(0.02)
    finally:
        for trial in running.values():
            trial.run.stop()


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--sample", type=Path, help="what generate.py wrote; none: hand-written mutants only")
    add("--work", type=Path, required=True, help="folder for copies and outcomes")
    add("--root", type=Path, default=ROOT, help="the project")
    add("--scopes", type=Path, default=Path(__file__).with_name("scopes.yaml"))
    add("--named", type=Path, default=ROOT / "tests/mutants.yaml")
    add("--reasons", type=Path, default=ROOT / "tests/mutants_survivors.yaml")
    add("--page", type=Path, help="where to write the page")
    add("--scope", action="append", help="mutants of these scopes only; writes no page")
    add("--workers", type=int, default=2)
    add("--so-far", action="store_true", help="test nothing; write the page of what was tested")
    args = parser.parse_args(argv)
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)

    lines = args.sample.read_text("utf-8").splitlines() if args.sample else ["{}"]
    head, *sample = map(json.loads, lines)
    all_scopes = yaml.safe_load(args.scopes.read_text("utf-8")) if args.sample else []
    scopes = {scope["scope"]: scope for scope in all_scopes}
    mutants = [*named(args.named, args.root), *sample]
    if args.scope:
        scopes = {name: scope for name, scope in scopes.items() if name in args.scope}
        mutants = [mutant for mutant in mutants if mutant["scope"] in scopes]
    tests = {name: files_of(scope, args.root) for name, scope in scopes.items()}
    tests["hand-written"] = sorted({test for m in mutants for test in m.get("tests", [])})
    record = Record(
        work / "record.jsonl", {scope: digest(args.root, files) for scope, files in tests.items()}
    )

    if args.so_far:
        tested = [m for m in mutants if m["key"] in record.outcomes]
        return _report(args, head, tested, record, len(sample))

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the children, too
    import_libraries()
    first = Tree(args.root, work / "tree_0")
    allowed = limits(scopes, first, work, record, args.root, args.workers)
    trees = [first, *(Tree(first.folder, work / f"tree_{i}") for i in range(1, args.workers))]
    jobs = [
        (mutant, tests_of(mutant, scopes, args.root), allowed.get(mutant["scope"], 600.0))
        for mutant in mutants
        if mutant["key"] not in record.outcomes
    ]
    try_all(jobs, trees, work, record)

    return _report(args, head, mutants, record, len(sample))


def _report(
    args: argparse.Namespace, head: dict, mutants: Sequence[dict], record: Record, drawn: int
) -> int:
    """Write the page of these mutants, print the rates, and return the exit code."""
    results = [(mutant, record.outcomes[mutant["key"]]) for mutant in mutants]
    hand_written = [r for r in results if r[0]["scope"] == "hand-written"]
    if args.page and args.sample:
        args.page.write_text(page(head, results, args.reasons, drawn), "utf-8")
    elif args.page:
        args.page.write_text(with_hand_written(args.page.read_text("utf-8"), hand_written), "utf-8")
    sample = [r for r in results if r[0]["scope"] != "hand-written"]
    print(f"hand-written: {rate(hand_written)}; sample: {rate(sample)}")
    return int(any(o.status == "survived" for _, o in hand_written) or rate(sample).share < NEEDED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
