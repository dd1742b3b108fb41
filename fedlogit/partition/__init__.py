"""Dividing the training split among clients: one module per partition, found by name.

`get` finds a partition, `make_split` applies it (after setting a public set aside), `distances`
measures how far a division is from a uniform one.
"""

from __future__ import annotations

from fedlogit.partition.base import Partition, get
from fedlogit.partition.distances import distances
from fedlogit.partition.split import Split, SplitSpec, make_split

__all__ = ["Partition", "Split", "SplitSpec", "distances", "get", "make_split"]
