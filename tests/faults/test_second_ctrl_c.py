"""A second Ctrl-C, which comes while the process ends: no traceback, and the shell's code 130."""

import signal
import subprocess
import sys

import pytest

# A callback of Python's end sends the second signal, as libraries' callbacks take long enough for.
AT_EXIT = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
WHILE_IT_RUNS = """
from fedlogit.cli import run_main
def main(argv): os.kill(os.getpid(), signal.SIGINT)
run_main(main)
"""
AFTER_IT_RAN = """
from fedlogit.cli import run_main
run_main(lambda argv: None)
"""
WHILE_IT_IS_IMPORTED = """
import runpy, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "fedlogit.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
runpy.run_module("fedlogit", run_name="__main__")
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that heeds Ctrl-C, as one in the foreground does."""
    return subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WHILE_IT_RUNS, "interrupted; run the same command again to resume\n"),
        (WHILE_IT_IS_IMPORTED, "interrupted\n"),
        (AFTER_IT_RAN, ""),
    ],
)
def test_an_interrupt_while_python_ends_has_no_traceback(code, said):
    done = run(AT_EXIT + code)
    assert done.stderr == said
    assert done.returncode == -signal.SIGINT


def test_a_process_in_the_background_goes_on_ignoring_ctrl_c():
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = run(ignored + AT_EXIT + AFTER_IT_RAN)
    assert (done.returncode, done.stderr) == (0, "")
