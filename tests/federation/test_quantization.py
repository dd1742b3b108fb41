"""Predictions that are sent rounded: values, bytes, and whom that concerns, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
import torch
from support.every_method import ON_TEXT, VARIANTS, changes
from support.outcomes import rows
from support.own_methods import SendsPredictions
from support.refusals import refused
from support.small import small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods
from fedlogit.errors import FedlogitError, Unsupported
from fedlogit.federation.ledger import message_bytes
from fedlogit.federation.quantizer import quantize
from fedlogit.files import read_json
from fedlogit.methods import LogitFederation
from fedlogit.papers.loading import load_paper
from fedlogit.quantization import Quantization
from fedlogit.runs.stages import clients_spec, in_stages

ROOT = Path(__file__).resolve().parents[2]
FORMATS = [
    {"format": "float16"},
    {"format": "bfloat16"},
    {"format": "uniform", "bits": 8},
    {"format": "uniform", "bits": 1},
]
TWO_BITS = {"quantization": {"format": "uniform", "bits": 2}}


def soft(call: str) -> bool:
    return methods.get(small_spec(**changes(call)).method).sends_soft_predictions


SOFT = [call for call in (*VARIANTS, *ON_TEXT) if soft(call)]
OTHERS = [call for call in VARIANTS if not soft(call)]


def sent(values: list, **how) -> tuple[list, list[int]]:
    """Return what is read, and the bytes of each part of the message."""
    message = quantize(torch.tensor(values), Quantization(**how))
    return message.read.tolist(), [message_bytes(part, bits) for part, bits in message.parts]


def test_two_bits_are_four_levels_from_the_smallest_to_the_largest():
    read, size = sent([[-1.0, 0.4, 0.6, 2.0]], format="uniform", bits=2)
    assert read == [[-1.0, 0.0, 1.0, 2.0]]
    assert size == [1, 8]  # four numbers of two bits; the ends as float32


def test_values_too_far_apart_for_float32_are_read_as_numbers():
    largest = torch.finfo(torch.float32).max
    read, size = sent([[-largest, 0.0, largest], [0.0, 1.0, 3.0]], format="uniform", bits=2)
    assert read[0] == [-largest, pytest.approx(largest / 3), largest]
    assert read[1] == [0.0, 1.0, 3.0]
    assert size == [2, 16]


def test_one_bit_is_the_smallest_or_the_largest():
    read, size = sent([[0.0, 4.0, 10.0], [-3.0, -1.0, 1.5]], format="uniform", bits=1)
    assert read == [[0.0, 0.0, 10.0], [-3.0, -3.0, 1.5]]
    assert size == [1, 16]


def test_the_comparison_s_caption_has_the_bytes_of_a_prediction_of_ten_classes():
    found = [message_bytes(torch.zeros(100, 10)) / 100]
    for how in (FORMATS[0], *({"format": "uniform", "bits": bits} for bits in (8, 4, 2))):
        found.append(sum(sent(torch.rand(100, 10).tolist(), **how)[1]) / 100)
    whole, half, *uniform = (f"{size:g}" for size in found)
    caption = load_paper("comparison", ROOT / "workflow/papers").tables["quantization"].caption
    assert (
        f"a prediction takes {whole} bytes as float32, {half} as float16, and"
        f" {uniform[0]}, {uniform[1]} and {uniform[2]} in 8, 4 and 2 bits" in caption
    )


def test_equal_logits_stay_what_they_are():
    assert sent([[0.3, 0.3, 0.3]], format="uniform", bits=4)[0] == torch.full((1, 3), 0.3).tolist()


def test_each_prediction_has_a_range_of_its_own():
    read, _ = sent([[0.0, 0.2, 1.0], [0.0, 0.2, 100.0]], format="uniform", bits=8)
    assert read[0][1] == pytest.approx(51 / 255)
    assert read[1][1] == pytest.approx(100 / 255)  # nearer than 0


def test_half_precision_rounds_to_its_nearest_number_and_never_to_infinity():
    # Above 1, float16 has steps of 2^-10, and bfloat16 of 2^-7.
    assert sent([1 + 2**-10 + 2**-12, 1e6], format="float16") == ([1 + 2**-10, 65504.0], [4])
    assert sent([1 + 2**-7 + 2**-9, -1.0], format="bfloat16") == ([1 + 2**-7, -1.0], [4])


def test_the_server_reads_rounded_logits_and_they_are_booked_so(federation):
    fed = federation(**TWO_BITS)
    fed.start_round(1)
    logits = torch.tensor([[[-1.0, 0.4, 0.6, 2.0]]]).repeat(4, 1, 1)
    assert fed.uplink("logits", logits).tolist() == [[[-1.0, 0.0, 1.0, 2.0]]] * 4
    assert fed.ledger.totals()["up"] == {"logits": 4 * (1 + 8)}
    assert logits[0, 0, 1] == torch.tensor(0.4), "the clients' own stay what they are"


@pytest.mark.parametrize("kind", ["densities", "model", "votes"])
def test_nothing_but_predictions_is_rounded(federation, kind):
    fed = federation(**TWO_BITS)
    fed.start_round(1)
    values = torch.tensor([[0.1, 0.2, 0.4]]).repeat(4, 1)
    assert fed.uplink(kind, values) is values
    assert fed.downlink(kind, values) is values
    assert fed.exchange(kind, values) is values
    assert fed.ledger.totals() == {
        "up": {kind: 4 * 12 + 12 * 12},
        "down": {kind: 4 * 48 + 12 * 12},
    }


def test_what_a_method_packs_itself_is_not_rounded(federation):
    fed = federation(**TWO_BITS)
    fed.start_round(1)
    values = torch.rand(4, 3)
    assert fed.uplink("logits", values, bits=16) is values
    assert fed.ledger.totals()["up"] == {"logits": 4 * 6}


def test_rounded_distributions_sum_to_1_and_logits_are_left_alone(federation):
    fed = federation(quantization={"format": "uniform", "bits": 1})
    fed.start_round(1)
    target = torch.tensor([[0.5, 0.4, 0.1]])
    assert fed.downlink("logits", target).tolist() == torch.tensor([[0.5, 0.5, 0.1]]).tolist()
    read = fed.downlink("logits", target, distributions=True)
    assert read[0].tolist() == pytest.approx([5 / 11, 5 / 11, 1 / 11])
    assert fed.ledger.totals()["down"] == {"logits": 2 * 4 * (1 + 8)}


@pytest.mark.parametrize("how", FORMATS, ids=str)
def test_a_rounded_row_weighs_as_much_as_it_did(federation, how):
    fed = federation(quantization=how)
    fed.start_round(1)
    distribution = torch.tensor([0.5, 0.4, 0.1, 0.0])
    sums = torch.tensor([1.0, 0.25, 0.0, 3.0])
    read = fed.downlink("logits", sums[:, None] * distribution, distributions=True)
    assert torch.allclose(read.sum(1), sums)
    shares = fed.downlink("logits", distribution[None], distributions=True)
    assert torch.allclose(read, sums[:, None] * shares, atol=3e-3)  # half precision of each


def test_rounded_rows_that_sum_to_nearly_1_sum_to_1(federation):
    fed = federation(quantization={"format": "uniform", "bits": 1})
    fed.start_round(1)
    target = torch.tensor([[0.5, 0.4, 0.10005]])
    read = fed.downlink("logits", target, distributions=True)
    rounded = torch.tensor([[0.5, 0.5, 0.10005]])
    assert torch.equal(read, rounded / rounded.sum(1, keepdim=True))


class Quarter(LogitFederation):
    """Every second sample weighs nothing, and the others a quarter."""

    def aggregate(self, fed, logits):
        weights = 0.25 * (torch.arange(logits.shape[1]) % 2)
        return weights[:, None] * logits.softmax(-1).mean(0)


def test_weights_of_samples_outlast_rounding(train):
    """Eight bits change a loss little; as distributions, rows would weigh four times as much."""
    eight = {"quantization": {"format": "uniform", "bits": 8}}
    exact, rounded = (
        float(rows(train(method=f"{__name__}:Quarter", **how))[-1]["loss_distil"])
        for how in ({}, eight)
    )
    assert rounded == pytest.approx(exact, rel=0.05) != 0


def test_distributions_that_are_not_rounded_are_those_that_were_sent(federation):
    fed = federation()
    fed.start_round(1)
    target = torch.tensor([[0.5, 0.3]])
    assert fed.downlink("logits", target, distributions=True) is target


def test_peers_hear_rounded_probabilities(federation):
    fed = federation(**TWO_BITS)
    fed.start_round(1)
    said = torch.tensor([[[0.0, 0.2, 0.8, 0.6]]]).repeat(4, 1, 1)
    heard = fed.exchange("probabilities", said, links=3)
    assert heard[0, 0].tolist() == pytest.approx([0.0, 0.8 / 3, 0.8, 1.6 / 3])
    assert fed.ledger.totals() == {"up": {"probabilities": 27}, "down": {"probabilities": 27}}


def test_adversaries_falsify_and_then_round(federation):
    loud = {"adversaries": {"share": 0.25, "attack": "loud_logits"}, "partition": "iid(90)"}
    fed = federation(**TWO_BITS, **loud)
    fed.start_round(1)
    logits = torch.tensor([[[-1.0, 0.4, 0.6, 2.0]]]).repeat(4, 1, 1)
    # The false ones are 20, -10, 4, 6, of levels -10, 0, 10 and 20.
    assert fed.uplink("logits", logits)[3].tolist() == [[20.0, -10.0, 0.0, 10.0]]


@pytest.mark.parametrize("call", first_of_each(SOFT, method_of))
def test_every_method_that_sends_soft_predictions_sends_fewer_bytes(train, call):
    given = changes(call) | {"rounds": 2}
    whole, rounded = (read_json(train(**given | how) / "result.json") for how in ({}, TWO_BITS))
    assert rounded["status"] == "finished"
    for way in ("up", "down"):
        of_whole, of_rounded = whole["bytes"][way], rounded["bytes"][way]
        assert of_whole.keys() == of_rounded.keys()
        for kind, size in of_whole.items():
            soft = kind in ("logits", "auxiliary_logits", "probabilities")
            assert of_rounded[kind] < size if soft else of_rounded[kind] == size


@pytest.mark.parametrize("how", FORMATS, ids=str)
def test_a_run_that_only_counts_bytes_counts_those_of_rounded_messages(train, how):
    given = {"quantization": how, "method": "tally_train(signal='probabilities', warm_up=0)"}
    trained, counted = (
        read_json(train(**given, ledger_only=only) / "result.json") for only in (False, True)
    )
    assert trained["bytes"] == counted["bytes"]


@pytest.mark.parametrize("call", OTHERS)
def test_other_methods_have_nothing_to_round(call):
    with pytest.raises(Unsupported, match="sends no logits or probabilities"):
        small_spec(**changes(call), **TWO_BITS)


def test_a_run_that_rounds_nothing_keeps_its_hash():
    assert "quantization" not in small_spec().canonical()
    assert small_spec(quantization=None) == small_spec()


def test_files_of_clients_are_of_predictions_as_they_are():
    rounded = small_spec(method="feddf", rounds=1, **TWO_BITS)
    assert in_stages(small_spec(method="feddf", rounds=1))
    assert not in_stages(rounded)
    with refused("quantization.format = 'uniform': a run with rounded predictions is not made in"):
        clients_spec(rounded)


class Whispers(SendsPredictions):
    """Sends predictions as what quantization does not know."""

    kind: ClassVar[str] = "soft_labels"


class HearsRounded(SendsPredictions):
    """Sends whole predictions, and learns from rounded ones of the server."""

    kind: ClassVar[str] = "soft_labels"
    answer: ClassVar[str] = "logits"


class Speaks(SendsPredictions):
    kind: ClassVar[str] = "probabilities"


@pytest.mark.parametrize("name", ["Whispers", "HearsRounded"])
def test_quantization_that_rounds_no_message_of_clients_ends_the_run_with_one_line(train, name):
    with pytest.raises(FedlogitError) as error:
        train(method=f"{__name__}:{name}", **TWO_BITS)
    assert str(error.value) == (
        f"method {__name__}:{name}: quantization.format = 'uniform' rounded no message of round"
        " 1, in which clients sent soft_labels; send predictions as logits, auxiliary_logits or"
        " probabilities, without bits=…"
    )
    train(method=f"{__name__}:Speaks", **TWO_BITS)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"format": "uniform"}, "format = 'uniform' needs bits, from 1 to 8"),
        ({"format": "float16", "bits": 4}, "bits = 4 has no effect with format = 'float16'"),
        ({"format": "uniform", "bits": 0}, "quantization.bits = 0"),
        ({"format": "uniform", "bits": 9}, "quantization.bits = 9"),
        ({"format": "int8"}, "quantization.format = 'int8'"),
    ],
)
def test_bad_input_is_one_clear_line(how, said):
    with refused(said):
        small_spec(quantization=how)
