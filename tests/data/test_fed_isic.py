"""Fed-ISIC2019 on a generated folder: 2 centres, 4 + 2 images."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fedlogit.data import DATASETS, card, isic
from fedlogit.data.content import check
from fedlogit.data.download import download
from fedlogit.data.isic import COUNTS, colour_constancy, decode_isic, read_table, survey
from fedlogit.data.prepare import prepare
from fedlogit.data.raw import Raw
from fedlogit.errors import DataError

# image, target, center, fold
ROWS = [
    ("ISIC_0000003", 1, 0, "train"),
    ("ISIC_0000001", 0, 1, "train"),
    ("ISIC_0000002_downsampled", 1, 1, "test"),
    ("ISIC_0000004", 7, 0, "train"),
    ("ISIC_0000005", 1, 0, "train"),
    ("ISIC_0000006", 0, 0, "test"),
]
HEAD = "fold,center,MEL,NV,BCC,AK,BKL,DF,VASC,SCC\n"
COUNTED = f"{HEAD}train,0,0,2,0,0,0,0,0,1\ntrain,1,1,0,0,0,0,0,0,0\n" + (
    "test,0,1,0,0,0,0,0,0,0\ntest,1,0,1,0,0,0,0,0,0\n"
)


def table(rows):
    return "image,target,center,fold\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def colour(i):
    return (40 * i, 200 - 20 * i, 120)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Return a mirror whose ``fed_isic2019`` has preprocessed images of 12 x 8 pixels."""
    about = replace(card("fed_isic2019"), train=4, test=2, shape=(8, 8, 3))
    monkeypatch.setitem(DATASETS, "fed_isic2019", about)
    counts = tmp_path / "counts.csv"
    counts.write_text(COUNTED)
    monkeypatch.setattr(survey, "__defaults__", (counts,))
    monkeypatch.setattr(decode_isic, "__defaults__", (counts,))
    folder = tmp_path / "mirror" / "fed_isic2019"
    images = folder / "ISIC_2019_Training_Input_preprocessed"
    images.mkdir(parents=True)
    (folder / "train_test_split").write_text(table(ROWS))
    for i, (name, *_) in enumerate(ROWS):
        Image.new("RGB", (12, 8), colour(i)).save(images / f"{name}.jpg", quality=100)
    return tmp_path / "mirror"


def test_a_folder_becomes_arrays_with_centres(small, tmp_path):
    mark = download("fed_isic2019", tmp_path / "raw", small)
    assert list(mark.files) == ["train_test_split"]
    prepare("fed_isic2019", tmp_path / "raw", tmp_path)
    with np.load(tmp_path / "fed_isic2019.npz") as arrays:
        assert arrays["group_train"].tolist() == [0, 1, 0, 0]
        assert arrays["y_train"].tolist() == [1, 0, 7, 1]
        assert arrays["group_test"].tolist() == [1, 0]
        assert arrays["x_test"].shape == (2, 8, 8, 3)
        # Row 3 of the table is the third of the training fold; JPEG may be off by a little.
        off = arrays["x_train"][2].astype(int) - colour(3)
        assert abs(off).max() <= 3


def test_centres_are_part_of_the_content(small, tmp_path):
    download("fed_isic2019", tmp_path / "raw", small)
    arrays = decode_isic(Raw(tmp_path / "raw"), small / "fed_isic2019", card("fed_isic2019"))
    before = check(card("fed_isic2019"), arrays, "it")
    arrays["group_train"] = arrays["group_train"][::-1]
    assert check(card("fed_isic2019"), arrays, "it") != before
    del arrays["group_test"]
    with pytest.raises(DataError, match="group_test is missing"):
        check(card("fed_isic2019"), arrays, "it")


def test_originals_are_shrunk_to_the_shorter_side_and_cropped(small, tmp_path):
    folder = small / "fed_isic2019"
    ready = folder / "ISIC_2019_Training_Input_preprocessed"
    images = ready.rename(folder / "ISIC_2019_Training_Input")
    # 40 x 16 in three vertical stripes; shrunk by half to 20 x 8, of which columns 6..13 stay.
    stripes = np.full((16, 40, 3), 100, np.uint8)
    stripes[:, :8] = stripes[:, 32:] = 0
    Image.fromarray(stripes).save(images / "ISIC_0000003.jpg", quality=100)
    download("fed_isic2019", tmp_path / "raw", small)
    arrays = decode_isic(Raw(tmp_path / "raw"), folder, card("fed_isic2019"))
    assert abs(arrays["x_train"][0].astype(int) - 100).max() <= 3


