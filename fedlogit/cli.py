"""What every script shares: user mistakes become one line and exit code 2, Ctrl-C becomes 130."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from fedlogit.errors import FedlogitError
from fedlogit.stopping import exit_when_asked

__all__ = ["run_main"]


def run_main(main: Callable[[Sequence[str]], int | None]) -> None:
    """Call ``main(argv)`` and exit with its code."""
    try:
        with exit_when_asked():
            code = main(sys.argv[1:]) or 0
    except FedlogitError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        code = 2
    except KeyboardInterrupt:
        print("interrupted; run the same command again to resume", file=sys.stderr)  # noqa: T201
        code = 130
    sys.exit(code)
