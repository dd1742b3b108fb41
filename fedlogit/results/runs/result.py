"""What tables and figures read of ``result.json``, and the values that each of its keys may have.

Results also arrive from others (`unpack`, `pull`), and all of them are read here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from fedlogit.errors import DataError
from fedlogit.frozen_config import explain
from fedlogit.runs.recorded_values import Count, Line, Recorded, Seconds, Share, Text

__all__ = ["Result", "as_result"]

# A file of the run's own folder: no path, not hidden, and arrays alone.
_EXPORT = re.compile(r"\w[\w.+-]{0,99}\.(?:npz|safetensors)")
_Samples = Annotated[int, Field(ge=0, le=2**40)]  # so that no sum of them overflows
_Rows = Annotated[list[Annotated[list[_Samples], Field(min_length=1)]], Field(min_length=1)]


class Final(Recorded):
    """Metrics after the last round."""

    accuracy: Share | None = None
    accuracy_std: Share | None = None
    balanced_accuracy: Share | None = None
    per_class: list[Share | None] = Field(default_factory=list)
    per_client: list[Share] = Field(default_factory=list)


class Bytes(Recorded):
    """All bytes of the run by kind of message, summed over clients and rounds."""

    up: dict[Text, Count] = Field(default_factory=dict)
    down: dict[Text, Count] = Field(default_factory=dict)


class Provenance(Recorded):
    """Where a result comes from; what tables and figures say of it."""

    spec_digest: Text
    code_version: Text
    own_code: dict[Text, Text] = Field(default_factory=dict)  # digests of modules from outside
    device: Text
    device_type: Text = ""
    engine: Text
    precision: Text
    dataset_note: Text = ""
    wall_seconds: Seconds  # of the run's own process; see `seconds_with_clients`
    clients_wall_seconds: Seconds = 0.0  # of clients that a run in stages shares with others
    clients_started: Text = ""  # when these began
    finished: Text = ""
    command: Line = ""
    torch: Text = ""  # its version
    peak_memory_bytes: Count = 0
    normalised_by: dict[Text, list[float]] = Field(default_factory=dict)  # older ones lack it
    dataset_digest: Text  # this and the next three: of what the run saw
    split_digest: Text
    tokenizer_digest: Text = ""  # of a run on text
    probes_digest: Text = ""  # of a run with images of another data set

    @property
    def seconds_with_clients(self) -> float:
        """How long the whole run took, with its clients' training where several runs share it."""
        return self.wall_seconds + self.clients_wall_seconds

    @property
    def whole_version(self) -> str:
        """The library's version, and that of each module from outside, ``name@digest``."""
        own = (f"{name}@{digest}" for name, digest in self.own_code.items())
        return " ".join([self.code_version, *own])


class Split(Recorded):
    """The partition of the data: counts (clients, classes), and roles where there are some."""

    counts: _Rows
    rare_classes: list[_Samples] = Field(default_factory=list)
    free_riders: list[_Samples] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Refuse rows of different lengths, and roles of classes and clients that are none."""
        classes = len(self.counts[0])
        if other := next((len(row) for row in self.counts if len(row) != classes), None):
            raise ValueError(f"counts has {classes} classes of a client and {other} of another")
        for key, most in (("rare_classes", classes), ("free_riders", len(self.counts))):
            given: list[int] = getattr(self, key)
            if len(set(given)) < len(given) or any(one >= most for one in given):
                raise ValueError(
                    f"{key} = {str(given)[:100]}: should be different numbers from 0 to {most - 1}"
                )
        return self


class Result(Recorded):
    """The part of ``result.json`` that tables and figures use."""

    status: Literal["finished", "diverged"]
    final: Final = Final()
    split: Split
    bytes: Bytes
    provenance: Provenance
    exports: dict[str, str] | None = None  # digests; None: made before results listed them


def as_result(data: dict[str, Any], path: Path) -> Result:
    """Return the content of a ``result.json``; `path` names it in errors.

    Raises:
        DataError: naming the first key whose value no run writes, or an export outside the folder.
    """
    try:
        result = Result.model_validate(data)
    except ValidationError as error:
        raise DataError(str(explain(error, str(path)))) from None
    for name in result.exports or {}:
        if not _EXPORT.fullmatch(name):  # whose file would be read, here or anywhere
            raise DataError(
                f"{path}: exports lists {name[:100]!r}, should be a plain name of a file in the"
                " run's folder exports, such as aggregation.npz"
            )
    return result
