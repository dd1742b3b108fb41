"""Which engine runs a run: the one that is named, or the fastest for its models and device."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from fedlogit.engine.base import Engine, Workload
from fedlogit.engine.graphed import GraphedEngine
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.native import NativeEngine
from fedlogit.engine.stacked import StackedEngine
from fedlogit.engine.unpadded import UnpaddedEngine
from fedlogit.errors import FedlogitError

__all__ = ["check_engine", "choose_engine"]

_BY_SPEED = (GraphedEngine, StackedEngine, NativeEngine, UnpaddedEngine, LoopEngine)
_ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in _BY_SPEED}


def check_engine(name: str, workloads: Sequence[Workload]) -> type[Engine] | None:
    """Return the engine called `name`, or None for ``auto``; it needs neither data nor a compiler.

    Raises:
        FedlogitError: if it cannot run one of the workloads, saying what would have to be so.
    """
    if name == "auto":
        return None
    engine = _ENGINES[name]
    for workload in workloads:
        if need := engine.unsupported(workload):
            raise FedlogitError(f"engine = {name!r} needs {need}; or use engine = 'auto'")
    return engine


def choose_engine(name: str, workloads: Sequence[Workload]) -> type[Engine]:
    """Return the engine for models of these workloads.

    ``auto`` takes the first of `graphed`, `native`, `unpadded` and `loop` that supports all of them
    and is fastest for them; that depends on nothing else, so it is the same on every machine of a
    kind. Only where an engine is not available, it takes the next, and says so once.

    Args:
        name: ``auto``, ``loop``, ``native``, ``unpadded``, ``graphed`` or ``stacked``.
        workloads: Those of the models that clients train.

    Raises:
        FedlogitError: if an engine was named that cannot run them, or is not available here.
    """
    named = check_engine(name, workloads)
    if named is not None:
        if lack := _lacking(named, workloads):
            raise FedlogitError(lack)
        return named
    for engine in _ENGINES.values():
        if all(not engine.unsupported(w) and engine.is_fastest(w) for w in workloads):
            if not (lack := _lacking(engine, workloads)):
                return engine
            _say(f"engine = auto takes the next fastest here: {lack}")
    return LoopEngine


def _lacking(engine: type[Engine], workloads: Sequence[Workload]) -> str | None:
    return next((lack for w in workloads if (lack := engine.unavailable(w))), None)


@cache  # once a process
def _say(news: str) -> None:
    print(news, file=sys.stderr, flush=True)  # noqa: T201
