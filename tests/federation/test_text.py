"""A federation on a text: votes, targets, bytes and scores at every position; clipped gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.consensus import consensus_of
from support.gradients import after_step
from support.refusals import refused
from support.small import TEXT, small_spec
from torch import nn

from fedlogit import methods
from fedlogit.aggregation import Targets
from fedlogit.engine.task import ClientTask
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation.client_tasks import batches
from fedlogit.methods.feddf import FedDF
from fedlogit.methods.tally_train import TallyTrain
from fedlogit.runs.setup import divide

SGD = {"name": "sgd", "lr": 0.1}


class Fixed(nn.Module):
    """A model with one answer at every position."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(*x.shape, -1)


def test_chunks_are_contiguous_and_the_public_set_is_the_end(federation):
    fed = federation(**TEXT, method="local")
    parts = [c.private for c in fed.clients]
    assert [len(part) for part in parts] == [65] * 4  # 300 less 40, for 4
    everything = torch.cat([*parts, fed.public])
    assert torch.equal(everything, everything.sort().values)
    assert len(everything.unique()) == 300
    assert fed.counts.tolist() == [[65]] * 4, "a sequence has no class of its own"


def test_perplexity_of_a_model_that_says_the_same_everywhere(federation):
    fed = federation(**TEXT, method="local", clients=2)
    labels = fed.data.test_labels
    share = torch.bincount(labels.flatten(), minlength=300).double() / labels.numel()
    guess = torch.zeros(300)
    fed.clients[0].model = Fixed(guess)
    guess = guess.clone()
    guess[int(share.argmax())] = math.log(300)  # p = 300 / 599 there, 1 / 599 elsewhere
    fed.clients[1].model = Fixed(guess)
    scores = fed.evaluate()
    top = float(share.max())
    perplexity = math.exp(-(top * math.log(300 / 599) + (1 - top) * math.log(1 / 599)))
    assert np.exp(scores.loss) == pytest.approx([300, perplexity], rel=1e-5)
    assert scores.row()["perplexity"] == pytest.approx((300 + perplexity) / 2, rel=1e-5)
    assert scores.per_client[1] == pytest.approx(top)
    assert labels.shape == (20, 32)


def test_votes_are_counted_at_every_position(federation):
    fed = federation(**TEXT, method="tally_train(warm_up=0)", clients=3)
    for client, token in zip(fed.clients, (5, 5, 9), strict=True):
        client.model = Fixed(F.one_hot(torch.tensor(token), 300).float())
    fed.round = 1
    fed.ledger.start(1)
    probes = fed.probes(16)
    consensus = consensus_of(TallyTrain(), fed, fed.logits(probes))
    assert consensus.shape == (16, 32, 300)
    assert torch.equal(consensus[..., 5], torch.full((16, 32), 2 / 3))
    assert torch.equal(consensus[..., 9], torch.full((16, 32), 1 / 3))
    assert consensus.sum() == pytest.approx(16 * 32)
    # 16 sequences of 32 votes, of two bytes since 300 > 256, from 3 peers to 2 others each.
    assert fed.ledger.totals()["up"] == {"votes": 16 * 32 * 2 * 3 * 2}


def test_peers_on_a_ring_learn_a_tally_of_their_own_at_every_position(federation):
    """With plain SGD, each peer's step is that of a tally over itself and its two neighbours."""
    call = "tally_train(warm_up=0, label_weight=0.0, topology='ring')"
    fed = federation(**TEXT | {"optimizer": SGD}, method=call, clients=5)
    fed.round = 1
    fed.ledger.start(1)
    probes = fed.probes(16)
    votes = fed.logits(probes).argmax(-1)
    method = methods.get(fed.spec.method)
    assert consensus_of(method, fed, fed.logits(probes)).shape == (5, 16, 32, 300)
    wanted = []
    for peer in fed.clients:
        heard = [(peer.index + step) % 5 for step in (-1, 0, 1)]
        h = F.one_hot(votes[heard], 300).float().mean(0)
        loss = -(h * peer.model(fed.data.inputs(probes)).log_softmax(-1)).sum(-1).mean()
        wanted.append(after_step(peer, loss))
    method.consensus_step(fed, 1)
    assert torch.allclose(fed.vectors(), torch.stack(wanted), atol=1e-6)


