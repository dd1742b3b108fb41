"""The command of this file's name, of the library beside it (`python -m fedlogit` lists all)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_script

if __name__ == "__main__":
    run_script(__file__)
