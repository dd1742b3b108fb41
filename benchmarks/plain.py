"""The plain PyTorch loops as contestants (`peers/protocol.py`): plain.py FOLDER WAY.

- ``transforms``: a torchvision data set, PIL transforms, a DataLoader (the usual script);
- ``dataloader``: normalised tensors in a TensorDataset and a DataLoader;
- ``tensors``: a loop that slices normalised tensors by index.

One client after the other, all cores inside an operation, as PyTorch comes. Minibatches come in
the order of fedlogit's, so that accuracies must agree, but for
crops and flips, which each draws for itself.
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
from torch_models import accuracy, network, optimizer

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
        size = self.x.shape[1]
        cropped = [transforms.RandomCrop(size, padding=4), transforms.RandomHorizontalFlip()]
        flat = [transforms.Pad(how["pad"]), transforms.Lambda(torch.flatten)]
        self.transform = transforms.Compose([
            *(cropped if how["augment"] else []),
            transforms.ToTensor(), transforms.Normalize(how["mean"], how["std"]),
            *(flat if how["model"] == "mlp" else []),
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

    def augmented(batches: Callable[[list[np.ndarray]], Batches]) -> Callable[..., Batches]:
        return lambda order: ((crop_and_flip(x), y) for x, y in batches(order))

    everybody = range(len(data.clients))
    if way == "transforms":
        return [loader(Images(data, i)) for i in everybody]
    tensors = [tuple(torch.as_tensor(a) for a in data.client(i)) for i in everybody]
    if way == "dataloader":
        found = [loader(TensorDataset(x, y)) for x, y in tensors]
    else:
        found = [sliced(x, y) for x, y in tensors]
    return [augmented(own) for own in found] if data.settings["augment"] else found


def crop_and_flip(x: torch.Tensor) -> torch.Tensor:
    """Crop each image at a place of its own, of 4 pixels of padding, and flip every other one."""
    n, channels, height, width = x.shape
    top, left = torch.randint(0, 9, (2, n, 1))
    rows, columns = top + torch.arange(height), left + torch.arange(width)
    columns = torch.where(torch.rand(n, 1) < 0.5, columns.flip(1), columns)
    images = torch.arange(n)[:, None, None, None]
    channel = torch.arange(channels)[:, None, None]
    return F.pad(x, [4] * 4)[images, channel, rows[:, None, :, None], columns[:, None, None, :]]


def train(model: nn.Module, batches: Batches, steps: torch.optim.Optimizer) -> None:
    for x, y in batches:
        steps.zero_grad()
        F.cross_entropy(model(x), y).backward()
        steps.step()


@torch.no_grad()
def merge(model: nn.Module, clients: list[nn.Module], sizes: list[int]) -> None:
    """Give a model the average of the clients', weighed by samples."""
    for mine, *theirs in zip(model.parameters(), *(c.parameters() for c in clients), strict=True):
        mine.copy_(sum(p * (n / sum(sizes)) for p, n in zip(theirs, sizes, strict=True)))


def main(folder: str, way: str) -> None:
    turns, data = Turns(), Exported(folder)
    model, batches = network(data), served(data, way)
    x_test, y_test = torch.as_tensor(data.x_test[:]), torch.as_tensor(data.y_test[:])
    sizes = [len(c) for c in data.clients]
    round_ = 0
    while turns.wait():
        round_ += 1
        clients = [copy.deepcopy(model) for _ in sizes]
        for i, client in enumerate(clients):
            train(client, batches[i](data.order(round_, i)), optimizer(data, client))
        merge(model, clients, sizes)
        turns.stop()
        turns.answer(accuracy(model, x_test, y_test))


if __name__ == "__main__":
    main(*sys.argv[1:])
