"""What a method tells of its rounds: columns of `rounds.csv`, arrays to export, clients' time."""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from fedlogit.errors import FedlogitError

__all__ = ["RoundLog"]


class RoundLog:
    """The columns of the round that is going on, and what was exported in all of them.

    Attributes:
        exported: Arrays by file and name; the last value counts.
    """

    def __init__(self, method: str) -> None:
        """Begin without columns.

        Args:
            method: Its name, for messages.
        """
        self.exported: dict[str, dict[str, np.ndarray]] = {}
        self._method = method
        self._columns: dict[str, float] = {}

    def log(self, **values: float) -> None:
        """Add columns to the round's row, as Python's numbers, which a checkpoint can save.

        Raises:
            FedlogitError: for a value that is no number.
        """
        for name, value in values.items():
            if not isinstance(value, numbers.Real):
                raise FedlogitError(
                    f"method {self._method}: log({name}=…) got a {type(value).__name__}; give a"
                    " number"
                )
            integral = isinstance(value, numbers.Integral)
            self._columns[name] = int(value) if integral else float(value)

    @property
    def columns(self) -> dict[str, float]:
        """A copy of the round's columns so far."""
        return dict(self._columns)

    def take_log(self) -> dict[str, float]:
        """Return the round's columns, and begin the next round's."""
        taken, self._columns = self._columns, {}
        return taken

    @contextmanager
    def clients_work(self) -> Iterator[None]:
        """Add the time that clients' models train or predict to the round's `seconds_clients`."""
        start = time.perf_counter()
        yield
        before = self._columns.get("seconds_clients", 0.0)
        self.log(seconds_clients=before + time.perf_counter() - start)

    def export(self, name: str, **arrays: torch.Tensor) -> None:
        """Remember copies of arrays for ``exports/<name>.npz``.

        A method may change a tensor in place later. A run that resumed has its export as it was.
        """
        known = self.exported.setdefault(name, {})
        known.update({key: value.cpu().numpy().copy() for key, value in arrays.items()})
