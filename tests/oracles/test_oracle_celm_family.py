"""FedAvg beside its second version."""

import pytest
from oracles import fedavg
from oracles.agreement import Comparison, compare

CASES = [
    Comparison("FedAvg", "fedavg", changes=(("optimizer", {"name": "sgd", "lr": 0.1}),)),
    Comparison(
        "FedAvg",
        "fedavg(weighting='samples')",
        changes=(("optimizer", {"name": "sgd", "lr": 0.1}), ("partition", "dir_client(0.5)")),
        settings=(("weighting", "samples"),),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rounds_agree(case, federation):
    compare(case, fedavg.rounds, federation)
