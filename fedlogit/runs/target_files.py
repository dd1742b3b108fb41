"""Files of an aggregator's targets, with the method and the logits that they were made by."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.targets import as_targets
from fedlogit.component import ComponentRef
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import arrays_digest, load_npz, save_npz
from fedlogit.runs.hints import adding_hint
from fedlogit.runs.library_code import imported_code_version
from fedlogit.runs.logit_files import ClientLogits
from fedlogit.runs.provenance import imported_own_code
from fedlogit.runs.recorded_values import is_printed

__all__ = ["load_targets", "save_diverged_targets", "save_targets"]

_TARGETS = ("distributions", "weights", "logits_digest", "method", "code_version")


def save_targets(targets: Targets, answers: ClientLogits, method: ComponentRef, path: Path) -> None:
    """Write ``targets.npz``: `distributions`, `weights`, what made them of what, and a digest.

    Where the method or its function is from outside the library, that includes its `own_code`.

    Args:
        targets: What the server shall predict.
        answers: The logits they are made of.
        method: What made them, with all of its parameters.
        path: The file.
    """
    arrays = {
        "distributions": targets.distributions.cpu().numpy(),
        "weights": targets.weights.cpu().numpy(),
        "logits_digest": np.array(answers.digest),
        "method": np.array(_canonical(method)),
        "code_version": np.array(imported_code_version()),
    }
    if own := _own_code(method):
        arrays["own_code"] = np.array(own)
    save_npz(path, arrays | {"digest": np.array(arrays_digest(arrays))})


def save_diverged_targets(diverged: str, path: Path) -> None:
    """Write, in place of targets, why the clients have no logits to make them of."""
    made_by = np.array(imported_code_version())
    save_npz(path, {"diverged": np.array(diverged), "code_version": made_by})


def load_targets(
    path: Path, answers: ClientLogits, method: ComponentRef
) -> tuple[Targets, dict[str, str]]:
    """Read what `save_targets` wrote for these answers and this method.

    Returns:
        The targets, and where they come from, for the run's record.

    Raises:
        DataError: if the file is another thing, damaged, made of other logits, by another method or
            by a module from outside the library that has changed since, or has no distribution and
            weight for each public sample.
    """
    with adding_hint(f"remove {path} and aggregate again"):
        arrays = load_npz(path)
        if {*_TARGETS, "digest"} - arrays.keys():
            raise DataError(f"{path}: not an aggregator's targets, or without a digest")
        digest = str(arrays.pop("digest"))
        if digest != arrays_digest(arrays):
            raise DataError(f"{path} is damaged: its digest does not match")
        if str(arrays["logits_digest"]) != answers.digest:
            raise DataError(f"{path}: targets made of other logits than the run's")
        if str(arrays["method"]) != _canonical(method):
            raise DataError(f"{path}: targets made by {arrays['method']}, not by {method}")
        own = _own_code(method)  # which files of earlier versions lack
        if own and str(arrays.get("own_code")) != own:
            raise DataError(f"{path}: targets made by other code than that of {method} now")
        targets = _checked(path, arrays, answers, method)
    return targets, {
        "targets_digest": digest,
        "targets_code_version": str(arrays["code_version"]),
    }


def _checked(
    path: Path, arrays: dict[str, np.ndarray], answers: ClientLogits, method: ComponentRef
) -> Targets:
    """Return the targets, if an aggregator may give them: a digest does not say who wrote them."""
    for name in ("distributions", "weights"):
        if arrays[name].dtype.kind != "f":
            raise DataError(f"{path}: {name} are of {arrays[name].dtype}, should be of float32")
    if arrays["code_version"].shape or not is_printed(str(arrays["code_version"])):
        raise DataError(f"{path}: code_version should be a text of one line")
    found = Targets(*(torch.from_numpy(arrays[name]) for name in ("distributions", "weights")))
    try:
        who = str(method.params.get("function", method.name))
        return as_targets(found, answers.public, who)
    except FedlogitError as error:
        raise DataError(f"{path}: {error}") from None


def _own_code(method: ComponentRef) -> str:
    """Return the modules from outside that make a method's targets, with digests; "" if none."""
    own = imported_own_code(method.model_dump(mode="json"))
    return json.dumps(own, sort_keys=True) if own else ""


def _canonical(method: ComponentRef) -> str:
    return json.dumps(method.model_dump(mode="json"), sort_keys=True)
