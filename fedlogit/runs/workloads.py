"""The engines of a run, chosen from its spec alone: no model is built and no device is used."""

from __future__ import annotations

from dataclasses import dataclass

from fedlogit.engine.base import Engine, Workload
from fedlogit.engine.choose import choose_engine
from fedlogit.engine.ledger_only import LedgerOnlyEngine
from fedlogit.engine.loop import LoopEngine
from fedlogit.methods import Method
from fedlogit.spec import RunSpec

__all__ = ["Engines", "choose_engines", "client_workloads"]


@dataclass(frozen=True)
class Engines:
    """The engines of the clients, and of a server's model of its own.

    Attributes:
        clients: Runs the clients.
        server: Runs the server's model; the clients' where it has none of its own.
    """

    clients: type[Engine]
    server: type[Engine]

    @property
    def name(self) -> str:
        """What results say."""
        own = "" if self.server is self.clients else f", server {self.server.name}"
        return f"{self.clients.name}{own}"

    @property
    def facts(self) -> dict[str, str]:
        """What decides bits of either."""
        return self.clients.facts() | self.server.facts()


def choose_engines(spec: RunSpec, method: Method, device: str, name: str) -> Engines:
    """Return the engines of a run.

    A named engine must fit the clients; the server's model is run by it too where it fits, and by
    `loop` otherwise.

    Args:
        spec: A resolved spec.
        method: The method it names.
        device: Type of the device.
        name: ``auto``, ``loop``, ``native``, ``unpadded``, ``graphed`` or ``stacked``.

    Raises:
        FedlogitError: if an engine was named that cannot run the clients.
    """
    if spec.ledger_only:
        return Engines(LedgerOnlyEngine, LedgerOnlyEngine)
    clients = choose_engine(name, client_workloads(spec, method, device))
    if not method.server_model:
        return Engines(clients, clients)
    workload = _server_workload(spec, device)
    if name == "auto":
        return Engines(clients, choose_engine(name, [workload]))
    return Engines(clients, LoopEngine if clients.unsupported(workload) else clients)


def client_workloads(spec: RunSpec, method: Method, device: str) -> list[Workload]:
    """Return the workload of each architecture that clients train.

    Args:
        spec: A resolved spec.
        method: The method it names.
        device: Type of the device.
    """
    return [
        Workload(
            model=model,
            device=device,
            optimizer=spec.optimizer,
            augment=spec.augment != "none",
            proximal=method.uses_proximal_term,
            unlabelled=spec.public is not None and spec.public.dataset is not None,
            precision=spec.precision,
        )
        for model in dict.fromkeys(call.name for call in spec.models)
    ]


def _server_workload(spec: RunSpec, device: str) -> Workload:
    """Return the workload of a server's model of its own, which has soft targets only."""
    assert spec.server is not None
    return Workload(
        model=spec.server.model.name,
        device=device,
        optimizer=spec.server.optimizer or spec.optimizer,
        augment=spec.server.augment != "none",
        precision=spec.precision,
    )
