"""The data set on the device: uint8 images, indexed, normalised and augmented in bulk."""

from __future__ import annotations

import numpy as np
import torch

from fedlogit.data import Dataset
from fedlogit.data.transforms import crop_flip, normalise, to_nchw

__all__ = ["DeviceData"]


class DeviceData:
    """Training and test split as tensors.

    Attributes:
        classes: Number of classes.
        shape: Shape of one image, (channels, height, width).
        labels: Training labels, int64.
        test_labels: Test labels, int64.
    """

    def __init__(
        self, dataset: Dataset, device: torch.device, test_index: np.ndarray | None = None
    ) -> None:
        x_test, y_test = dataset.x_test, dataset.y_test
        if test_index is not None:
            x_test, y_test = x_test[test_index], y_test[test_index]
        self.device = device
        self.classes = dataset.classes
        self.mean, self.std = dataset.mean, dataset.std
        self.x = to_nchw(dataset.x_train).to(device)
        self.labels = torch.as_tensor(dataset.y_train, dtype=torch.int64, device=device)
        self.x_test = to_nchw(x_test).to(device)
        self.test_labels = torch.as_tensor(y_test, dtype=torch.int64, device=device)
        self.shape: tuple[int, int, int] = tuple(self.x.shape[1:])  # type: ignore[assignment]

    def images(self, index: torch.Tensor, augment: torch.Generator | None = None) -> torch.Tensor:
        """Return normalised training images (n, channels, height, width), augmented if asked."""
        batch = self.x.index_select(0, index)
        if augment is not None:
            batch = crop_flip(batch, augment)
        return normalise(batch, self.mean, self.std)

    def test_images(self, part: slice) -> torch.Tensor:
        """Return normalised test images of a slice."""
        return normalise(self.x_test[part], self.mean, self.std)
