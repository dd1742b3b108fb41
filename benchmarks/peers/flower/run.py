"""Flower: its simulation engine with Ray, `FedAvg`, and as many CPUs per client as are given."""

from __future__ import annotations

import os
import sys

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import flower_task
import torch
from flwr.app import ArrayRecord, Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from protocol import Exported, Repetitions
from torch_models import accuracy, network


def main(folder: str, cpus: int) -> None:
    repetitions, data = Repetitions(), Exported(folder)
    server, client = ServerApp(), ClientApp()

    @client.train()
    def train(message: Message, context: Context) -> Message:
        return flower_task.train(folder, message, context)

    class Rounds(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            if not repetitions.wait():
                os._exit(0)
            return super().configure_train(server_round, arrays, config, grid)

        def aggregate_train(self, server_round, replies):
            merged = super().aggregate_train(server_round, replies)
            repetitions.stop()
            model.load_state_dict(merged[0].to_torch_state_dict())
            repetitions.answer(accuracy(model, x, y))
            return merged

    model = network(data)
    x, y = map(torch.as_tensor, data.test())

    @server.main()
    def rounds(grid: Grid, context: Context) -> None:
        everybody, cohort = len(data.clients), data.settings["cohort"]
        strategy = Rounds(
            fraction_train=cohort / everybody, fraction_evaluate=0.0,
            min_train_nodes=cohort, min_available_nodes=everybody,
        )  # fmt: skip
        strategy.start(grid, ArrayRecord(model.state_dict()), num_rounds=10**6)

    resources = {"client_resources": {"num_cpus": cpus, "num_gpus": 0.0}}
    run_simulation(server, client, len(data.clients), backend_config=resources)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
