"""Archives that unpack to far more than a data set has are refused before that is in memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.refusals import refused

from fedlogit.data import card, load_arrays
from fedlogit.data.decode import decode
from fedlogit.data.raw import Raw
from fedlogit.data.tokens import load_tokens, token_files
from fedlogit.files import load_npz
from fedlogit.partition import Split

SIZE = 1 << 28  # of a bomb; MNIST has 55e6 bytes
MNIST = card("mnist")
IMAGES = "train-images-idx3-ubyte"


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Expect that no more is allocated at any time, by Python or NumPy."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def npy(size: int) -> bytes:
    """Return the header of a row of so many bytes."""
    header = io.BytesIO()
    description = {"descr": "|u1", "fortran_order": False, "shape": (size,)}
    np.lib.format.write_array_header_1_0(header, description)
    return header.getvalue()


@pytest.fixture(scope="module")
def bomb(tmp_path_factory) -> Path:
    """An ``.npz`` of a few hundred kilobytes that unpacks to `SIZE` zeros."""
    path = tmp_path_factory.mktemp("bomb") / "mnist.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x_train.npy", npy(SIZE) + bytes(SIZE))
    assert path.stat().st_size < SIZE / 100
    return path


def test_a_prepared_data_set(bomb):
    with refused("mnist.npz is refused: it unpacks to 268,435,"), memory_below(1 << 22):
        load_arrays("mnist", bomb.parent)


def test_a_mirrors_data_set(bomb):
    with refused("what it should be has at most 72,"), memory_below(1 << 22):
        decode("npz", Raw(bomb.parent), MNIST)


def test_tokens(bomb, tmp_path):
    path, tokenizer = token_files(tmp_path, "docs", 300)
    path.write_bytes(bomb.read_bytes())
    tokenizer.touch()
    texts = {split: np.zeros(1000, np.uint8) for split in ("train", "valid", "test")}
    with refused("what it should be has at most 1,060,576"), memory_below(1 << 22):
        load_tokens("docs", tmp_path, 300, texts)


@pytest.mark.parametrize("read", [load_npz, Split.load])
def test_what_is_not_a_data_set_has_a_limit_too(tmp_path, read):
    """The directory at the archive's end says 4 GiB - 2; what is there does not matter."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(2):
            archive.writestr(f"{i}.npy", npy(1) + b"1")
    path.write_bytes(with_size(path.read_bytes(), 0xFFFFFFFE))
    with refused("x.npz is refused: it unpacks to 8,589,934,588 bytes"):
        read(path)


def with_size(archive: bytes, size: int) -> bytes:
    """Return an archive whose directory says that each member unpacks to so many bytes."""
    changed, start = bytearray(archive), archive.find(b"PK\1\2")
    while start >= 0:
        changed[start + 24 : start + 28] = size.to_bytes(4, "little")
        start = archive.find(b"PK\1\2", start + 1)
    return bytes(changed)


def test_a_directory_that_says_less_than_is_there(bomb, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(with_size(bomb.read_bytes(), 1000))
    with refused("x.npz is not a readable .npz archive: Bad CRC-32"), memory_below(1 << 22):
        load_npz(path)


def test_an_array_that_says_more_than_is_there(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x_train.npy", npy(1 << 40) + b"1")
    with refused("x_train is not an array of the 129 bytes that the arch"), memory_below(1 << 22):
        load_npz(tmp_path / "x.npz")


def packed(folder: Path, how: str) -> None:
    """Put MNIST's images into a folder: `SIZE` zeros, packed in one of the ways."""
    single = gzip.compress(bytes(SIZE), 1)
    if how == "gz":
        (folder / f"{IMAGES}.gz").write_bytes(single)
    elif how == "tgz":
        info = tarfile.TarInfo(IMAGES)
        info.size = SIZE
        with tarfile.open(folder / "x.tgz", "w:gz", compresslevel=1) as tar:
            tar.addfile(info, io.BytesIO(bytes(SIZE)))
    else:
        with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            name, content = (IMAGES, bytes(SIZE)) if how == "zip" else (f"{IMAGES}.gz", single)
            archive.writestr(name, content)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["gz", "tgz", "zip", "gz in zip"])
def test_a_raw_file_is_read_up_to_what_the_data_set_has(tmp_path, how):
    packed(tmp_path, how)
    most = f"{MNIST.limit:,}"
    with refused(f"unpack to more than {most} bytes"), memory_below(2 * MNIST.limit):
        decode("idx", Raw(tmp_path), MNIST)


def test_several_files_share_the_limit(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(bytes(60)))
    assert Raw(tmp_path).read(["a", "b"], 120) == {"a": bytes(60), "b": bytes(60)}
    with refused("a, b unpack to more than 119 bytes"):
        Raw(tmp_path).read(["a", "b"], 119)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_python_unpacks_without_a_bound(tmp_path, method):
    for name in ("x.zip", "x.npz"):
        with zipfile.ZipFile(tmp_path / name, "w", method) as archive:
            archive.writestr("wanted", bytes(1000))
    with refused("x.zip is refused: its member 'wanted' is not deflated"):
        Raw(tmp_path).read(["wanted"])
    with refused("x.npz is refused: its member 'wanted' is not deflated"):
        load_npz(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (tarfile.XHDTYPE, "it has a name or attributes of 268,435,456 bytes"),
        (tarfile.GNUTYPE_LONGNAME, "it has a name or attributes of 268,435,456 bytes"),
        (tarfile.GNUTYPE_SPARSE, "its member 'x' is sparse"),
    ],
)
def test_headers_of_a_tar_that_would_be_read_whole(tmp_path, kind, said):
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, SIZE
    with gzip.open(tmp_path / "x.tgz", "wb", compresslevel=1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(SIZE))
    with refused(f"x.tgz is damaged: {said}"), memory_below(1 << 22):
        Raw(tmp_path).read(["wanted"])


def test_no_more_images_are_taken_than_there_are(tmp_path):
    (tmp_path / "unlabeled_X.bin").write_bytes(bytes(3 * 96 * 96) * 3)
    with refused("unlabeled_X.bin has more than 2 images"):
        decode("stl10_binary", Raw(tmp_path), replace(card("stl10"), train=2))
