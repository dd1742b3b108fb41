"""Files that are made from others: write those that differ, or only say which they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from fedlogit.results.formatting import write_text

__all__ = ["checking_parser", "write_or_check"]


def checking_parser(about: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script that writes such files, or with ``--check`` compares them.

    Args:
        about: The script's docstring.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 on a difference"
    )
    return parser


def write_or_check(texts: Mapping[Path, str], why: str, *, check: bool) -> int:
    """Write the files whose text is another; print each.

    Args:
        texts: The text that each file should have.
        why: What is said of a file that differs, after its name.
        check: Write nothing, and say which files differ.

    Returns:
        The exit code: 1 if a check found any.
    """
    stale = [path for path, text in texts.items() if _text(path) != text.rstrip("\n") + "\n"]
    for path in stale:
        if check:
            print(f"{path} {why}", file=sys.stderr)
        else:
            print(write_text(path, texts[path]))
    return int(check and bool(stale))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
