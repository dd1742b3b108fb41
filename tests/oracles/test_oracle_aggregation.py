"""Aggregation functions beside their second versions, on random input with edges of all kinds."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from oracles import aggregation as plain
from oracles import fedet, fedhkt, mine
from oracles.fedkt import plurality
from oracles.pseudo_labels import pseudo_labels

from fedlogit.aggregation import Targets, confidence, contribution, hard_votes, robust, uwa, votes
from fedlogit.aggregation import pseudo_labels as algorithm1
from fedlogit.aggregation.fedet import consensus_with_diversity
from fedlogit.aggregation.targets import as_targets, one_hot_targets
from fedlogit.errors import FedlogitError

KINDS = ("usual", "large", "twins", "flat")
kinds = pytest.mark.parametrize("kind", KINDS)


def sources(times: int = 50) -> Iterator[np.random.Generator]:
    return map(np.random.default_rng, range(times))


def logits(source: np.random.Generator, kind: str) -> torch.Tensor:
    """Return float32 logits (clients, points, classes) of 1 to 6 clients and 2 to 6 classes.

    The softmax of ``large`` ones is 0 or 1 to the last bit, and that of ``sure`` ones next to 0 in
    all but two classes; of ``twins``, two clients are equal; a ``flat`` client knows nothing.
    """
    clients, classes = (int(n) for n in source.integers((1, 2), 7))
    z = source.normal(0, 400.0 if kind == "large" else 3.0, (clients, 12, classes))
    if kind == "sure":
        z[..., 2:] -= 60
    if kind == "twins":
        z[-1] = z[0]
    if kind == "flat":
        z[-1] = 0.25
    return torch.tensor(z, dtype=torch.float32)


def same(found: object, wanted: object) -> bool:
    a, b = (np.asarray(v, dtype=np.float64) for v in (found, wanted))
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=True)


@kinds
def test_entropy_weights_and_their_mixture(kind):
    for source in sources():
        z = logits(source, kind)
        terms = fedhkt.terms(z.double())
        weights = confidence.entropy_weights(z)
        assert same(weights, torch.stack([w for w, _ in terms]))
        assert same(confidence.mixture(z, weights), sum(w[:, None] * p for w, p in terms))


@kinds
def test_the_most_certain_client(kind):
    for source in sources():
        z = logits(source, kind)
        [(_, wanted)] = mine.terms(z.double())
        assert same(hard_votes.least_entropy(z), wanted.argmax(1))


@kinds
def test_consensus_with_diversity(kind):
    for source in sources():
        z, strength = logits(source, kind), source.uniform(0, 1)
        found = consensus_with_diversity(z, strength).weighted()
        assert same(found, sum(w[:, None] * t for w, t in fedet.terms(z.double(), strength)))


@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("kind", ["usual", "large", "twins", "sure"])
def test_pseudo_labels(kind, negative):
    for source in sources():
        z, rho = logits(source, kind), source.choice([0.1, 0.15, 0.5, 1.0])
        c2 = confidence.class_confidence(z)
        found = algorithm1.pseudo_labels(z, c2, rho, negative=negative).tolist()
        wanted = pseudo_labels(z.double().softmax(2).numpy(), rho, negative, "confidence")
        assert [None if label < 0 else label for label in found] == wanted


@pytest.mark.parametrize("consistent", [True, False])
def test_votes_of_parties(consistent):
    """Few classes, so that many votes are tied; a label of nobody weighs nothing."""
    for source in sources():
        classes, shape = int(source.integers(2, 5)), (*source.integers(1, 5, 2), 20)
        ballots = source.integers(classes, size=shape)
        found = hard_votes.consistent_votes(torch.tensor(ballots), classes, consistent=consistent)
        for n, label in enumerate(found.tolist()):
            parties = [party[:, n].tolist() for party in ballots]
            cast = [v for party in parties if not consistent or len(set(party)) == 1 for v in party]
            wanted = plurality(cast)
            assert label == (-1 if wanted is None else wanted)
        targets = one_hot_targets(found, classes)
        assert same(targets.weights, found >= 0)
        assert same(targets.distributions.argmax(1)[found >= 0], found[found >= 0])


def test_teachers_majority():
    for source in sources():
        said = source.integers(3, size=(int(source.integers(1, 7)), 20))
        wanted = [plurality(column) for column in said.T.tolist()]
        assert hard_votes.majority(torch.tensor(said), 3).tolist() == wanted


def test_histograms_of_votes():
    for source in sources():
        classes, mixing = int(source.integers(2, 7)), source.uniform()
        said = source.integers(classes, size=(int(source.integers(1, 9)), 20))
        columns = said.T.tolist()
        found = votes.tally(torch.tensor(said), classes)
        assert same(found, [plain.histogram(v, classes) for v in columns])
        found = votes.asymmetric(torch.tensor(said), classes, mixing)
        assert same(found, [plain.minority(v, classes, mixing) for v in columns])


@pytest.mark.parametrize("classes", [2, 3, 10, 100, 256, 257, 8192])
def test_packed_votes(classes):
    for source in sources(10):
        said = source.integers(classes, size=(2, int(source.integers(1, 30))))
        found = votes.pack(torch.tensor(said), classes)
        assert found.tolist() == [plain.packed(row, classes) for row in said.tolist()]
        assert votes.unpack(found, said.shape[1], classes).tolist() == said.tolist()


@pytest.mark.parametrize("rule", ["mean", "trimmed_mean", "median"])
@pytest.mark.parametrize("kind", ["votes", "probabilities", "tiny"])
def test_robust_means(kind, rule):
    for source in sources():
        peers, trim = int(source.integers(1, 9)), source.choice([0.0, 0.1, 0.25, 0.49])
        claims = torch.tensor(source.dirichlet(np.ones(5), (peers, 10)), dtype=torch.float32)
        if kind == "votes":  # whose median is often 0 in all classes
            claims = torch.eye(5)[torch.tensor(source.integers(5, size=(peers, 10)))]
        if kind == "tiny":
            claims *= 1e-34
        wanted = [plain.robust(claims[:, n].numpy(), rule, trim) for n in range(10)]
        assert same(robust.robust_average(claims, rule, trim), wanted)


@pytest.mark.parametrize("kind", ["usual", "large"])
def test_uwa(kind):
    """Some classes have one sample or none, so that some clients have no density anywhere."""
    for source in sources():
        z = logits(source, kind)
        clients, points, classes = z.shape
        held = source.integers(classes, size=(clients, 4))
        groups = [uwa.by_class(own[:4], torch.tensor(y)) for own, y in zip(z, held, strict=True)]
        mixtures = [
            uwa.fit_classes(of_client, 0.01) if of_client else uwa.no_density(z[0])
            for of_client in groups
        ]
        found = torch.stack([m.log_density(z_i) for m, z_i in zip(mixtures, z, strict=True)])
        rows = z.double().numpy()
        own = [plain.fitted(rows[i, :4], y, 0.01) for i, y in enumerate(held)]
        wanted = [[plain.density(m, x) for x in rows[i]] for i, m in enumerate(own)]
        assert same(found, wanted)
        together = uwa.weighted_logits(z, uwa.density_weights(found))
        assert same(
            together, [plain.weighted(rows[:, n], np.array(wanted)[:, n]) for n in range(points)]
        )


def test_contributions_by_evidence():
    """Classes without evidence, and a federation without any."""
    for source in sources():
        u = source.normal(0, 3, (int(source.integers(1, 6)), 4))
        u[:, 0] -= 20
        b = source.normal(source.choice([-2.0, 2.0, 30.0]), 1, 4)
        found = contribution.instantaneous_scores(
            contribution.evidence(torch.tensor(u), torch.tensor(b))
        )
        wanted = plain.scores(u, b)
        assert (found is None) == (wanted is None)
        assert found is None or same(found, wanted)


def test_class_similarity():
    for source in sources():
        heads = source.normal(0, 10.0 ** source.integers(-3, 3), (4, 3, 5))
        heads[source.integers(4), source.integers(3)] = 0
        weights = source.dirichlet(np.ones(4))
        found = contribution.class_similarity(torch.tensor(heads), torch.tensor(weights))
        assert same(found, plain.cosines(heads, weights))


@pytest.mark.parametrize("tied", [False, True])
def test_largest_entries(tied):
    for source in sources():
        values = source.integers(-3, 4, 30) if tied else source.normal(0, 1, 30)
        count = int(source.integers(1, 35))
        found = contribution.keep_largest(torch.tensor(values, dtype=torch.float64), count)
        assert same(found, plain.largest(values.tolist(), count))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.5])
@pytest.mark.parametrize("part", ["distributions", "weights"])
def test_what_is_no_distribution_or_weight_is_refused(part, bad):
    for source in sources(20):
        given, at = random_targets(source), int(source.integers(9))
        spoilt = torch.tensor([bad, 1 - bad, 0, 0])  # which sums to 1 where it can
        getattr(given, part)[at] = spoilt if part == "distributions" else bad
        with pytest.raises(FedlogitError, match=f"no distribution for public sample {at}:"):
            as_targets(given, torch.zeros(3, 9, 4), "some")


def test_distributions_with_weights_pass_unchanged():
    for source in sources(20):
        given = random_targets(source)
        found = as_targets(given, torch.zeros(3, 9, 4), "some")
        assert same(found.weighted(), given.distributions * given.weights[:, None])


def random_targets(source: np.random.Generator) -> Targets:
    rows = torch.tensor(source.dirichlet(np.ones(4), 9), dtype=torch.float32)
    return Targets(rows, torch.tensor(source.choice([0.0, 0.5, 2.0], 9), dtype=torch.float32))
