"""The partition interface: how the training split is divided among clients.

A partition is a module of this package with one `Partition` subclass. It implements `divide`;
what every partition owes its callers (valid input, sorted `int64` indices, no empty client) is
checked once, in `Partition.split`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedlogit.component import Component, ComponentRef
from fedlogit.errors import FedlogitError

__all__ = ["Partition", "Roles", "get"]


@dataclass(frozen=True)
class Roles:
    """What a partition knows about its clients and classes that their counts do not say.

    Attributes:
        rare_classes: Classes that one client, the maverick, alone holds by design.
        free_riders: Clients that are meant to contribute nothing.
    """

    rare_classes: tuple[int, ...] = ()
    free_riders: tuple[int, ...] = ()

    def by_client(self, counts: np.ndarray) -> list[str]:
        """Return what each client is: a free rider, a maverick, or nothing (``""``).

        Args:
            counts: Samples of each class at each client, (clients, classes).
        """
        rare = counts[:, list(self.rare_classes)].sum(axis=1)
        return [
            "free rider" if client in self.free_riders else "maverick" if held else ""
            for client, held in enumerate(rare)
        ]


class Partition(Component):
    """A rule that gives each client some of the training samples.

    Attributes:
        disjoint: No sample belongs to two clients.
        repeats: A client may hold the same sample more than once.
        random: The partition depends on the seed.
        by_class: It looks at the labels. Such a partition is refused where samples have no class,
            as those of a text.
    """

    disjoint: ClassVar[bool] = True
    repeats: ClassVar[bool] = False
    random: ClassVar[bool] = True
    by_class: ClassVar[bool] = True

    @abstractmethod
    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Return one array of indices into `labels` per client; the arguments are those of `split`.

        Subclasses implement this; callers use `split`.
        """

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes than there are; by default nothing.

        Planning asks, before there are data, and so does `split`.

        Args:
            classes: Number of classes K.

        Raises:
            FedlogitError: naming the parameter, as `at_most` does.
        """

    def split(
        self,
        labels: np.ndarray,
        clients: int,
        classes: int,
        seed: int,
        groups: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Divide the samples with these labels among the clients.

        Args:
            labels: Class of each sample, (n,) integers in [0, classes).
            clients: Number of clients N.
            classes: Number of classes K.
            seed: Seed of the partition; the same seed gives the same partition.
            groups: Centre or user id of each sample, (n,), where the dataset has such.

        Returns:
            N ascending `int64` arrays of indices into `labels`, none of them empty.

        Raises:
            FedlogitError: if the parameters do not fit the data or leave a client empty.
        """
        labels = _checked_labels(labels, classes)
        if clients < 1:
            raise FedlogitError(f"clients = {clients}: at least one client is needed")
        if clients > len(labels):
            raise FedlogitError(f"clients = {clients} is more than the {len(labels)} samples")
        self.check_classes(classes)
        parts = self.divide(labels, clients, classes, seed, groups)
        self._check_indices(parts, clients, len(labels))
        for client, part in enumerate(parts):
            if len(part) == 0:
                raise self._empty(client, clients)
        self._check_shared(parts)
        if not type(self).__module__.startswith("fedlogit."):
            self._check_repeated(parts, self.divide(labels, clients, classes, seed, groups))
        return [np.sort(np.asarray(part, dtype=np.int64)) for part in parts]

    def _check_indices(self, parts: list[np.ndarray], clients: int, samples: int) -> None:
        """Refuse what is not a list of indices for each client."""
        if not isinstance(parts, (list, tuple)) or len(parts) != clients:
            given = (
                f"{len(parts)} parts" if isinstance(parts, (list, tuple)) else type(parts).__name__
            )
            raise FedlogitError(
                f"partition {self}: divide returned {given}; give a list of {clients} arrays of"
                " indices, one per client"
            )
        for client, part in enumerate(parts):
            indices = np.asarray(part)
            if indices.ndim != 1 or (len(indices) and indices.dtype.kind not in "iu"):
                raise FedlogitError(
                    f"partition {self}: divide gave client {client} {indices.dtype} of shape"
                    f" {indices.shape}; give a 1-D array of integer indices"
                )
            if len(indices) and not 0 <= indices.min() <= indices.max() < samples:
                raise FedlogitError(
                    f"partition {self}: divide gave client {client} indices from {indices.min()}"
                    f" to {indices.max()}; they must lie in 0 to {samples - 1}"
                )

    def _check_shared(self, parts: list[np.ndarray]) -> None:
        """Refuse samples that clients share, or hold twice, unless the class says that they do."""
        if not self.repeats:
            for client, part in enumerate(parts):
                if len(np.unique(part)) < len(part):
                    raise FedlogitError(
                        f"partition {self} gives client {client} a sample twice; give it once, or"
                        " set the class's repeats = True"
                    )
        held = np.concatenate([np.unique(part) for part in parts])
        if self.disjoint and len(np.unique(held)) < len(held):
            raise FedlogitError(
                f"partition {self} gives a sample to two clients; give it to one, or set the"
                " class's disjoint = False"
            )

    def _check_repeated(self, parts: list[np.ndarray], again: list[np.ndarray]) -> None:
        """Refuse, of a partition of one's own, what no seed decides: a second call has to agree."""
        if not all(map(np.array_equal, parts, again)):
            raise FedlogitError(
                f"partition {self} divides otherwise when it is called again with the same seed;"
                " draw random numbers only from fedlogit.rng.rng(seed, 'partition')"
            )

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Return what a reader of the results should know about this partition, as sentences.

        Args:
            labels: Class of each sample, (n,).
            parts: What `split` returned for them.
        """
        held = np.unique(labels[np.concatenate(parts)])
        lost = np.setdiff1d(labels, held)
        if len(lost) == 0:
            return ()
        return (f"{self}: no client holds class {', '.join(map(str, lost))} ({len(lost)} lost)",)

    def roles(self, labels: np.ndarray, parts: list[np.ndarray]) -> Roles:
        """Return who was given a role; the arguments are those of `notes`."""
        return Roles()

    def _empty(self, client: int, clients: int) -> FedlogitError:
        change = " or change ".join([f"use fewer than {clients} clients", *self.params()])
        return FedlogitError(f"partition {self} leaves client {client} without samples; {change}")

    def at_most(self, key: str, limit: int, what: str) -> None:
        """Refuse a parameter that is larger than the data or the federation allow.

        Raises:
            FedlogitError: if ``getattr(self, key) > limit``; `what` says what the limit is.
        """
        value = getattr(self, key)
        if value > limit:
            raise FedlogitError(f"partition {self.name}: {key} = {value}: at most {limit}, {what}")

    def __str__(self) -> str:
        return str(ComponentRef(name=self.name, params=self.params()))


def get(call: ComponentRef | str) -> Partition:
    """Return the partition that a call such as ``dir_client(0.05)`` means.

    Raises:
        FedlogitError: for an unknown name (with the nearest one) or a parameter that is not valid.
    """
    return Partition.from_call("partition", "fedlogit.partition", call)


def _checked_labels(labels: np.ndarray, classes: int) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise FedlogitError(
            f"labels are {labels.dtype} of shape {labels.shape}: a 1-D integer array is needed"
        )
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise FedlogitError(
            f"labels run from {labels.min()} to {labels.max()}: with classes = {classes} they must"
            f" lie in 0 to {classes - 1}"
        )
    return labels
