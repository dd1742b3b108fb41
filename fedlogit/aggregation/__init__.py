"""Pure functions of what clients send: to targets, weights, contributions; no files, no rounds."""

from fedlogit.aggregation.targets import Targets

__all__ = ["Targets"]
