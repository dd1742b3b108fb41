"""Rounds of a federation, done as a run does them."""

from __future__ import annotations

from collections.abc import Callable

from fedlogit import methods
from fedlogit.federation import Federation
from fedlogit.methods import Method
from support.small import small_spec


def play(fed: Federation, method: Method, rounds: int = 1) -> Federation:
    """Begin, and do this many rounds."""
    method.init(fed)
    return go_on(fed, method, rounds)


def go_on(fed: Federation, method: Method, rounds: int = 1) -> Federation:
    """Do this many rounds more."""
    for _ in range(rounds):
        fed.start_round(fed.round + 1)
        method.round(fed, fed.round)
        fed.steps.clear()
    return fed


def peers_after(
    rounds: int, federation: Callable[..., Federation], call: str, **changes: object
) -> tuple[Federation, Method]:
    """Return peers with a step of their own a round after so many rounds, and their method."""
    given = {"method": call, "rounds": 10, "partition": "iid(90)", "local": {"steps": 1}} | changes
    fed, method = federation(**given), methods.get(small_spec(**given).method)
    return play(fed, method, rounds), method
