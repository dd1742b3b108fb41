"""The algorithm boxes of the papers, one file each, found by name."""

from fedlogit.methods.base import Method, get
from fedlogit.methods.resolution import resolve

__all__ = ["Method", "get", "resolve"]
