"""The machine's limit as an implementation: the fastest float32 product or convolution it sustains.

A repetition tries each kernel for a moment, on all cores, and answers the seconds that 10^12
floating-point operations take with the fastest. It is what PyTorch reaches here, not what the
chip's data sheet promises.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from benchmarks.peers.protocol import Repetitions
from fedlogit.engine.float32 import configure_float32_matmul

SECONDS = 0.25  # for each kernel
UNIT = 1e12


def kernels() -> Iterator[tuple[float, Callable[[], object]]]:
    """Yield each kernel with its operations: squares, CELM's widest layer, a convolution."""
    for rows, inner, columns in ((2048, 2048, 2048), (128, 1024, 128)):
        a, b = torch.randn(rows, inner), torch.randn(columns, inner)
        yield 2.0 * rows * inner * columns, lambda a=a, b=b: F.linear(a, b)
    x, w = torch.randn(128, 64, 8, 8), torch.randn(64, 64, 3, 3)
    x, w = (t.to(memory_format=torch.channels_last) for t in (x, w))
    yield 2.0 * 128 * 64 * 64 * 64 * 9, lambda: F.conv2d(x, w, padding=1)


def sustained(kernel: Callable[[], object], operations: float) -> float:
    """Return the seconds that `UNIT` operations take."""
    kernel()
    calls, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < SECONDS:
        kernel()
        calls += 1
    return passed / (calls * operations) * UNIT


def main() -> None:
    repetitions = Repetitions()
    torch.set_num_threads(os.cpu_count() or 1)
    configure_float32_matmul(torch.device("cpu"))
    with torch.no_grad():
        tried = list(kernels())
        while repetitions.wait():
            repetitions.answer(0.0, min(sustained(kernel, n) for n, kernel in tried))


if __name__ == "__main__":
    main()
