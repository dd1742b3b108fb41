"""Data sets: what they are, how they are got, checked, stored, loaded and turned into batches.

`cards` says what each must be, `sources` where it comes from; `download` and `prepare` get it;
`load` gives it to the rest of the library. `transforms` go from storage to network.
"""

from fedlogit.data.cards import DATASETS, Card, card
from fedlogit.data.content import content_digest
from fedlogit.data.dataset import Dataset, load, load_arrays
from fedlogit.data.transforms import crop_flip, normalise, to_nchw

__all__ = [
    "DATASETS",
    "Card",
    "Dataset",
    "card",
    "content_digest",
    "crop_flip",
    "load",
    "load_arrays",
    "normalise",
    "to_nchw",
]
