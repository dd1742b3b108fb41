"""Start Python scripts without their imports: one process imports the libraries, then forks.

Importing PyTorch or pandas takes seconds, a script on digits less than one, and a whole workflow is
a hundred scripts. A `WarmPython` is a folder with a program called ``python`` that hands its
arguments, folder, environment and open files to a waiting process; that one forks, and the child
runs the script as ``python`` would. A script whose ``python`` is killed is killed, too, but gets no
other signal; scripts that are to be stopped otherwise get the real one.
"""

from __future__ import annotations

import atexit
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pkgutil import walk_packages

# What scripts and Snakemake import, beside all modules of the library, and what would else be
# imported only when it is used.
LIBRARIES = ("torch", "numpy", "scipy.stats", "pandas", "seaborn", "matplotlib.pyplot", "pydantic",
             "safetensors.torch", "yaml", "sklearn.datasets", "sklearn.ensemble", "snakemake.cli",
             "sympy")  # fmt: skip
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
    address, program = folder / "socket", folder / "python"
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_WAIT_POLICY": "passive"}
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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            caller, _ = listener.accept()
            if os.fork() == 0:
                break
            caller.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(caller, 4, 3)
    said = b""
    while len(said) < int.from_bytes(size, "big"):
        said += caller.recv(1 << 16)
    script = os.fork()
    if script:
        status = _status(script, caller)
        caller.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())
        os._exit(0)
    os.setsid()  # so that it can be killed with all that it starts
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    caller.close()
    arguments, folder, environment = json.loads(said)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.executable, *sys.argv = arguments  # so that Snakemake's jobs start warm as well


def _status(script: int, caller: socket.socket) -> int:
    """Wait for a script's end; kill it, and what it started, if its caller is killed before."""
    ended = os.pidfd_open(script)
    ready, _, _ = select.select([ended, caller], [], [])
    if ended not in ready:
        with suppress(ProcessLookupError):
            os.killpg(script, signal.SIGKILL)
    _, status = os.waitpid(script, 0)
    if caller in ready:
        os._exit(0)  # there is nobody to tell
    return status


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
    sys.path.remove(str(ROOT))
    _serve(sys.argv[1])
    status = _run()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
