"""``python -m fedlogit``: see `fedlogit.cli`."""

import signal
import sys

if __name__ == "__main__":
    try:
        from fedlogit.cli import main, run_main
    except KeyboardInterrupt:  # importing takes a second, in which people change their mind
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one would print a traceback
        print("interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    sys.argv[0] = "-m fedlogit"  # a run's record repeats the command as it was typed
    run_main(main)
