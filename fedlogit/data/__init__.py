"""Data sets: what they are (`cards`), how they are got, checked, stored and loaded."""

from fedlogit.data.cards import DATASETS, Card, card
from fedlogit.data.dataset import Dataset, content_digest, load

__all__ = ["DATASETS", "Card", "Dataset", "card", "content_digest", "load"]
