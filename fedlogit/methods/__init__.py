"""The algorithm boxes of the papers, one file each, found by name."""

from fedlogit.methods.base import Method, get
from fedlogit.methods.completion import complete

__all__ = ["Method", "complete", "get"]
