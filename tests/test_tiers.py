"""The fast tier leaves out variants and whole workflows, and no method."""

from support.every_method import METHODS, ON_TEXT, VARIANTS
from support.tiers import first_of_each, method_of


def fast(cases: list) -> list:
    """Return the cases that have no marks."""
    return [case for case in cases if isinstance(case, str)]


def test_the_first_of_each_kind_is_fast_and_the_others_are_slow():
    cases = first_of_each(["uwa(0.2)", "celm", "uwa(0.2, fit='em')", "celm(steps=5)"], method_of)
    assert fast(cases) == ["uwa(0.2)", "celm"]
    assert [mark.name for case in cases[2:] for mark in case.marks] == ["slow", "slow"]
    assert [case.values for case in cases[2:]] == [("uwa(0.2, fit='em')",), ("celm(steps=5)",)]


def test_every_method_has_a_fast_variant_and_texts_have_one():
    found = fast(first_of_each(VARIANTS + ON_TEXT, method_of))
    assert sorted(map(method_of, found)) == sorted([*METHODS, "text"])
