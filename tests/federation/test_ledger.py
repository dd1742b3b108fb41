"""Bytes by hand, and the closed forms of the papers as checks of the ledger."""

import torch

from fedlogit.federation import Ledger
from fedlogit.federation.ledger import message_bytes


def test_logits_up_and_down_by_hand():
    ledger = Ledger()
    ledger.start(1)
    ledger.up("logits", torch.zeros(20, 5000, 10))
    ledger.down("logits", torch.zeros(5000, 10), clients=20)
    # 4 bytes x 5,000 points x 10 classes = 200,000 bytes per client, each way; 20 clients.
    assert ledger.of_round(1) == {
        "bytes_up": 4_000_000,
        "bytes_down": 4_000_000,
        "bytes_up.logits": 4_000_000,
        "bytes_down.logits": 4_000_000,
    }


def test_totals_add_rounds_and_keep_kinds_apart():
    ledger = Ledger()
    for r in (1, 2):
        ledger.start(r)
        ledger.up("logits", torch.zeros(2, 3, 4))  # 2 clients x 12 numbers x 4 bytes = 96
        ledger.up("densities", torch.zeros(2, 3))  # 2 x 3 x 4 = 24
    assert ledger.totals() == {"up": {"logits": 192, "densities": 48}, "down": {}}
    assert ledger.of_round(2)["bytes_up"] == 120
    assert ledger.of_round(3) == {"bytes_up": 0, "bytes_down": 0}


def test_messages_of_one_kind_in_one_round_add_up():
    ledger = Ledger()
    for probes in (16, 8):
        ledger.down("votes", torch.zeros(probes, dtype=torch.uint8), clients=3)
    assert ledger.of_round(0)["bytes_down.votes"] == (16 + 8) * 3


def test_what_was_noted_is_booked_again_under_the_round_that_it_is_now():
    ledger = Ledger()
    ledger.start(1)
    with ledger.noting() as noted:
        ledger.up("logits", torch.zeros(2, 3))  # 24 bytes
        ledger.down("targets", torch.zeros(3), clients=2)  # 24 bytes
    ledger.up("logits", torch.zeros(1))  # after what was noted
    ledger.start(2)
    ledger.rebook(noted)
    assert noted == [("up", "logits", 24), ("down", "targets", 24)]
    assert ledger.of_round(2)["bytes_up.logits"] == ledger.of_round(2)["bytes_down.targets"] == 24


def test_links_are_counted_instead_of_the_mesh():
    ledger = Ledger()
    ledger.exchange("votes", torch.zeros(10, 16, dtype=torch.uint8), links=20)
    assert ledger.totals() == {"up": {"votes": 320}, "down": {"votes": 320}}  # 20 x 16


def test_peers_without_links_send_nothing():
    ledger = Ledger()
    ledger.exchange("votes", torch.zeros(3, 16), links=0)
    assert ledger.totals() == {"up": {"votes": 0}, "down": {"votes": 0}}


def test_packed_votes_round_up_to_whole_bytes_a_message():
    votes = torch.zeros(5, dtype=torch.int64)
    assert message_bytes(votes, bits=4) == 3  # 20 bits
    assert message_bytes(votes, bits=8) == 5
    assert message_bytes(votes) == 40
    ledger = Ledger()
    ledger.up("votes", votes.expand(3, 5), bits=4)  # not the 60 bits of all three in 8 bytes
    ledger.down("votes", votes, clients=3, bits=4)
    assert ledger.totals() == {"up": {"votes": 9}, "down": {"votes": 9}}


def test_full_mesh_counts_every_pair_once_each_way():
    ledger = Ledger()
    ledger.start(1)
    # TallyTrain Table 1: (N-1) x 16 probes x 1 byte a round leaves a peer; N = 10.
    ledger.exchange("votes", torch.zeros(10, 16, dtype=torch.uint8))
    assert ledger.of_round(1)["bytes_up"] == 10 * 9 * 16
    assert ledger.of_round(1)["bytes_down"] == 10 * 9 * 16


def test_a_round_in_which_no_sample_is_accepted_sends_nothing():
    ledger = Ledger()
    ledger.up("selected", torch.zeros(0, 10))
    assert ledger.of_round(0)["bytes_up"] == 0
