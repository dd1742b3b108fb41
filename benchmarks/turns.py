"""Plays turns: a process for each contestant, one round each, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from benchmarks.contestants import HERE, Contestant

__all__ = ["Played", "Player", "play"]

SAMPLE_SECONDS = 0.1
ANSWER_SECONDS = 3600.0
"""Who takes longer for a turn is stuck: the longest measured one took under a minute."""


@dataclass
class Played:
    """What a contestant did.

    Attributes:
        contestant: Who.
        seconds: Of each turn that counts.
        accuracy: After the last one.
        first: Seconds from the command line to the answer to the first, which does not count.
        memory: Most bytes of its tree of processes at a time, shared pages divided (PSS).
        reason: Why there are no numbers.
    """

    contestant: Contestant
    seconds: list[float] = field(default_factory=list)
    accuracy: float = float("nan")
    first: float = float("nan")
    memory: int = 0
    reason: str = ""


class Player:
    """A contestant's process, which waits for its turns."""

    def __init__(self, contestant: Contestant) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            contestant.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, env=_environment(),
        )  # fmt: skip

    def turn(self) -> dict[str, float]:
        """Let it play a round.

        Raises:
            RuntimeError: with the last line it printed, if it did not answer, or not in time.
        """
        limit = threading.Timer(ANSWER_SECONDS, self._kill)
        limit.start()
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            if limit.finished.is_set():
                raise RuntimeError(f"no answer in {ANSWER_SECONDS:g} s") from None
            self._errors.seek(0)
            last = self._errors.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(last[-1] if last else "it ended without a word") from None
        finally:
            limit.cancel()

    def memory(self) -> int:
        """Return bytes of its processes now; what they share is divided among them."""
        total = 0
        try:
            root = psutil.Process(self._process.pid)
            for process in [root, *root.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue  # it has just ended
        except psutil.Error:
            pass
        return total

    def close(self) -> None:
        """End it, and the processes that it started."""
        self._kill()
        self._errors.close()

    def _kill(self) -> None:
        tree: list[psutil.Process] = []
        with suppress(psutil.Error):
            tree = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        for process in tree:
            with suppress(psutil.Error):
                process.kill()


def play(
    everybody: Sequence[Contestant], turns: int, said: Callable[[str], None] = print
) -> list[Played]:
    """Play one turn that does not count, then `turns` that do; everybody once in each.

    Memory is taken in the first alone, so that looking costs no counted time. Who fails has a
    reason instead of numbers, and plays no more.
    """
    played = [Played(c, reason=c.reason) for c in everybody]
    players: dict[int, Player] = {}
    try:
        for turn in range(turns + 1):
            for i, one in enumerate(played):
                if one.reason:
                    continue
                try:
                    if turn == 0:
                        _first(one, players, i)
                    else:
                        answer = players[i].turn()
                        one.seconds.append(answer["seconds"])
                        one.accuracy = answer["accuracy"]
                except RuntimeError as error:
                    one.reason = f"failed: {error}"
                    one.seconds.clear()
                last = one.reason or f"{one.seconds[-1] if turn else one.first:.3f} s"
                said(f"turn {turn}, {one.contestant.name}: {last}")
    finally:
        for player in players.values():
            player.close()
    return played


def _first(one: Played, players: dict[int, Player], i: int) -> None:
    begin = time.perf_counter()
    players[i] = Player(one.contestant)
    done = threading.Event()
    most: list[int] = [0]

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            most.append(players[i].memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        one.accuracy = players[i].turn()["accuracy"]
    finally:
        done.set()
        watcher.join()
    one.first, one.memory = time.perf_counter() - begin, max(most)


def _environment() -> dict[str, str]:
    """Return what everybody gets: threads that sleep while they wait, and the protocol."""
    root, peers = HERE.parent, HERE / "peers"
    return os.environ | {
        "OMP_WAIT_POLICY": "passive",
        "PYTHONPATH": os.pathsep.join(map(str, (root, peers, peers / "flower"))),
    }
