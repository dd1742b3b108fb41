"""Remove the other plans of what was made from these.

python scripts/forget_plans.py results/plan/celm/quick/table1.0123456789ab.json

A plan is named by its content. One that comes back is then written anew, hence newer than what was
made in between, which is therefore made again. Not done while planning: another call may be making
something from them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.runs.plan_files import other_plans


def main(argv: Sequence[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plans", type=Path, nargs="+", help="plans of tables and figures to keep")
    args = parser.parse_args(argv)
    for plan in args.plans:
        for other in other_plans(plan):
            other.unlink(missing_ok=True)


if __name__ == "__main__":
    run_main(main)
