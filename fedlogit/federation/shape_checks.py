"""What a method gives to an operation is refused in one line where its shape cannot be meant."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedlogit.errors import FedlogitError

__all__ = ["check_message", "check_rows", "check_soft_targets"]


def check_rows(messages: object, call: str, clients: int, *, of_each: bool) -> None:
    """Refuse messages of clients that are not rows of a tensor.

    Args:
        messages: What clients send, (clients, …).
        call: Which method gives them to which operation, for the message.
        clients: How many are present.
        of_each: There must be a row for each of them: row i is taken for what client i says.

    Raises:
        FedlogitError: if they are no tensor, have no axis, or too few or too many rows.
    """
    shape = tuple(_tensor(messages, call, f"a row for each of the {clients} clients").shape)
    if not shape or (of_each and shape[0] != clients):
        raise FedlogitError(
            f"{call} got shape {shape}, {shape[0] if shape else 'no'} rows of {clients} clients;"
            " give a row for each client that is present (what is selected of fed.claimed(…) goes"
            " under another kind)"
        )


def check_message(message: object, call: str, clients: int, axes: int | None) -> None:
    """Refuse a message to all clients that is no tensor, or that has a row for each of them.

    Args:
        message: What each of the clients gets.
        call: Which method gives it to which operation, for the message.
        clients: How many are present.
        axes: How many axes predictions have; None where there may be any number.

    Raises:
        FedlogitError: if it is no tensor, or has more axes.
    """
    shape = tuple(_tensor(message, call, "what each client gets").shape)
    if axes is not None and len(shape) > axes:
        raise FedlogitError(
            f"{call} got shape {shape}, and predictions have {axes} axes; send each client its own"
            f" with receivers=1, or say receivers={clients} if each gets all of it"
        )


def check_soft_targets(
    targets: object, call: str, shape: Sequence[int], learners: int | None = None
) -> None:
    """Refuse targets that are no distributions, or weighted ones, of the samples.

    NaN passes: it comes of models that diverged, which the losses tell.

    Args:
        targets: What learners shall predict.
        call: Which method gives them to which operation, for the message.
        shape: Of targets that are the same for all: (n, classes), or (n, T, classes).
        learners: How many train, each of which may have targets of its own; None is a single one.

    Raises:
        FedlogitError: if they are no tensor, have another shape, or a value is negative.
    """
    right, wanted = [tuple(shape)], f"of shape {tuple(shape)}"
    if learners is not None:
        right.append((learners, *shape))
        wanted += f" for all, or {right[-1]} for each of {learners} learners"
    given = _tensor(targets, call, wanted)
    if tuple(given.shape) not in right:
        raise FedlogitError(
            f"{call} got targets of shape {tuple(given.shape)}; give a tensor {wanted}"
        )
    if (given < 0).any():
        raise FedlogitError(
            f"{call} got targets that are negative, and no distributions; take a softmax of logits"
        )


def _tensor(given: object, call: str, wanted: str) -> torch.Tensor:
    if not isinstance(given, torch.Tensor):
        raise FedlogitError(f"{call} got a {type(given).__name__}; give a tensor, {wanted}")
    return given
