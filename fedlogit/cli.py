"""The command line: ``python -m fedlogit COMMAND``, each a module of `fedlogit.commands`.

A user's mistake, also in options, becomes one line and exit code 2, and so does an `OSError`. An
unexpected exception has such a line below its traceback. Ctrl-C gives exit code 130 and SIGTERM
143, each with a line. If the reader of the output goes, as ``head`` does, the command ends silently
with 141.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn, TextIO

import fedlogit
from fedlogit.commands._registry import command_names, first_line, load
from fedlogit.errors import FedlogitError, own_line
from fedlogit.runs.library_code import code_version, commit_facts
from fedlogit.stopping import Stopped, exit_code, exit_on_signal, is_stop

__all__ = [
    "call",
    "command_names",
    "console",
    "main",
    "run_main",
    "run_script",
]

PROGRAM = "python -m fedlogit"


def main(argv: Sequence[str]) -> int:
    """Carry out the command that the first argument names; return the exit code.

    Raises:
        FedlogitError: for an unknown command (with the nearest one), or by the command.
    """
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] == "--version":
        print(_version())  # noqa: T201
        return 0
    return call(argv[0], argv[1:], f"{PROGRAM} {argv[0]}")


def call(name: str, argv: Sequence[str], program: str | None = None) -> int:
    """Carry out one command; return the exit code.

    Args:
        name: One of `command_names`.
        argv: Its arguments.
        program: How its usage calls it; None: by the file that Python runs.

    Raises:
        FedlogitError: for an unknown command, for options that it does not have, or by the command;
            also where code that is not ours, such as a method, ends Python.
    """
    command = load(name)
    parser = _Parser(program, description=command.__doc__, formatter_class=_HelpFormatter)
    command.add_arguments(parser)
    args = parser.parse_args(argv)
    try:
        return int(command.main(args) or 0)
    except SystemExit as end:
        if is_stop(end):
            raise
        raise FedlogitError(_sys_exit_line(name, end)) from end


def _sys_exit_line(name: str, end: SystemExit) -> str:
    """Return where a command was ended by `sys.exit`, perhaps with the code 0."""
    where = traceback.extract_tb(end.__traceback__)[-1]
    return (
        f"{name} did not end: sys.exit({end.code!r}) was called in {where.filename}, line"
        f" {where.lineno}; raise a FedlogitError there instead"
    )


def console() -> None:
    """Carry out what was typed after ``fedlogit``, the program that `pip` installs."""
    run_main(main)


def run_main(main: Callable[[Sequence[str]], int | None]) -> None:
    """Call ``main(argv)`` and exit with its code."""
    # For people: one line, without the place in our code.
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    sys.excepthook = _print_unexpected
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        _replace_unprintable(stream)
    code: int | str | None
    try:
        code = _exit_code_of(main)
        _end_at_next_interrupt()
        sys.stdout.flush()
    except BrokenPipeError:  # as of `| head`, whose reader has all it wants
        _discard_output()
        code = exit_code(signal.SIGPIPE)
    except OSError as error:  # of a path that cannot be read, or is none; of a full disk
        print(f"error: {_os_error_line(error)}", file=sys.stderr)  # noqa: T201
        _discard_output()
        code = 2
    if "triton" not in sys.modules:  # torchvision imports it; it complains of what is frozen
        gc.freeze()  # or Python collects garbage among all modules before it ends, for 0.3 s
    sys.exit(code)


def _open_closed_streams() -> None:
    """Discard what is printed to a stream that the caller closed, as daemons do: it is None."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115


def _print_unexpected(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    """Print a traceback and, below it, the line that says that the same call would fail again.

    A `MemoryError` has no such line, as with more memory the call might not fail.
    """
    sys.__excepthook__(kind, error, where)
    if not issubclass(kind, MemoryError):
        line = traceback.format_exception_only(error)[0].strip().partition("\n")[0]
        said = ", ".join(filter(None, ["unexpected", own_line(where)]))
        print(f"error: {_printable(line)} ({said}; where is above)", file=sys.stderr)  # noqa: T201


def _replace_unprintable(stream: TextIO) -> None:
    """Let a stream whose encoding lacks a character print ? in its place, rather than fail."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors="replace")


def _printable(text: str) -> str:
    """Return a text with control characters, which a terminal would obey, escaped."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _exit_code_of(main: Callable[[Sequence[str]], int | None]) -> int | str | None:
    """Return the exit code of ``main(argv)``; print the errors that a user can act on.

    Raises:
        OSError: what the system refuses; a `BrokenPipeError` if nobody reads what is printed.
    """
    try:
        with exit_on_signal():
            return main(sys.argv[1:]) or 0
    except FedlogitError as error:
        print(f"error: {_printable(str(error))}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        _end_at_next_interrupt()
        print("interrupted; run the same command again to resume", file=sys.stderr)  # noqa: T201
        return 130
    except Stopped as end:  # while nothing was trained, which tells by itself what it saved
        name = signal.Signals(end.number).name
        print(f"stopped by {name}; run the same command again to resume", file=sys.stderr)  # noqa: T201
        return end.code
    except SystemExit as end:
        return end.code


def _end_at_next_interrupt() -> None:
    """Let a Ctrl-C end the process at once; in Python's own end it would print a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _os_error_line(error: OSError) -> str:
    """Return an `OSError` in one line, with the file."""
    reason = error.strerror or str(error).partition("\n")[0] or type(error).__name__
    return reason if error.filename is None else f"{error.filename}: {reason}"


def _discard_output() -> None:
    """Flush what can be flushed, and discard the rest, at which Python would fail when it ends."""
    with suppress(OSError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):  # a stream without a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())


def run_script(path: str) -> None:
    """Carry out the command that a script is named after, and exit with its code."""
    run_main(lambda argv: call(Path(path).stem, argv))


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Prints the description as it is, and the default of each option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        has_default = action.default not in (None, False, [], argparse.SUPPRESS)
        return super()._get_help_string(action) if has_default else action.help


class _Parser(argparse.ArgumentParser):
    """Refuses options in one line, without a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise FedlogitError(f"{message}; {self.prog} --help lists the options")


def _version() -> str:
    """Return what ``--version`` prints: the code version and commit that a run would record."""
    facts = commit_facts()
    commit = [f"commit {facts['commit']}"] if facts else []
    changed = ["uncommitted changes"] if facts.get("uncommitted") else []
    details = ", ".join([f"code_version {code_version()}", *commit, *changed])
    return f"fedlogit {fedlogit.__version__} ({details})"


def _overview() -> str:
    """Return what ``--help`` prints: a line per command, read without importing them."""
    width = max(map(len, command_names()))
    lines = [f"  {name:{width}}  {first_line(name)}" for name in command_names()]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND …",
            "",
            *lines,
            "",
            f"{PROGRAM} COMMAND --help lists a command's options.",
            f"{PROGRAM} --version says which code this is.",
        ]
    )
