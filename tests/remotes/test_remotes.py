"""A lab's own remote over ssh and S3, against real servers on loopback; `make remotes-test`."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.calls import ROOT, RUNS, dvc, script

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
MOTO = os.environ.get("MOTO_SERVER") or shutil.which("moto_server")
DATA = Path("data")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int, server: subprocess.Popen) -> None:
    """Wait until a server listens; fail if it ended or takes a minute."""
    for _ in range(300):
        assert server.poll() is None, "the server ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on port {port}")


@pytest.fixture
def ssh(tmp_path) -> Iterator[dict[str, str]]:
    """A real sshd that lets only a key made for this test in; yields a remote's settings."""
    if SSHD is None:
        pytest.skip("no sshd here; apt-get install openssh-server")
    folder = tmp_path / "ssh"
    (folder / "store").mkdir(parents=True)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    port = free_port()
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile {folder}/pid\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPasswordAuthentication no\n"
        "Subsystem sftp internal-sftp\n"
    )
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd wants it when root starts it
    server = subprocess.Popen([SSHD, "-D", "-f", str(folder / "sshd_config")])
    try:
        wait_for(port, server)
        yield {
            "url": f"ssh://{getpass.getuser()}@127.0.0.1:{port}{folder}/store",
            "keyfile": str(folder / "user"),
        }
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def s3(tmp_path) -> Iterator[dict[str, str]]:
    """An S3 server with an empty bucket; yields a remote's settings."""
    if MOTO is None:
        pytest.skip("no S3 server here; make remotes-test installs one")
    port = free_port()
    server = subprocess.Popen(
        [MOTO, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, server)
        address = f"http://127.0.0.1:{port}"
        bucket = urllib.request.Request(f"{address}/fedlogit", method="PUT")
        with urllib.request.urlopen(bucket) as answer:
            assert answer.status == 200
        yield {
            "url": "s3://fedlogit/cache",
            "endpointurl": address,
            "access_key_id": "test",
            "secret_access_key": "test",
        }
    finally:
        server.terminate()
        server.wait()


def add_remote(settings: dict[str, str], folder: Path | None = None) -> None:
    """Add a remote `lab` as docs/cache.md says: what is secret stays in .dvc/config.local."""
    rest = dict(settings)
    steps = [("remote", "add", "--local", "lab", rest.pop("url"))]
    steps += [("remote", "modify", "--local", "lab", key, value) for key, value in rest.items()]
    for step in steps:
        done = dvc(*step, cwd=folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["ssh", "s3"])
def test_runs_and_data_travel(kind, request, project, finished: Callable[..., Path]):
    settings = request.getfixturevalue(kind)
    # Runs: published to the lab's remote, pulled where neither cache nor repository has them.
    folder = finished()
    add_remote(settings)
    done = script("publish", "--remote", "lab")
    assert done.returncode == 0, done.stderr
    assert not list(Path("dvc-remote").iterdir())
    before = {path: path.read_bytes() for path in folder.glob("[!.]*")}
    for pull in (dvc, script):
        shutil.rmtree(RUNS)
        shutil.rmtree(".dvc/cache")
        done = pull("pull", "--remote", "lab")
        assert done.returncode == 0, done.stderr
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    # Data sets: a project of its own below it.
    shutil.copytree(ROOT / "data" / ".dvc", DATA / ".dvc", ignore=shutil.ignore_patterns("cache"))
    config = DATA / ".dvc" / "config"
    config.write_text(config.read_text().replace("[core]", "[core]\n    no_scm = true"))
    add_remote(settings, DATA)
    (DATA / "prepared").mkdir()
    (DATA / "prepared" / "tiny.npz").write_bytes(b"arrays")
    (DATA / "tiny.dvc").write_text("outs:\n- path: prepared/tiny.npz\n")
    (DATA / "absent.dvc").write_text(
        f"outs:\n- path: prepared/absent.npz\n  md5: {'0' * 32}\n  size: 1\n  hash: md5\n"
    )
    for step in (("commit", "--force", "tiny.dvc"), ("push", "--remote", "lab", "tiny.dvc")):
        done = dvc(*step, cwd=DATA)
        assert done.returncode == 0, done.stderr
    shutil.rmtree(DATA / "prepared")
    shutil.rmtree(DATA / ".dvc" / "cache")
    done = dvc("pull", "--remote", "lab", "tiny.dvc", cwd=DATA)
    assert done.returncode == 0, done.stderr
    assert (DATA / "prepared" / "tiny.npz").read_bytes() == b"arrays"


@pytest.mark.parametrize(
    "url", ["ssh://127.0.0.1:{port}/store", "s3://fedlogit/cache"], ids=["ssh", "s3"]
)
def test_a_remote_where_nobody_answers_is_told_once(url, published):
    port = free_port()
    settings = {"url": url.format(port=port)}
    if url.startswith("s3"):
        settings |= {"endpointurl": f"http://127.0.0.1:{port}"}
        settings |= {"access_key_id": "test", "secret_access_key": "test"}
    add_remote(settings)
    shutil.rmtree(RUNS)
    shutil.rmtree(".dvc/cache")
    done = script("pull", "--remote", "lab")
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == len(published)
    assert all("nothing could be fetched from remote lab (" in line for line in errors), done.stderr
    assert not RUNS.exists() or not any(RUNS.iterdir())
