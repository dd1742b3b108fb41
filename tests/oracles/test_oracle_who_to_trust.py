"""Methods that federate logits beside their second versions: Average, UWA, MM and references."""

import pytest
from oracles import average, fully_informed, local, meta_model, uwa
from oracles.agreement import Comparison, compare
from support.tiers import first_of_each, method_of

SKEWED = ("partition", "dir_client(0.5)")
RESETS = [
    Comparison(
        "Average",
        "average",
        tolerance=1e-4,
        changes=(("optimizer", {"name": "adam", "lr": 0.003, "reset_every": reset_every}),),
        settings=(("reset_every", reset_every),),
    )
    for reset_every in ("run", "round", "phase")
]
ROUNDED = [
    Comparison(
        "Average",
        "average",
        tolerance=tolerance,
        changes=(("quantization", {"format": form} | ({"bits": bits[0]} if bits else {})),),
        settings=(("sent_as", (form, *bits)),),
    )
    for form, *bits, tolerance in (
        ("float16", 1e-4), ("bfloat16", 1e-4), ("uniform", 4, 1e-4), ("uniform", 1, 1e-4),
    )
]  # fmt: skip
SOFTENED = [
    Comparison(
        "Average",
        "average",
        tolerance=1e-4,
        changes=(("temperature", temperature),),
        settings=(("temperature", temperature),),
    )
    for temperature in (0.5, 4.0)
]
WITH_DECAY = {"name": "adamw", "lr": 0.003, "weight_decay": 0.1, "beta1": 0.8, "beta2": 0.99}
REFERENCES = [
    Comparison("Local", "local"),
    Comparison("Local", "local", changes=(("optimizer", WITH_DECAY), SKEWED)),
    Comparison(
        "Fully Informed",
        "fully_informed",
        changes=(("clients", 1), ("partition", "iid(90)")),
    ),
]


def uwa_case(call, *changes, **told):
    return Comparison("UWA", call, tolerance=1e-4, changes=changes, settings=tuple(told.items()))


UWA = [
    uwa_case("uwa(0.2)"),
    uwa_case("uwa(0.3, variance_floor=1.0)", SKEWED, variance_floor=1.0),
    uwa_case("uwa(0.2, fit='em')", fit="em"),
    uwa_case("uwa(0.3, 0.1, 'em')", SKEWED, variance_floor=0.1, fit="em"),
    uwa_case("uwa(0.2, constant_below=0.045)", constant_below=0.045),
    uwa_case("uwa(0.01)"),  # a sample a client: nobody has a density
]
META_MODEL = [
    Comparison(
        "Meta-Model",
        "meta_model(per_class=25)",
        tolerance=1e-4,
        settings=(("per_class", 25),),
    ),
    *(
        Comparison(
            "Meta-Model",
            f"meta_model('{trees}', 9)",
            rounds=2,
            seeds=(0,),
            tolerance=1e-4,
            settings=(("aggregator", trees), ("per_class", 9)),
        )
        for trees in ("forest", "boosting")
    ),
]
META_MODEL += [  # with so many known samples the network stops early, and not with its last weights
    Comparison(
        "Meta-Model",
        "meta_model(per_class=100)",
        rounds=2,
        tolerance=1e-4,
        changes=(SKEWED,),
        settings=(("per_class", 100),),
    ),
]
# A client of one hidden unit that is dead on all known samples: its logits are constant there.
CONSTANT = Comparison(
    "Meta-Model",
    "meta_model(per_class=9)",
    rounds=2,
    seeds=(0,),
    tolerance=1e-4,
    changes=(("models", ["mlp(hidden=[1])"]), ("optimizer", {"name": "adam", "lr": 0.05})),
    settings=(("per_class", 9),),
)
VERSIONS = {
    "average": average, "local": local, "fully_informed": fully_informed, "uwa": uwa,
    "meta_model": meta_model,
}  # fmt: skip
CASES = [*RESETS, *ROUNDED, *SOFTENED, *REFERENCES, *UWA, *META_MODEL, CONSTANT]


@pytest.mark.parametrize("case", first_of_each(CASES, method_of), ids=str)
def test_rounds_agree(case, federation):
    compare(case, VERSIONS[case.call.partition("(")[0]].rounds, federation)
