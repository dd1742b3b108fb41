"""fluke: `FedAVG` with its own `Client`, `Server` and `FastDataLoader`; models in memory.

Its aggregation is unweighted by default; `weighted=True` weighs by samples, as FedAvg does.
"""

from __future__ import annotations

import sys

import importable_torchvision  # noqa: F401  # first of all
import torch
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.client import Client
from fluke.config import OptimizerConfigurator
from fluke.data import FastDataLoader
from fluke.evaluation import ClassificationEval
from fluke.server import Server
from protocol import Exported, Repetitions
from torch_models import OPTIMIZERS, accuracy, network


class Bell:
    """Each round of `FedAVG.run` is a repetition: what it calls when one starts and ends."""

    def __init__(self, repetitions: Repetitions, data: Exported) -> None:
        self.repetitions = repetitions
        self.x, self.y = map(torch.as_tensor, data.test())

    def start_round(self, **_: object) -> None:
        if not self.repetitions.wait():
            raise KeyboardInterrupt

    def end_round(self, model: torch.nn.Module) -> None:
        self.repetitions.stop()
        self.repetitions.answer(accuracy(model, self.x, self.y))


class Rounds(FedAVG):
    bell: Bell

    def notify(self, event: str, **details: object) -> None:
        super().notify(event=event, **details)
        if event == "start_round":
            self.bell.start_round()
        elif event == "end_round":
            self.bell.end_round(self.server.model)


def main(folder: str) -> None:
    repetitions, data = Repetitions(), Exported(folder)
    environment = FlukeENV()
    environment.set_seed(0)
    environment.set_device("cpu")
    environment.set_inmemory(True)
    environment.set_evaluator(ClassificationEval(1, 10))
    environment.set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=False)
    optimizer = OptimizerConfigurator(
        optimizer_cfg=DDict(name=OPTIMIZERS[data.settings["optimizer"]], lr=data.settings["rate"]),
        scheduler_cfg=DDict(name="StepLR", step_size=1, gamma=1),
    )
    clients = []
    for i in data.clients:
        x, y = map(torch.as_tensor, data.client(i))
        loader = FastDataLoader(
            x, y, num_labels=10, batch_size=data.settings["batch"], shuffle=True,
            skip_singleton=False,
        )  # fmt: skip
        loss = torch.nn.CrossEntropyLoss()
        clients.append(Client(i, loader, None, optimizer, loss, local_epochs=1))
    server = Server(network(data), None, clients, weighted=True)
    rounds = Rounds(len(clients), None, {}, clients=clients, server=server)
    rounds.bell = Bell(repetitions, data)
    rounds.run(10**6, data.settings["cohort"] / len(clients), finalize=False)


if __name__ == "__main__":
    main(sys.argv[1])
