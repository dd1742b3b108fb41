"""Bad input is refused with one clear line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fedlogit.errors import FedlogitError


@contextmanager
def refused(said: str) -> Iterator[pytest.ExceptionInfo[FedlogitError]]:
    """Expect an error of one line that says this."""
    with pytest.raises(FedlogitError) as error:
        yield error
    assert said in str(error.value)
    assert "\n" not in str(error.value)
