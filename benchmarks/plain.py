"""The plain PyTorch loops as contestants (`peers/protocol.py`): plain.py FOLDER WAY.

- ``transforms``: a torchvision data set, PIL transforms, a DataLoader (the usual script);
- ``dataloader``: normalised tensors in a TensorDataset and a DataLoader;
- ``tensors``: a loop that slices normalised tensors by index.

One client after the other, all cores inside an operation, as PyTorch comes. Minibatches come in
the order of fedlogit's, so that accuracies must agree.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import numpy as np
import torch
import torch.nn.functional as F
from protocol import Exported, Turns
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch_mlp import Mlp, accuracy

Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]
WAYS = ("transforms", "dataloader", "tensors")


class Images(Dataset):
    """Samples as torchvision serves them: a PIL image through transforms, one at a time."""

    def __init__(self, data: Exported, client: int) -> None:
        from torchvision import transforms  # seconds of imports, for this way alone

        rows = data.clients[client]
        self.x, self.y = np.load(data.folder / "images.npy")[rows], data.y[rows]
        how = data.settings
        self.to_pil = transforms.ToPILImage()
        self.transform = transforms.Compose([
            transforms.ToTensor(), transforms.Normalize(how["mean"], how["std"]),
            transforms.Pad(how["pad"]), transforms.Lambda(torch.flatten),
        ])  # fmt: skip

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.to_pil(self.x[i])), int(self.y[i])


def served(data: Exported, way: str) -> list[Callable[[list[np.ndarray]], Batches]]:
    """Return for each client what makes minibatches of an order of places."""

    def loader(dataset: Dataset) -> Callable[[list[np.ndarray]], Batches]:
        return lambda order: DataLoader(dataset, batch_sampler=[b.tolist() for b in order])

    def sliced(x: torch.Tensor, y: torch.Tensor) -> Callable[[list[np.ndarray]], Batches]:
        return lambda order: ((x[b], y[b]) for b in map(torch.as_tensor, order))

    everybody = range(len(data.clients))
    if way == "transforms":
        return [loader(Images(data, i)) for i in everybody]
    tensors = [tuple(torch.as_tensor(a) for a in data.client(i)) for i in everybody]
    if way == "dataloader":
        return [loader(TensorDataset(x, y)) for x, y in tensors]
    return [sliced(x, y) for x, y in tensors]


def train(model: nn.Module, batches: Batches, rate: float) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def merge(model: nn.Module, clients: list[nn.Module], sizes: list[int]) -> None:
    """Give a model the average of the clients', weighed by samples."""
    for mine, *theirs in zip(model.parameters(), *(c.parameters() for c in clients), strict=True):
        mine.copy_(sum(p * (n / sum(sizes)) for p, n in zip(theirs, sizes, strict=True)))


def main(folder: str, way: str) -> None:
    turns, data = Turns(), Exported(folder)
    model, batches = Mlp(data.weights), served(data, way)
    x_test, y_test = torch.as_tensor(data.x_test[:]), torch.as_tensor(data.y_test[:])
    sizes = [len(c) for c in data.clients]
    round_ = 0
    while turns.wait():
        round_ += 1
        clients = [copy.deepcopy(model) for _ in sizes]
        for i, client in enumerate(clients):
            train(client, batches[i](data.order(round_, i)), data.settings["rate"])
        merge(model, clients, sizes)
        turns.stop()
        turns.answer(accuracy(model, x_test, y_test))


if __name__ == "__main__":
    main(*sys.argv[1:])
