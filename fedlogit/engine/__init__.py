"""How clients run: tasks, the engines that run them, and the one that is chosen."""

from fedlogit.engine.base import Engine, Workload
from fedlogit.engine.choose import check_engine, choose_engine
from fedlogit.engine.client import Client, State
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.task import ClientTask

__all__ = [
    "Client",
    "ClientTask",
    "Engine",
    "LoopEngine",
    "State",
    "Workload",
    "check_engine",
    "choose_engine",
]
