"""How plain loops get their minibatches: sliced from tensors, or from a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from protocol import Exported
from torch.utils.data import DataLoader, Dataset, TensorDataset

Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]
Serve = Callable[[list[np.ndarray]], Batches]


class Images(Dataset):
    """Samples as torchvision serves them: a PIL image through transforms, one at a time."""

    def __init__(self, data: Exported, client: int) -> None:
        from torchvision import transforms  # seconds of imports, for this way alone

        how = data.settings
        self.x = np.load(data.folder / f"images{client}.npy")
        self.y = data.client(client)[1]
        self.to_pil = transforms.ToPILImage()
        self.transform = transforms.Compose([
            transforms.ToTensor(), transforms.Normalize(how["mean"], how["std"]),
            transforms.Pad(how["pad"]), transforms.Lambda(torch.flatten),
        ])  # fmt: skip

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.to_pil(self.x[i])), int(self.y[i])


def served(data: Exported, way: str) -> list[Serve]:
    """Return for each client what makes minibatches of an order of places."""

    def loader(dataset: Dataset) -> Serve:
        return lambda order: DataLoader(dataset, batch_sampler=[b.tolist() for b in order])

    def sliced(x: torch.Tensor, y: torch.Tensor) -> Serve:
        return lambda order: ((x[b], y[b]) for b in map(torch.as_tensor, order))

    if way == "transforms":
        return [loader(Images(data, i)) for i in data.clients]
    tensors = [tuple(map(torch.as_tensor, data.client(i))) for i in data.clients]
    if way == "dataloader":
        return [loader(TensorDataset(x, y)) for x, y in tensors]
    return [sliced(x, y) for x, y in tensors]
