"""The data set on the device: uint8 images, normalised and augmented in bulk, or tokens."""

from __future__ import annotations

import numpy as np
import torch

from fedlogit.data import UNKNOWN, Dataset
from fedlogit.engine.transforms import crop_and_flip, normalise, to_nchw

__all__ = ["DeviceData", "DeviceText", "on_device"]


_LARGEST_KEPT = 1 << 26  # bytes of normalised test images: MNIST and EMNIST, not CIFAR-10
_POSITIONS = 8192  # of a text in a forward pass without gradients: as many rows of logits


class DeviceData:
    """Training and test split as tensors.

    Attributes:
        classes: Number of classes.
        shape: Shape of one sample: (channels, height, width) of an image, (length,) of a sequence.
        labels: Training labels, int64 (n,), or (n, T) where each position has one.
        test_labels: Test labels, the same.
        some_unknown: Nobody knows the labels of some training samples.
        strata: What training samples are divided by where classes shall have their share, (n,).
        tokens: Samples are sequences of tokens.
        batch: Samples in a forward pass without gradients.
        gpu_batch: The same on a GPU, for models whose predictions do not depend on it.
    """

    shape: tuple[int, ...]
    tokens = False
    batch = 500
    gpu_batch = 2000

    def __init__(
        self, dataset: Dataset, device: torch.device, test_index: np.ndarray | None
    ) -> None:
        x_test, y_test = dataset.x_test, dataset.y_test
        if test_index is not None:
            x_test, y_test = x_test[test_index], y_test[test_index]
        self.device = device
        self.classes = dataset.classes
        self.strata = dataset.strata[0]
        self.mean, self.std = dataset.mean, dataset.std
        self.x = self.stored(dataset.x_train).to(device)
        self.labels = torch.as_tensor(dataset.y_train, dtype=torch.int64, device=device)
        self.some_unknown = bool((dataset.y_train == UNKNOWN).any())
        self.x_test = self.stored(x_test).to(device)
        self.test_labels = torch.as_tensor(y_test, dtype=torch.int64, device=device)
        self.shape = tuple(self.x.shape[1:])
        self._kept: dict[tuple[int, int], tuple[torch.Tensor, int]] = {}

    def stored(self, samples: np.ndarray) -> torch.Tensor:
        """Return samples as they lie on the device."""
        return to_nchw(samples)

    def inputs(self, index: torch.Tensor, crops: torch.Tensor | None = None) -> torch.Tensor:
        """Return normalised training images (n, channels, height, width).

        Args:
            index: Which, int64 (n,).
            crops: How they are augmented, from `fedlogit.engine.transforms.draw_crops`; None not.
        """
        batch = self.x.index_select(0, index)
        if crops is not None:
            batch = crop_and_flip(batch, crops)
        return normalise(batch, self.mean, self.std)

    def test_inputs(self, part: slice) -> torch.Tensor:
        """Return normalised test images of a slice, on a CPU those of the last time.

        To normalise them takes a good part of the time in which a small model is tested.
        """
        if self.device.type != "cpu" or 4 * self.x_test.numel() > _LARGEST_KEPT:
            return normalise(self.x_test[part], self.mean, self.std)
        place = part.start, part.stop
        images, version = self._kept.get(place, (None, 0))
        if images is None or images._version != version:  # a model may write into what it is given
            images = normalise(self.x_test[part], self.mean, self.std)
            self._kept[place] = images, images._version
        return images


class DeviceText(DeviceData):
    """Training and test split of a text, as sequences of tokens; every position has a label."""

    tokens = True

    def __init__(
        self, dataset: Dataset, device: torch.device, test_index: np.ndarray | None
    ) -> None:
        super().__init__(dataset, device, test_index)
        self.batch = self.gpu_batch = max(1, _POSITIONS // self.shape[0])

    def stored(self, samples: np.ndarray) -> torch.Tensor:
        """Return tokens, int64 (n, T)."""
        return torch.from_numpy(samples.astype(np.int64))

    def inputs(self, index: torch.Tensor, crops: torch.Tensor | None = None) -> torch.Tensor:
        """Return sequences of training tokens (n, T), which are never augmented."""
        return self.x.index_select(0, index)

    def test_inputs(self, part: slice) -> torch.Tensor:
        """Return test sequences of a slice."""
        return self.x_test[part]


def on_device(dataset: Dataset, device: torch.device, test_index: np.ndarray | None) -> DeviceData:
    """Return a data set's tensors, of whichever kind its samples are.

    Args:
        dataset: Images, or a text's tokens.
        device: Where to.
        test_index: Which test samples to keep; None keeps all.
    """
    kind = DeviceText if dataset.y_train.ndim > 1 else DeviceData
    return kind(dataset, device, test_index)
