"""Prepared files hold the content, say what it is, and are written only when they must be."""

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from support.refusals import refused

from fedlogit.cli import call
from fedlogit.data import DATASETS, embedded, load
from fedlogit.data.content import canonical, check, content_digest
from fedlogit.data.download import download
from fedlogit.data.prepare import _at_once, _moments, lacking_classes, prepare
from fedlogit.errors import DataError

MIRROR = "  - {kind: mirror, format: npz}\n"


@pytest.fixture
def raw(tiny, mirror, sources, tmp_path):
    download("tiny", tmp_path / "raw", mirror, sources(MIRROR))
    return tmp_path / "raw"


def test_the_card_says_what_was_prepared(tiny, raw, tmp_path):
    about = prepare("tiny", raw, tmp_path)
    assert json.loads((tmp_path / "tiny.json").read_text()) == about
    assert about["arrays"]["x_train"] == {"dtype": "uint8", "shape": [6, 2, 3, 1]}
    assert about["class_counts"] == {"train": [3, 3], "test": [2, 2]}
    # Pixels are 0..35: mean 17.5 / 255, variance (36^2 - 1) / 12 / 255^2.
    assert about["train_mean"] == [round(17.5 / 255, 6)]
    assert about["train_std"] == [round((1295 / 12) ** 0.5 / 255, 6)]
    assert (about["digest"], about["source"]) == (tiny.digest, "mirror")
    assert (about["licence"], about["homepage"]) == ("none", "https://example.org")


def test_classes_without_samples_are_named(tiny, raw, tmp_path, monkeypatch, capsys):
    told = [str(raw), "--out", str(tmp_path)]
    call("prepare", ["tiny", "--raw", *told])
    assert "note:" not in capsys.readouterr().out
    monkeypatch.setitem(DATASETS, "tiny", replace(tiny, classes=15, digest=""))
    call("prepare", ["tiny", "--raw", *told])
    lacking = "of classes 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 others"
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"note: tiny has no training sample {lacking}; no test sample {lacking}"
    assert last.startswith(str(tmp_path / "tiny.npz"))


def test_one_class_without_samples_is_named_where_it_has_none():
    counts = {"train": [3, 1, 0], "test": [1, 1, 1]}
    assert lacking_classes({"class_counts": counts}) == "no training sample of class 2"
    assert lacking_classes({"class_counts": {}}) == ""


def test_moments_of_large_images_take_little_memory():
    images = np.zeros((16, 1024, 1024, 1), np.uint8)
    images[::2] = 255
    tracemalloc.start()
    try:
        assert _moments(images) == ([0.5], [0.5])
        assert tracemalloc.get_traced_memory()[1] < 4 * 8 * 2**22  # four such arrays, not sixteen
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("sides", "images"),
    # 2^22 pixels are 83.6 images of 224 x 224.
    [((8, 8, 1), 4096), ((32, 32, 3), 4096), ((224, 224, 3), 83), ((4096, 2048, 3), 1)],
)
def test_small_images_are_summed_as_they_always_were(sides, images):
    assert _at_once((60_000, *sides)) == images


def test_the_card_says_if_the_content_is_not_pinned(tiny, raw, tmp_path, monkeypatch):
    assert "content" not in prepare("tiny", raw, tmp_path)
    monkeypatch.setitem(DATASETS, "tiny", replace(tiny, digest=""))
    assert prepare("tiny", raw, tmp_path)["content"] == "content not pinned"


def test_what_is_prepared_can_be_loaded(tiny, raw, arrays, tmp_path):
    prepare("tiny", raw, tmp_path)
    data = load("tiny", tmp_path)
    assert data.y_train.dtype == np.int64
    assert (data.x_test == arrays["x_test"]).all()
    assert data.digest == tiny.digest


def test_right_arrays_are_left_alone_and_wrong_ones_replaced(tiny, raw, tmp_path):
    prepare("tiny", raw, tmp_path)
    path = tmp_path / "tiny.npz"
    before = path.stat().st_ino
    prepare("tiny", raw, tmp_path)
    assert path.stat().st_ino == before
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    prepare("tiny", raw, tmp_path)
    assert path.read_bytes() == content


def test_a_changed_raw_file_is_refused(tiny, raw, tmp_path):
    path = raw / "tiny.npz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"tiny\.npz was changed or damaged"):
        prepare("tiny", raw, tmp_path)
    assert not (tmp_path / "tiny.npz").exists()


