"""A project with finished runs."""

from cached_runs import finished, project

__all__ = ["finished", "project"]
