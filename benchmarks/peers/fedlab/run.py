"""FedLab: standalone simulation, `SGDSerialClientTrainer` and `SyncServerHandler`.

Its FedAvg averages without weights by default; here it weighs by samples, as FedAvg does. Its
trainer has one optimizer, SGD; here each client's training begins with the workload's.
"""

from __future__ import annotations

import sys

import importable_torchvision  # noqa: F401  # first of all
import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.contrib.dataset.basic_dataset import FedDataset
from fedlab.core.standalone import StandalonePipeline
from fedlab.utils import Aggregators, SerializationTool
from protocol import Exported, Repetitions
from torch.utils.data import DataLoader, TensorDataset
from torch_models import accuracy, network, optimizer


class Clients(FedDataset):
    def __init__(self, data: Exported) -> None:
        self.parts = []
        for i in data.clients:
            x, y = data.client(i)
            self.parts.append(TensorDataset(torch.as_tensor(x), torch.as_tensor(y)))

    def get_dataset(self, id: int, type: str = "train") -> TensorDataset:
        return self.parts[id]

    def get_dataloader(self, id: int, batch_size: int, type: str = "train") -> DataLoader:
        return DataLoader(self.parts[id], batch_size=batch_size, shuffle=True)


class Weighted(SyncServerHandler):
    def __init__(self, sizes: list[int], **settings: object) -> None:
        super().__init__(**settings)
        self.sizes = sizes
        self.chosen: list[int] = []  # who trains in this round, in the order of the buffer

    def global_update(self, buffer: list) -> None:
        sizes = [self.sizes[i] for i in self.chosen]
        merged = Aggregators.fedavg_aggregate([item[0] for item in buffer], sizes)
        SerializationTool.deserialize_model(self._model, merged)


class Trainer(SGDSerialClientTrainer):
    data: Exported

    def train(self, model_parameters: torch.Tensor, train_loader: DataLoader) -> list:
        self.optimizer = optimizer(self.data, self._model)
        return super().train(model_parameters, train_loader)


class Pipeline(StandalonePipeline):
    def main(self, data: Exported, repetitions: Repetitions) -> None:
        x, y = map(torch.as_tensor, data.test())
        while repetitions.wait():
            self.handler.chosen = self.handler.sample_clients()
            self.trainer.local_process(self.handler.downlink_package, self.handler.chosen)
            for package in self.trainer.uplink_package:
                self.handler.load(package)
            repetitions.stop()
            repetitions.answer(accuracy(self.handler.model, x, y))


def main(folder: str) -> None:
    repetitions, data = Repetitions(), Exported(folder)
    sizes, share = data.sizes(), data.settings["cohort"] / len(data.clients)
    handler = Weighted(sizes, model=network(data), global_round=10**6, sample_ratio=share)
    trainer = Trainer(network(data), len(sizes), cuda=False)
    trainer.data = data
    trainer.setup_dataset(Clients(data))
    trainer.setup_optim(1, data.settings["batch"], data.settings["rate"])
    Pipeline(handler, trainer).main(data, repetitions)


if __name__ == "__main__":
    main(sys.argv[1])