def test_what_was_not_downloaded_or_prepared_is_named_with_the_commands_for_it(tiny, tmp_path):
    first = f"python -m fedlogit download tiny --out {tmp_path / 'raw'}"
    with pytest.raises(DataError, match=f"raw has no source.json; first {first}$"):
        prepare("tiny", tmp_path / "raw", tmp_path)
    commands = "python -m fedlogit download tiny && python -m fedlogit prepare tiny --out"
    with pytest.raises(DataError, match=f"does not exist; make it with {commands} {tmp_path}$"):
        load("tiny", tmp_path)


def test_raw_files_of_another_data_set_are_refused(raw, tmp_path):
    with pytest.raises(DataError, match="is of 'tiny', not 'mnist'"):
        prepare("mnist", raw, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_train": None}, "x_train is missing"),
        ({"y_test": None}, "y_test is missing"),
        ({"x_train": np.zeros((6, 3, 2, 1), np.uint8)}, r"x_train is uint8 \(6, 3, 2, 1\)"),
        ({"x_test": np.zeros((4, 2, 3, 1), np.float32)}, "x_test is float32"),
        ({"y_train": np.array([0, 1, 0, 1, 1, 2])}, "y_train has 2; Tiny has 0 to 1"),
        ({"y_train": np.array([0, 1, 0, 1, 1, -1])}, "y_train has -1"),
        ({"y_train": np.zeros(6)}, "y_train is float64"),
        ({"y_train": np.array([1, 0, 0, 1, 1, 0])}, "content's digest is"),
    ],
)
def test_check_names_what_is_wrong(tiny, arrays, change, message):
    wrong = {k: a for k, a in (arrays | change).items() if a is not None}
    with pytest.raises(DataError, match=message):
        check(tiny, wrong, "file")


@pytest.mark.parametrize("name", ["x_train", "y_train", "x_test", "y_test"])
def test_every_byte_counts_for_the_digest(arrays, name):
    before = content_digest(arrays)
    arrays[name].flat[-1] ^= 1
    assert content_digest(arrays) != before
    assert content_digest(arrays, ordered=False) != content_digest(
        arrays | {name: arrays[name] ^ np.array(1, arrays[name].dtype)}, ordered=False
    )


def test_labels_may_have_any_width(arrays):
    narrow = arrays | {"y_train": arrays["y_train"].astype(np.uint8)}
    assert content_digest(narrow) == content_digest(arrays)


def test_rows_without_an_order_come_out_in_one_order(tiny, arrays, monkeypatch):
    about = replace(tiny, ordered=False, digest=content_digest(arrays, ordered=False))
    shuffled = dict(arrays)
    order = [3, 1, 5, 0, 2, 4]
    shuffled["x_train"], shuffled["y_train"] = arrays["x_train"][order], arrays["y_train"][order]
    assert check(about, shuffled, "file") == about.digest
    first, second = canonical(about, arrays), canonical(about, shuffled)
    assert all((first[k] == second[k]).all() for k in arrays)
    # Images and labels still belong together: image i starts with pixel 6 i.
    rows = first["x_train"][:, 0, 0, 0] // 6
    assert first["y_train"].tolist() == arrays["y_train"][rows].tolist()
    assert sorted(rows) == [0, 1, 2, 3, 4, 5]


def test_loading_does_not_depend_on_the_order_of_such_rows(tiny, arrays, tmp_path, monkeypatch):
    about = replace(tiny, ordered=False, digest=content_digest(arrays, ordered=False))
    monkeypatch.setitem(DATASETS, "tiny", about)
    np.savez(tmp_path / "tiny.npz", **arrays)
    first = load("tiny", tmp_path)
    np.savez(tmp_path / "tiny.npz", **{k: a[::-1] for k, a in arrays.items()})
    assert (load("tiny", tmp_path).x_train == first.x_train).all()


