"""TallyTrain's methods beside their second versions: AdamW with decay, five local steps a round."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from oracles import feddf_fusion, tally_train
from oracles.agreement import Comparison, compare
from support.small import TEXT
from support.tiers import first_of_each, method_of

ADAMW = {"name": "adamw", "lr": 0.003, "weight_decay": 0.05}
SGD = {"name": "sgd", "lr": 0.1}
SETUP = {"optimizer": ADAMW, "local": {"steps": 5}, "batch": 16}


def case(
    method,
    library,
    rounds=4,
    seeds=(0, 1),
    tolerance=1e-5,
    changes=None,
    told=None,
    engine="loop",
    **switches,
) -> Comparison:
    """Return a comparison; both versions get the switches, by the same names."""
    call = ", ".join(f"{name}={value!r}" for name, value in switches.items())
    settings = switches | (told or {})
    return Comparison(
        method,
        f"{library}({call})",
        rounds,
        seeds,
        tolerance,
        changes=tuple((changes or {}).items()),
        settings=tuple(settings.items()),
        engine=engine,
    )


votes = partial(case, "TallyTrain", "tally_train", warm_up=1)
soft = partial(case, "FedMD", "tally_train", signal="probabilities", warm_up=1)
ranked = partial(case, "RC-FD", "tally_train", signal="top_k", warm_up=1)
averaged = partial(
    case, library="tally_train", signal="none", label_weight=0.0, warm_up=0, merge_every=2
)
fused = partial(case, "FedDF with a fused model", "feddf_fusion", warm_up=1)


def clients(n: int) -> dict[str, object]:
    return {"clients": n}


def resets(reset_every: str) -> dict[str, object]:
    return {"optimizer": ADAMW | {"reset_every": reset_every}}


# A step of batch norm divides by small numbers, and float32's rounding grows: on CPUs without
# AVX-512 to 2e-3 of a perplexity.
RUNNING, BATCHES = (
    {
        "rounds": 3,
        "seeds": (0,),
        "tolerance": 5e-3,
        "changes": {
            "models": [f"resnet_light(n=1, batch_stats={own})"],
            "optimizer": SGD | {"lr": 0.005},
            "local": {"steps": 2},
            "clients": 2,
        },
        "told": {"network": network},
    }
    for own, network in ((False, "running_statistics"), (True, "batch_statistics"))
)
TOKENS = {
    "rounds": 3,
    "changes": TEXT
    | {
        "local": {"steps": 3},
        "public": {"size": 16, "last": True},
        "clients": 3,
        "optimizer": SGD | {"clip": 0.2, "zero_nonfinite_grads": True},
    },
    "told": {"network": "tiny_gpt"},
}
STACKED = TOKENS | {"engine": "stacked"}
THEORY = {"told": {"theory": True}, "rounds": 3}
# Of 512 probes that are measured, 12 are normalised among themselves.
WIDE = {"export": ("theory",), "public": {"size": 520}}
BATCHES_MEASURED = BATCHES | {
    "rounds": 2,
    "changes": BATCHES["changes"] | WIDE,
    "told": BATCHES["told"] | {"theory": True},
}
MEASURED = {"export": ("theory",)}
ELSEWHERE = {"size": 60, "stratified": False, "dataset": "photos8"}
FOREIGN = {"public": ELSEWHERE, "partition": "iid(90)"}
ARM_C = FOREIGN | {"public": ELSEWHERE | {"anchors": 20}}

CASES = [
    votes(),
    votes(label_weight=0.0, decay_rounds=2, rounds=5),  # no step from round 3 on
    votes(label_weight=1.0),
    votes(label_weight=0.3, decay_rounds=3),
    votes(packed=True, probes_per_round=7),
    votes(warm_up=2, merge_every=2, rounds=5),  # the bridge: not in round 2
    votes(merge_every=2, merge_cost="mesh", changes={"partition": "dir_class(0.5)"}),
    votes(margin_memory=0.7),
    votes(emphasis=2.0),
    votes(asymmetry=0.5),
    votes(asymmetry=0.5, emphasis=2.0, topology="ring", changes=clients(5)),
    votes(topology="ring", margin_memory=0.2, changes=clients(6)),
    votes(topology="regular", degree=3, packed=True, changes=clients(6)),
    votes(signal="none", label_weight=1.0),
    votes(signal="none", label_weight=1.0, merge_every=2, proximal=0.1),
    votes(merge_every=2, changes=resets("round")),
    votes(merge_every=2, changes=resets("phase")),
    votes(changes={"models": ["mlp(hidden=[16])", "mlp(hidden=[24, 12])"]}),
    votes(merge_every=2, engine="stacked"),
    votes(changes={"augment": "crop_flip"}),
    votes(merge_every=2, **BATCHES),
    votes(merge_every=2, **RUNNING),
    votes(merge_every=2, **TOKENS),
    votes(label_weight=0.0, decay_rounds=2, changes=FOREIGN),
    votes(label_weight=0.3, anchors_per_round=4, changes=ARM_C),
    votes(
        probes_per_round=40,
        changes=MEASURED | {"partition": "iid(90)", "local": {"steps": 20}},
        **THEORY,
    ),
    votes(merge_every=2, changes=MEASURED, **THEORY),  # before the merge
    votes(**BATCHES_MEASURED),
    votes(adversaries=2, attack="random", changes=clients(6)),
    votes(adversaries=1, attack="colluding"),
    votes(adversaries=2, topology="ring", changes=clients(6)),
    soft(),
    soft(merge_every=2, emphasis=2.0),
    soft(label_weight=0.0, decay_rounds=2, topology="ring", changes=clients(5)),
    soft(**TOKENS),
    soft(label_weight=0.0, changes=FOREIGN | MEASURED, **THEORY),
    soft(adversaries=1, attack="random", magnitude=100.0),
    soft(adversaries=2, attack="colluding", rule="trimmed_mean", changes=clients(6)),
    soft(adversaries=1, attack="confident", rule="median"),
    soft(rule="median", topology="regular", degree=3, changes=clients(6)),
    soft(
        adversaries=2,
        attack="colluding",
        magnitude=100.0,
        rule="trimmed_mean",
        trim=0.34,
        changes=clients(7),
    ),
    ranked(probes_per_round=5),
    ranked(k=3, packed=True, merge_every=3),
    ranked(k=3, rule="median", adversaries=1, magnitude=5.0, changes=clients(5)),
    ranked(adversaries=1),
    ranked(k=3, packed=True, **STACKED),
    averaged("FedAvg-faM"),
    averaged("FedAvg-faM", merge_every=1, merge_cost="mesh"),
    averaged("FedProx-faM", proximal=0.1),
    averaged("FedProx-faM", proximal=0.5, changes={"optimizer": SGD}),
    averaged("Local-only", merge_every=None),
    fused(),
    fused(target="probabilities", probes_per_round=30),
    fused(server_steps=0),
    fused(server_steps=3),
    fused(server_optimizer="new"),
    fused(server_optimizer="new", server_steps=2),
    fused(changes=resets("round")),
    fused(changes=resets("phase")),
    fused(**RUNNING),
    fused(**TOKENS),
]


@pytest.fixture
def peers(federation):
    """Return a function from changes to a federation of peers."""
    return partial(federation, **SETUP)


@pytest.mark.parametrize("case", first_of_each(CASES, method_of), ids=str)
def test_rounds_agree(case, peers, request):
    second = feddf_fusion if case.call.startswith("feddf_fusion") else tally_train
    if "photos8" in str(case):
        peers = partial(peers, data=request.getfixturevalue("tiles")[1])
    compare(case, second.rounds, peers)


def test_rounds_agree_where_gradients_are_made_finite(peers):
    """One peer's model says NaN of each line that begins with a word, which no probe has."""

    def flawed(**changes):
        fed = peers(**changes)
        peer, x = fed.clients[0], fed.data.x
        asked = torch.cat([x[fed.public], fed.data.x_test]).unique().tolist()
        word = next(w for w in range(300) if w not in asked)
        x[peer.private[::20], 0] = word
        with torch.no_grad():
            peer.vector[16 * word : 16 * word + 16] = torch.nan
        return fed

    found = case("TallyTrain with gradients that are NaN", "tally_train", warm_up=1, **TOKENS)
    compare(found, tally_train.rounds, flawed)
