"""Which clients are present in a round: a share or a number of them, drawn anew, or a schedule.

That is a function of the settings, the seed and the round alone, so that a run that was stopped
goes on with the same clients, and anybody can say later which were present.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fedlogit.errors import FedlogitError
from fedlogit.frozen_config import FrozenConfig, NonNegativeInt, PositiveInt
from fedlogit.rng import rng

__all__ = ["Participation", "Stay"]

# Below, tuples are not strict: JSON's lists are tuples only where nothing, such as `_from_share`,
# comes between.


class Stay(FrozenConfig):
    """Some clients, and the rounds in which they are there.

    Attributes:
        clients: Their numbers, from 0.
        since: The first round in which they are there; None is the first of the run.
        until: The last round in which they are there; None is the last of the run, and 0 says
            that they are never there.
    """

    clients: tuple[NonNegativeInt, ...] = Field(min_length=1, strict=False)
    since: PositiveInt | None = None
    until: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _some_rounds(self) -> Self:
        if self.since is None and self.until is None:
            raise ValueError("give since, until, or both; who is not named is always there")
        if self.until is not None and (self.since or 0) > self.until:
            raise ValueError(f"since = {self.since} comes after until = {self.until}")
        return self

    def covers(self, round_: int) -> bool:
        """Return whether they are there in round `round_` (from 1)."""
        return (self.since or 1) <= round_ and (self.until is None or round_ <= self.until)


class Participation(FrozenConfig):
    """Which clients take part in a round; ``0.7`` is short for ``{share: 0.7}``.

    One of `share`, `number` and `schedule` is given.

    Attributes:
        share: Of all clients, so many are drawn each round without replacement: rounded to whole
            clients, a half to the even number, and at least one.
        number: So many clients are drawn each round without replacement.
        schedule: When named clients are there. Who is in no entry is always there; who is in
            several is there in the rounds of each.
        meta_model: What the Meta-Model, whose input has a place for each client, does: ``refit``
            fits it to the logits of who is there; ``pad`` keeps its width, with what an absent
            client last sent in its place. Dropped for other methods.
    """

    form: ClassVar[str] = "a share such as 0.8, {number: 4} or {schedule: [{clients: [0]}]}"

    share: Annotated[float, Field(gt=0, le=1)] | None = None
    number: PositiveInt | None = None
    schedule: tuple[Stay, ...] = Field(default=(), strict=False)
    meta_model: Literal["refit", "pad"] = "refit"

    @model_validator(mode="before")
    @classmethod
    def _from_share(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if value > 1:
            # Larger ones may be too large for a floating-point number.
            whole = value < 10**6 and float(value).is_integer()
            other = f"; give {{number: {value:.0f}}}" if whole else ""
            raise ValueError(f"alone it is a share, from 0 to 1{other}")
        return {"share": value}

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [self.share is not None, self.number is not None, bool(self.schedule)]
        if sum(given) != 1:
            raise ValueError("give one of share, number and schedule")
        return self

    def check(self, clients: int, rounds: int) -> None:
        """Refuse what does not fit a run.

        Args:
            clients: How many exist.
            rounds: Of the run.

        Raises:
            FedlogitError: naming the setting, its value and what would be right; or a round in
                which nobody is present.
        """
        if self.number is not None and self.number > clients:
            raise FedlogitError(
                f"participation.number = {self.number}: give at most the {clients} clients"
            )
        for i, stay in enumerate(self.schedule):
            where = f"participation.schedule.{i}"
            if max(stay.clients) >= clients:
                raise FedlogitError(
                    f"{where}.clients = {max(stay.clients)}: the {clients} clients have the"
                    f" numbers 0 to {clients - 1}"
                )
            for key in ("since", "until"):
                if (getattr(stay, key) or 1) > rounds:
                    raise FedlogitError(
                        f"{where}.{key} = {getattr(stay, key)}: give at most the {rounds} rounds"
                    )
        round_, fewest = self.fewest(clients, rounds)
        if not fewest:
            raise FedlogitError(f"participation.schedule: nobody is there in round {round_}")

    def fewest(self, clients: int, rounds: int) -> tuple[int, int]:
        """Return the first round with the fewest clients, and how many these are."""
        if not self.schedule:
            return 1, self._drawn(clients)
        changes = {1} | {s.since for s in self.schedule if s.since}
        changes |= {s.until + 1 for s in self.schedule if s.until and s.until < rounds}
        sizes = {r: len(self._scheduled(r, clients)) for r in sorted(changes)}
        found = min(sizes, key=lambda r: sizes[r])
        return found, sizes[found]

    def present(self, round_: int, clients: int, seed: int) -> tuple[int, ...]:
        """Return the numbers of the clients that are there in round `round_`, in rising order.

        Args:
            round_: From 1.
            clients: How many exist.
            seed: The run's.
        """
        if self.schedule:
            return self._scheduled(round_, clients)
        generator = rng(seed, "participation", round_)
        chosen = generator.choice(clients, self._drawn(clients), replace=False)
        return tuple(sorted(chosen.tolist()))

    def first_rounds(self, clients: int, rounds: int, seed: int) -> dict[int, int]:
        """Return the first round of each client that is ever there."""
        first: dict[int, int] = {}
        for round_ in range(1, rounds + 1):
            for client in self.present(round_, clients, seed):
                first.setdefault(client, round_)
            if len(first) == clients:
                break
        return first

    def _drawn(self, clients: int) -> int:
        return self.number or max(1, round((self.share or 0) * clients))

    def _scheduled(self, round_: int, clients: int) -> tuple[int, ...]:
        named = {i for stay in self.schedule for i in stay.clients}
        there = {i for stay in self.schedule if stay.covers(round_) for i in stay.clients}
        return tuple(i for i in range(clients) if i in there or i not in named)
