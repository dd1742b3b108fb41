"""Dividing the training split among clients: one module per partition, found by name.

`get` finds a partition, `divide` applies it to a data set (after setting a public set aside), as
`make_split` does to labels alone; `distances` measures how far a partition is from a uniform one,
and `unused_samples` are those that nobody has.
"""

from fedlogit.partition.base import Partition, Roles, get
from fedlogit.partition.distances import distances
from fedlogit.partition.split import Split, divide, make_split
from fedlogit.partition.unused import unused_samples

__all__ = [
    "Partition",
    "Roles",
    "Split",
    "distances",
    "divide",
    "get",
    "make_split",
    "unused_samples",
]
