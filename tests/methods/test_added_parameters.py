"""Parameters that came later: runs that do not set them keep their hashes."""

from __future__ import annotations

import pytest
from support.small import small_spec

from fedlogit import methods

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
