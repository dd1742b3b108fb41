"""Every method and variant with a small run that suits it."""

from fedlogit.component import catalogue
from fedlogit.methods import Method
from support.small import TEXT

METHODS = sorted(catalogue("fedlogit.methods", Method))
# Parameters that fit 90 private samples, and variants that take another path through a method.
CALLS = {
    "meta_model": ["meta_model(per_class=9)", "meta_model('forest', 9)"],
    "celm": ["celm(steps=5)"],
    "cffl": ["cffl", "cffl(feedback=True, removal=True)", "cffl(sparse=True)"],
    "shapfed": ["shapfed", "shapfed(rewards=True)"],
    "feddf_fusion": ["feddf_fusion(warm_up=1)"],
    "fedhkt": ["fedhkt", "fedhkt(groups=2, selection=True)"],
    "fedkt": ["fedkt(teachers=2)", "fedkt(partitions=1, teachers=1, consistent=False)"],
    "fedol": ["fedol(iterations=2)", "fedol(iterations=2, negative=False, votes='equal')"],
    "tally_train": [
        "tally_train(warm_up=1)",
        "tally_train(warm_up=0, label_weight=0.0, decay_rounds=2)",
        "tally_train(signal='probabilities', warm_up=0, merge_every=2)",
        "tally_train(signal='top_k', k=3, warm_up=0, emphasis=2.0)",
        "tally_train(signal='none', label_weight=0.0, warm_up=0, merge_every=1, proximal=0.1)",
    ],
    "uwa": ["uwa(validation=0.2)", "uwa(0.2, fit='em')"],
}
# The same methods on a text, where they take one; one variant each, but for TallyTrain.
ON_TEXT = [
    f"text: {call}"
    for name in METHODS
    if catalogue("fedlogit.methods", Method)[name].supports_sequences
    for call in CALLS.get(name, [name])[: 3 if name == "tally_train" else 1]
]
VARIANTS = [call for name in METHODS for call in CALLS.get(name, [name])]


def changes(call: str) -> dict:
    """Return a spec for a method: one in which a few rounds are enough to beat chance."""
    if call.startswith("text: "):
        return {"method": call.removeprefix("text: "), "export": ["weights"]} | TEXT
    special: dict = {}
    name = call.partition("(")[0]
    if name == "fully_informed":
        special = {"clients": 1, "partition": "iid(90)"}
    elif (
        name in ("feddf_fusion", "tally_train")
        or catalogue("fedlogit.methods", Method)[name].server_model
    ):
        special = {"partition": "iid(90)", "local": {"epochs": 8}}
    return {"method": call, "export": ["weights"]} | special


def with_absences(call: str, share: float = 0.7) -> dict:
    """Return the same spec of four clients, of which a share is there in each round."""
    given = changes(call) | {"participation": share}
    if call.startswith("fully_informed"):  # by itself it is one client, who has to be there
        given["clients"] = 4
    return given
