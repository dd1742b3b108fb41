"""Snakemake's messages in short: runs done of all, the time left, and each step in one line."""

from __future__ import annotations

import logging
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from textwrap import dedent
from typing import TextIO

from fedlogit.workflow.step_errors import no_such_target

__all__ = ["SnakemakeProgress", "duration", "shorten_messages"]

_TRAINING = ("train", "train_clients")
_CHATTER = ("job_started", "job_info", "group_info", "shellcmd")
_SELECTING = "Select jobs to execute..."
_STOPPING = "Terminating processes on user request"
# What rules/common.smk raises for a user's mistake: by itself while the workflow is read, or inside
# Snakemake's InputFunctionException once a file is asked for.
_MISTAKE = re.compile(
    r"^ *UserMistake\b[^\n]*:\n(.+?)(?=\nWildcards:|\n  File |\Z)", re.MULTILINE | re.DOTALL
)
_NO_RULE = re.compile(r"^MissingRuleException:\nNo rule to produce (.+) \(if you use", re.MULTILINE)


def _ignore_once(*_: object) -> None:
    """Let a second Ctrl-C pass: jobs get it, too, and it would interrupt the wait for them.

    A third one ends Snakemake, in case that a job, or a cluster's command to cancel it, hangs.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


class SnakemakeProgress(logging.Filter):
    """A line per finished step, and no paragraph about each job.

    A user's mistake is told by itself, without where it was found; other errors pass as they are. A
    step that trains counts runs and tells the time left, by the mean time of the runs so far. On a
    terminal there is one line, written again and again.

    Args:
        all_messages: Let all messages of Snakemake pass, too (``snakemake -p``).
        terminal: The stream of one line; None writes each line as a message.
        clock: Seconds, of any beginning.
        targets: Gives what may be asked for, to suggest the nearest.
        others: Gives the papers that could be, if they were chosen.
    """

    def __init__(
        self,
        all_messages: bool = False,
        terminal: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        targets: Callable[[], Iterable[str]] = tuple,
        others: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        super().__init__()
        self._targets, self._others = targets, others
        self._all_messages, self._terminal, self._clock = all_messages, terminal, clock
        self._names: dict[int, str] = {}
        self._finished: list[str] = []
        self._runs = self._trained = 0
        self._begin = clock()
        self._line_open = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether Snakemake prints a message; its text may be shortened."""
        facts = vars(record)  # Snakemake's own stand beside those of logging
        event = str(facts.get("event") or "")
        if event == "run_info":
            self._count_runs(facts["stats"])
        elif event == "job_info":
            self._names[facts["jobid"]] = " ".join(
                [facts["rule_name"], *facts["wildcards"].values()]
            )
        elif event == "job_finished":
            self._finished.append(self._names.get(facts["job_id"], f"job {facts['job_id']}"))
            return False
        elif event == "progress":
            return self._report_steps(record)
        elif event == "error" and (mistake := _MISTAKE.search(str(record.msg))):
            record.msg = f"error: {dedent(mistake[1])}"
        elif event == "error" and (missing := _NO_RULE.search(str(record.msg))):
            said = no_such_target(missing[1], self._targets(), self._others())
            record.msg = f"error: {said}"
        elif str(record.msg).startswith(_STOPPING):
            with suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGINT, _ignore_once)
        if event in _CHATTER or record.msg == _SELECTING:
            return self._all_messages
        self._end_line()
        return True

    def _count_runs(self, stats: Mapping[str, int]) -> None:
        """Note how many runs there are to train, and when that began."""
        self._runs = sum(stats.get(rule, 0) for rule in _TRAINING)
        self._trained, self._begin = 0, self._clock()

    def _report_steps(self, record: logging.LogRecord) -> bool:
        """Make a line of the steps that finished since the last one."""
        step = "Step {done} of {total}".format_map(vars(record))
        lines = [self._step_line(name, step) for name in self._finished] or [step]
        self._finished = []
        if self._terminal is not None:
            self._terminal.write(f"\r\033[K{lines[-1]}")
            self._terminal.flush()
            self._line_open = True
            return False
        record.event, record.msg = None, "\n".join(lines)
        return True

    def _step_line(self, name: str, step: str) -> str:
        rule, _, what = name.partition(" ")
        if rule not in _TRAINING or self._trained >= self._runs:
            return f"{step}: {name}"
        self._trained += 1
        left = self._runs - self._trained
        seconds = (self._clock() - self._begin) / self._trained * left
        time_left = f", about {duration(seconds)} left" if left else ""
        clients = "clients of " if rule == "train_clients" else ""
        return f"Run {self._trained} of {self._runs}{time_left}: {clients}{what}"

    def _end_line(self) -> None:
        """Begin a new line on a terminal whose line is not ended."""
        if self._terminal is not None and self._line_open:
            self._terminal.write("\n")
            self._line_open = False


def duration(seconds: float) -> str:
    """Return a time as people say it: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def shorten_messages(
    logger: logging.Logger,
    all_messages: bool,
    targets: Callable[[], Iterable[str]] = tuple,
    others: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Shorten the messages of Snakemake's logger; once, also where the workflow is read again."""
    for old in [f for f in logger.filters if type(f).__name__ == SnakemakeProgress.__name__]:
        logger.removeFilter(old)
    terminal = sys.stderr if sys.stderr.isatty() else None
    logger.addFilter(SnakemakeProgress(all_messages, terminal, targets=targets, others=others))
