#!/usr/bin/env python3
"""Write the JSON schemas of ``config.yaml`` and of the papers' files from the models they mirror.

What a key means, which a model's docstring has under ``Attributes:``, is the key's description, so
that an editor shows it.

python scripts/schemas.py            # writes workflow/schemas/*.schema.json
python scripts/schemas.py --check    # changes nothing; exits with 1 if they differ from the models
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.config import Settings
from fedlogit.frozen_config import FrozenConfig
from fedlogit.papers import Paper
from fedlogit.spec import RunSpec
from scripts._generated import checking_parser, write_or_check
from scripts.docs_site.docstrings import attributes, subclasses

ROOT = Path(__file__).resolve().parent.parent
MODELS = {"config": Settings, "paper": Paper, "run": RunSpec}


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's JSON schema, in which each key is described."""
    found = model.model_json_schema(by_alias=True)
    models = subclasses(FrozenConfig)
    for name, part in [(model.__name__, found), *found.get("$defs", {}).items()]:
        if name in models:
            _describe(part, models[name])
    return found


def _describe(part: dict[str, Any], model: type[BaseModel]) -> None:
    """Move what a docstring says of attributes to the properties."""
    meant = attributes(model)
    part["description"] = (inspect.getdoc(model) or "").partition("\n\nAttributes:")[0]
    for name, field in model.model_fields.items():
        key = field.alias or name
        if name in meant and key in part.get("properties", {}):
            part["properties"][key]["description"] = meant[name]


def main(argv: Sequence[str]) -> int:
    """Write or check the schemas; return the exit code."""
    parser = checking_parser(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "workflow" / "schemas")
    args = parser.parse_args(argv)
    texts = {
        args.out / f"{name}.schema.json": json.dumps(schema(model), indent=2) + "\n"
        for name, model in MODELS.items()
    }
    why = "is not what the models say; run make schemas"
    return write_or_check(texts, why, check=args.check)


if __name__ == "__main__":
    run_main(main)
