"""Values from outside that no honest file has: each is refused in one line, and nothing hangs."""

import io
import tarfile
import zipfile
from contextlib import suppress
from itertools import product
from pathlib import Path

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
from fedlogit.results.runs.exports import check_arrays
from fedlogit.results.runs.result import as_result
from fedlogit.results.runs.rounds import read_rounds
from fedlogit.runs.gpus import visible_gpus
from fedlogit.runs.logit_files import load_logits
from fedlogit.runs.provenance import differences
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
        ('a:\n  b: "\\e[2JHi"', r"text '\x1b[2JHi' at line 2 should have no control characters"),
        ('"\\0": 1', r"text '\x00' at line 1 should have no control characters"),
    ],
)
def test_yaml_that_would_fill_the_memory_overrun_the_stack_or_command_a_terminal(
    tmp_path, text, said
):
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


@pytest.mark.parametrize(
    ("head", "value", "said"),
    [
        ("accuracy", "high", "'accuracy' has text, and should have numbers"),
        ("mine", "True", "'mine' has text, and should have numbers"),
        ("accuracy", "inf", "'accuracy' has inf in round 2, should have numbers from 0 to 1"),
        ("balanced_accuracy", "57", "'balanced_accuracy' has 57 in round 2, should have numbers"),
        ("personalized_accuracy", "57", "'personalized_accuracy' has 57 in round 2, should have"),
        ("ece", "-0.1", "'ece' has -0.1 in round 2"),
        ("seconds", "1e400", "'seconds' has inf in round 2, should have numbers from 0 to 1e+10"),
        ("seconds", "", "'seconds' has nan in round 2"),
        ("seconds_test", "-1", "'seconds_test' has -1 in round 2"),
        ("bytes_up", "-1", "'bytes_up' has -1 in round 2"),
        ("bytes_down.logits", "1e20", "'bytes_down.logits' has 1e+20 in round 2"),
        ("mine,accuracy,mine", "1,1,1", "'mine' is there twice, should be there once"),
        ("\x1b[2J", "1", r"'\x1b[2J' should have a name of printable letters"),
    ],
)
def test_what_no_round_of_a_run_has(tmp_path, head, value, said):
    first = value if value == "True" else ",".join("1" * len(value.split(",")))
    (tmp_path / "rounds.csv").write_text(f"round,{head}\n1,{first}\n2,{value}\n")
    with refused(f"rounds.csv: column {said}"):
        read_rounds(tmp_path / "rounds.csv")


def test_rounds_without_a_test_and_numbers_of_ones_own_are_taken(tmp_path):
    text = "round,accuracy,bytes_up.logits,mine,seconds\n1,,,inf,0\n2,1.0,5,-3,2e-6\n"
    (tmp_path / "rounds.csv").write_text(text)
    assert len(read_rounds(tmp_path / "rounds.csv")) == 2


PRINTED = "should be a text of one line, without control characters"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("status", "running", "status = 'running': Input should be 'finished' or 'diverged'"),
        ("final.accuracy", 57.0, "final.accuracy = 57.0: Input should be less than or equal to 1"),
        ("final.accuracy", True, "final.accuracy = True: Input should be a valid number"),
        ("final.accuracy_std", np.nan, "final.accuracy_std = nan: Input should be a finite number"),
        ("final.accuracy_std", -0.1, "final.accuracy_std = -0.1: Input should be greater than"),
        ("final.per_class", [0.5, 1.5], "final.per_class.1 = 1.5: Input should be less than"),
        ("final.per_client", [np.inf], "final.per_client.0 = inf: Input should be a finite"),
        ("split.counts", [[1], [2, 3]], "counts has 1 classes of a client and 2 of another"),
        ("split.counts", [[1], [-1]], "split.counts.1.0 = -1: Input should be greater than"),
        ("split.counts", [[1], [10**30]], f"split.counts.1.0 = {10**30}: "),
        ("split.counts", [], "split.counts = []: List should have at least 1 item"),
        (
            "split.rare_classes",
            [99],
            "rare_classes = [99]: should be different numbers from 0 to 2",
        ),
        ("split.rare_classes", [1, 1], "rare_classes = [1, 1]: should be different numbers"),
        ("split.free_riders", [2], "free_riders = [2]: should be different numbers from 0 to 1"),
        ("bytes.up", {"logits": 10**400}, "bytes.up.logits: Input should be less than or equal"),
        ("bytes.down", {"logits": -5}, "bytes.down.logits = -5: Input should be greater than"),
        ("bytes.up", {"\x1b[2J": 5}, rf"bytes.up.\x1b[2J.[key] = '\x1b[2J': {PRINTED}"),
        ("provenance.wall_seconds", "5", "provenance.wall_seconds = '5': Input should be a valid"),
        ("provenance.wall_seconds", np.inf, "provenance.wall_seconds = inf: "),
        ("provenance.wall_seconds", -1.0, "provenance.wall_seconds = -1.0: "),
        ("provenance.peak_memory_bytes", -1, "provenance.peak_memory_bytes = -1: "),
        ("provenance.finished", 5, "provenance.finished = 5: should be a text; put it in quotes"),
        ("provenance.device", "\x1b[2JHi", rf"provenance.device = '\x1b[2JHi': {PRINTED}"),
        ("provenance.device", "\ud800", r"provenance.device = '\ud800': "),
        ("provenance.device", "A" * 1001, "provenance.device: String should have at most 1000"),
        ("provenance.command", "a\nb", rf"provenance.command = 'a\nb': {PRINTED}"),
        ("provenance.dataset_note", "\u202ebad", PRINTED),
        ("provenance.own_code", {"my.module": "\x9b2J"}, PRINTED),
        ("provenance.normalised_by", {"mean": ["0.5"]}, "Input should be a valid number"),
        ("provenance.normalised_by", {"mean": [float("nan")]}, "should be a finite number"),
    ],
)
def test_what_no_result_of_a_run_has(key, value, said):
    texts = ("spec_digest", "code_version", "device", "engine", "precision", "dataset_digest")
    source = dict.fromkeys((*texts, "split_digest"), "CPU Intel(R) – 2.8\u00a0GHz")
    result = {
        "status": "finished",
        "final": {"accuracy": 1.0, "accuracy_std": 0.0, "per_class": [0.5, None, 1]},
        "split": {"counts": [[1, 0, 3], [0, 2, 3]], "rare_classes": [2], "free_riders": [1]},
        "bytes": {"up": {"logits": 2**40}},
        "provenance": source | {"wall_seconds": 3},
    }
    assert as_result(result, Path("result.json")).status == "finished"
    part, _, last = key.rpartition(".")
    (result[part] if part else result)[last] = value
    with refused(f"result.json: {said}" if said.startswith(key) else said):
        as_result(result, Path("result.json"))