@pytest.mark.parametrize("attack", ["random", "colluding", "confident"])
@pytest.mark.parametrize(
    "settings",
    [
        "signal='votes'",
        "signal='probabilities', rule='median', magnitude=50.0",
        "signal='top_k', k=3, rule='trimmed_mean', trim=0.2, magnitude=50.0",
    ],
)
def test_one_adversary_of_five_turns_no_position(federation, settings, attack):
    call = f"tally_train(warm_up=0, adversaries=1, attack='{attack}', {settings})"
    fed = federation(**TEXT, method=call, clients=5)
    fed.round = 1
    fed.ledger.start(1)
    agreed = torch.arange(2 * 32).view(2, 32)
    logits = 9 * F.one_hot(agreed, 300).float().expand(5, 2, 32, 300)
    consensus = consensus_of(methods.get(fed.spec.method), fed, logits)
    assert torch.equal(consensus.argmax(-1), agreed)
    assert torch.allclose(consensus.sum(-1), torch.ones(2, 32))


@pytest.fixture
def taught(federation, monkeypatch):
    """A federation on a text whose method teaches a server, as one from another package may."""
    monkeypatch.setattr(FedDF, "supports_sequences", True)
    server = {"model": TEXT["models"][0], "epochs": 1, "batch": 40, "optimizer": SGD}
    fed = federation(**TEXT, method="feddf", rounds=1, server=server)
    fed.start_round(1)
    return fed


@pytest.mark.parametrize("weights", [None, torch.arange(40) % 4 / 2])
def test_a_server_learns_a_target_at_every_position_by_its_sequences_weight(taught, weights):
    said = torch.randn(40, 32, 300, generator=torch.Generator().manual_seed(0)).softmax(-1)
    logs = taught.server.model(taught.data.inputs(taught.public)).log_softmax(-1)
    each = torch.ones(40) if weights is None else weights
    # The mean is over the positions of sequences with a weight.
    loss = -(each[:, None, None] * said * logs).sum() / (32 * int((each > 0).sum()))
    wanted = after_step(taught.server, loss)
    taught.distil_server(said if weights is None else Targets(said, weights))
    assert torch.allclose(taught.server.vector, wanted, atol=1e-6)


def test_one_position_without_a_distribution_is_found(taught):
    said = torch.full((40, 32, 300), 1 / 300)
    said[7, 5] *= 2
    with refused("no distribution for public sample 7: smallest 0.003333, sum 2, weight 1"):
        taught.distil_server(said)


def test_bytes_of_soft_labels_and_of_a_mesh_of_models(federation):
    call = "tally_train(warm_up=0, signal='probabilities', merge_every=1, merge_cost='mesh')"
    fed = federation(**TEXT, method=call)
    fed.round = 1
    fed.ledger.start(1)
    method = TallyTrain(warm_up=0, signal="probabilities", merge_every=1, merge_cost="mesh")
    method.round(fed, 1)
    model = 300 * 16 + 32 * 16 + 12 * 16**2 + 4 * 16 + 2 * 16 + 16 * 300
    assert fed.clients[0].vector.numel() == model
    assert fed.ledger.totals()["up"] == {
        "probabilities": 16 * 32 * 300 * 4 * 4 * 3,
        "model": model * 4 * 4 * 3,
    }


def test_a_step_on_private_text_is_next_token_cross_entropy(federation):
    fed = federation(**TEXT | {"optimizer": SGD}, method="local", local={"steps": 1})
    client = fed.clients[0]
    fed.round = 1
    (batch,) = batches(fed.context, "private", client, client.samples)
    indices = client.private[batch]
    log_p = client.model(fed.data.x[indices]).log_softmax(-1)
    loss = -log_p.gather(-1, fed.data.labels[indices][..., None]).mean()
    wanted = after_step(client, loss)
    fed.train_private()
    assert torch.allclose(client.vector, wanted, atol=1e-6)


