"""Values from outside that no honest file has: each is refused in one line, and nothing hangs."""

import io
import tarfile
import zipfile
from contextlib import suppress
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from support.refusals import refused

from fedlogit import cli, methods
from fedlogit.component import ComponentRef, parse_call
from fedlogit.config import Settings
from fedlogit.data.isic import read_image
from fedlogit.data.raw import BoundedHeader
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import load_npz
from fedlogit.papers.metric_names import check_metric
from fedlogit.partition import Split, get
from fedlogit.results.formatting import markdown
from fedlogit.results.runs.run import _read_rounds
from fedlogit.runs.gpus import visible_gpus
from fedlogit.runs.logit_files import load_logits
from fedlogit.runs.tensors import read_tensors
from fedlogit.spec import RunSpec
from fedlogit.yaml_files import load_yaml


@pytest.mark.parametrize(
    "call",
    [
        *("dir_client(0.05)(0.5)", "dir_client(0.05).x(3)", "uwa(**{'a': 1})", "f(*[1])"),
        *("dir_client({[]: 1})", f"f({'-' * 20_000}1)", f"f({'1+' * 5_000}1)"),
    ],
)
def test_what_only_looks_like_a_call(call):
    with refused("arguments must be literals, as in 'dir_client(0.05)'"):
        parse_call(call)


@pytest.mark.parametrize("name", ["../../outside", "/tmp/absolute", "a b", "\x1b[2J", ""])
def test_a_data_set_that_is_no_plain_name(name):
    with pytest.raises(FedlogitError, match=r"dataset = .*should be a name: letters"):
        RunSpec.read({"dataset": name}, "spec.json")


READERS = {
    "partition": get,
    "method": methods.get,
    "call": lambda name: methods.get(f"{name}("),
    "arguments": lambda name: methods.get(f"{name}(b)"),
    "key": lambda name: RunSpec.read({name: 1}, "spec"),
    "metric": lambda name: check_metric("metric", f"{name}!", {}),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_endless_name_is_repeated_in_part(read):
    with refused("a" * 99 + "…") as error:
        read("a" * 10_000)
    assert len(str(error.value)) < 700


def test_a_parameter_of_what_takes_none_says_so():
    with refused("method average: unknown key 'x' (there are none)"):
        methods.get("average(x=1)")


HEADERS = ["-" * 9000, "1+" * 5000 + "1", "((((", "{[]:1}", "{'descr': '<f4'}", "\0"]
SHAPES = ["(True,)", "(0, 10**30)", f"(0, {10**30})", "(-1,)"]


@pytest.mark.parametrize(
    "header",
    [*HEADERS, *(f"{{'descr':'<f4','fortran_order':False,'shape':{shape}}}" for shape in SHAPES),
     f"{{'descr':'<U0','fortran_order':False,'shape':({10**15},)}}"],
)  # fmt: skip
def test_an_array_whose_header_is_none(tmp_path, header):
    text = header.encode() + b"\n"
    member = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", member)
    with pytest.raises(DataError, match=r"a.npz"):
        load_npz(tmp_path / "a.npz")


def test_an_archive_in_which_any_bit_is_flipped(tmp_path):
    """It is refused, or (a flipped date, say) gives the arrays that were written."""
    path = tmp_path / "a.npz"
    written = {"x": np.arange(3), "y": np.zeros((2, 2), np.float32)}
    np.savez_compressed(path, **written)
    sound = path.read_bytes()
    for place, bit in product(range(len(sound)), range(8)):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        with suppress(DataError):
            np.testing.assert_equal(load_npz(path), written, f"byte {place}, bit {bit}")


def test_a_member_that_attributes_call_sparse():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        content = b"1000000000000\n" + b"0\n" * 10_000
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    data.seek(0)
    with (
        pytest.raises(tarfile.ReadError, match="sparse"),
        tarfile.open(fileobj=data, tarinfo=BoundedHeader) as archive,
    ):
        archive.getmembers()


ALIASES = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
    for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ALIASES, "its aliases stand for more than 1,000,000 values"),
        ("a: " + "[" * 100_000, "is nested too deeply"),
        ("- " * 100_000, "is nested too deeply"),
        ("a: !!bool x", "is not valid YAML"),
        ("a: !!timestamp x", "is not valid YAML"),
        ('a: !!float ""', "is not valid YAML"),
    ],
)
def test_yaml_that_would_fill_the_memory_or_overrun_the_stack(tmp_path, text, said):
    (tmp_path / "a.yaml").write_text(text)
    with refused(said):
        load_yaml(tmp_path / "a.yaml")


