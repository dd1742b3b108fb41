"""The algorithm boxes of the papers, one file each, found by name."""

from __future__ import annotations

from fedlogit import data, models, partition
from fedlogit.component import Call, find, instantiate
from fedlogit.errors import FedlogitError
from fedlogit.methods.base import Method
from fedlogit.spec import RunSpec

__all__ = ["Method", "complete", "get"]


def get(call: Call) -> Method:
    """Return the method a call names.

    Raises:
        FedlogitError: for an unknown name (with the nearest one) or a bad parameter.
    """
    base = Method
    cls = find("method", "fedlogit.methods", base, call.name)  # type: ignore[type-abstract]
    return instantiate("method", cls, call)


def complete(spec: RunSpec) -> RunSpec:
    """Return `spec` with every default of its components filled in: what is hashed and saved.

    Raises:
        FedlogitError: if a component is unknown, a parameter is wrong, or parts do not fit.
    """
    method = get(spec.method)
    card = data.card(spec.dataset)
    if method.needs_public and spec.public is None:
        raise FedlogitError(
            f"method {spec.method.name} needs a public set; give public: {{size: n}}"
        )
    if "aggregation" in spec.export and not method.keeps_aggregation:
        raise FedlogitError(f"method {spec.method.name} has no aggregation weights to export")
    if {"logits", "aggregation"} & set(spec.export) and spec.public is None:
        raise FedlogitError("export of public logits needs a public set; give public: {size: n}")
    if spec.augment == "crop_flip" and not card.shape:
        raise FedlogitError(f"augment = 'crop_flip': dataset {spec.dataset} has no images")
    part = partition.get(spec.partition)
    return spec.model_copy(
        update={
            "partition": Call(name=spec.partition.name, params=part.params()),
            "models": tuple(models.complete(call) for call in spec.models),
            "method": Call(name=spec.method.name, params=method.params()),
        }
    )
