"""Shards of the data sorted by class, FedAvg's non-IID split (McMahan et al. 2017, §3)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.rng import rng

__all__ = ["Shards"]


class Shards(Partition):
    """Sort the samples by class, cut them into N * `per_client` shards and deal the shards.

    McMahan et al. (2017, "Communication-Efficient Learning of Deep Networks from Decentralized
    Data", §3) sort MNIST by digit, cut it into 200 shards of 300 and give each of 100 clients two:
    ``shards(2)``. A client then holds few classes, though not always `per_client`: both shards may
    be of one class, and a shard that lies across a border has two.

    Every sample is dealt. Where N * `per_client` does not divide their number, shards differ by one
    sample, where other frameworks drop the rest; sorted, it would all be of the last classes.
    Within a class the order is drawn, so that a shard does not depend on the order of the file.

    Attributes:
        per_client: Shards of each client.
    """

    per_client: Annotated[int, Field(gt=0)] = 2

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        self.at_most("per_client", len(labels) // clients, "the samples per client")
        generator = rng(seed, "partition")
        order = generator.permutation(len(labels))
        by_label = order[np.argsort(labels[order], kind="stable")]
        shards = np.array_split(by_label, clients * self.per_client)
        dealt = generator.permutation(len(shards)).reshape(clients, self.per_client)
        return [np.concatenate([shards[s] for s in mine]) for mine in dealt]
