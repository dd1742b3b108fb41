"""Label skew among clients of equal size (Hsu et al. 2019)."""

import numpy as np
import pytest

from fedlogit.partition import get, make_split

CIFAR10 = np.repeat(np.arange(10), 5000)
QUARTERS = np.repeat([0, 1], [1000, 3000])  # a quarter of class 0
HALVES = np.repeat([0, 1], 10)


def drawn(call, labels=QUARTERS, seeds=400):
    """Return the samples of class 0 at each of four clients, one row a seed."""
    return np.array(
        [make_split(labels, 2, call, 4, seed).counts[:, 0] for seed in range(seeds)], float
    )


@pytest.mark.parametrize("alpha", [0.05, 1.0, 100.0])
def test_the_papers_100_clients_hold_500_images_each(alpha):
    split = make_split(CIFAR10, 10, f"dir_equal({alpha})", 100, 0)
    assert (split.counts.sum(axis=1) == 500).all()
    assert (split.counts.sum(axis=0) == 5000).all()
    assert sorted(np.concatenate(split.clients).tolist()) == [*range(50_000)]


def test_a_remainder_goes_to_the_first_clients():
    # 4,000 = 3 * 1,333 + 1
    parts = get("dir_equal(1.0)").split(QUARTERS, 3, 2, 0)
    assert [len(part) for part in parts] == [1334, 1333, 1333]


def test_size_is_everyones_and_no_sample_is_dealt_twice():
    parts = get("dir_equal(0.5, size=300)").split(QUARTERS, 4, 2, 0)
    assert [len(part) for part in parts] == [300] * 4
    assert len(np.unique(np.concatenate(parts))) == 1200


@pytest.mark.parametrize(("prior", "p"), [("data", 0.25), ("uniform", 0.5)])
def test_counts_deviate_as_a_dirichlet_multinomial_does(prior, p):
    # With m = 20 draws and alpha = 3, E = m p and Var = m p (1 - p) (m + alpha) / (1 + alpha).
    counts = drawn(f"dir_equal(3.0, size=20, prior={prior!r})")
    variance = 20 * p * (1 - p) * 23 / 4
    assert counts.mean() == pytest.approx(20 * p, abs=5 * np.sqrt(variance / 1600))
    assert counts.var() == pytest.approx(variance, rel=0.12)


def test_clients_without_skew_deviate_as_draws_do():
    # At a huge alpha q = p: Var = m p (1 - p) = 20 * 0.1875.
    assert drawn("dir_equal(1e6, size=20)").var() == pytest.approx(3.75, rel=0.12)


def test_alpha_is_of_all_classes_together():
    # 30 classes of which a client holds: at Dir(3 p) about as few as Dir(0.1 * 1_K) gives. The
    # shares' mean sum of squares is (1 + alpha / K) / (1 + alpha) = 1.1 / 4.
    labels = np.repeat(np.arange(30), 4000)
    counts = make_split(labels, 30, "dir_equal(3.0, size=2000)", 40, 0).counts / 2000
    assert (counts**2).sum(axis=1).mean() == pytest.approx(1.1 / 4, abs=0.06)


def test_two_clients_of_one_class_each():
    # At this alpha each draws one class. If they differ, nothing runs out. If both draw the same,
    # they take it by turns, in random order, and then what is left: the other class.
    seen = set()
    for seed in range(20):
        counts = make_split(HALVES, 2, "dir_equal(1e-6)", 2, seed).counts
        assert (counts.sum(axis=0) == 10).all()
        assert (counts.sum(axis=1) == 10).all()
        seen.add(tuple(counts[0].tolist()))
    assert {(10, 0), (0, 10)} < seen
    assert any(0 < first < 10 for first, _ in seen)


def test_leftovers_are_spread_over_all_clients():
    # Everybody wants class 0, of which there is a quarter: in random turns the four clients get
    # about 250 each, with deviation 12; one after the other, the first would take all of it.
    wants = [seed for seed in range(200) if (drawn_first(seed) == [1, 1, 1, 1]).all()]
    counts = make_split(QUARTERS, 2, "dir_equal(1e-6, prior='uniform')", 4, wants[0]).counts
    assert counts.sum(axis=1).tolist() == [1000] * 4
    assert (np.abs(counts[:, 0] - 250) < 60).all()


def drawn_first(seed):
    """Return who draws class 0 with this seed: with one sample each, none runs out."""
    return make_split(QUARTERS, 2, "dir_equal(1e-6, size=1, prior='uniform')", 4, seed).counts[:, 0]


def test_the_last_sample_of_all_divides_nothing_by_zero():
    with np.errstate(all="raise"):
        get("dir_equal(1.0)").split(HALVES, 2, 2, 0)


def test_a_class_of_one_sample_is_dealt_like_any_other():
    split = make_split(np.array([0, *[1] * 9]), 2, "dir_equal(1.0)", 2, 0)
    assert split.counts.sum(axis=0).tolist() == [1, 9]


def test_a_class_without_samples_has_no_share():
    split = make_split(np.repeat([0, 2], 50), 3, "dir_equal(1.0, prior='uniform')", 5, 0)
    assert (split.counts[:, 1] == 0).all()
    assert (split.counts.sum(axis=1) == 20).all()
    assert not any("no client holds" in note for note in split.notes)


def test_how_skewed_it_became_is_noted_where_classes_ran_out():
    # p = (1/2, 1/2), so alpha = 1 means (1 + 1/2) / 2.
    parts = [np.array([0, 1, 2, 10, 11]), np.array([3, 4, 5, 6, 7, 8, 9, *range(12, 20)])]
    # (9 + 4) / 25 = .52 and (49 + 64) / 225 = .502
    assert get("dir_equal(1.0)").notes(HALVES, parts) == (
        "dir_equal(alpha=1.0, size=None, prior='data'): 2 of 2 classes ran out; clients' squared"
        " shares of classes add up to 0.51 on average, where alpha means 0.75",
    )
    (note,) = get("dir_equal(3.0)").notes(np.array([1, 3, 3, 3]), [np.array([0, 1, 2])])
    assert "1 of 2 classes ran out" in note
    # p = (1/4, 3/4): (1 + 3 * 10 / 16) / 4; a uniform one: (1 + 3 / 2) / 4.
    assert note.endswith("add up to 0.56 on average, where alpha means 0.72")
    (note,) = get("dir_equal(3.0, prior='uniform')").notes(np.array([1, 3]), [np.array([0, 1])])
    assert note.endswith("where alpha means 0.62")


def test_nothing_is_noted_where_no_class_ran_out():
    assert make_split(QUARTERS, 2, "dir_equal(1.0, size=20)", 4, 0).notes == ()
