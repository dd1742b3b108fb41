"""Checks of methods that use some public samples in each round after a warm-up."""

from __future__ import annotations

from fedlogit.errors import FedlogitError
from fedlogit.spec import RunSpec

__all__ = ["check_probing"]


def check_probing(probes_per_round: int, warm_up: int, spec: RunSpec) -> None:
    """Refuse more probes in a round than there are, and a warm-up that never ends.

    Raises:
        FedlogitError: naming the method, the setting, and what there is.
    """
    public = spec.public.size if spec.public else 0
    if probes_per_round > public:
        raise FedlogitError(
            f"method {spec.method.name}: probes_per_round = {probes_per_round}: the public set has"
            f" {public}"
        )
    if warm_up >= spec.rounds:
        raise FedlogitError(
            f"method {spec.method.name}: warm_up = {warm_up}: give less than the {spec.rounds}"
            " rounds"
        )
