"""TallyTrain: the channel, the merges, their bytes to the printed digit, and what is refused."""

import pytest
import torch
from support.consensus import consensus_of
from support.gradients import after_step
from support.refusals import refused
from support.rounds import peers_after
from support.small import small_spec

from fedlogit import methods
from fedlogit.aggregation.votes import pack
from fedlogit.federation import Federation, State
from fedlogit.federation.channel import Channel, Senders
from fedlogit.files import read_json
from fedlogit.methods.tally_train import TallyTrain

TINY_GPT = 5_839_360  # and appendix I's
RESNET18 = 11_181_642  # torchvision's with ten classes, the count that Table 2's bytes come from


def test_nothing_is_said_before_the_end_of_warm_up(federation):
    fed, _ = peers_after(2, federation, "tally_train(warm_up=2)")
    assert fed.ledger.totals() == {"up": {}, "down": {}}
    fed, _ = peers_after(3, federation, "tally_train(warm_up=2)")
    # 4 peers send 16 one-byte votes to 3 others.
    assert fed.ledger.totals()["up"] == {"votes": 4 * 3 * 16}


def test_in_a_mesh_the_consensus_is_the_tally_to_the_bit(federation):
    fed, method = peers_after(1, federation, "tally_train(warm_up=0)", clients=7)
    logits = fed.logits(fed.public)
    votes = torch.nn.functional.one_hot(logits.argmax(-1), 10).sum(0)
    assert torch.equal(consensus_of(method, fed, logits), votes.float() / 7)


def test_bytes_of_what_peers_say(federation):
    sent = {}
    for call in (
        "tally_train(warm_up=0)",
        "tally_train(warm_up=0, packed=True)",
        "tally_train(warm_up=0, signal='probabilities')",
        "tally_train(warm_up=0, signal='top_k', k=3)",
        "tally_train(warm_up=0, signal='top_k', k=5)",
        "tally_train(warm_up=0, signal='top_k', k=1)",
    ):
        fed, _ = peers_after(1, federation, call)
        sent[call] = sum(fed.ledger.totals()["up"].values()) / (4 * 3 * 16)
    # One byte; ⌈log2 10⌉ = 4 bits; 4 C = 40; k + 4 k = 15 or 25; an index alone (appendix E).
    assert list(sent.values()) == [1, 0.5, 40, 15, 25, 1]


