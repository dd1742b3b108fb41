"""Vision transformers, torchvision's: ViT-B/16 with ImageNet weights (CELM §5), and a tiny one."""

from __future__ import annotations

import hashlib
import os
import urllib.error
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from fedlogit.errors import FedlogitError, missing_package
from fedlogit.models.base import ImageShape, ModelConfig, Shape
from fedlogit.user_folders import cache_folder

__all__ = ["VitB16", "VitTiny", "weights_file"]

_WEIGHTS = "https://download.pytorch.org/models/vit_b_16-c867db91.pth"


class _ViT(ModelConfig, ABC):
    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network; images of any number of channels are cut into patches."""
        try:  # here, so that other models do without torchvision
            from torchvision.models import VisionTransformer
        except ModuleNotFoundError as error:
            hint = "pip install torchvision"
            raise missing_package(error, f"model {self.name}", hint, "torchvision") from None
        network = VisionTransformer(num_classes=classes, image_size=shape[1], **self._sizes())
        old = network.conv_proj
        network.conv_proj = nn.Conv2d(shape[0], old.out_channels, old.kernel_size, old.stride)
        network.head = "heads.head"
        return network

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Return the sizes that torchvision's class takes."""

    def check(self, shape: Shape) -> None:
        """Refuse images that are not square and a multiple of the patch."""
        super().check(shape)
        patch = self._sizes()["patch_size"]
        if shape[1] != shape[2] or shape[1] % patch:
            raise FedlogitError(
                f"model {self.name} takes square images whose side is a multiple of {patch}, not"
                f" of shape {tuple(shape)} (channels, height, width)"
            )


class VitTiny(_ViT):
    """A random transformer for small images and tests.

    Attributes:
        patch: Side of a patch, in pixels.
        layers: Encoder layers.
        width: Size of a token; a multiple of 4, the number of heads.
    """

    patch: Annotated[int, Field(gt=0)] = 4
    layers: Annotated[int, Field(gt=0)] = 2
    width: Annotated[int, Field(gt=0, multiple_of=4)] = 32

    def _sizes(self) -> dict[str, int]:
        wide = {"hidden_dim": self.width, "mlp_dim": 2 * self.width, "num_heads": 4}
        return {"patch_size": self.patch, "num_layers": self.layers, **wide}


class VitB16(_ViT):
    """ViT-B/16: 86 M parameters, pretrained on ImageNet-1k, with a new last layer.

    The weights are torchvision's ``IMAGENET1K_V1``. They are looked for in the folder that the
    environment variable FEDLOGIT_WEIGHTS names, then in ``~/.cache/fedlogit``, and fetched there
    from PyTorch's address if need be. The file is checked against the digest in its name before it
    is read, and read as tensors only.

    Attributes:
        weights: ``imagenet``, or ``none`` for random ones.
    """

    name = "vit_b16"

    weights: Literal["imagenet", "none"] = "imagenet"

    def _sizes(self) -> dict[str, int]:
        wide = {"hidden_dim": 768, "mlp_dim": 3072, "num_heads": 12}
        return {"patch_size": 16, "num_layers": 12, **wide}

    def load(self, network: nn.Module) -> None:
        """Overwrite all but the last layer with the ImageNet weights."""
        if self.weights == "none":
            return
        path = weights_file(_WEIGHTS)
        state = torch.load(path, map_location="cpu", weights_only=True)
        state = {key: value for key, value in state.items() if not key.startswith("heads.")}
        own = {k: v.shape for k, v in network.state_dict().items() if not k.startswith("heads.")}
        if {key: value.shape for key, value in state.items()} != own:
            raise FedlogitError(
                f"{path} does not fit model {self.name}: it takes images of 224 x 224 x 3;"
                " use weights='none' for others"
            )
        network.load_state_dict(state, strict=False)


def weights_file(url: str) -> Path:
    """Return torchvision's weights as a file whose digest is the one in its name.

    Raises:
        FedlogitError: if it is nowhere, or damaged.
    """
    name = url.rsplit("/", 1)[-1]
    given = os.environ.get("FEDLOGIT_WEIGHTS")
    own = Path(given, name) if given else None
    path = own if own and own.exists() else _cached(url, name)
    prefix = name.rsplit("-", 1)[-1].removesuffix(".pth")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not digest.startswith(prefix):
        raise FedlogitError(
            f"{path} is damaged: its SHA-256 does not start with {prefix}; remove it, and it is"
            " fetched again"
        )
    return path


def _cached(url: str, name: str) -> Path:
    """Return a file of the cache, fetched if it is not there.

    Raises:
        FedlogitError: if it cannot be fetched.
    """
    path = cache_folder(f"set FEDLOGIT_WEIGHTS to a folder with {name}") / name
    if path.exists():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(path), progress=False)
    except (urllib.error.URLError, OSError) as error:
        raise FedlogitError(
            f"pretrained weights {name} cannot be fetched ({error}); put the file into a folder"
            " and set FEDLOGIT_WEIGHTS to it, or use vit_b16(weights='none')"
        ) from None
    return path
