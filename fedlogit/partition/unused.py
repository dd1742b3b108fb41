"""Training samples that a partition gives to nobody, to validate on."""

from __future__ import annotations

import numpy as np

from fedlogit.data import UNKNOWN, Dataset
from fedlogit.errors import FedlogitError
from fedlogit.partition.split import Split

__all__ = ["unused_samples"]


def unused_samples(dataset: Dataset, split: Split, wanted: int) -> np.ndarray:
    """Return which labelled training samples are neither a client's nor public.

    Args:
        dataset: The data set, with that of the public set joined on or not.
        split: Its partition.
        wanted: How many samples a run validates on.

    Returns:
        Ascending indices, (n,), with n at least `wanted`.

    Raises:
        FedlogitError: if there are fewer, with the numbers and what would leave as many.
    """
    own = np.flatnonzero(dataset.strata[0] != UNKNOWN)
    unused: np.ndarray = np.setdiff1d(own, np.concatenate([*split.clients, split.public]))
    if len(unused) >= wanted:
        return unused
    left = f"all but {len(unused)} of the" if len(unused) else "all of the"
    remedies = [f"give at most {len(unused)}"] if len(unused) else []
    if wanted < len(own):
        remedies.append(f"give a train_size of at most {len(own) - wanted}")
    remedy = (
        ", or ".join(remedies) or f"give fewer than {len(own)}, and a train_size that leaves them"
    )
    raise FedlogitError(
        f"evaluation.validation = {wanted}: the clients and the public set have {left}"
        f" {len(own)} training samples; {remedy}"
    )
