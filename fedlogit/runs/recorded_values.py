"""Types of the values in records: of a run's result, and of the stages before it.

A digest shows that a record is as it was written, not that this library wrote it: records also
arrive from others.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = ["Count", "Line", "Recorded", "Seconds", "Share", "Text", "is_printed"]

# Control characters, line ends, and marks that turn the direction of what follows. A terminal would
# obey them, and a row of a table end there. `isprintable` refuses more: a no-break space, too.
_UNPRINTED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def is_printed(text: str) -> bool:
    """Return whether a text can be printed in one line, to a terminal as to a file."""
    return not _UNPRINTED.search(text)


def _printed(text: str) -> str:
    if not is_printed(text):
        raise ValueError("should be a text of one line, without control characters")
    return text


Line = Annotated[str, AfterValidator(_printed)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(_printed)]  # captions print it
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=1e10)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]  # what NumPy and pandas count with


class Recorded(BaseModel):
    """A record in JSON: no text in place of a number, and no number that is not finite.

    Other keys are left alone, as each version adds some.
    """

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
