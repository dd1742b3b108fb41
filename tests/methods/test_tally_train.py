"""TallyTrain: the channel, the merges, their bytes to the printed digit, and what is refused."""

import pytest
import torch
from small import small_spec

from fedlogit import methods
from fedlogit.errors import FedlogitError
from fedlogit.federation.ledger import Ledger
from fedlogit.methods.tally_train import TallyTrain

RESNET18 = 11_181_642  # torchvision's with ten classes, the count that Table 2's bytes come from


def play(federation, call, rounds, **changes):
    """Return a federation after so many rounds, and its method."""
    given = {"method": call, "rounds": 10, "partition": "iid(90)", "local": {"steps": 1}} | changes
    fed = federation(**given)
    method = methods.get(small_spec(**given).method)
    method.init(fed)
    for _ in range(rounds):
        fed.round += 1
        fed.ledger.start(fed.round)
        method.round(fed, fed.round)
    return fed, method


def test_nothing_is_said_before_the_end_of_warm_up(federation):
    fed, _ = play(federation, "tally_train(warm_up=2)", 2)
    assert fed.ledger.totals() == {"up": {}, "down": {}}
    fed, _ = play(federation, "tally_train(warm_up=2)", 3)
    # 4 peers send 16 one-byte votes to 3 others.
    assert fed.ledger.totals()["up"] == {"votes": 4 * 3 * 16}


def test_in_a_mesh_the_consensus_is_the_tally_to_the_bit(federation):
    fed, method = play(federation, "tally_train(warm_up=0)", 1, clients=7)
    logits = fed.logits(fed.public)
    votes = torch.nn.functional.one_hot(logits.argmax(-1), 10).sum(0)
    assert torch.equal(method.consensus(fed, logits), votes.float() / 7)


def test_bytes_of_what_peers_say(federation):
    sent = {}
    for call in (
        "tally_train(warm_up=0)",
        "tally_train(warm_up=0, packed=True)",
        "tally_train(warm_up=0, signal='probabilities')",
        "tally_train(warm_up=0, signal='top_k', k=3)",
        "tally_train(warm_up=0, signal='top_k', k=1)",
    ):
        fed, _ = play(federation, call, 1)
        sent[call] = sum(fed.ledger.totals()["up"].values()) / (4 * 3 * 16)
    # One byte; ⌈log2 10⌉ = 4 bits; 4 C = 40; k + 4 k = 15; an index alone (appendix E).
    assert list(sent.values()) == [1, 0.5, 40, 15, 1]


@pytest.mark.parametrize(
    ("rounds", "probes", "element", "megabytes"),
    [
        (2700, 32, 1, 0.7776),  # Table 1, CIFAR-100
        (2700, 32, 400, 311.04),  # Table 1, FedMD
        (2700, 16, 1, 0.3888),  # Table 2
        (1500, 16, 1, 0.216),  # Table 7
        (1500, 16, 40, 8.64),  # Table 7, FedMD
    ],
)
def test_published_payloads_of_the_channel(rounds, probes, element, megabytes):
    ledger = Ledger()
    for r in range(1, rounds + 1):
        ledger.start(r)
        ledger.exchange("votes", torch.empty(10, probes, element, dtype=torch.uint8))
    assert ledger.totals()["up"]["votes"] / 10 / 1e6 == pytest.approx(megabytes)


def test_published_payloads_of_merges():
    """Table 2: a star of up and down is 89.453 MB a merge; 60, 15 and 6 merges, and 14 + votes."""
    ledger = Ledger()
    model = torch.empty(1, RESNET18)
    ledger.up("model", model)
    ledger.down("model", model[0], clients=1)
    merge = sum(sum(kinds.values()) for kinds in ledger.totals().values()) / 1e6
    assert [round(n * merge, 1) for n in (60, 15, 6)] == [5367.2, 1341.8, 536.7]
    assert round(14 * merge + 0.3888, 1) == 1252.7
    assert round(14 * merge + 15.552, 1) == 1267.9


