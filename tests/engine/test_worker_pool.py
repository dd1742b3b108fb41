"""The threads of a run: order, laziness, and what a failure stops."""

import threading

import pytest

from fedlogit.engine.worker_pool import Cancelled, WorkerPool


@pytest.fixture(params=[1, 3], ids=["in the calling thread", "three threads"])
def pool(request):
    made = WorkerPool(request.param)
    yield made
    made.close()


def test_a_stream_is_in_order_and_asks_for_items_only_so_far_ahead(pool):
    asked: list[int] = []

    def items():
        for i in range(20):
            asked.append(i)
            yield i

    found = pool.stream(lambda i: i * i, items(), ahead=4)
    assert next(found) == 0
    assert len(asked) == (1 if pool.workers == 1 else 5)
    assert list(found) == [i * i for i in range(1, 20)]


def test_a_stream_works_ahead_of_who_asks():
    pool, begun = WorkerPool(2), threading.Event()
    found = pool.stream(lambda i: begun.set() if i else None, range(2), ahead=1)
    next(found)
    assert begun.wait(10)  # nobody asked for the second yet
    pool.close()


def test_a_failure_in_a_stream_is_raised_and_cancels_the_rest(pool):
    def task(i: int) -> int:
        pool.check()
        if i == 2:
            raise ValueError("two")
        return i

    with pytest.raises(ValueError, match="two"):
        list(pool.stream(task, range(100), ahead=2))
    if pool.workers > 1:
        with pytest.raises(Cancelled):
            pool.check()


def test_who_has_enough_of_a_stream_cancels_nothing_else(pool):
    found = pool.stream(lambda i: i, range(100), ahead=2)
    assert next(found) == 0
    found.close()
    pool.check()
    assert pool.map(lambda i: i + 1, [1, 2]) == [2, 3]