class Peers:
    """As much of a federation as messages need: peers, classes, a channel, and a round."""

    uplink, downlink, exchange = Federation.uplink, Federation.downlink, Federation.exchange

    def __init__(self, peers: int, classes: int = 10) -> None:
        self.all_clients, self.present_indices = [None] * peers, torch.arange(peers)
        self.classes, self.round, self.spec = classes, 1, small_spec()
        self._senders = Senders(self.all_clients, first_adversary=peers, round=1)
        self._channel = Channel(self.spec)
        self.ledger = self._channel.ledger
        self.noted = {}

    def log(self, **columns: float) -> None:
        self.noted |= columns


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("classes", "bits"), [(10, (8, 4)), (100, (8, 7)), (2048, (16, 11))])
def test_votes_are_tallied_as_they_are_read(classes, bits, packed):
    """Encoded, counted, and decoded: the tally is that of the votes, for samples and positions."""
    method = TallyTrain(packed=packed)
    logits = torch.randn(5, 3, 7, classes, generator=torch.Generator().manual_seed(0))
    wanted = torch.nn.functional.one_hot(logits.argmax(-1), classes).float().mean(0)
    for shaped, target in ((logits, wanted), (logits.flatten(1, 2), wanted.flatten(0, 1))):
        fed = Peers(5, classes)
        torch.testing.assert_close(consensus_of(method, fed, shaped), target)
        message = -(-21 * bits[packed] // 8)
        assert fed.ledger.totals()["up"] == {"votes": 5 * 4 * message}


def test_what_is_tallied_was_in_the_message(monkeypatch):
    """A bit that flips on the way turns the tally: 3 = 0011 becomes 2 = 0010."""
    from fedlogit.methods import tally_train

    def flipped(votes, classes, *, packed):
        messages = pack(votes, classes, packed=packed)
        messages[0, 0] ^= 0b00010000
        return messages

    monkeypatch.setattr(tally_train, "pack", flipped)
    logits = torch.zeros(2, 2, 10)
    logits[..., 3] = 1.0
    found = consensus_of(TallyTrain(packed=True), Peers(2), logits)
    assert found[0, 2:4].tolist() == [0.5, 0.5]
    assert found[1, 3] == 1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_ranks_and_probabilities_come_back_to_the_bit(k, packed):
    method = TallyTrain(signal="top_k", k=k, packed=packed)
    logits = torch.randn(4, 6, 10, generator=torch.Generator().manual_seed(0))
    sent = method.messages(Peers(4), logits)
    assert torch.equal(method.send(Peers(4), sent, 12), sent)


@pytest.mark.parametrize(
    ("classes", "settings", "rounds", "megabytes"),
    [
        (100, {"probes_per_round": 32}, 2700, 0.7776),  # Table 1
        (100, {"probes_per_round": 32, "signal": "probabilities"}, 2700, 311.04),
        (100, {"probes_per_round": 32, "signal": "none"}, 2700, 0),
        (10, {}, 2700, 0.3888),  # Table 2
        (10, {"signal": "probabilities"}, 2700, 15.552),
        (10, {"signal": "top_k", "k": 1}, 2700, 0.3888),  # Table 5: 1, 15, and 25 bytes a probe
        (10, {"signal": "top_k", "k": 3}, 2700, 15 * 0.3888),
        (10, {"signal": "top_k", "k": 5}, 2700, 25 * 0.3888),
        (10, {}, 1500, 0.216),  # Table 7
        (10, {"signal": "probabilities"}, 1500, 8.64),
    ],
)
def test_published_payloads_of_the_channel(classes, settings, rounds, megabytes):
    """What ten peers really send of one round's probes, for so many rounds."""
    method, fed = TallyTrain(**settings), Peers(10, classes)
    logits = torch.randn(10, method.probes_per_round, classes)
    if method.signal != "none":
        consensus_of(method, fed, logits)
    sent = sum(fed.ledger.totals()["up"].values()) / 10
    assert rounds * sent / 1e6 == pytest.approx(megabytes)


def test_published_payloads_of_the_language_model():
    """Table 3: 8 peers, 32 x 256 positions a round, two bytes or 4 C each; 0.31 and 1,268 GB."""
    logits = torch.randn(8, 1, 256, 2048, generator=torch.Generator().manual_seed(0))
    found = []
    for signal in ("votes", "probabilities"):
        fed = Peers(8, 2048)
        consensus_of(TallyTrain(signal=signal, probes_per_round=32), fed, logits)
        found.append(32 * 2700 * sum(fed.ledger.totals()["up"].values()) / 8 / 1e9)
    assert found == pytest.approx([0.3096576, 1268.3575296])


class Merging(Peers):
    """Peers with models of a size and no numbers."""

    def __init__(self, peers: int, parameters: int) -> None:
        super().__init__(peers)
        vector = torch.empty(parameters, device="meta")
        self.model = State(vector, vector[:0], vector[:0])
        self.clients = [self] * peers

    def state(self) -> State:
        return self.model

    def merge(self) -> State:
        return self.model

    def broadcast(self, state: State) -> None:
        pass


def merge_bytes(method: TallyTrain, peers: int, parameters: int) -> dict[str, float]:
    """Return megabytes of a peer in one merge, by direction."""
    fed = Merging(peers, parameters)
    method.merge(fed)
    return {way: kinds["model"] / peers / 1e6 for way, kinds in fed.ledger.totals().items()}


def test_published_payloads_of_merges():
    """Table 2: a star of up and down is 89.453 MB a merge; 60, 15 and 6 merges, and 14 + votes."""
    merge = sum(merge_bytes(TallyTrain(merge_every=200), 10, RESNET18).values())
    assert [round(n * merge, 1) for n in (60, 15, 6)] == [5367.2, 1341.8, 536.7]
    assert round(14 * merge + 0.3888, 1) == 1252.7
    assert round(14 * merge + 15.552, 1) == 1267.9
    assert round(3000 * merge, 1) == 268359.4


def test_published_payloads_of_merges_in_a_mesh():
    """Table 3: 163.5 MB a merge; 15 merges, 14 with 0.31 GB of votes, and 3,000."""
    mesh = TallyTrain(merge_every=200, merge_cost="mesh")
    merge = merge_bytes(mesh, 8, TINY_GPT)["up"] / 1e3
    assert round(15 * merge, 2) == 2.45
    assert round(14 * merge + 0.3097, 2) == 2.6
    assert round(3000 * merge, 1) == 490.5
    assert round(merge_bytes(mesh, 10, RESNET18)["up"], 1) == 402.5


def test_merges_of_the_bridge_and_of_fedavg():
    """The bridge merges after warm-up only: 14 times in 3,000 rounds, FedAvg-fa200 15 times."""

    class Count:
        merges = 0

    class Counting(TallyTrain):
        def merge(self, fed):
            Count.merges += 1

        def consensus_step(self, fed, r):
            pass

    class Nobody:
        def __init__(self):
            self.server_state = {}
            self.spec = small_spec()

        def train_private(self, **kwargs):
            pass

        def send_alike(self, name, step):
            step()

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
    fed, _ = peers_after(1, federation, call)
    before = fed.vectors()
    assert not torch.equal(before[0], before[1])
    fed, _ = peers_after(2, federation, call)
    vectors = fed.vectors()
    assert torch.equal(vectors[0], vectors[1])
    steps = {float(c.optimizer.state[c.vector]["step"]) for c in fed.clients}
    assert steps == {2.0}
    moments = [c.optimizer.state[c.vector]["exp_avg"] for c in fed.clients]
    assert not torch.equal(moments[0], moments[1])


def test_all_peers_answer_the_same_probes(federation):
    fed, _ = peers_after(1, federation, "tally_train(warm_up=0)")
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
    fed, method = peers_after(2, federation, call)
    before = fed.vectors()
    fed.round = 3
    fed.ledger.start(3)
    method.consensus_step(fed, 3)
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
    wanted = after_step(peer, loss)
    TallyTrain(warm_up=0).consensus_step(fed, 1)
    assert torch.allclose(peer.vector, wanted, atol=1e-6)


@pytest.mark.parametrize("beta_asy", [0.0, 0.5])
@pytest.mark.parametrize("beta_dis", [0.0, 2.0])
def test_one_step_with_the_weights_of_appendix_d(federation, beta_dis, beta_asy):
    """CE / 2 and, probe by probe, (1 + β_dis (1 - max H̄)) KL(H̃ ‖ f) / 2, by autograd."""
    sgd = {"name": "sgd", "lr": 0.1}
    fed = federation(method="tally_train(warm_up=0)", partition="iid(90)", optimizer=sgd)
    fed.round = 1
    fed.ledger.start(1)
    peer, probes = fed.clients[0], fed.probes(16)
    hot = torch.nn.functional.one_hot(fed.logits(probes).argmax(-1), 10).double()
    rare = 1 / (hot * hot.mean(0)).sum(-1)  # of each peer on each probe
    share = (1 - beta_asy) / 4 + beta_asy * rare / rare.sum(0)
    h = (share[..., None] * hot).sum(0)
    assert (hot.mean(0).max(-1).values < 1).any(), "peers disagree, or nothing is tested"
    logs = peer.model(fed.data.inputs(probes)).log_softmax(1)
    kl = (h * (h.clamp_min(1e-30).log() - logs)).sum(1)
    weighed = (1 + beta_dis * (1 - hot.mean(0).max(-1).values)) * kl
    loss = 0.5 * torch.nn.functional.nll_loss(logs, fed.labels(probes)) + 0.5 * weighed.mean()
    wanted = after_step(peer, loss)
    TallyTrain(warm_up=0, emphasis=beta_dis, asymmetry=beta_asy).consensus_step(fed, 1)
    assert torch.allclose(peer.vector, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("tally_train(warm_up=0)", "logits of client 1 are not finite"),
        ("local", "cross-entropy of client 1 on the test split is nan"),
    ],
)
def test_a_run_whose_votes_or_scores_are_not_numbers_has_diverged(train, monkeypatch, method, what):
    """Weights become NaN after the last step of training, whose loss is still finite."""

    def breaks(fed, **given):
        trained(fed, **given)
        with torch.no_grad():
            fed.clients[1].vector.fill_(torch.nan)

    trained = Federation.train_private
    monkeypatch.setattr(Federation, "train_private", breaks)
    result = read_json(train(method=method, partition="iid(90)") / "result.json")
    assert (result["status"], result["message"]) == ("diverged", f"round 1: {what}")


