"""Named tensors in a file; apart from `fedlogit.files`, which must not need PyTorch."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from fedlogit.errors import FedlogitError
from fedlogit.files import write_atomic

__all__ = ["save_tensors"]


def save_tensors(
    path: Path, tensors: dict[str, torch.Tensor], header: dict[str, str] | None = None
) -> None:
    """Write named tensors and a header to a ``.safetensors`` file, atomically."""
    with write_atomic(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=header)
        except SafetensorError as error:  # it does not say which file
            raise FedlogitError(f"cannot write {path}: {error}") from None
