"""Data sets: what they are, how they are got, checked, stored and loaded.

`cards` says what each must be, `sources` where it comes from; `download` and `prepare` get it;
`load` gives it to the rest of the library.
"""

from fedlogit.data.cards import DATASETS, Card, card
from fedlogit.data.dataset import (
    UNKNOWN,
    Dataset,
    check_probes,
    load,
    load_arrays,
    with_probes,
)

__all__ = [
    "DATASETS",
    "UNKNOWN",
    "Card",
    "Dataset",
    "card",
    "check_probes",
    "load",
    "load_arrays",
    "with_probes",
]