def test_labels_alone_are_no_consensus(federation):
    """Table 1's α = 1: the same models, however the consensus that counts nothing is formed."""
    found = []
    for signal in ("none", "votes", "probabilities"):
        call = f"tally_train(warm_up=0, label_weight=1.0, signal='{signal}')"
        found.append(peers_after(2, federation, call)[0])
    vectors = [fed.vectors() for fed in found]
    assert torch.equal(vectors[0], vectors[1])
    assert torch.equal(vectors[0], vectors[2])
    assert [bool(fed.ledger.totals()["up"]) for fed in found] == [False, True, True]


def test_fedprox_is_centred_where_the_last_merge_left_it(federation):
    """Appendix L: each peer's own start at first, then the merged model, for all rounds between."""
    call = "tally_train(signal='none', label_weight=0.0, warm_up=0, merge_every=2, proximal=0.1)"
    fed, method = peers_after(0, federation, call)
    start, train, given, merged = fed.vectors(), fed.train_private, [], {}

    def seen(*, proximal_mu, prox_centers: torch.Tensor):
        given.append((proximal_mu, prox_centers.clone()))
        train(proximal_mu=proximal_mu, prox_centers=prox_centers)

    fed.train_private = seen
    for fed.round in range(1, 6):
        method.round(fed, fed.round)
        merged[fed.round] = fed.vectors()
    wanted = [start, start, merged[2], merged[2], merged[4]]
    assert all(torch.equal(a, b) for (_, a), b in zip(given, wanted, strict=True))
    assert {mu for mu, _ in given} == {0.1}
    assert torch.equal(merged[2][0], merged[2][3])
    assert not torch.equal(merged[3], merged[2])


