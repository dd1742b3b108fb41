"""A run from its spec to a folder that describes itself: set-up, rounds, checkpoints, stages."""
