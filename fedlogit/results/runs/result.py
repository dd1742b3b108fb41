"""What tables and figures read of ``result.json``, and the values that each of its keys may have.

A digest shows that a file is as it was written, not that a run wrote it: results also arrive from
others (`unpack`, `pull`), and all of them are read here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from fedlogit.component import explain
from fedlogit.errors import DataError

__all__ = ["Result", "as_result", "is_printed"]

# Control characters, line ends, and marks that turn the direction of what follows. A terminal would
# obey them, and a row of a table end there. `isprintable` refuses more: a no-break space, too.
_UNPRINTED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# A file of the run's own folder: no path, not hidden, and arrays alone.
_EXPORT = re.compile(r"\w[\w.+-]{0,99}\.(?:npz|safetensors)")
_MOST = 2**63 - 1  # what NumPy and pandas count with


def is_printed(text: str) -> bool:
    """Return whether a text can be printed in one line, to a terminal as to a file."""
    return not _UNPRINTED.search(text)


def _printed(text: str) -> str:
    if not is_printed(text):
        raise ValueError("should be a text of one line, without control characters")
    return text


_Text = Annotated[str, AfterValidator(_printed)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Seconds = Annotated[float, Field(ge=0, le=1e10)]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Samples = Annotated[int, Field(ge=0, le=2**40)]  # so that no sum of them overflows
_Rows = Annotated[list[Annotated[list[_Samples], Field(min_length=1)]], Field(min_length=1)]


class _Read(BaseModel):
    """Of JSON: no text in place of a number, no number that is none; other keys are left alone."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Final(_Read):
    """Metrics after the last round."""

    accuracy: _Share | None = None
    accuracy_std: _Share | None = None
    balanced_accuracy: _Share | None = None
    per_class: list[_Share | None] = []
    per_client: list[_Share] = []


class Bytes(_Read):
    """All bytes of the run by kind of message, summed over clients and rounds."""

    up: dict[_Text, _Count] = {}
    down: dict[_Text, _Count] = {}


class Provenance(_Read):
    """Where a result comes from; what tables and figures say of it."""

    spec_digest: _Text
    code_version: _Text
    own_code: dict[_Text, _Text] = {}  # digests of modules from outside the library
    device: _Text
    device_type: _Text = ""
    engine: _Text
    precision: _Text
    dataset_note: _Text = ""
    wall_seconds: _Seconds
    clients_wall_seconds: _Seconds = 0.0  # of clients that a run in stages shares with others
    clients_started: _Text = ""  # when these began
    finished: _Text = ""
    command: _Text = ""
    torch: _Text = ""  # its version
    peak_memory_bytes: _Count = 0
    dataset_digest: _Text  # this and the next three: of what the run saw
    split_digest: _Text
    tokenizer_digest: _Text = ""  # of a run on text
    probes_digest: _Text = ""  # of a run with images of another data set

    @property
    def whole_version(self) -> str:
        """The library's version, and that of each module from outside, ``name@digest``."""
        own = (f"{name}@{digest}" for name, digest in self.own_code.items())
        return " ".join([self.code_version, *own])


class Split(_Read):
    """The partition of the data: counts (clients, classes), and roles where there are some."""

    counts: _Rows
    rare_classes: list[_Samples] = []
    free_riders: list[_Samples] = []

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


class Result(_Read):
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