def test_the_gradient_of_the_proximal_term(federation):
    """With plain SGD and one step, μ (w - w_0) on top of the gradient of the loss."""
    given = {"partition": "iid(90)", "local": {"steps": 1}, "rounds": 10, "method": "local"}
    given["optimizer"] = {"name": "sgd", "lr": 0.1}
    plain, proximal = federation(**given), federation(**given)
    start = plain.vectors()
    centers = start + torch.randn(start.shape, generator=torch.Generator().manual_seed(0))
    plain.round = proximal.round = 1
    plain.train_private()
    proximal.train_private(proximal_mu=0.5, prox_centers=centers)
    wanted = plain.vectors() - 0.1 * 0.5 * (start - centers)
    assert torch.allclose(proximal.vectors(), wanted, atol=1e-6)


def test_a_round_of_feddf_by_hand(federation):
    """Start from the student, train, average, and one step on softmax of the peers' mean logits."""
    given = {"partition": "iid(90)", "local": {"steps": 2}, "rounds": 10}
    given |= {"optimizer": {"name": "sgd", "lr": 0.1}, "method": "feddf_fusion(warm_up=1)"}
    fed, twin = federation(**given), federation(**given)
    method = methods.get(small_spec(**given).method)
    for one in (fed, twin):
        method.init(one)
    student = fed.server.vector.detach().clone()
    for r in (1, 2):
        for one in (fed, twin):
            one.round = r
            one.ledger.start(r)
        twin.load_vectors(student.expand(4, -1))  # all start from the student
        twin.train_private()
        student = twin.vectors().mean(0)
        if r > 1:  # after warm-up the server distils
            probes = twin.probes(16)
            target = twin.logits(probes).mean(0).softmax(-1)
            with torch.no_grad():
                twin.server.vector.copy_(student)
            logs = twin.server.model(twin.data.inputs(probes)).log_softmax(1)
            loss = -(target * logs).sum(1).mean()
            student = after_step(twin.server, loss)
        method.round(fed, r)
        assert torch.allclose(fed.server.vector, student, atol=1e-6), r
        # 4 bytes a parameter from and to each of 4 peers.
        assert fed.ledger.of_round(r)["bytes_up"] == 4 * 4 * student.numel()
        assert fed.ledger.of_round(r)["bytes_down"] == 4 * 4 * student.numel()
    assert len(fed.evaluate().per_client) == 1, "one model, so no spread over peers"


