"""A class of one's own that Python or pydantic would take otherwise than it is meant: one line."""

from __future__ import annotations

import sys

import pytest
from support.refusals import refused

from fedlogit.component import catalogue
from fedlogit.methods import Method, get

CLASS = "from typing import ClassVar\nfrom fedlogit.methods.average import Average\n\n\n{}"


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Return a function that writes a module with a method and imports it."""
    monkeypatch.syspath_prepend(tmp_path)

    def method(text: str):
        monkeypatch.delitem(sys.modules, "own_class", raising=False)
        (tmp_path / "own_class.py").write_text(CLASS.format(text))
        return get("own_class:Own")

    return method


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("holdout: float = 0.2", "Own.holdout is no parameter, as it is something else in a base"),
        ("needs_public: bool = False", "write needs_public: ClassVar[…] = … for a constant"),
        ("round: int = 1", "Own.round is no parameter"),
        ("def holdout(self): return 0.2", "Own.holdout is a property; write @property above it"),
        ("alpha = 3", "'alpha = 3' has no type; write alpha: int = … (or another type) for a"),
        ("distils_soft_targets = True", "distils_soft_targets: ClassVar[int] = … for a constant"),
        ("alpha: int = torhc.tensor(3)", "NameError: name 'torhc' is not defined"),
    ],
)
def test_an_attribute_that_is_not_what_it_is_meant_to_be_is_refused(imported, body, said):
    with refused("method 'own_class:Own' cannot be imported: ") as error:
        imported(f"class Own(Average):\n    {body}\n")
    assert said in str(error.value)
    assert str(error.value).endswith((" (own_class.py line 5)", " (own_class.py line 6)"))


def test_a_file_that_is_no_python_is_named_with_its_line_once(imported):
    with refused("SyntaxError: '(' was never closed (own_class.py, line 5)") as error:
        imported("class Own(\n")
    assert str(error.value).count("line") == 1


def test_constants_and_properties_take_the_place_of_inherited_ones(imported):
    method = imported(
        "class Own(Average):\n"
        "    needs_public: ClassVar[bool] = False\n"
        "    sends_predictions: ClassVar[bool] = False\n"
        "    share: float = 0.25\n\n"
        "    @property\n"
        "    def holdout(self):\n"
        "        return self.share\n"
    )
    assert (method.needs_public, method.sends_predictions) == (False, False)
    assert (method.holdout, method.params()) == (0.25, {"share": 0.25})


def test_two_components_of_one_name_are_refused(tmp_path, monkeypatch):
    (tmp_path / "own_pair").mkdir()
    (tmp_path / "own_pair/__init__.py").touch()
    (tmp_path / "own_pair/first.py").write_text(CLASS.format("class Own(Average): ...\nAlso = Own"))
    monkeypatch.syspath_prepend(tmp_path)
    assert list(catalogue("own_pair", Method)) == ["own"]  # the same class twice is one
    catalogue.cache_clear()
    (tmp_path / "own_pair/second.py").write_text(CLASS.format("class Own(Average): ...\n"))
    with refused("own_pair.first:Own and own_pair.second:Own are both called 'own'; rename one"):
        catalogue("own_pair", Method)
