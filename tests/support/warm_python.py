"""Start Python scripts without their imports: one process imports the libraries, then forks.

Importing PyTorch or pandas takes seconds, a script on digits less than one, and a whole workflow is
a hundred scripts. A `WarmPython` is a folder with a program called ``python`` that hands its
arguments, folder, environment and open files to a waiting process; that one forks, and the child
runs the script as ``python`` would. A script whose ``python`` is killed is killed, too, but gets no
other signal; scripts that are to be stopped otherwise get the real one.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory

# What scripts and Snakemake import, beside all modules of the library, and what would else be
# imported only when it is used.
LIBRARIES = ("torch", "numpy", "scipy.stats", "pandas", "seaborn", "matplotlib.pyplot", "pydantic",
             "safetensors.torch", "yaml", "sklearn.datasets", "sklearn.ensemble", "snakemake.cli",
             "snakemake.report", "smart_open", "sympy")  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]

CLIENT = """#!{python} -SEs
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
said = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(said).to_bytes(4, "big")], [0, 1, 2])
server.sendall(said)
sys.exit(int(server.recv(16) or 1))
"""


@contextmanager
def warm_python(folder: Path) -> Iterator[Path]:
    """Yield the path of the program; its server ends with the context."""
    program = folder / "python"
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_WAIT_POLICY": "passive"}
    # The path of a socket has at most some hundred letters, wherever temporary folders are.
    with TemporaryDirectory(prefix="warm-python-", dir="/tmp") as short:
        address = Path(short, "socket")
        server = subprocess.Popen(
            [sys.executable, __file__, str(address)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        program.write_text(CLIENT.format(python=sys.executable, address=str(address)))
        program.chmod(0o755)
        try:
            yield program
        finally:
            server.kill()
            server.wait()


def _modules(package: str) -> list[str]:
    """Return the names of all modules of a package that can be imported without running."""
    paths = __import__(package).__path__
    found = (module.name for module in walk_packages(paths, f"{package}."))
    return [name for name in found if not name.endswith("__main__")]


def _draw() -> None:
    """Save a figure, so that Matplotlib has found its fonts and imported what writes them."""
    figure = sys.modules["matplotlib.pyplot"].figure()
    figure.text(0, 0, "text")
    for kind in ("pdf", "png"):
        figure.savefig(io.BytesIO(), format=kind)
    sys.modules["matplotlib.pyplot"].close(figure)


def _serve(address: str) -> None:
    """Fork for every caller; returns in the child that is to run the caller's script."""
    callers: dict[int, tuple[int, socket.socket]] = {}  # by pidfd: the script, who waits for it
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            waiting = {caller.fileno(): ended for ended, (_, caller) in callers.items()}
            ready, _, _ = select.select([listener, *callers, *waiting], [], [])
            for ended in {waiting.get(file, file) for file in ready if file is not listener}:
                _end(ended, *callers.pop(ended))
            if listener in ready:
                caller, _ = listener.accept()
                files, said = _received(caller)
                if not said:  # it was killed before it had said all
                    _close([caller.detach(), *files])
                    continue
                if script := os.fork():
                    callers[os.pidfd_open(script)] = (script, caller)
                    _close(files)
                    continue
                break
    os.setsid()  # so that it can be killed with all that it starts
    _close([caller.detach(), *callers, *(other.detach() for _, other in callers.values())])
    for target, file in enumerate(files):
        os.dup2(file, target)
    _close(files)
    arguments, folder, environment = json.loads(said)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.executable, *sys.argv = arguments  # so that Snakemake's jobs start warm as well


def _received(caller: socket.socket) -> tuple[list[int], bytes]:
    """Return a caller's standard files, and what it said about the script: nothing if not all."""
    size, files, _, _ = socket.recv_fds(caller, 4, 3)
    said = b""
    while len(said) < int.from_bytes(size, "big"):
        part = caller.recv(1 << 16)
        if not part:
            return files, b""
        said += part
    return files, said


def _close(files: Iterable[int]) -> None:
    for file in files:
        os.close(file)


def _end(ended: int, script: int, caller: socket.socket) -> None:
    """Tell a caller how its script ended; kill that, and what it started, if the caller is gone."""
    if not select.select([ended], [], [], 0)[0]:
        try:
            os.killpg(script, signal.SIGKILL)
        except ProcessLookupError:  # it has no group of its own yet
            os.kill(script, signal.SIGKILL)
    _, status = os.waitpid(script, 0)
    os.close(ended)
    with caller, suppress(OSError):  # there may be nobody to tell
        caller.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())


def _run() -> int:
    """Run what ``sys.argv`` names, as ``python`` would; return its exit status."""
    script, *_ = sys.argv
    sys.path[1:1] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    try:
        if script == "-m":
            del sys.argv[0]
            sys.path[0] = str(Path.cwd())
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(script).resolve().parent)
            runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        if not isinstance(stop.code, str):
            return int(stop.code or 0)
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for library in (*LIBRARIES, *_modules("fedlogit")):
        __import__(library)
    _draw()
    for finalizer in weakref.finalize._registry:  # PyTorch's, which take as long as a script
        finalizer.atexit = False
    sys.path.remove(str(ROOT))
    gc.collect()
    gc.freeze()  # what was imported is no garbage, and a script that looked for some would copy it
    _serve(sys.argv[1])
    status = _run()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