def test_gradients_are_made_finite_and_clipped_by_hand(federation):
    optimizer = {**SGD, "lr": 1.0, "clip": 2.0, "zero_nonfinite_grads": True}
    (client, *_) = federation(**TEXT | {"optimizer": optimizer}, method="local").clients
    before = client.vector.detach().clone()
    client.vector.grad = torch.zeros_like(client.vector.detach())
    client.vector.grad[:4] = torch.tensor([3.0, math.nan, math.inf, 4.0])  # of norm 5 without them
    client.step()
    moved = (before - client.vector.detach())[:4]
    assert moved.tolist() == pytest.approx([1.2, 0, 0, 1.6], rel=1e-5)
    client.vector.grad[:4] = torch.tensor([0.3, 0, 0, 0.4])  # shorter than 2: as it is
    before = client.vector.detach().clone()
    client.step()
    moved = (before - client.vector.detach())[:4]
    assert moved.tolist() == pytest.approx([0.3, 0, 0, 0.4], abs=1e-6)


@pytest.mark.parametrize("zero_nonfinite_grads", [True, False])
def test_a_phase_diverges_if_no_minibatch_is_finite_or_one_is_not(federation, zero_nonfinite_grads):
    class Broken(nn.Module):
        """Not finite on the samples that start with a token below a limit."""

        def __init__(self, model: nn.Module, limit: int) -> None:
            super().__init__()
            self.model, self.limit = model, limit

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.where(x[:, :1, None] < self.limit, math.nan, 1.0) * self.model(x)

    optimizer = {**SGD, "zero_nonfinite_grads": zero_nonfinite_grads}
    fed = federation(**TEXT | {"optimizer": optimizer}, method="local")
    client, firsts = fed.clients[0], fed.data.x[:, 0]
    plain, limit = client.model, int(firsts[client.private].median())
    batches = list(torch.arange(client.samples).split(1))

    def trained(limit: int) -> float:
        client.model = Broken(plain, limit)
        labels = fed.data.labels[client.private]
        (loss,) = fed.engine.train([ClientTask(client, client.private, batches, labels)])
        return loss

    with pytest.raises(Diverged):
        trained(300)
    if zero_nonfinite_grads:
        assert math.isfinite(trained(limit))
        assert client.vector.isfinite().all()
    else:
        with pytest.raises(Diverged):
            trained(limit)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": None}, "dataset sklearn_docs is a text; give text: {vocabulary: n, length: n}"),
        ({"dataset": "digits"}, "text is given, but dataset digits is not a text"),
        ({"method": "uwa"}, "method uwa takes samples of one class"),
        ({"augment": "crop_flip"}, "dataset sklearn_docs has no images"),
        (
            {"text": {"vocabulary": 65537, "length": 32}, "method": "tally_train(warm_up=0)"},
            "65537 classes: a vote has two bytes, which tell 65536 apart",
        ),
        (
            {"method": "tally_train(warm_up=0, signal='top_k', k=301)"},
            "k = 301: give at most the 300 classes",
        ),
        (
            {"method": "tally_train(warm_up=0)", "export": ["theory"]},
            "export = 'theory' needs one class a sample",
        ),
        (
            {
                "method": "tally_train(warm_up=0, label_weight=0.0)",
                "public": {"size": 40, "stratified": False, "dataset": "photos8"},
            },
            "public.dataset = 'photos8': dataset sklearn_docs is a text",
        ),
        ({"text": {"vocabulary": 256, "length": 32}}, "text.vocabulary = 256"),
        ({"text": {"vocabulary": 300, "length": 0}}, "text.length = 0"),
    ],
)
def test_bad_specs_get_one_line(changes, said):
    with refused(said):
        small_spec(**TEXT | {"method": "local"} | changes)


def test_a_sequence_longer_than_a_chunk(data_of):
    spec = small_spec(**TEXT | {"train_size": 43}, method="local")
    with pytest.raises(FedlogitError) as error:
        divide(spec, data_of(spec))
    assert str(error.value) == (
        "text.length = 32: longer than a client's chunk, which would have 24 tokens (clients = 4);"
        " give less"
    )


def test_a_context_shorter_than_the_sequences(federation):
    short = "tiny_gpt(layers=1, width=16, heads=2, context=31)"
    with pytest.raises(FedlogitError, match="context = 31: sequences have 32 tokens"):
        federation(**TEXT | {"models": [short]}, method="local")
