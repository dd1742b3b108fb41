"""Named tensors in a file; apart from `fedlogit.files`, which must not need PyTorch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import write_atomic

__all__ = ["model_tensors", "read_tensors", "save_tensors", "tensor_digest"]

_MASK = os.umask(0o077)  # which can only be asked for by setting it
os.umask(_MASK)


def model_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of a model's parameters and buffers, by name, as a file can hold them."""
    state = model.state_dict()
    return {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}


def read_tensors(path: Path, kind: str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Read named tensors and the header.

    Args:
        path: A ``.safetensors`` file.
        kind: What it should be, for the message.

    Raises:
        DataError: if it is not there, cut off, or something else.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            for tensor in tensors.values():
                tensor.numpy()  # a type that NumPy lacks, such as bfloat16, is none of ours
            return tensors, file.metadata() or {}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is not a readable {kind} ({error})") from None


def save_tensors(
    path: Path, tensors: dict[str, torch.Tensor], header: dict[str, str] | None = None
) -> None:
    """Write named tensors and a header to a ``.safetensors`` file, atomically."""
    with write_atomic(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=header)
            with suppress(OSError):  # FAT has one mode for all files, and refuses others
                temporary.chmod(0o666 & ~_MASK)  # as any other: safetensors lets its owner alone
        except SafetensorError as error:  # it does not say which file
            raise FedlogitError(f"cannot write {path}: {error}") from None


def tensor_digest(tensors: Mapping[str, torch.Tensor], note: str = "") -> str:
    """Return the SHA-256 over a note and each tensor's name, type, shape and bytes, as hex."""
    digest = hashlib.sha256(note.encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous().cpu()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.numpy().data)
    return digest.hexdigest()
