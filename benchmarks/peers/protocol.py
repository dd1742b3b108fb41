"""What every implementation speaks, with the standard library and NumPy alone.

An implementation is a process: `run.py FOLDER [options]`. For each line on its standard input it
carries out one round, and answers with one line of JSON on its standard output: the seconds of
training and aggregation, and then, outside the clock, the accuracy of the global model on the test
split. It ends when its input does. FOLDER has what `benchmarks/export.py` writes, the same for all.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


class Exported:
    """The arrays of a workload, read when asked for.

    Attributes:
        settings: kind, model, clients, cohort (of them a round), batch, rate, augment, …
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.settings: dict[str, Any] = json.loads((self.folder / "settings.json").read_text())
        self.clients = range(self.settings["clients"])

    def client(self, i: int | str) -> tuple[np.ndarray, np.ndarray]:
        """Return a client's samples as models take them, float32, and labels, int64."""
        return np.load(self.folder / f"x{i}.npy"), np.load(self.folder / f"y{i}.npy")

    def test(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples and labels of the test split."""
        return self.client("_test")

    def public(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples and labels of the public set."""
        return self.client("_public")

    def weights(self, client: int = 0) -> list[np.ndarray]:
        """Return first weights and biases in PyTorch's order and shapes: (out, in, …), (out,)."""
        own = self.folder / f"weights{client}.npz"
        with np.load(own if own.exists() else self.folder / "weights0.npz") as file:
            return [file[str(i)] for i in range(len(file.files))]

    def sizes(self) -> list[int]:
        """Return how many samples each client has."""
        return [len(np.load(self.folder / f"y{i}.npy", mmap_mode="r")) for i in self.clients]

    def present(self, round_: int) -> list[int]:
        """Return which clients take part in a round."""
        with np.load(self.folder / f"order{round_}.npz") as file:
            return [int(name) for name in file.files if name.isdigit()]

    def order(self, round_: int, client: int, phase: str = "order") -> list[np.ndarray]:
        """Return the minibatches of a client in a round, as places among its samples.

        With the phase ``distil``, places among the public ones.
        """
        with np.load(self.folder / f"{phase}{round_}.npz") as file:
            return np.split(file[str(client)], file[f"{client}_ends"][:-1])

    def probes(self, round_: int) -> np.ndarray:
        """Return the probes of a round, as places among the public samples."""
        return np.load(self.folder / f"probes{round_}.npy")


class Repetitions:
    """Waits for a repetition, and answers; what a framework prints goes to the standard error."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._begin = 0.0
        self._seconds = 0.0

    def wait(self) -> bool:
        """Wait for the next repetition, and start the clock; return whether there is one."""
        there = bool(sys.stdin.readline())
        self._begin = time.perf_counter()
        return there

    def stop(self) -> None:
        """Stop the clock: the global model is there."""
        self._seconds = time.perf_counter() - self._begin

    def answer(self, accuracy: float, seconds: float | None = None) -> None:
        """Say how it went; `seconds` instead of the clock's, as of the machine's limit."""
        found = {
            "seconds": self._seconds if seconds is None else seconds,
            "accuracy": float(accuracy),
        }
        print(json.dumps(found), file=self._answers, flush=True)
