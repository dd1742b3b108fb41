"""Clients that harm the others: what they do, and how many there are.

They are the last of the clients that exist, follow the method in all else, and are not tested.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedlogit.errors import FedlogitError
from fedlogit.frozen_config import FrozenConfig, refuse_unused

__all__ = ["Adversaries"]


class Adversaries(FrozenConfig):
    """A share of the clients, and what they falsify.

    Attributes:
        share: Of the clients that exist, rounded to whole ones, a half to the even number.
        attack: ``label_flips``: their private samples of class c are labelled C - 1 - c, of C
            classes, before anything is trained (Fang et al. 2020, §4.1). ``random_logits`` and
            ``loud_logits``: they train honestly, and falsify the predictions that they send; see
            `fedlogit.aggregation.attacks.false_logits`.
        magnitude: What loud logits are multiplied by; of no other attack.
    """

    share: Annotated[float, Field(ge=0, lt=1)]
    attack: Literal["label_flips", "random_logits", "loud_logits"]
    magnitude: Annotated[float, Field(gt=0)] = 10.0

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if self.attack != "loud_logits":
            refuse_unused(self, ("magnitude",), f"has no effect with attack = {self.attack!r}")
        return self

    @property
    def of_predictions(self) -> bool:
        """Whether predictions are falsified, and not what clients learn from."""
        return self.attack != "label_flips"

    def number(self, clients: int) -> int:
        """Return how many of so many clients they are.

        Raises:
            FedlogitError: if the share is above 0 and rounds to nobody, or if nobody is left.
        """
        found = round(self.share * clients)
        if not found and self.share:
            raise FedlogitError(
                f"adversaries.share = {self.share:g}: of {clients} clients that is nobody; give 0,"
                f" or {1 / clients:.3g} or more"
            )
        if found >= clients:
            raise FedlogitError(
                f"adversaries.share = {self.share:g}: of {clients} clients that is everybody; give"
                " less"
            )
        return found
