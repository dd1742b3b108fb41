"""What published runs recorded, read from the cache: none need be pulled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedlogit.commands._cache import read_listing
from fedlogit.errors import DataError
from fedlogit.runs.paths import ResultsLayout

__all__ = ["published_records"]


def published_records(root: Path, *names: str) -> Iterator[list[Any]]:
    """Yield the content of these JSON files of each published run, in the order of the names.

    Args:
        root: The project's checkout.
        names: Such as ``result.json``; what every run has.

    Raises:
        DataError: if the cache lacks one.
    """
    objects = root / "dvc-remote" / "files" / "md5"

    def read(digest: str) -> Any:
        path = objects / digest[:2] / digest[2:]
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError):
            raise DataError(f"{path} is missing or damaged; git checkout dvc-remote") from None

    for out in read_listing(ResultsLayout(root / "results").listing).values():
        files = {file["relpath"]: file["md5"] for file in read(out["md5"])}
        yield [read(files[name]) for name in names]
