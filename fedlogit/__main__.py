"""``python -m fedlogit``: see `fedlogit.cli`."""

import sys

from fedlogit.cli import main, run_main

if __name__ == "__main__":
    sys.argv[0] = "-m fedlogit"  # a run's record repeats the command as it was typed
    run_main(main)
