"""The one order of methods in all figures, and in the tables that figures are drawn of."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["family", "in_order"]

_ORDER = (  # alone and baselines first, what papers propose after what they compare it with
    "local no_consensus average fedavg lm_fedavg_1 lm_fedavg fedprox feddf cffl cgsv shapfed celm"
    " uwa uwa_em meta_model meta_model_forest meta_model_boosting rc_fd fedmd lm_fedmd"
    " unlabelled_fedmd tally_train lm_tally_train lm_bridge unlabelled fedhkt fedet mine fedkt"
    " fedol fully_informed"
)


def family(method: str) -> str:
    """Return the method that another one, given with parameters, is drawn as.

    TallyTrain that also averages parameters (TallyTrain+faM) is a method of its own.
    """
    name, _, parameters = method.partition("(")
    return "lm_bridge" if name == "tally_train" and "merge_every" in parameters else name


def in_order(methods: Iterable[str]) -> list[str]:
    """Return methods in the order that they have in every figure; unknown ones last, as given."""
    place = {method: i for i, method in enumerate(_ORDER.split())}
    return sorted(methods, key=lambda method: place.get(family(method), len(place)))