def exported(**changes) -> dict[str, np.ndarray]:
    arrays = {
        "points": np.arange(4),
        "public_0": np.zeros((4, 3), np.float32),
        "test_0": np.zeros((5, 3), np.float32),
        "test_labels": np.array([0, 1, 2, 0, 1]),
    }
    return arrays | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test_labels": np.array([0.9, 1.9, 2.9, 0.9, 1.9])}, "integers from 0 to 2"),
        ({"test_labels": np.full(5, np.nan)}, "integers from 0 to 2"),
        ({"test_labels": np.full(5, 3)}, "integers from 0 to 2"),
        ({"test_labels": np.array([0, 1, 2, 0, -1])}, "integers from 0 to 2"),
        ({"test_labels": np.array(list("abcde"))}, "integers from 0 to 2"),
        ({"points": np.array([0, 1, 2, -1])}, "indices of the public samples, from 0"),
        ({"points": np.array(list("abcd"))}, "indices of the public samples, from 0"),
        ({"public_000": np.zeros((4, 3), np.float32)}, "has public logits of a client twice"),
        ({"public_0": np.zeros((4, 0), np.float32)}, "not (n, classes)"),
        ({"public_0": np.full((4, 3), 1e300)}, "are not finite float32 in row 0"),
        ({"points": np.array([0, 1, 2, 2**63], np.uint64)}, "indices of the public samples"),
        ({"more": np.array(["2026-01-01"], "datetime64")}, "more is of datetime64[D], not numbers"),
    ],
)
def test_other_peoples_logits_are_never_scored_by_what_is_no_label(tmp_path, changes, said):
    np.savez(tmp_path / "logits.npz", **exported(**changes))
    with refused(said):
        load_logits(tmp_path / "logits.npz")


@pytest.mark.parametrize("key", ["notes", "rare_classes", "public", "client_000"])
def test_a_split_whose_lists_are_none(tmp_path, key):
    arrays = {
        "client_000": np.arange(3), "public": np.arange(2), "counts": np.ones((1, 2), np.int64),
        "digest": np.array("x"), "notes": np.array([], np.str_), "checksum": np.array("x"),
        "rare_classes": np.array([], np.int64), "free_riders": np.array([], np.int64),
    }  # fmt: skip
    np.savez(tmp_path / "indices.npz", **arrays | {key: np.array(3)})
    with refused(f"is not a split: {key} is not a list"):
        Split.load(tmp_path / "indices.npz")


def test_an_error_commands_no_terminal(capsys, monkeypatch):
    def fails(_argv):
        raise FedlogitError("key '\x1b[2J\x07' is unknown – really")

    monkeypatch.setattr("sys.argv", ["fedlogit"])
    with pytest.raises(SystemExit) as end:
        cli.run_main(fails)
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: key '\\x1b[2J\\x07' is unknown – really\n"


def test_a_line_break_in_a_label_ends_no_row():
    table = markdown(pd.DataFrame({"Method": ["FedAvg\nours"], "a\nb": ["1"]}))
    assert len(table.splitlines()) == 3
    assert "FedAvg ours" in table


def test_gpus_after_a_negative_number_are_hidden():
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0,-1,1"}) == ["0"]


def test_weights_of_a_type_that_digests_cannot_read(tmp_path):
    save_file({"w": torch.zeros(2, dtype=torch.bfloat16)}, tmp_path / "weights.safetensors")
    with pytest.raises(DataError, match=r"is not a readable weights \(.*BFloat16"):
        read_tensors(tmp_path / "weights.safetensors", "weights")


def test_text_in_place_of_a_rounds_numbers(tmp_path):
    (tmp_path / "rounds.csv").write_text("round,accuracy\n1,0.5\n2,high\n")
    with refused("column 'accuracy' has text, and should have numbers"):
        _read_rounds(tmp_path / "rounds.csv")


def test_an_image_so_narrow_that_enlarging_it_would_fill_the_memory(tmp_path):
    path = tmp_path / "ISIC_2019_Training_Input" / "a.jpg"
    path.parent.mkdir()
    Image.new("RGB", (20_000, 1)).save(path)
    with refused("has 20000 x 1 pixels; at least 224 x 224 are needed"):
        read_image(path, 224)


@pytest.mark.parametrize("digits", ["²", "9" * 5000])
def test_what_only_looks_like_a_number(digits):
    with refused("seeds"):
        Settings.load({"seeds": [digits]}, "options")
    with refused("partition dir_client: unknown key"):
        get(ComponentRef(name="dir_client", params={digits: 0.1}))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("partition", None, "partition = None: should be a name or a call, such as name"),
        ("method", 5, "method = 5: should be a name or a call, such as name"),
        ("method", "", "method = '': '' is not a name or a call, such as name"),
        ("models", [5], "models.0 = 5: should be a name or a call, such as name"),
        ("dataset", "../x", "dataset = '../x': should be a name: letters, digits and _ . - alone"),
    ],
)
def test_names_in_a_spec_that_are_none(key, value, message):
    with refused(f"spec.json: {message}"):
        RunSpec.read({"dataset": "digits", "method": "average", key: value}, "spec.json")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("papers", ["celm", "fedol", "celm"], "papers = .*names celm twice"),
        ("datasets", ["mnist", "mnist"], "datasets = .*names mnist twice"),
        ("publish", ["quick", "quick"], "publish = .*names quick twice"),
        ("data", "a\0b", "data = .*should be a folder's path without"),
        ("data", " ", "data = .*should be a folder's path"),
        ("mirror", "a\nb", "mirror = .*should be a folder's path"),
        ("mirror", " ", "mirror = .*should be a folder's path"),
    ],
)
def test_settings_that_are_slips(key, value, message):
    with pytest.raises(FedlogitError, match=message):
        Settings.load({key: value}, "options")


def test_a_partition_that_is_called_with_code():
    with refused("partition: 'dir_client(float)'"):
        get("dir_client(float)")
