"""Each raw format against bytes written by hand."""

import io
import json
import struct
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fedlogit.data import card
from fedlogit.data.decode import decode, read_idx
from fedlogit.data.raw import Raw
from fedlogit.errors import DataError, FedlogitError

RGB = replace(card("cifar10"), name="rgb")


def test_idx_is_read_as_its_header_says():
    content = bytes((0, 0, 8, 2)) + struct.pack(">2I", 2, 3) + bytes(range(6))
    assert read_idx(content, "f", 2).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file"),
        (bytes((0, 0, 8, 1)), "not an idx file"),
        (bytes((0, 0, 13, 1)) + struct.pack(">I", 1) + b"1234", "not an idx file"),
        (bytes((0, 0, 8, 1)) + struct.pack(">I", 3) + b"12", "has 10 bytes; its header says 11"),
        (bytes((0, 0, 8, 1)) + struct.pack(">I", 1) + b"12", "has 10 bytes; its header says 9"),
        (bytes((0, 0, 8, 1)) + b"\xff" * 4 + b"12", "header says 4294967303"),
    ],
)
def test_a_wrong_idx_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        read_idx(content, "f", 1)


def test_emnist_is_made_upright(tmp_path):
    image = np.array([[[1, 2], [3, 4]]])
    head = bytes((0, 0, 8, 3)) + struct.pack(">3I", 1, 2, 2)
    label = bytes((0, 0, 8, 1)) + struct.pack(">I", 1) + bytes([7])
    for split in ("train", "test"):
        prefix = tmp_path / f"emnist-balanced-{split}"
        prefix.with_name(f"{prefix.name}-images-idx3-ubyte").write_bytes(head + bytes([1, 2, 3, 4]))
        prefix.with_name(f"{prefix.name}-labels-idx1-ubyte").write_bytes(label)
    arrays = decode("emnist_idx", Raw(tmp_path), card("emnist_balanced"))
    assert arrays["x_train"][..., 0].tolist() == image.transpose(0, 2, 1).tolist()
    assert arrays["y_test"].tolist() == [7]


def planes(red, green, blue):
    """Return the 3072 bytes of an image: a plane for each colour."""
    return bytes([red]) * 1024 + bytes([green]) * 1024 + bytes([blue]) * 1024


def test_cifar_binaries_have_labels_first_and_planes_after(tmp_path):
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}.bin").write_bytes(bytes([i]) + planes(i, 10 + i, 20 + i))
    (tmp_path / "test_batch.bin").write_bytes(bytes([9]) + planes(1, 2, 3))
    arrays = decode("cifar10_binary", Raw(tmp_path), RGB)
    assert arrays["y_train"].tolist() == [1, 2, 3, 4, 5]
    assert arrays["x_train"].shape == (5, 32, 32, 3)
    assert arrays["x_train"][2, 31, 0].tolist() == [3, 13, 23]
    # CIFAR-100 has a coarse label and then the fine one, which is the class.
    for split in ("train", "test"):
        (tmp_path / f"{split}.bin").write_bytes(bytes([4, 77]) + planes(1, 2, 3))
    arrays = decode("cifar100_binary", Raw(tmp_path), card("cifar100"))
    assert arrays["y_train"].tolist() == [77]
    assert arrays["x_test"][0, 5, 6].tolist() == [1, 2, 3]


def test_cifar_of_a_wrong_length_is_refused(tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"{split}.bin").write_bytes(bytes([4, 77]) + planes(1, 2, 3)[:-1])
    with pytest.raises(DataError, match="no multiple of 3074"):
        decode("cifar100_binary", Raw(tmp_path), card("cifar100"))


def png_package(folder, width=1024):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 2, width, 3), dtype=np.uint8)
    names = [f"data_batch_{i}.png" for i in range(1, 6)] + ["test_batch.png"]
    for sheet, name in zip(pixels, names, strict=True):
        buffer = io.BytesIO()
        Image.fromarray(sheet).save(buffer, "PNG")
        (folder / name).write_bytes(buffer.getvalue())
    (folder / "train_lables.json").write_text(json.dumps(list(range(10))))
    (folder / "test_lables.json").write_text("[1, 2]")
    return pixels


def test_png_sheets_have_an_image_per_row(tmp_path):
    pixels = png_package(tmp_path)
    arrays = decode("cifar10_png", Raw(tmp_path), RGB)
    # Row 1 of sheet 3 is image 2 * 2 + 1; its pixel 33 is row 1, column 1.
    assert arrays["x_train"][5, 1, 1].tolist() == pixels[2, 1, 33].tolist()
    assert arrays["y_train"].tolist() == list(range(10))
    assert arrays["x_test"].shape == (2, 32, 32, 3)


def test_wrong_png_packages_are_refused(tmp_path):
    png_package(tmp_path, width=1000)
    with pytest.raises(DataError, match=r"data_batch_1\.png is RGB \(1000, 2\)"):
        decode("cifar10_png", Raw(tmp_path), RGB)
    png_package(tmp_path)
    (tmp_path / "test_lables.json").write_text('{"a": 1}')
    with pytest.raises(DataError, match="not a JSON list of labels"):
        decode("cifar10_png", Raw(tmp_path), RGB)
    (tmp_path / "test_batch.png").write_bytes(b"not a picture")
    with pytest.raises(DataError, match="test_batch"):
        decode("cifar10_png", Raw(tmp_path), RGB)


def test_a_png_sheet_of_more_images_than_there_are_is_refused(tmp_path):
    png_package(tmp_path)
    with pytest.raises(DataError, match=r"test_batch\.png has 2 images; there are 1"):
        decode("cifar10_png", Raw(tmp_path), replace(RGB, test=1))


def test_stl10_is_stored_by_columns_and_shrunk(tmp_path):
    image = np.zeros((3, 96, 96), np.uint8)
    image[0, :48] = 200  # colour, column, row: the left half is red
    (tmp_path / "unlabeled_X.bin").write_bytes(image.tobytes() * 2)
    x = decode("stl10_binary", Raw(tmp_path), card("stl10"))["x_train"]
    assert x.shape == (2, 32, 32, 3)
    assert x[1, 3, 4].tolist() == [200, 0, 0]
    assert x[1, 3, 28].tolist() == [0, 0, 0]
    # A triangle of three pixels to each side: 1/9 of column 15 is of column 48, and of 16 of 47.
    assert x[1, 3, 15:17, 0].tolist() == [178, 22]
    (tmp_path / "unlabeled_X.bin").write_bytes(image.tobytes()[:-1])
    with pytest.raises(DataError, match="ends within image 0"):
        decode("stl10_binary", Raw(tmp_path), card("stl10"))


def test_a_mirror_may_leave_out_the_channel_axis_and_call_unlabelled_images_x(tmp_path, tiny):
    np.savez(tmp_path / "tiny.npz", x=np.zeros((6, 2, 3), np.uint8))
    assert decode("npz", Raw(tmp_path), tiny)["x_train"].shape == (6, 2, 3, 1)


def test_an_npz_of_python_objects_is_refused(tmp_path, tiny):
    np.savez(tmp_path / "tiny.npz", x_train=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match=r"tiny\.npz"):
        decode("npz", Raw(tmp_path), tiny)


def test_an_unknown_format_is_named(tmp_path, tiny):
    with pytest.raises(FedlogitError, match="did you mean 'idx'"):
        decode("idxx", Raw(tmp_path), tiny)
