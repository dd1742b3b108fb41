"""The Fully Informed Reference: one model, all classes, as many images (Who to Trust §4.3)."""

from __future__ import annotations

from typing import ClassVar

from fedlogit.federation import Federation
from fedlogit.methods.base import Method

__all__ = ["FullyInformed"]


class FullyInformed(Method):
    """Ordinary supervised training on a private-sized set of all classes and the public set.

    "The reference dataset is matched in size to that available to each client (public data plus
    local dataset)": with one client whose partition is ``iid(10000)`` and a public set of 5,000
    it has 15,000 labelled images. The paper does not say for how long it is trained; a round is
    what `spec.local` says, and 50 rounds of one epoch are our default.

    Absent clients: of several clients, those present train. The reference itself is one client,
    which has to be there in every round.
    """

    needs_public: ClassVar[bool] = True
    supports_sequences: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True

    @property
    def learns_public_labels(self) -> bool:
        """All of them, in every round."""
        return True

    def round(self, fed: Federation, r: int) -> None:
        """Train on private and public samples, with the labels of both."""
        fed.train_private(with_public=True)
