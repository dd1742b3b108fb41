"""Waiting for what another thread or process does, though never for ever."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Found = TypeVar("Found")


def until(
    true: Callable[[], Found],
    what: str = "",
    *,
    process: subprocess.Popen[str] | None = None,
    seconds: float = 120,
    every: float = 0.02,
) -> Found:
    """Return what a function finds, as soon as that is true.

    Args:
        true: Called again and again.
        what: What is waited for, as a failure names it.
        process: What is to do it; if it ends before, nothing will.
        seconds: How long it may take.
        every: Seconds between two calls.
    """
    end = time.monotonic() + seconds
    while not (found := true()):
        if process is not None and process.poll() is not None:
            said, _ = process.communicate()
            raise AssertionError(f"ended with {process.returncode} before: {what}\n{said or ''}")
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(every)
    return found


def heard(capture: pytest.CaptureFixture[Any], text: str) -> str:
    """Return what stderr says up to now, as soon as it says a text."""
    parts: list[str] = []

    def there() -> bool:
        parts.append(capture.readouterr().err)
        return text in "".join(parts)

    until(there, text)
    return "".join(parts)
