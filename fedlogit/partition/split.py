"""A partition of the training split: subsample, public set, private sets, notes and digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from fedlogit.component import ComponentRef
from fedlogit.data import UNKNOWN, Dataset, card
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import array_digest, load_npz, save_npz
from fedlogit.partition.base import Partition, Roles, get
from fedlogit.partition.public import foreign_set, public_set
from fedlogit.partition.stratified import stratified
from fedlogit.rng import rng
from fedlogit.spec import Public, SplitSpec

__all__ = ["Split", "divide", "make_split"]

_LIMIT = 1 << 30  # bytes of a split's arrays: 134 million samples, held by all clients together


@dataclass(frozen=True, eq=False)
class Split:
    """A partition of the training split; all indices point into it.

    Public samples of another data set have the indices that follow its own.

    Attributes:
        clients: Ascending `int64` indices of each client's private set.
        public: Ascending `int64` indices of the public set; empty if there is none.
        counts: Samples of each class at each client, (N, K) `int64`.
        digest: SHA-256 over the indices.
        notes: What a reader of the results should know, e.g. classes that no client holds.
        roles: Rare classes and free riders, where the partition makes some.
    """

    clients: tuple[np.ndarray, ...]
    public: np.ndarray
    counts: np.ndarray
    digest: str
    notes: tuple[str, ...]
    roles: Roles

    def save(self, path: Path) -> None:
        """Write the split to an ``.npz`` with arrays ``client_000``, …, ``public``, ``counts``."""
        arrays = {f"client_{i:03d}": part for i, part in enumerate(self.clients)}
        arrays |= {
            "public": self.public,
            "counts": self.counts,
            "digest": np.array(self.digest),
            "notes": np.array(self.notes, dtype=np.str_),
            "rare_classes": np.array(self.roles.rare_classes, dtype=np.int64),
            "free_riders": np.array(self.roles.free_riders, dtype=np.int64),
        }
        save_npz(path, arrays | {"checksum": np.array(_checksum(arrays))})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            DataError: if the file is not a split, or what it holds does not match its digests.
        """
        arrays = load_npz(path, _LIMIT)
        keys = sorted((key for key in arrays if key.startswith("client_")), key=_number)
        needed = {"public", "counts", "digest", "notes", "rare_classes", "free_riders", "checksum"}
        missing = needed - arrays.keys()
        if missing or not keys:
            raise DataError(
                f"{path} is not a split: it has no {', '.join(sorted(missing)) or 'clients'}"
            )
        for key in (*keys, "public", "rare_classes", "free_riders", "notes"):
            kind = "U" if key == "notes" else "iu"
            if arrays[key].ndim != 1 or arrays[key].dtype.kind not in kind:
                raise DataError(f"{path} is not a split: {key} is not a list")
        clients = tuple(arrays[key] for key in keys)
        digest = array_digest(*clients, arrays["public"])
        checksum = str(arrays.pop("checksum"))
        if digest != str(arrays["digest"]) or checksum != _checksum(arrays):
            raise DataError(f"{path} is damaged: it does not match its digest; make it again")
        notes = tuple(str(note) for note in arrays["notes"])
        roles = Roles(*(tuple(arrays[key].tolist()) for key in ("rare_classes", "free_riders")))
        return cls(clients, arrays["public"], arrays["counts"], digest, notes, roles)

    def difference(self, other: Split) -> str:
        """Return the first thing in which another split differs, in words, or "" if in none."""
        if len(self.clients) != len(other.clients):
            return f"{len(self.clients)} clients instead of {len(other.clients)}"
        for i, (mine, theirs) in enumerate(zip(self.clients, other.clients, strict=True)):
            if not np.array_equal(mine, theirs):
                return f"other samples at client {i} ({len(mine)} instead of {len(theirs)})"
        if not np.array_equal(self.public, other.public):
            return f"another public set ({len(self.public)} instead of {len(other.public)})"
        if not np.array_equal(self.counts, other.counts):
            return "other counts of classes"
        if self.roles != other.roles:
            return f"other roles ({self.roles} instead of {other.roles})"
        return "" if self.notes == other.notes else "other notes"


