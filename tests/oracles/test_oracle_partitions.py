"""Partitions beside their second versions: the same samples at each client, with every seed."""

import numpy as np
import pytest
from oracles import bench_partitions as bench
from oracles import celm_partitions as celm
from oracles import role_partitions as role
from oracles.agreement import Comparison, compare_partition


def case(call, clients=5, /, **told):
    """Return a comparison of eight seeds, CELM's 42 among them."""
    name = call.partition("(")[0]
    return Comparison(
        f"Partition {name}",
        call,
        rounds=1,
        seeds=(*range(7), 42),
        tolerance=0,
        changes=(("clients", clients),),
        settings=tuple(told.items()),
    )


CASES = [
    case("dir_client(0.05)", alpha=0.05),
    case("dir_client(100.0)", alpha=100.0),
    case("dir_client(0.05)", 20, alpha=0.05),
    case("fr_repeat", 4),
    case("pls(2, 80, 10)", m0=2, s_max=80, s_min=10),
    case("pls(3, 60, 5)", 4, m0=3, s_max=60, s_min=5),
    case("sls"),
    case("sls(3)", 4, m0=3),
    case("sls_fixed", order="fixed"),
    case("sls_random", order="random"),
    case("maverick"),
    case("maverick(2, 'drawn')", rare=2, rare_classes="drawn"),
    case("fr"),
    case("fr(3, 0.5)", 4, common=3, share=0.5),
    case("frm"),
    case("frm(2, 'drawn', 3, 0.3)", rare=2, rare_classes="drawn", common=3, share=0.3),
    case("k_classes(3, 90)", 4, k=3, private_size=90),
    case("k_classes(2, 401)", 6, k=2, private_size=401),  # more than some classes have
    case("k_classes(2, 91, 'balanced')", 6, k=2, private_size=91, class_sets="balanced"),
    case("shards"),
    case("shards(3)", 7, per_client=3),  # 21 shards: some have one sample more
    case("quantity(0.5)", beta=0.5),
    case("quantity(1.0, min_size=60)", 10, beta=1.0, min_size=60),  # drawn many times
    case("dir_equal(1.0)", 7, alpha=1.0),
    case("dir_equal(0.01)", alpha=0.01),  # classes run out, for some clients all that they have
    case("dir_equal(5.0, 100, 'uniform')", alpha=5.0, size=100, prior="uniform"),
]
VERSIONS = {
    "dir_client": celm.dir_client, "fr_repeat": celm.fr_repeat, "pls": celm.pls, "sls": celm.sls,
    "sls_fixed": celm.sls, "sls_random": celm.sls, "maverick": role.maverick, "fr": role.fr,
    "frm": role.frm, "k_classes": role.k_classes, "shards": bench.shards,
    "quantity": bench.quantity, "dir_equal": bench.dir_equal,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_clients_hold_the_same_samples(case, digits):
    second = VERSIONS[case.call.partition("(")[0]]
    compare_partition(case, second, np.asarray(digits.y_train), dict(case.changes)["clients"])