def test_feddf_of_three_steps_asks_the_peers_once_and_takes_each_on_other_probes(federation):
    """Plain SGD of softmax of the peers' mean logits, on three batches of 5 of the 15 probes."""
    sgd = {"name": "sgd", "lr": 0.1}
    call = "feddf_fusion(warm_up=0, probes_per_round=5, server_steps=3)"
    fed, _ = peers_after(1, federation, call, optimizer=sgd)
    twin, _ = peers_after(1, federation, "feddf_fusion(warm_up=0, server_steps=0)", optimizer=sgd)
    probes, model = twin.probes(15), twin.server.model
    targets = twin.logits(probes).mean(0).softmax(-1)
    for batch in range(0, 15, 5):
        points, target = probes[batch : batch + 5], targets[batch : batch + 5]
        loss = -(target * model(twin.data.inputs(points)).log_softmax(1)).sum(1).mean()
        stepped = after_step(twin.server, loss)
        with torch.no_grad():
            twin.server.vector.copy_(stepped)
    assert torch.allclose(fed.server.vector, twin.server.vector, atol=1e-6)


@pytest.mark.parametrize(("server_optimizer", "steps"), [("kept", 3), ("new", 1)])
def test_feddfs_server_keeps_its_optimizer_or_starts_anew(federation, server_optimizer, steps):
    call = f"feddf_fusion(warm_up=0, server_optimizer='{server_optimizer}')"
    fed, _ = peers_after(3, federation, call)
    assert float(fed.server.optimizer.state[fed.server.vector]["step"]) == steps
    without, _ = peers_after(3, federation, "feddf_fusion(warm_up=0, server_steps=0)")
    assert not without.server.optimizer.state, "and without steps there is nothing to keep"


def test_rc_fd_of_one_rank_is_tally_train_to_the_bit(federation):
    votes, _ = peers_after(3, federation, "tally_train(warm_up=0)")
    rank, _ = peers_after(3, federation, "tally_train(warm_up=0, signal='top_k', k=1)")
    assert torch.equal(votes.vectors(), rank.vectors())
    assert votes.ledger.totals() == rank.ledger.totals()


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
    with refused(said):
        small_spec(method=call)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("signal='none', topology='ring'", "topology = 'ring': nothing is sent"),
        ("signal='none', emphasis=2.0", "emphasis = 2.0: nothing is sent"),
        ("signal='none', asymmetry=0.5", "asymmetry = 0.5: only votes"),
        ("signal='none', margin_memory=0.9", "margin_memory = 0.9: nothing is sent"),
        ("signal='none', decay_rounds=2", "decay_rounds = 2: nothing is sent"),
        ("attack='random'", "attack = 'random': there are no adversaries; give some"),
        ("magnitude=100.0", "magnitude = 100.0: there are no adversaries; give some"),
        ("degree=2", "degree = 2: is for topology = 'regular'"),
        ("topology='ring', degree=2", "degree = 2: is for topology = 'regular'"),
        ("trim=0.4", "trim = 0.4: is for rule = 'trimmed_mean'"),
        ("k=3", "k = 3: is for signal = 'top_k'"),
        ("merge_cost='mesh'", "merge_cost = 'mesh': nothing is merged; give merge_every"),
        ("merge_every=4", "merge_every = 4: no multiple of it is among the rounds 1 to 3"),
        ("adversaries=1, magnitude=5.0", "magnitude = 5.0: a vote has none"),
        ("label_weight=1.0, emphasis=2.0", "emphasis = 2.0: the consensus weighs nothing"),
        (
            "adversaries=1, signal='top_k', magnitude=5.0",
            "magnitude = 5.0: a vote has none",
        ),
        ("label_weight=1.0, decay_rounds=2", "decay_rounds = 2: the consensus weighs nothing"),
        ("label_weight=1.0, margin_memory=0.5", "margin_memory = 0.5: the consensus weighs"),
        ("label_weight=1.0, asymmetry=0.5", "asymmetry = 0.5: the consensus weighs nothing"),
        ("label_weight=1.0, adversaries=1", "adversaries = 1: the consensus weighs nothing"),
        (
            "label_weight=1.0, signal='probabilities', rule='median'",
            "rule = 'median': the consensus weighs nothing",
        ),
    ],
)
def test_a_setting_without_effect_is_refused(settings, said):
    with refused(said):
        small_spec(method=f"tally_train(warm_up=0, {settings})")


@pytest.mark.parametrize(
    "settings",
    [
        "adversaries=1, attack='random'",
        "adversaries=1, signal='top_k', k=2, magnitude=5.0",
        "topology='regular', degree=2",
        "merge_every=3",
    ],
)
def test_and_with_an_effect_is_not(settings):
    assert small_spec(method=f"tally_train(warm_up=0, {settings})")
