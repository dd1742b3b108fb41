"""The records of a run's stages, ``clients.json`` and ``logits.json``, and what they must say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from fedlogit.errors import DataError
from fedlogit.files import read_sealed
from fedlogit.frozen_config import explain
from fedlogit.runs.hints import remake_hint
from fedlogit.runs.recorded_values import Recorded, Seconds, Text

__all__ = ["ClientsRecord", "LogitsRecord", "read_record"]


class _OfStage(Recorded):
    """What both records say: by which spec and code, and on which weights."""

    spec_digest: Text
    weights_digest: Text  # of clients that diverged, the digest of the reason
    code_version: Text

    def given(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of those keys that the record has."""
        return self.model_dump(include=set(keys), exclude_unset=True)


class ClientsRecord(_OfStage):
    """Where the clients come from, and their mean loss; older ones lack some."""

    own_code: dict[Text, Text] = Field(default_factory=dict)
    device: Text = ""
    engine: Text = ""
    compiler: Text = ""  # of the engine `native`
    wall_seconds: Seconds = 0.0
    started: Text = ""
    dataset_digest: Text = ""
    split_digest: Text = ""
    tokenizer_digest: Text = ""
    probes_digest: Text = ""
    loss_private: float | None = None


class LogitsRecord(_OfStage):
    """Which logits these are."""

    logits_digest: Text


R = TypeVar("R", bound=_OfStage)


def read_record(kind: type[R], path: Path) -> R:
    """Read the record of a stage.

    Raises:
        DataError: if it is missing or damaged, or lacks a key or has an impossible value.
    """
    try:
        return kind.model_validate(read_sealed(path, remake_hint(path)))
    except ValidationError as error:
        raise DataError(f"{explain(error, str(path))}; {remake_hint(path)}") from None
