#!/usr/bin/env python3
"""Write the JSON schemas of ``config.yaml`` and of the papers' files from the models they mirror.

python scripts/schemas.py            # writes workflow/schemas/*.schema.json
python scripts/schemas.py --check    # fails if they differ from what it would write
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.config import Settings
from fedlogit.errors import FedlogitError
from fedlogit.files import write_atomic
from fedlogit.papers import Paper
from fedlogit.spec import RunSpec

ROOT = Path(__file__).resolve().parent.parent
MODELS = {"config": Settings, "paper": Paper, "run": RunSpec}


def main(argv: Sequence[str]) -> int:
    """Write or check the schemas; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    parser.add_argument("--out", type=Path, default=ROOT / "workflow" / "schemas")
    args = parser.parse_args(argv)
    for name, model in MODELS.items():
        path = args.out / f"{name}.schema.json"
        text = json.dumps(model.model_json_schema(by_alias=True), indent=2) + "\n"
        if not args.check:
            with write_atomic(path) as temporary:
                temporary.write_text(text)
        elif not path.exists() or path.read_text() != text:
            raise FedlogitError(f"{path} is not what the models say; run make schemas")
    return 0


if __name__ == "__main__":
    run_main(main)