def test_merges_of_the_bridge_and_of_fedavg():
    """The bridge merges after warm-up only: 14 times in 3,000 rounds, FedAvg-fa200 15 times."""

    class Count:
        merges = 0

    class Counting(TallyTrain):
        def merge(self, fed):
            Count.merges += 1

        def learn_from_probes(self, fed, r):
            pass

    class Nobody:
        def __init__(self):
            self.memory = {}
            self.spec = small_spec()

        def train_private(self, **kwargs):
            pass

    for method, wanted in (
        (Counting(merge_every=200), 14),
        (Counting(signal="none", label_weight=0.0, warm_up=0, merge_every=200), 15),
    ):
        Count.merges = 0
        for r in range(1, 3001):
            method.round(Nobody(), r)
        assert Count.merges == wanted


def test_a_merge_makes_peers_equal_and_leaves_their_optimizers(federation):
    call = "tally_train(signal='none', label_weight=0.0, warm_up=0, merge_every=2)"
    fed, _ = play(federation, call, 1)
    before = fed.vectors()
    assert not torch.equal(before[0], before[1])
    fed, _ = play(federation, call, 2)
    vectors = fed.vectors()
    assert torch.equal(vectors[0], vectors[1])
    steps = {float(c.optimizer.state[c.vector]["step"]) for c in fed.clients}
    assert steps == {2.0}
    moments = [c.optimizer.state[c.vector]["exp_avg"] for c in fed.clients]
    assert not torch.equal(moments[0], moments[1])


def test_all_peers_answer_the_same_probes(federation):
    fed, _ = play(federation, "tally_train(warm_up=0)", 1)
    probes = fed.probes(16)
    assert torch.equal(probes, fed.probes(16))
    assert len(probes.unique()) == 16
    assert set(probes.tolist()) <= set(fed.public.tolist())
    fed.round = 2
    assert not torch.equal(probes, fed.probes(16))


def test_decay():
    method = TallyTrain(warm_up=300, decay_rounds=200, label_weight=0.0)
    weights = [method.consensus_weight(r) for r in (301, 400, 500, 501, 3000)]
    assert weights == pytest.approx([0.995, 0.5, 0, 0, 0])
    assert TallyTrain().consensus_weight(3000) == 1.0


def test_unlabelled_probes_move_nobody_once_the_consensus_has_faded(federation):
    """The votes are still sent, as Table 7 counts them; there is no step on a loss of zero."""
    call = "tally_train(warm_up=0, label_weight=0.0, decay_rounds=1)"
    fed, method = play(federation, call, 2)
    before = fed.vectors()
    fed.round = 3
    fed.ledger.start(3)
    method.learn_from_probes(fed, 3)
    assert torch.equal(before, fed.vectors())
    assert fed.ledger.of_round(3)["bytes_up"] == 4 * 3 * 16


def test_one_step_has_the_gradient_of_the_papers_loss(federation):
    """α CE(f, y) + λ (1 - α) KL(H̄ ‖ f), by autograd on the formula itself, with plain SGD."""
    sgd = {"name": "sgd", "lr": 0.1}
    given = {"method": "tally_train(warm_up=0)", "partition": "iid(90)", "optimizer": sgd}
    fed = federation(**given)
    fed.round = 1
    fed.ledger.start(1)
    peer, probes = fed.clients[0], fed.probes(16)
    x, y = fed.data.inputs(probes), fed.labels(probes)
    votes = fed.logits(probes).argmax(-1)
    h = torch.nn.functional.one_hot(votes, 10).float().mean(0)
    logs = peer.model(x).log_softmax(1)
    kl = (h * (h.clamp_min(1e-30).log() - logs)).sum(1).mean()
    loss = 0.5 * torch.nn.functional.nll_loss(logs, y) + 0.5 * kl
    parameters = list(peer.model.parameters())
    flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
    wanted = peer.vector.detach() - 0.1 * flat
    TallyTrain(warm_up=0).learn_from_probes(fed, 1)
    assert torch.allclose(peer.vector, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("tally_train(probes_per_round=61, warm_up=0)", "probes_per_round = 61: the public set"),
        ("tally_train(warm_up=3)", "warm_up = 3: give less than the 3 rounds"),
        ("tally_train(warm_up=0, merge_every=0)", "merge_every = 0"),
        ("tally_train(warm_up=0, label_weight=1.5)", "label_weight = 1.5"),
        ("tally_train(warm_up=0, signal='vote')", "signal = 'vote'"),
        (
            "tally_train(warm_up=0, signal='top_k', asymmetry=0.5)",
            "asymmetry = 0.5: only votes can be weighed so",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call, said):
    with pytest.raises(FedlogitError) as error:
        small_spec(method=call)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