def test_colour_constancy_by_hand():
    # One colour (20, 40, 40): light / |light| = (1, 2, 2) / 3; each is divided by it and sqrt(3):
    # 20 * 3 / sqrt(3) = 34.64, 40 * 3 / 2 / sqrt(3) = 34.64.
    pixels = np.full((2, 2, 3), (20, 40, 40), np.uint8)
    assert colour_constancy(pixels).tolist() == [[[34] * 3] * 2] * 2


def test_the_light_of_a_channel_is_the_sixth_root_of_its_mean_sixth_power():
    # Half of red's pixels are 100, half 0: 100 / 2^(1/6) = 89.1, so that grey light is that and
    # twice 100, of norm 167.1; 100 * 167.1 / (89.1 sqrt(3)) = 108.3 and 167.1 / sqrt(3) = 96.5.
    pixels = np.array([[(100, 100, 100), (0, 100, 100)]], np.uint8)
    assert colour_constancy(pixels).tolist() == [[[108, 96, 96], [0, 96, 96]]]


def test_sides_of_an_original_are_rounded_down():
    # As FLamby's script has it: half of 43 is 21.5.
    assert isic._shrink(Image.new("RGB", (43, 16)), 8).size == (21, 8)
    assert isic._shrink(Image.new("RGB", (16, 43)), 8).size == (8, 21)


def test_bright_pixels_are_clipped_not_wrapped():
    pixels = np.array([[[255, 10, 200]], [[0, 10, 200]]], np.uint8)
    assert colour_constancy(pixels)[0, 0, 0] <= 255
    assert colour_constancy(pixels)[0, 0, 2] >= 100
    # The dim channel is raised: gain = |light| / (light sqrt(3)), far above 1.
    assert colour_constancy(pixels)[0, 0, 1] > 100
    assert colour_constancy(np.zeros((1, 1, 3), np.uint8)).tolist() == [[[0, 0, 0]]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("../../etc/passwd", 0, 0, "train"), "line 2: '../../etc/passwd' is not an image"),
        (("ISIC_0000001", 8, 0, "train"), "target 8 must be in 0..7"),
        (("ISIC_0000001", 0, 0, "valid"), "fold 'valid' must be train or test"),
        (("ISIC_0000001", "x", 0, "train"), "line 2: target and center must be integers"),
    ],
)
def test_a_wrong_row_is_named(row, message):
    with pytest.raises(DataError, match=message):
        read_table(table([row]).encode())


def test_a_table_without_a_column_is_refused():
    with pytest.raises(DataError, match="no column 'target'"):
        read_table(b"image,center\nISIC_0000001,0\n")


def test_another_split_is_refused(small, tmp_path):
    moved = [*ROWS[:-1], ("ISIC_0000006", 2, 0, "test")]
    (small / "fed_isic2019" / "train_test_split").write_text(table(moved))
    with pytest.raises(DataError, match="another number of MEL than 1 in test of centre 0"):
        download("fed_isic2019", tmp_path / "raw", small)


def test_missing_and_damaged_images_are_named(small, tmp_path):
    images = small / "fed_isic2019" / "ISIC_2019_Training_Input_preprocessed"
    download("fed_isic2019", tmp_path / "raw", small)
    content = (images / "ISIC_0000004.jpg").read_bytes()
    (images / "ISIC_0000004.jpg").write_bytes(content[:200])
    with pytest.raises(DataError, match=r"ISIC_0000004\.jpg is damaged"):
        prepare("fed_isic2019", tmp_path / "raw", tmp_path)
    (images / "ISIC_0000004.jpg").unlink()
    with pytest.raises(DataError, match=r"lacks 1 of 6 images, such as ISIC_0000004\.jpg"):
        prepare("fed_isic2019", tmp_path / "raw", tmp_path)
    assert not (tmp_path / "fed_isic2019.npz").exists()


def test_the_published_counts_are_those_of_celm_table_4():
    lines = [line.split(",") for line in COUNTS.read_text().split()[1:]]
    sizes = {fold: [sum(map(int, ln[2:])) for ln in lines if ln[0] == fold] for fold, *_ in lines}
    assert sizes["train"] == [9930, 3163, 2691, 1807, 655, 351]
    assert (sum(sizes["train"]), sum(sizes["test"])) == (
        card("fed_isic2019").train,
        card("fed_isic2019").test,
    )
