"""The worker threads of a run: clients train one after another, or several side by side.

On a CPU every worker computes with a single thread, so the bits do not depend on how many workers
there are or on who ran first. Two single-threaded workers beat one two-threaded worker by
10-35 % on the models of these papers; stacking clients (vmap, grouped convolution) loses.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["Cancelled", "WorkerPool"]

T = TypeVar("T")
R = TypeVar("R")


class Cancelled(Exception):
    """Raised inside a task when another one failed or the user interrupted."""


class WorkerPool:
    """Runs the tasks of a stage on `workers` threads, the costliest first.

    Args:
        workers: Threads; 1 runs the tasks in the calling thread, in order.

    Making one sets PyTorch to a single thread inside an operation, here and in the workers.
    """

    def __init__(self, workers: int) -> None:
        torch.set_num_threads(1)
        self.workers = workers
        self.cancelled = ctypes.c_int(0)  # compiled code reads it too
        self._pool = (
            ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
            if workers > 1
            else None
        )

    def check(self) -> None:
        """Leave a task early if the stage was cancelled; called once a minibatch."""
        if self.cancelled.value:
            raise Cancelled

    def map(
        self, task: Callable[[T], R], items: Sequence[T], cost: Callable[[T], float] | None = None
    ) -> list[R]:
        """Return ``[task(item) for item in items]``; the order of execution is by falling cost."""
        if self._pool is None or len(items) < 2:
            return [task(item) for item in items]
        order = sorted(range(len(items)), key=lambda i: -cost(items[i]) if cost else 0)
        futures = {i: self._pool.submit(task, items[i]) for i in order}
        try:
            return [futures[i].result() for i in range(len(items))]
        except BaseException:
            self.cancelled.value = 1
            for future in futures.values():
                future.cancel()
            raise

    def stream(self, task: Callable[[T], R], items: Iterable[T], ahead: int) -> Iterator[R]:
        """Yield ``task(item)`` for each item in order, while workers are at the next ones.

        Args:
            task: What to do.
            items: With what.
            ahead: How many are begun before their results are needed, if there are workers.
        """
        if self._pool is None:
            yield from map(task, items)
            return
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(task, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except GeneratorExit:  # the consumer has enough
            raise
        except BaseException:
            self.cancelled.value = 1
            raise
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Stop the workers, abandoning what they do."""
        self.cancelled.value = 1
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
