"""A project with finished runs."""

from support.cached_runs import finished, project

__all__ = ["finished", "project"]
