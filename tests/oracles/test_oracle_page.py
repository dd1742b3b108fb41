"""The second versions are complete, independent and short, and docs/second-versions.md has all."""

import ast
import importlib
import sys
from pathlib import Path

import pytest
from oracles.agreement import Comparison
from oracles.page import page, row_of
from support.calls import ROOT

from fedlogit.component import catalogue, parse_call
from fedlogit.methods import Method

HERE = Path(__file__).parent
TESTS = sorted(HERE.glob("test_oracle_*.py"))
HARNESS = ("agreement", "page")  # what runs both versions, and may know the library
VERSIONS = sorted(p for p in HERE.glob("[a-z]*.py") if p not in TESTS and p.stem not in HARNESS)
ALLOWED = {"numpy", "torch", "scipy", "sklearn", "oracles", *sys.stdlib_module_names}
METHODS = sorted(catalogue("fedlogit.methods", Method))


def comparisons() -> list[Comparison]:
    """Return all comparisons that tests make and that are not known to differ."""
    modules = [importlib.import_module(f"oracles.{path.stem}") for path in TESTS]
    cases = [case for module in modules for case in getattr(module, "CASES", [])]
    return [case for case in cases if isinstance(case, Comparison)]


def test_every_method_has_a_second_version():
    compared = {parse_call(case.call)["name"] for case in comparisons()}
    assert compared >= set(METHODS)


@pytest.mark.parametrize("case", comparisons(), ids=str)
def test_the_page_has_every_comparison(case):
    text = (ROOT / "docs" / "second-versions.md").read_text()
    section = text.partition(f"\n## {case.method}\n")[2].partition("\n## ")[0]
    assert row_of(str(case)) in section, "`make oracles` writes the page anew"


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)
def test_a_second_version_knows_neither_the_library_nor_the_harness(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    froms = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    names = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    assert {name.partition(".")[0] for name in froms + names} <= ALLOWED
    assert not {f"oracles.{module}" for module in HARNESS} & {*froms, *names}


@pytest.mark.parametrize(
    "path", [p for p in VERSIONS if p.stem != "world"], ids=lambda path: path.stem
)
def test_a_second_version_is_short(path):
    assert code_lines(path.read_text()) <= 65


def code_lines(source: str) -> int:
    """Return the lines that are neither blank nor comments nor docstrings."""
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            prose |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = [line.strip() for line in source.splitlines()]
    return sum(
        1 for i, line in enumerate(lines, 1) if i not in prose and line and not line.startswith("#")
    )


def test_prose_is_no_code():
    assert code_lines('"""A module.\n\nOf two lines."""\n\n# a note\nx = 1\n') == 1


def test_the_page_tells_what_was_compared_and_how_far_it_was_off():
    record = {
        "method": "FedAvg", "text": "fedavg", "file": "fedavg.py", "source": "FedAvg (somebody).",
        "rounds": 3, "seeds": [0, 1], "tolerance": 1e-5, "largest": {"server": 2e-8, "bytes_up": 0},
    }  # fmt: skip
    once = page([record | {"largest": {"server": 1.0}}, record])
    assert "\n\nCompared: bytes, server's weights.\n\n" in once
    assert "| `fedavg` | – | 3 x 2 | 1e-05 | 2e-08 |" in once
    assert "1 methods and partitions, 1 comparisons, 6 rounds." in once
    more = record | {"text": "fedavg(x)", "largest": {"server": 0, "votes_1": 0, "votes_2": 0}}
    both = page([record, more])
    assert "\n\nCompared: server's weights.\n\n" in both
    assert "| `fedavg` | bytes | 3 x 2 | 1e-05 | 2e-08 |" in both
    assert "| `fedavg(x)` | votes | 3 x 2 | 1e-05 | 0 |" in both
