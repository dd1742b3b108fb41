"""Draw a seeded sample of mutants of the scopes' modules, by the operators of mutmut.

python tests/mutation/generate.py --seed 0 --sample 400 --out .mutation/sample.jsonl

It runs in an environment that has mutmut and libCST, and needs nothing of the library. mutmut's
own runner tests every mutant of every file, none in bodies of classes (where hyper-parameters have
their defaults) and none in decorated functions; so only its operators are used.

Left out by rule, as nobody should have to notice the change or nobody could:

- docstrings, annotations (with the bounds that stand in them), names of types, imports,
  ``__all__``, decorators, abstract methods, and what is only for type checkers;
- ``raise`` with its message, ``assert``, warnings and logging, and prose: strings with a space;
- arguments ``device=`` (tests have one device) and ``strict=`` of zip (a check);
- ``len(…)`` and ``isinstance(…)``, as in mutmut;
- of the three changes that mutmut makes to a string, those of its case;
- changes that are not Python, or leave the syntax tree as it was.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.metadata
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from itertools import accumulate, islice
from pathlib import Path

import libcst as cst
import yaml
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_string

GUARDS = {"device", "strict"}
CALLS = {"len", "isinstance", "cast", "TypeVar", "warn", "print", "getLogger", "debug", "info"}
TYPES = {"Callable", "Literal", "dict", "list", "tuple"}
WHOLE = (cst.Annotation, cst.Import, cst.ImportFrom, cst.Decorator, cst.Raise, cst.Assert)


@dataclass(frozen=True)
class Mutant:
    """A change of one module: ``text[start:end]`` becomes `new`.

    Attributes:
        key: Names it as long as its function's changed lines are the same.
        removed: The lines before the change, without indentation.
        added: The lines after it.
    """

    key: str
    scope: str
    file: str
    function: str
    line: int
    operator: str
    start: int
    end: int
    new: str
    removed: str
    added: str


class Finder(cst.CSTVisitor):
    """Collects (changed node, operator, place, function) of a module."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, str, CodeRange, str]] = []
        self._names: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _left_out(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                changed = list(operator(node))
                kept = changed[:1] if operator is operator_string else changed
                name, function = operator.__name__, ".".join(self._names) or "(module)"
                place = self.get_metadata(PositionProvider, node)
                self.found += [
                    (new, name.removeprefix("operator_"), place, function)
                    for new in kept
                    if not _drops_guard(node, new)
                ]
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef) and not _left_out(
            original_node
        ):
            self._names.pop()


def _left_out(node: cst.CSTNode) -> bool:
    """Return whether nothing of a node is mutated."""
    match node:
        case cst.FunctionDef():
            return any(
                _name(d.decorator) in {"abstractmethod", "overload"} for d in node.decorators
            )
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="__all__"))]):
            return True
        case cst.Assign(value=cst.Subscript(value=cst.Name(value=kind))) if kind in TYPES:
            return True
        case cst.Assign(value=cst.BinaryOperation(operator=cst.BitOr(), left=left)):
            return _name(left)[:1].isupper()
        case cst.Call():
            return _name(node.func) in CALLS
        case cst.Arg(keyword=cst.Name(value=keyword)) if keyword in GUARDS:
            return True
        case cst.Param(default=default) if default is not None:
            return not isinstance(default, cst.Name | cst.BaseNumber | cst.BaseString)
        case cst.BaseString():
            return _prose(node)
    return isinstance(node, WHOLE)


def _name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _prose(node: cst.CSTNode) -> bool:
    """Return whether a string is a text for people."""
    match node:
        case cst.SimpleString():
            return " " in node.value.strip()
        case cst.FormattedString():
            texts = [p.value for p in node.parts if isinstance(p, cst.FormattedStringText)]
            return any(" " in text for text in texts)
        case cst.ConcatenatedString():
            return _prose(node.left) or _prose(node.right)
    return False