EXPORTS = {
    "test_logits": {"logits": np.zeros((3, 5, 4), np.float32), "labels": np.arange(5) % 4},
    "evidence": {"evidence": np.full((2, 3, 4), np.nan)},
    "probes": {"images": np.zeros((4, 4, 1, 2, 2)), "owned": np.ones((3, 4), bool)},
    "shapley": {"values": np.zeros(3)},
    "aggregation": {
        "weights": np.ones((3, 5)), "labels": np.array([-1, 0, 1, 2, 3]),
        "owned": np.ones((3, 4), bool), "held_out_logits": np.zeros((2, 4)),
        "held_out_labels": np.array([0, 3]), "held_out_clients": np.array([0, 2]),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("export", "name", "array", "said"),
    [
        ("test_logits", "labels", None, "is missing"),
        ("test_logits", "labels", np.array(3), "has shape (), should have (5 samples)"),
        ("test_logits", "labels", np.zeros(1, int), "has shape (1,), should have (5 samples)"),
        ("test_logits", "labels", np.full(5, 4), "should have integers from 0 to 3"),
        ("test_logits", "labels", np.full(5, -1), "should have integers from 0 to 3"),
        ("test_logits", "labels", np.full(5, "a"), "should have integers from 0 to 3"),
        ("test_logits", "labels", np.zeros(5), "should have integers from 0 to 3"),
        ("test_logits", "logits", np.full((3, 5, 4), np.nan), "has numbers that are not finite"),
        ("test_logits", "logits", np.full((3, 5, 4), "a"), "is of <U1, should be of numbers"),
        ("test_logits", "logits", np.zeros((5, 4)), "should have (predictors, samples, 4 classes)"),
        (
            "test_logits",
            "logits",
            np.zeros((0, 5, 4)),
            "should have (predictors, samples, 4 classes)",
        ),
        ("evidence", "evidence", np.zeros((2, 3, 9)), "should have (rounds, 3 clients, 4 classes)"),
        ("evidence", "evidence", np.full((2, 3, 4), np.inf), "has numbers that are not finite"),
        ("probes", "images", np.zeros((3, 4, 1, 2, 2)), "should have (4 models, 4 classes"),
        ("probes", "owned", np.full((3, 4), 0.5), "is of float64, should be of bool"),
        ("shapley", "values", np.zeros(7), "should have (3 clients)"),
        ("aggregation", "weights", np.ones((5, 3)), "should have (3 clients, points)"),
        ("aggregation", "labels", np.full(5, -2), "should have integers from -1 to 3"),
        ("aggregation", "held_out_labels", np.zeros(3, int), "should have (2 held-out samples)"),
        ("aggregation", "held_out_clients", np.array([0, 3]), "should have integers from 0 to 2"),
    ],
)
def test_arrays_of_an_export_that_no_metric_can_read(export, name, array, said):
    path, sizes = Path(f"exports/{export}.npz"), {"clients": 3, "models": 4, "classes": 4}
    arrays = dict(EXPORTS[export])
    check_arrays(path, arrays, arrays, sizes)
    needed = list(arrays)
    arrays |= {name: array}
    if array is None:
        del arrays[name]
    with refused(f"{path}: array {name!r} {said}" if said[0] != "s" else said):
        check_arrays(path, arrays, needed, sizes)


def test_a_fact_of_a_run_from_elsewhere_commands_no_terminal():
    found = differences({"code_version": "\x1b[2J"}, {"code_version": "0.3.0"})
    assert found == r"code_version '\x1b[2J' -> 0.3.0"


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
