"""A fixed number of classes per client: NIID-Bench's rule and the balanced one."""

import numpy as np
import pytest

from fedlogit.partition import get, make_split

HUNDRED = np.repeat(np.arange(100), 10)


@pytest.mark.parametrize("held", [20, 30])
def test_niid_rule_loses_classes_as_often_as_it_should(held):
    # Class c >= N is missed by all 10 clients with probability ((99 - (I - 1)) / 99) ** 10,
    # and there are 90 of them: 10.7 at 20, 2.8 at 30. The mean of 200 draws is off by < 0.2.
    expected = 90 * ((100 - held) / 99) ** 10
    lost = [
        (make_split(HUNDRED, 100, f"pathological({held})", 10, s).counts.sum(axis=0) == 0).sum()
        for s in range(200)
    ]
    assert np.mean(lost) == pytest.approx(expected, abs=0.6)
    assert expected == pytest.approx({20: 10.7, 30: 2.8}[held], abs=0.05)


def test_niid_rule_gives_client_i_class_i_and_the_right_number():
    held = make_split(HUNDRED, 100, "pathological(20)", 10, 0).counts > 0
    assert held[range(10), range(10)].all()
    assert (held.sum(axis=1) == 20).all()


def test_lost_classes_are_named():
    split = make_split(HUNDRED, 100, "pathological(20)", 10, 0)
    lost = np.flatnonzero(split.counts.sum(axis=0) == 0)
    assert len(lost) > 0
    assert split.notes == (
        "pathological(classes_per_client=20, balanced=False): no client holds class "
        f"{', '.join(map(str, lost))} ({len(lost)} lost)",
    )


@pytest.mark.parametrize(("held", "owners"), [(20, 2), (30, 3)])
def test_balanced_gives_every_class_equally_many_owners(held, owners):
    # 10 clients × I classes / 100 classes.
    split = make_split(HUNDRED, 100, f"pathological({held}, balanced=True)", 10, 0)
    assert ((split.counts > 0).sum(axis=0) == owners).all()
    assert ((split.counts > 0).sum(axis=1) == held).all()
    assert split.notes == ()


def test_owners_share_a_class_equally():
    # 3 clients, 1 class each of 1: all own class 0, 10 samples -> 4, 3, 3.
    assert [len(p) for p in get("pathological(1)").split(np.zeros(10, int), 3, 1, 0)] == [4, 3, 3]
