"""Members of archives are found by name, in memory, and never written anywhere."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from fedlogit.data.raw import Raw
from fedlogit.errors import DataError


def tar(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def test_plain_gzipped_tarred_and_zipped_files_are_read_alike(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"2"))
    tar(tmp_path / "x.tgz", [("deep/in/c", b"3"), ("d.gz", gzip.compress(b"4"))])
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as archive:
        archive.writestr("gzip/e.gz", gzip.compress(b"5"))
    found = Raw(tmp_path).read(["a", "b", "c", "d", "e"])
    assert found == {"a": b"1", "b": b"2", "c": b"3", "d": b"4", "e": b"5"}


@pytest.mark.parametrize("name", ["../../escaped", "/absolute", "a/../../b"])
def test_a_climbing_path_is_refused(tmp_path, name):
    folder = tmp_path / "raw"
    folder.mkdir()
    tar(folder / "x.tar.gz", [("./wanted", b"3"), (name, b"1")])
    with pytest.raises(DataError, match=rf"^x.tar.gz is refused: its member '{name}' leads out"):
        Raw(folder).read(["wanted"])
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["raw", "x.tar.gz"]


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    tar(tmp_path / "x.tgz", [("wanted", None)])
    with pytest.raises(DataError, match=r"wanted not in x\.tgz"):
        Raw(tmp_path).read(["wanted"])


@pytest.mark.parametrize("name", ["train.gz", "x.tgz", "y.zip"])
def test_a_truncated_file_is_named(tmp_path, name):
    path = tmp_path / name
    noise = np.random.default_rng(0).bytes(40_000)
    if name == "x.tgz":
        tar(path, [("train", noise)])
    elif name == "y.zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("train", noise)
    else:
        path.write_bytes(gzip.compress(noise))
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(DataError, match=f"{name} is damaged"):
        Raw(tmp_path).read(["train"])
