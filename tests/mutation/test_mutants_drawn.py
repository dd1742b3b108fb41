"""Mutants that are drawn; needs mutmut, which `make mutation-test` installs and names."""

from __future__ import annotations

import os
import sys

import pytest

sys.path += filter(None, [os.environ.get("MUTMUT")])  # last: it has its own pytest

pytest.importorskip("libcst", reason="is installed by make mutation-test")
pytest.importorskip("mutmut.mutation.mutators", reason="is installed by make mutation-test")
from mutation.generate import differs, drawn, mutants

TEXT = '''"""A module."""

__all__ = ["Half"]


class Half:
    """A class."""

    share: float = 0.5
    bound: Annotated[float, Field(gt=0)]

    @property
    def name(self) -> str:
        """Its name."""
        assert self.share > 0
        if self.share == 1:
            raise ValueError("not all of it", self.share - 1)
        return "half"
'''


def changes(text: str, **options) -> set[tuple[str, str]]:
    found = mutants("scope", "half.py", text, **options)
    return {(m.removed, m.added) for m in found if differs(m, text)}


def keys(found: list) -> list[str]:
    return [mutant.key for mutant in found]


def test_defaults_and_decorated_functions_are_mutated_but_not_what_is_left_out():
    assert changes(TEXT) == {
        ("share: float = 0.5", "share: float = 1.5"),
        ("share: float = 0.5", "share: float = None"),
        ("if self.share == 1:", "if self.share != 1:"),
        ("if self.share == 1:", "if self.share == 2:"),
        ('return "half"', 'return "XXhalfXX"'),
    }


def test_only_functions_that_fit():
    assert changes(TEXT, functions=["Half.n*"]) == {
        pair for pair in changes(TEXT) if "float" not in pair[0]
    }


def test_names_of_types_stay():
    assert not changes("Rules = list[tuple[str, bool]]\nKind = Literal['a']\nAny = A | B.C\n")


def test_guards_devices_and_prose_stay():
    text = 'y = list(zip(a, strict=True), g(1, device=d), say("in words"))\n'
    assert {new for _, new in changes(text)} == {
        "y = None",
        "y = list(None, g(1, device=d), say(\"in words\"))",
        "y = list(zip(a, strict=True), None, say(\"in words\"))",
        "y = list(zip(a, strict=True), g(1, device=d), None)",
        "y = list(g(1, device=d), say(\"in words\"))",
        "y = list(zip(a, strict=True), say(\"in words\"))",
        "y = list(zip(a, strict=True), g(1, device=d), )",
        "y = list(zip(None, strict=True), g(1, device=d), say(\"in words\"))",
        "y = list(zip(strict=True), g(1, device=d), say(\"in words\"))",
        "y = list(zip(a, strict=True), g(None, device=d), say(\"in words\"))",
        "y = list(zip(a, strict=True), g(device=d), say(\"in words\"))",
        "y = list(zip(a, strict=True), g(2, device=d), say(\"in words\"))",
    }  # fmt: skip


def test_a_seed_gives_the_same_sample_after_an_edit_elsewhere(tmp_path):
    path = tmp_path / "half.py"
    path.write_text(TEXT)
    chosen = drawn(mutants("scope", "half.py", TEXT), 3, 0, tmp_path)
    assert chosen == drawn(mutants("scope", "half.py", TEXT), 3, 0, tmp_path)
    path.write_text(TEXT.replace("A module", "Another module"))
    after = mutants("scope", "half.py", path.read_text())
    assert keys(drawn(after, 3, 0, tmp_path)) == keys(chosen)
    assert keys(drawn(after, 3, 1, tmp_path)) != keys(chosen)
