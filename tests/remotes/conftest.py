"""A project with finished runs."""

from support.cached_runs import finished, project, published

__all__ = ["finished", "project", "published"]
