"""Print the shell completion for ``fedlogit``.

    python -m fedlogit completion bash > ~/.local/share/bash-completion/completions/fedlogit
    python -m fedlogit completion zsh > ~/.zfunc/_fedlogit

It completes the program ``fedlogit``, which `pip install -e .` installs. Without it, define
fedlogit() { python -m fedlogit "$@"; }
"""

from __future__ import annotations

import argparse

import shtab

from fedlogit.commands._registry import command_names, first_line, load
from fedlogit.errors import FedlogitError

_SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    print(shtab.complete(every_command(), shell=args.shell))


def every_command() -> argparse.ArgumentParser:
    """Return a parser of all commands; those whose packages are not here have no options."""
    parser = argparse.ArgumentParser("fedlogit")
    chosen = parser.add_subparsers(dest="command")
    for name in command_names():
        own = chosen.add_parser(name, help=first_line(name))
        try:
            load(name).add_arguments(own)
        except FedlogitError:
            continue
    return parser
