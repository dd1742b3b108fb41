"""Clients that harm the others: flipped labels, random and loud logits, by hand."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from support.every_method import VARIANTS, changes
from support.own_methods import SendsPredictions
from support.refusals import refused
from support.small import built, small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods
from fedlogit.adversaries import Adversaries
from fedlogit.aggregation.attacks import false_logits
from fedlogit.errors import FedlogitError, Unsupported
from fedlogit.files import read_json
from fedlogit.rng import torch_rng
from fedlogit.runs.stages import clients_spec, in_stages

DISJOINT = {"partition": "iid(90)"}
LATE = {"clients": [0, 1, 2], "since": 2}


ATTACKED = {"adversaries": {"share": 0.25, "attack": "random_logits"}}
REACHED = [v for v in VARIANTS if methods.get(small_spec(**changes(v)).method).sends_predictions]


def harm(attack: str, share: float = 0.25, **given) -> dict:
    return {"adversaries": {"share": share, "attack": attack, **given}} | DISJOINT


def false(logits: list[list[float]], attack: str, seed: int = 0, **given) -> torch.Tensor:
    who = Adversaries(share=0.5, attack=attack, **given)
    return false_logits(torch.tensor(logits), who, torch.Generator().manual_seed(seed))


def test_loud_logits_name_the_next_class_ten_times_as_loud():
    assert false([[1.0, 2.0, 3.0], [0.5, 0.0, 0.0]], "loud_logits").tolist() == [
        [30.0, 10.0, 20.0],
        [0.0, 5.0, 0.0],
    ]


def test_how_loud_can_be_chosen():
    assert false([[1.0, -1.0]], "loud_logits", magnitude=3.0).tolist() == [[-3.0, 3.0]]


def test_random_logits_have_the_size_of_the_true_ones():
    # The deviation of all eight is 2, whatever that of a row or a column.
    normal = torch.randn(2, 4, generator=torch.Generator().manual_seed(5))
    found = false([[4.0, -4.0, 0.0, 0.0], [0.0] * 4], "random_logits", seed=5)
    assert torch.equal(found, 2 * normal)


@pytest.mark.parametrize(
    ("share", "clients", "number"), [(0.1, 10, 1), (0.4, 10, 4), (0.25, 10, 2), (0.0, 10, 0)]
)
def test_a_share_is_so_many_clients(share, clients, number):
    assert Adversaries(share=share, attack="label_flips").number(clients) == number


def test_the_last_clients_flip_their_labels_and_nobody_else(federation):
    fed, honest = federation(**harm("label_flips", share=0.5)), federation(**DISJOINT)
    for client, same in zip(fed.clients, honest.clients, strict=True):
        assert torch.equal(client.private, same.private)
        true, told = honest.labels(same.private), fed.labels(client.private)
        assert torch.equal(told, 9 - true if client.index >= 2 else true)
    assert torch.equal(fed.labels(fed.public), honest.labels(honest.public))


def test_the_data_set_itself_keeps_its_labels(federation, digits):
    before = digits.y_train.copy()
    federation(**harm("label_flips"))
    assert (digits.y_train == before).all()


def test_only_adversaries_logits_are_false_and_only_predictions(federation):
    fed = federation(**harm("loud_logits", share=0.5))
    fed.start_round(1)
    logits = torch.tensor([[[1.0, 2.0, 3.0]]]).repeat(4, 1, 1)
    sent = fed.uplink("logits", logits)
    assert sent[:2].tolist() == [[[1.0, 2.0, 3.0]]] * 2
    assert sent[2:].tolist() == [[[30.0, 10.0, 20.0]]] * 2
    assert logits[3].tolist() == [[1.0, 2.0, 3.0]], "its own logits stay what they are"
    assert torch.equal(fed.uplink("densities", logits), logits)


def test_random_logits_have_an_address_of_their_own(federation):
    fed = federation(**harm("random_logits"))
    fed.start_round(2)
    logits = torch.tensor([[[1.0, -1.0]]]).repeat(4, 1, 1)
    drawn = torch.randn(1, 2, generator=torch_rng(0, "false_logits/logits", 3, 2))
    assert torch.equal(fed.uplink("logits", logits)[3], drawn)  # of deviation 1


@pytest.mark.parametrize(("absent", "false"), [(3, [False, False, True]), (0, [False, True, True])])
def test_who_is_absent_says_nothing_and_adversaries_are_known_by_their_numbers(
    federation, absent, false
):
    there = {"schedule": [{"clients": [absent], "until": 1}]}
    fed = federation(**harm("loud_logits", share=0.5), participation=there)
    fed.start_round(2)
    logits = torch.ones(3, 1, 2) * torch.tensor([1.0, 0.0])
    told = [[0.0, 10.0] if lies else [1.0, 0.0] for lies in false]
    assert fed.uplink("logits", logits)[:, 0].tolist() == told


class Forgets(SendsPredictions):
    """Sends predictions as what no attack knows, but for round 1, in which it sends nothing."""

    kind: ClassVar[str] = "probabilities"
    silent_rounds: ClassVar[int] = 1


class Remembers(Forgets):
    kind: ClassVar[str] = "logits"


def test_an_attack_that_changes_no_message_ends_the_run_with_one_line(train):
    attacked = {"method": f"{__name__}:Forgets"} | harm("random_logits")
    with pytest.raises(FedlogitError) as error:
        train(**attacked)
    assert str(error.value) == (
        f"method {__name__}:Forgets: adversaries.attack = 'random_logits' changed no message of"
        " round 2, in which clients sent probabilities; send predictions as logits or"
        " auxiliary_logits, or make messages of fed.claimed(…)"
    )
    train(**attacked | harm("label_flips"))
    train(**attacked | {"method": f"{__name__}:Remembers"})


@pytest.mark.parametrize("call", first_of_each(REACHED, method_of))
def test_an_attack_reaches_every_method_that_says_that_it_sends_predictions(train, call):
    result = read_json(train(**changes(call) | {"rounds": 2} | ATTACKED) / "result.json")
    assert result["status"] == "finished"


def test_an_attack_needs_no_message_of_adversaries_that_are_absent(train):
    there = {"schedule": [{"clients": [3], "until": 1}]}
    folder = train(method=f"{__name__}:Forgets", participation=there, **harm("random_logits"))
    assert read_json(folder / "result.json")["status"] == "finished"


def test_an_attack_lets_rounds_pass_in_which_nothing_is_sent(train):
    result = read_json(
        train(method="tally_train(warm_up=2)", **harm("loud_logits")) / "result.json"
    )
    assert result["status"] == "finished"
    assert result["bytes"]["up"]["votes"] > 0  # of the last round


def test_bytes_of_attacked_rounds_can_be_counted_without_training(train):
    attacked = {"method": "tally_train(warm_up=0)"} | harm("loud_logits")
    trained, counted = (
        read_json(train(**attacked, ledger_only=only) / "result.json") for only in (False, True)
    )
    assert trained["bytes"] == counted["bytes"]


def test_the_average_of_loud_logits_by_hand(federation, monkeypatch):
    # Three clients say 0, one says 10 times (0, 1): the mean is (0, 2.5) for classes 0 and 1.
    fed = federation(**harm("loud_logits"))
    fed.start_round(1)
    own = torch.zeros(4, 60, 10)
    own[3, :, 0] = 1.0
    monkeypatch.setattr(fed, "train_private", lambda: None)
    monkeypatch.setattr(fed, "logits", lambda points: own)
    taught = []
    monkeypatch.setattr(fed, "distil", lambda points, targets: taught.append(targets))
    methods.get(fed.spec.method).round(fed, 1)
    wanted = torch.tensor([0.0, 2.5, *[0.0] * 8]).softmax(0)
    assert torch.allclose(taught[0], wanted.expand(60, 10))


def test_a_vote_has_no_loudness(federation, monkeypatch):
    # The adversary's vote is the class after its own, as loud as anybody's.
    call = "tally_train(warm_up=0, label_weight=0.0, probes_per_round=60)"
    fed = federation(**harm("loud_logits"), method=call)
    fed.start_round(1)
    own = torch.zeros(4, 60, 10)
    own[..., 4] = 1.0
    monkeypatch.setattr(fed, "train_private", lambda **_: None)
    monkeypatch.setattr(fed, "logits", lambda points: own)
    taught = []
    monkeypatch.setattr(fed, "distil", lambda points, targets, **_: taught.append(targets))
    methods.get(fed.spec.method).round(fed, 1)
    assert taught[0][0].tolist() == [0.0] * 4 + [0.75, 0.25] + [0.0] * 4


@pytest.mark.parametrize("attack", ["label_flips", "random_logits"])
def test_adversaries_are_not_tested(train, attack):
    result = read_json(train(**harm(attack, share=0.5)) / "result.json")
    assert len(result["final"]["per_client"]) == 2


def test_a_run_without_adversaries_keeps_its_hash():
    plain = small_spec(**DISJOINT)
    assert "adversaries" not in plain.canonical()
    assert small_spec(**harm("loud_logits", share=0.0)) == plain


def test_label_flips_are_of_every_method_and_false_logits_of_those_that_send_predictions():
    for call in ("fedavg", "celm", "fedkt", "local", "tally_train(warm_up=0, merge_every=1)"):
        assert small_spec(**harm("label_flips"), method=call).adversaries
        with pytest.raises(Unsupported, match="sends no predictions, or models beside them"):
            small_spec(**harm("loud_logits"), method=call)


def test_clients_of_staged_runs_may_flip_labels_but_not_falsify_answers():
    flips = small_spec(**harm("label_flips"), method="feddf", rounds=1)
    false = small_spec(**harm("random_logits"), method="feddf", rounds=1)
    assert in_stages(flips)
    assert clients_spec(flips).adversaries == flips.adversaries
    assert not in_stages(false)
    with refused("a run with false predictions is not made in stages"):
        clients_spec(false)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (harm("label_flips", share=0.1), "of 4 clients that is nobody; give 0, or 0.25 or more"),
        (harm("label_flips", share=0.9), "of 4 clients that is everybody; give less"),
        (
            harm("label_flips", magnitude=3.0),
            "magnitude = 3.0 has no effect with attack = 'label_flips'; leave it out (or at 10.0)",
        ),
        (
            harm("label_flips") | {"method": "tally_train(warm_up=0, adversaries=1)"},
            "method tally_train has adversaries of its own; leave one out",
        ),
        (
            harm("loud_logits")
            | {"participation": {"schedule": [{"clients": [0, 1, 2], "since": 2}]}},
            "in round 1 every client that is present is an adversary",
        ),
    ],
)
def test_bad_input_is_one_clear_line(changes, said):
    with refused(said):
        small_spec(**changes)


def test_labels_that_an_honest_client_has_too_are_not_flipped(digits):
    spec = small_spec(**harm("label_flips"), public={"size": 60, "overlap": True}, train_size=400)
    with pytest.raises(FedlogitError, match="samples are an honest client's or public, too"):
        built(spec, digits)
