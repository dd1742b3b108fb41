"""pfl-research: `FederatedAveraging` with its simulated backend, in one process.

It does not shuffle a user's samples by itself; here they are permuted anew each round. Users are
weighed by their samples (`WeightByDatapoints`).
"""

from __future__ import annotations

import sys

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from protocol import Exported, Repetitions
from torch_models import OPTIMIZERS, accuracy, network


class Model(torch.nn.Module):
    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)

    def loss(self, x: torch.Tensor, y: torch.Tensor, is_eval: bool = False) -> torch.Tensor:
        self.eval() if is_eval else self.train()
        return torch.nn.functional.cross_entropy(self(x), y)

    def metrics(self, x: torch.Tensor, y: torch.Tensor, is_eval: bool = True) -> dict:
        return {"loss": Weighted(float(self.loss(x, y, is_eval)) * len(y), len(y))}


class Bell(TrainingProcessCallback):
    """Each central iteration is a repetition."""

    def __init__(self, repetitions: Repetitions, data: Exported) -> None:
        self.repetitions = repetitions
        self.x, self.y = map(torch.as_tensor, data.test())

    def on_train_begin(self, *, model: PyTorchModel) -> Metrics:
        self.there = self.repetitions.wait()
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self.repetitions.stop()
        self.repetitions.answer(accuracy(model.pytorch_model, self.x, self.y))
        return not self.repetitions.wait(), Metrics()


def main(folder: str) -> None:
    repetitions, data = Repetitions(), Exported(folder)
    parts = [tuple(map(torch.as_tensor, data.client(i))) for i in data.clients]

    def user(i: int) -> Dataset:
        x, y = parts[i]
        order = torch.randperm(len(y))
        return Dataset((x[order], y[order]))

    users = list(range(len(parts)))
    training = FederatedDataset(user, get_user_sampler("minimize_reuse", users))
    trained = Model(network(data))
    kind = OPTIMIZERS[data.settings["optimizer"]]
    model = PyTorchModel(trained, kind, torch.optim.SGD(trained.parameters(), lr=1.0))
    backend = SimulatedBackend(training, training, postprocessors=[WeightByDatapoints()])
    batch = data.settings["batch"]
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=10**6, evaluation_frequency=10**9,
            train_cohort_size=data.settings["cohort"], val_cohort_size=0,
        ),
        backend, model,
        NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=data.settings["rate"], local_batch_size=batch
        ),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[Bell(repetitions, data)],
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
