"""Second version of Fully Informed (Who to Trust §4.3): private and public samples."""

from __future__ import annotations

from collections.abc import Iterator

from oracles import local
from oracles.world import World


def rounds(world: World) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    return local.rounds(world, with_public=True)
