"""The list of runs in the cache, which DVC reads, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fedlogit.errors import FedlogitError

__all__ = ["read_listing"]


def read_listing(path: Path) -> dict[str, dict[str, Any]]:
    """Return the outputs that a ``.dvc`` file lists, by run.

    Raises:
        FedlogitError: if it is not such a file.
    """
    if not path.exists():
        return {}
    try:
        outs = yaml.safe_load(path.read_text())["outs"]
        return {out["path"].partition("/")[2]: out for out in outs}
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        raise FedlogitError(f"{path} is not a list of DVC's outputs; git checkout it") from None
