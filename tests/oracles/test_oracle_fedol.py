"""FedOL and its peers beside their second versions."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from oracles import aggregators, ensembles, feddf, fedet, fedhkt, fedkt, fedol, mine
from oracles.agreement import Comparison, compare, world_of
from support.tiers import first_of_each, method_of

from fedlogit.aggregation import Targets
from fedlogit.results.metrics import METRICS
from fedlogit.results.runs.run import read_run

MAJORITY = "oracles.test_oracle_fedol:majority"
SECOND = {
    "FedOL": fedol.rounds,
    "FedDF": feddf.rounds,
    "FedHKT": fedhkt.rounds,
    "FedET": fedet.rounds,
    "MinE": mine.rounds,
    "FedKT": fedkt.rounds,
    "Aggregator from outside": aggregators.rounds,
}


def majority(logits: torch.Tensor) -> Targets:
    """An aggregator that abstains where no class has more than half of the votes."""
    votes = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).float().mean(0)
    most = votes.max(1).values
    return Targets(votes, torch.where(most > 0.5, most, 0.0))


def case(method: str, call: str, rounds: int = 1, told: dict | None = None, **changes):
    """Return a comparison of clients with perceptrons of two sizes."""
    two = {"models": ["mlp(hidden=[16])", "mlp(hidden=[12, 8])"], "local": {"epochs": 6}}
    told, changes = told or {}, two | changes
    return Comparison(
        method, call, rounds, changes=tuple(changes.items()), settings=tuple(told.items())
    )


# Clients that agree on some samples, and a short training for each of FedOL's iterations. A large
# epsilon keeps Adam from blowing up the rounding of gradients near 0.
SHORT = {"local": {"epochs": 3}}
BROAD = {"partition": "k_classes(6, private_size=90)"}
SMOOTH = {"name": "adam", "lr": 0.003, "eps": 1e-4}
FEW = {"model": "mlp(hidden=[24])", "epochs": 4, "batch": 20, "optimizer": SMOOTH}
PHASES = {"optimizer": SMOOTH | {"reset_every": "phase"}}
ALONE = {"clients": 1, "models": ["mlp(hidden=[16])"], "partition": "iid(90)"}
CROPS = {"augment": "crop_flip", "server": FEW | {"augment": "crop_flip"}}


def fedol_case(rounds: int = 1, changes: dict | None = None, **switches):
    call = ", ".join(f"{name}={value!r}" for name, value in switches.items())
    changes = BROAD | {"server": FEW} | (changes or {})
    return case("FedOL", f"fedol({call})" if call else "fedol", rounds, switches, **changes)


CASES = [
    fedol_case(),
    fedol_case(iterations=4, negative=False),
    fedol_case(iterations=4, votes="equal"),
    fedol_case(iterations=4, votes="equal", negative=False),
    fedol_case(iterations=4, mixture="equal"),
    fedol_case(iterations=4, curriculum=False),
    fedol_case(iterations=4, trade_off=0.0),
    fedol_case(iterations=4, trade_off=2.0, first_ratio=0.3, ratio_step=0.4),
    fedol_case(1, {"public": {"size": 57}}, iterations=2),
    fedol_case(iterations=1),
    fedol_case(2, iterations=2),
    fedol_case(2, ALONE, iterations=2),
    fedol_case(1, CROPS, iterations=3),
    case("FedDF", "feddf"),
    case("FedDF", "feddf", 3, optimizer=SMOOTH),
    case("FedDF", "feddf", 2, **CROPS),
    case("FedDF", "feddf", told={"temperature": 3.0}, temperature=3.0),
    case("FedHKT", "fedhkt"),
    case("FedHKT", "fedhkt", 2, **BROAD),
    case("FedHKT", "fedhkt(groups=2)", 3, {"groups": 2}, **BROAD | PHASES),
    case("FedHKT", "fedhkt(selection=True)", 3, {"selection": True}, **BROAD | PHASES),
    case(
        "FedHKT", "fedhkt(groups=3, selection=True)", 2, {"groups": 3, "selection": True}, **PHASES
    ),
    case("FedET", "fedet"),
    case("FedET", "fedet(regularisation=1.0)", 2, {"regularisation": 1.0}, **BROAD),
    case("FedET", "fedet(regularisation=0.0)", 1, {"regularisation": 0.0}),
    case("MinE", "mine"),
    case("MinE", "mine", 3, **PHASES),
    case("Aggregator from outside", "aggregator", 2, {"function": "mean_probability"}),
    case(
        "Aggregator from outside",
        "aggregator('examples.median:median')",
        1,
        {"function": "median_logit"},
    ),
    case(
        "Aggregator from outside", f"aggregator('{MAJORITY}')", 1, {"function": "majority"}, **BROAD
    ),
    case("FedKT", "fedkt", **BROAD, **SHORT),
    case("FedKT", "fedkt(consistent=False)", 1, {"consistent": False}, **SHORT),
    case("FedKT", "fedkt(partitions=3, teachers=2)", 1, {"partitions": 3, "teachers": 2}, **BROAD),
    case("FedKT", "fedkt(partitions=1, teachers=1)", 1, {"partitions": 1, "teachers": 1}, **SHORT),
]


@pytest.mark.parametrize("case", first_of_each(CASES, method_of), ids=str)
def test_rounds_agree(case, federation):
    compare(case, SECOND[case.method], federation)


@pytest.mark.parametrize("seed", range(20))
def test_ensembles_agree(seed):
    """Small whole numbers as logits, so that many are equal."""
    source = np.random.default_rng(seed)
    clients, classes = int(source.integers(1, 7)), int(source.integers(2, 6))
    logits = source.integers(-2, 3, (clients, 50, classes)).astype(np.float32)
    labels = source.integers(classes, size=50)
    told = SimpleNamespace(export=lambda *_: {"logits": logits, "labels": labels})
    for name, value in ensembles.accuracies(logits, labels).items():
        assert METRICS[name].compute(told) == pytest.approx(value), name


def test_the_ensemble_of_a_run_agrees(train, federation):
    changes = {"method": "feddf", "rounds": 1, "export": ["test_logits"], **BROAD}
    folder, fed = train(**changes), federation(**changes)
    run = read_run(folder, fed.spec.digest())
    last = next(feddf.rounds(world_of(fed)))
    logits = torch.stack(last["test_logits"]).detach().numpy()
    for name, value in ensembles.accuracies(logits, fed.data.test_labels.numpy()).items():
        assert METRICS[name].compute(run) == pytest.approx(value), name
