"""ShapFed: weights from class-wise cosines of the last layer's gradients."""

import pytest
import torch
from support.celm_family import family, one_more
from support.rounds import play


def cosines_are(monkeypatch, *rounds: list[list[float]]) -> list[list[float]]:
    """Let cosines (clients, classes) be these, round by round; return the weights in use there."""
    used = []
    found = iter(rounds)

    def class_similarity(heads, weights):
        used.append(weights.tolist())
        return torch.tensor(next(found), dtype=torch.float64)

    monkeypatch.setattr("fedlogit.methods.shapfed.class_similarity", class_similarity)
    return used


@pytest.mark.parametrize(
    ("call", "first", "second"),
    [
        # (1 + cos) / 2: means .875 and .625, of 1.5. Then cosines 0: .9 of the old and .1 * .5.
        ("shapfed", [0.875 / 1.5, 0.625 / 1.5], [0.8375 / 1.45, 0.6125 / 1.45]),
        # Cosines as they are: means .75 and .25. Then .9 of the old.
        ("shapfed(cosine='raw')", [0.75, 0.25], [0.75, 0.25]),
        ("shapfed(smoothing=0.5)", [0.875 / 1.5, 0.625 / 1.5], [0.6875 / 1.25, 0.5625 / 1.25]),
    ],
)
def test_shapfed_weights_by_hand(federation, monkeypatch, call, first, second):
    fed, method = family(federation, call, clients=2, partition="iid")
    method.init(fed)
    cosines_are(monkeypatch, [[1.0, 0.5], [0.5, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    assert one_more(fed, method) == pytest.approx(first)
    assert one_more(fed, method) == pytest.approx(second)


def test_shapfed_gives_a_maverick_less_than_its_share_and_with_raw_cosines_next_to_nothing(
    federation,
):
    found = {}
    for cosine in ("half", "raw"):
        call = f"shapfed(cosine='{cosine}')"
        fed = play(*family(federation, call, partition="maverick"))
        found[cosine] = fed.take_log()["contribution_0"]
    assert found["raw"] < 0.05 < found["half"] < 0.2


def test_shapfed_begins_with_equal_weights_in_double_precision(federation):
    fed, method = family(federation, "shapfed", clients=3, partition="iid")
    method.init(fed)
    assert fed.server_state["shapfed/weights"].tolist() == [1 / 3] * 3


def test_shapfed_compares_with_the_average_by_the_last_rounds_weights(federation, monkeypatch):
    used = cosines_are(monkeypatch, [[1.0], [0.0]], [[1.0], [0.0]])
    fed, method = family(federation, "shapfed", clients=2, partition="iid")
    play(fed, method, 2)
    # (1 + cos) / 2 are 1 and .5.
    assert used == [[0.5, 0.5], pytest.approx([2 / 3, 1 / 3])]


def test_shapfed_counts_all_alike_where_nobody_has_a_positive_share(federation, monkeypatch):
    cosines_are(monkeypatch, [[0.5], [0.1]], [[-0.2], [-0.4]])
    call = "shapfed(cosine='raw', smoothing=0)"
    fed, method = family(federation, call, clients=2, partition="iid")
    method.init(fed)
    found = [(one_more(fed, method), fed.take_log()["no_positive_share"]) for _ in range(2)]
    assert found == [(pytest.approx([5 / 6, 1 / 6]), 0), ([0.5, 0.5], 1)]