def divide(spec: SplitSpec, dataset: Dataset) -> Split:
    """Divide the training split of a data set as a spec says.

    Args:
        spec: Whose `dataset` names the data set.
        dataset: The data set, with that of the public set joined on or not, if it is another one.

    Raises:
        FedlogitError: if a number does not fit the data; the message names the key.
    """
    labels, classes = dataset.strata
    other = spec.public.dataset if spec.public else None
    return make_split(
        labels[labels != UNKNOWN],
        classes,
        spec.partition,
        spec.clients,
        spec.seed,
        public=spec.public,
        train_size=spec.train_size,
        groups=dataset.group_train,
        length=spec.text.length if spec.text else None,
        foreign=card(other).train if other else 0,
    )


def make_split(
    labels: np.ndarray,
    classes: int,
    partition: ComponentRef | str,
    clients: int,
    seed: int,
    *,
    public: Public | None = None,
    train_size: int | None = None,
    groups: np.ndarray | None = None,
    length: int | None = None,
    foreign: int = 0,
) -> Split:
    """Divide samples with these labels among clients, after setting a public set aside.

    The order is: stratified subsample, public set out of it, partition of the rest. Without the
    first two, the partition sees the labels exactly as they are.

    Args:
        labels: Class of each sample, (n,).
        classes: Number of classes K.
        partition: A call such as ``dir_client(0.05)``.
        clients: Number of clients N.
        seed: Seed of all three steps.
        public: What the public set is; None for none.
        train_size: Samples to keep; None keeps all.
        groups: Centre or user of each sample, (n,), where the dataset has such.
        length: Tokens of a sample, where samples are pieces of a text.
        foreign: Samples of the data set that the public set comes from, if it is another one.

    Raises:
        FedlogitError: if a number does not fit the data; the message names the key.
    """
    labels = np.asarray(labels)
    rule = get(partition)
    pool = np.arange(len(labels))
    if train_size is not None:
        pool = stratified(labels, train_size, rng(seed, "subsample"), "train_size")
    chosen = np.empty(0, np.int64)
    if public is not None:
        generator = rng(seed, "public")
        chosen, pool = _set_aside(public, labels, classes, pool, foreign, generator)
    rest = labels[pool]
    if length is not None:
        _check_text(rule, length, len(rest), clients)
    parts = rule.split(rest, clients, classes, seed, None if groups is None else groups[pool])
    counts = np.stack([np.bincount(rest[part], minlength=classes) for part in parts])
    members = tuple(pool[part] for part in parts)
    return Split(
        clients=members,
        public=chosen,
        counts=counts.astype(np.int64),
        digest=array_digest(*members, chosen),
        notes=rule.notes(rest, parts),
        roles=rule.roles(rest, parts),
    )


def _set_aside(
    public: Public,
    labels: np.ndarray,
    classes: int,
    pool: np.ndarray,
    foreign: int,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Set the public set aside, out of the pool or of another data set.

    Args:
        public: What the public set is.
        labels: Class of each sample of the training split, (n,).
        classes: Number of classes K.
        pool: Ascending indices of the samples to be divided.
        foreign: Samples of the other data set, if the public set comes from one.
        generator: Source of the draw.

    Returns:
        Ascending `int64` indices of the public set, and those of the pool that clients may hold.

    Raises:
        FedlogitError: as `foreign_set` and `public_set`.
    """
    if public.dataset is not None:
        chosen = foreign_set(len(labels), pool, foreign, public, generator)
    else:
        chosen = pool[public_set(labels[pool], classes, public, generator)]
    return chosen, pool if public.overlap else np.setdiff1d(pool, chosen)


def _check_text(rule: Partition, length: int, samples: int, clients: int) -> None:
    """Refuse to divide a text by class, and pieces too long for each client to have one.

    Raises:
        FedlogitError: naming the partition, or saying how long a client's chunk would be.
    """
    if rule.by_class:
        raise FedlogitError(
            f"partition {rule} divides by class, and a text has no classes; use iid, quantity,"
            " contiguous or natural (a class that looks at no label sets by_class = False)"
        )
    if samples < clients:
        raise FedlogitError(
            f"text.length = {length}: longer than a client's chunk, which would have"
            f" {samples * length // clients} tokens (clients = {clients}); give less"
        )


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 over all arrays, with their names."""
    names = sorted(arrays)
    return array_digest(np.array(names), *(arrays[name] for name in names))


def _number(key: str) -> tuple[int, str]:
    """Order ``client_999`` before ``client_1000``."""
    return len(key), key