FURTHER = {
    "labels of a split that there is not": {"y_val": np.array(["a"])},
    "labels of millions of classes": {"y_extra": np.array([3_000_000])},
    "negative labels": {"y_extra": np.array([-1])},
    "labels in two dimensions": {"y_extra": np.zeros((2, 2), int)},
    "images of a split that there is not": {"x_val": np.array(["b"])},
    "groups that are texts": {"group_train": np.array(["a"] * 6)},
    "too few groups": {"group_train": np.zeros(2, int)},
    "groups that are no numbers": {"group_test": np.full(4, np.nan)},
    "an array called as a text's": {"train": np.zeros(3, np.uint8)},
    "a text": {k: np.frombuffer(b"a b", np.uint8) for k in ("train", "valid", "test")},
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("further", FURTHER.values(), ids=FURTHER)
def test_what_a_mirror_holds_besides_is_left_out(
    tiny, arrays, mirror, sources, tmp_path, monkeypatch, further, ordered
):
    digest = content_digest(arrays, ordered=ordered)
    monkeypatch.setitem(DATASETS, "tiny", replace(tiny, ordered=ordered, digest=digest))
    np.savez(mirror / "tiny.npz", **arrays, **further)
    download("tiny", tmp_path / "raw", mirror, sources(MIRROR))
    about = prepare("tiny", tmp_path / "raw", tmp_path)
    assert about["digest"] == digest
    assert about["arrays"].keys() == arrays.keys()
    assert about["class_counts"] == {"train": [3, 3], "test": [2, 2]}
    np.savez(tmp_path / "tiny.npz", **arrays, **further)  # as older versions prepared it
    data = load("tiny", tmp_path)
    assert (data.digest, data.group_train) == (digest, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": np.zeros((6, 2, 3), np.uint8)}, "tiny.npz has both x and x_train, which are the"),
        ({"y_train": np.full(6, 0.5)}, "y_train is float64 (6,); Tiny has integers (6,)"),
        ({"y_train": np.array(["a"] * 6)}, "y_train is <U1 (6,); Tiny has integers (6,)"),
        ({"group_train": np.zeros(2, int)}, "group_train is int64 (2,); Tiny has integers (6,)"),
        ({"group_train": np.array(["a"] * 6)}, "group_train is <U1 (6,); Tiny has integers (6,)"),
        ({"group_test": np.full(4, np.nan)}, "group_test is float64 (4,); Tiny has integers (4,)"),
        ({"group_train": np.full(6, 2)}, "group_train has 2; Tiny has 0 to 1"),
    ],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_arrays_of_a_mirror_that_a_card_names_must_fit_it(
    tiny, arrays, mirror, sources, tmp_path, monkeypatch, change, said, ordered
):
    monkeypatch.setitem(DATASETS, "tiny", replace(tiny, ordered=ordered, groups=2, digest=""))
    right = arrays | {"group_train": np.zeros(6, int), "group_test": np.ones(4, int)}
    np.savez(mirror / "tiny.npz", **right)
    download("tiny", tmp_path / "raw", mirror, sources(MIRROR))
    assert prepare("tiny", tmp_path / "raw", tmp_path)["arrays"].keys() == right.keys()
    np.savez(mirror / "tiny.npz", **(right | change))
    with refused(said):
        download("tiny", tmp_path / "again", mirror, sources(MIRROR))


def test_tokenised_text_is_not_taken_for_raw_text():
    raw, tokens = DATASETS["wikitext2"], DATASETS["wikitext2_tokens"]
    text = dict.fromkeys(("train", "valid", "test"), np.frombuffer(b"a <unk> b", np.uint8))
    with pytest.raises(DataError, match="the text is tokenised"):
        check(raw, text, "file")
    plain = dict.fromkeys(text, np.frombuffer(b"a word b", np.uint8))
    with pytest.raises(DataError, match="the text is not tokenised"):
        check(tokens, plain, "file")
    with pytest.raises(DataError, match="digest"):
        check(tokens, text, "file")


def test_digits_hold_every_fifth_sample_of_each_class_out(tmp_path):
    data = load("digits", tmp_path)
    assert (len(data.y_train), len(data.y_test)) == (1437, 360)
    # scikit-learn has 178 182 177 183 181 182 181 179 174 180 of each: a fifth is 34.8 to 36.6.
    held = np.bincount(data.y_test)
    assert held.min() >= 34
    assert held.max() <= 37
    assert data.x_train.max() == 240  # 16 * 15
    assert list(tmp_path.iterdir()) == []


def test_digits_are_scikit_learns_and_read_without_it():
    raw, arrays = load_digits(), embedded.digits()
    assert arrays["x_train"].shape == (1437, 8, 8, 1)

    def samples(x: np.ndarray, y: np.ndarray) -> list[tuple[int, bytes]]:
        return [(int(label), image.tobytes()) for image, label in zip(x, y, strict=True)]

    found = samples(arrays["x_train"], arrays["y_train"])
    found += samples(arrays["x_test"], arrays["y_test"])
    assert sorted(found) == sorted(samples((raw.images * 15).astype(np.uint8), raw.target))
    code = "import sys; from fedlogit.data.embedded import digits; digits(); "
    subprocess.run([sys.executable, "-c", code + "sys.exit('sklearn' in sys.modules)"], check=True)


def test_where_scikit_learn_is_not_what_was_locked_one_line_says_so(monkeypatch):
    monkeypatch.setattr(embedded, "_PACKAGES", ["nowhere"])
    with pytest.raises(DataError, match="nowhere does not exist: another scikit-learn than"):
        embedded.docstrings()