def _drops_guard(node: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Return whether a call loses an argument that is left out by rule."""
    if not (isinstance(node, cst.Call) and isinstance(new, cst.Call)):
        return False
    kept = {id(arg) for arg in new.args}
    return any(_left_out(arg) or _prose(arg.value) for arg in node.args if id(arg) not in kept)


def mutants(scope: str, file: str, text: str, functions: Sequence[str] = ("*",)) -> list[Mutant]:
    """Return all mutants of a module whose function (``Class.method``) fits a pattern."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    finder = Finder()
    wrapper.visit(finder)
    ends = list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))
    made, same = [], Counter[str]()
    for new, operator, place, function in finder.found:
        if not any(fnmatchcase(function, pattern) for pattern in functions):
            continue
        start, end = (ends[p.line - 1] + p.column for p in (place.start, place.end))
        piece = _spaced(text[start:end], wrapper.module.code_for_node(new))
        removed, added = _lines(text, start, end, piece)
        name = "\n".join([file, function, removed, "->", added])
        same[name] += 1
        key = hashlib.sha256(f"{name}\n{same[name]}".encode()).hexdigest()[:12]
        line = place.start.line
        made.append(
            Mutant(key, scope, file, function, line, operator, start, end, piece, removed, added)
        )
    return made


def _spaced(old: str, new: str) -> str:
    """Return a piece with as much space around it as the one whose place it takes."""
    left, right = len(old) - len(old.lstrip()), len(old.rstrip())
    return old[:left] + new.strip() + old[right:]


def _lines(text: str, start: int, end: int, piece: str) -> tuple[str, str]:
    """Return the changed lines, before and after."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    before, after = text[first:last], text[first:start] + piece + text[end:last]
    old, new = before.splitlines(), after.splitlines()
    while len(old) > 1 and len(new) > 1 and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while len(old) > 1 and len(new) > 1 and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return "\n".join(map(str.strip, old)), "\n".join(map(str.strip, new))


def differs(mutant: Mutant, text: str) -> bool:
    """Return whether a mutant is Python and another program than its module."""
    try:
        after = ast.parse(text[: mutant.start] + mutant.new + text[mutant.end :])
    except SyntaxError:
        return False
    return ast.dump(after) != ast.dump(ast.parse(text))


def drawn(all_: Sequence[Mutant], sample: int, seed: int, root: Path) -> list[Mutant]:
    """Return `sample` mutants, those of the smallest hashes: an edit elsewhere changes few."""

    def rank(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}/{mutant.key}".encode()).hexdigest()

    usable = (m for m in sorted(all_, key=rank) if differs(m, (root / m.file).read_text("utf-8")))
    return list(islice(usable, sample))


def of_scopes(root: Path, scopes: Sequence[dict]) -> Iterator[Mutant]:
    """Yield all mutants of all scopes."""
    for scope in scopes:
        for pattern in scope["files"]:
            if not (paths := sorted(root.glob(pattern))):
                raise SystemExit(f"scope {scope['scope']}: no file is named {pattern}")
            for path in paths:
                file = path.relative_to(root).as_posix()
                yield from mutants(
                    scope["scope"], file, path.read_text(), scope.get("functions", ["*"])
                )


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--scopes", type=Path, default=Path(__file__).with_name("scopes.yaml"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    found = list(of_scopes(args.root, yaml.safe_load(args.scopes.read_text())))
    head = {
        "seed": args.seed,
        "candidates": Counter(mutant.scope for mutant in found),
        "rules": str(__doc__).split("nobody could:\n\n")[1].strip(),
        "tools": {name: importlib.metadata.version(name) for name in ("mutmut", "libcst")},
    }
    chosen = drawn(found, args.sample, args.seed, args.root)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(
        "".join(json.dumps(line) + "\n" for line in [head, *map(asdict, chosen)]), "utf-8"
    )
    print(f"{len(chosen)} of {len(found)} mutants drawn with seed {args.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
