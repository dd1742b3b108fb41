"""A single sample has no statistics for batch norm: what PyTorch says of it, in a run's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedlogit.engine.client import Client
from fedlogit.errors import FedlogitError

__all__ = ["explain_single_sample"]

_PYTORCH = "Expected more than 1 value per channel"


@contextmanager
def explain_single_sample(model: Client, phase: str) -> Iterator[None]:
    """Name the model and what it does where its batch norm meets a single sample.

    Images so large that a channel has several positions are no such sample, so that only the pass
    itself can tell.

    Args:
        model: Who trains or predicts; of several together, one of them.
        phase: What it does.

    Raises:
        FedlogitError: in place of PyTorch's error.
    """
    try:
        yield
    except ValueError as error:
        if not str(error).startswith(_PYTORCH):
            raise
        name = model.architecture.partition("(")[0]
        raise FedlogitError(
            f"model {name}: {model.label} has a batch of one sample in {phase}, which has no"
            " statistics for batch norm; give it two or more (batch, private samples, public.size,"
            " or the method's validation, probes_per_round or classes_per_round), or a model"
            " without batch norm"
        ) from None
