"""What every contestant speaks, with the standard library and NumPy alone.

A contestant is a process: `run.py FOLDER [options]`. For each line on its standard input it plays
one round, and answers with one line of JSON on its standard output: the seconds of training and
aggregation, and then, outside the clock, the accuracy of the global model on the test split. It
ends when its input does. FOLDER has what `benchmarks/export.py` writes, the same for everybody.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np


class Exported:
    """The arrays of a workload.

    Attributes:
        x, y, x_test, y_test: Samples as models take them, float32, and labels, int64.
        settings: model, optimizer, rate, batch, and how samples came from images.
        weights: First weights and biases, layer by layer, as PyTorch has them: (out, in), (out,).
        clients: Each client's indices into `x`.
    """

    def __init__(self, folder: str) -> None:
        where = Path(folder)
        self.folder = where
        self.x, self.y, self.x_test, self.y_test = (
            np.load(where / f"{name}.npy", mmap_mode="r") for name in ("x", "y", "x_test", "y_test")
        )
        self.settings = json.loads((where / "settings.json").read_text())
        with np.load(where / "weights.npz") as file:
            self.weights = [file[str(i)] for i in range(len(file.files))]
        with np.load(where / "clients.npz") as file:
            self.clients = [file[str(i)] for i in range(len(file.files))]

    def client(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples and labels of a client."""
        return self.x[self.clients[i]], self.y[self.clients[i]]

    def order(self, round_: int, client: int) -> list[np.ndarray]:
        """Return the minibatches of a client in a round, as places among its samples."""
        with np.load(self.folder / f"order{round_}.npz") as file:
            places = file[str(client)]
        size = self.settings["batch"]
        return [places[i : i + size] for i in range(0, len(places), size)]


class Turns:
    """Waits for a turn, and answers; what a framework prints goes to the standard error."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._begin = 0.0
        self._seconds = 0.0

    def wait(self) -> bool:
        """Wait for the next turn, and start the clock; return whether there is one."""
        there = bool(sys.stdin.readline())
        self._begin = time.perf_counter()
        return there

    def stop(self) -> None:
        """Stop the clock: the global model is there."""
        self._seconds = time.perf_counter() - self._begin

    def answer(self, accuracy: float, seconds: float | None = None) -> None:
        """Say how it went; `seconds` instead of the clock's, where a turn is something else."""
        found = {
            "seconds": self._seconds if seconds is None else seconds,
            "accuracy": float(accuracy),
        }
        print(json.dumps(found), file=self._answers, flush=True)
