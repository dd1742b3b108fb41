"""Parameters that came later: runs that do not set them keep their hashes."""

from __future__ import annotations

from typing import ClassVar

import pytest
from support.small import small_spec

from fedlogit import methods
from fedlogit.methods.cgsv import CGSV as Cgsv
from fedlogit.methods.local import Local

ADDED = [("cgsv", "restore", True, False), ("cffl", "scored_on", "union", "own")]


@pytest.mark.parametrize(("method", "key", "default", "other"), ADDED)
def test_at_its_default_a_parameter_that_came_later_is_not_written(method, key, default, other):
    plain = small_spec(method=method)
    said = small_spec(method=f"{method}({key}={default!r})")
    assert key not in plain.method.params
    assert said.digest() == plain.digest()
    changed = small_spec(method=f"{method}({key}={other!r})")
    assert changed.method.params[key] == other
    assert changed.digest() != plain.digest()


@pytest.mark.parametrize(("method", "key", "default", "other"), ADDED)
def test_a_resolved_call_gives_back_the_method(method, key, default, other):
    for value in (default, other):
        spec = small_spec(method=f"{method}({key}={value!r})")
        assert getattr(methods.get(spec.method), key) == value


def test_a_name_that_is_no_parameters_is_refused_where_it_is_written():
    """Misspelt, the parameter would be written, and every published run would have another hash."""
    with pytest.raises(TypeError, match=r"Mine\.added: 'restor' is none of its parameters"):

        class Mine(Local):
            added: ClassVar[frozenset[str]] = frozenset({"restor"})
            restore: bool = True


def test_a_subclass_keeps_what_its_base_has_added():
    class Mine(Cgsv):
        added: ClassVar[frozenset[str]] = frozenset({"mine"})
        mine: int = 0

    assert Mine.added == {"mine", "restore"}
    assert not {"mine", "restore"} & Mine().params().keys()
    assert Cgsv.added == {"restore"}
