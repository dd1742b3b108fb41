"""Where a run, its data and their division lie: paths that its spec alone decides."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from fedlogit.component import ComponentRef, slug_of
from fedlogit.files import json_digest
from fedlogit.runs import layout
from fedlogit.spec import RunSpec

__all__ = ["data_stems", "run_dir", "split_dir", "stage_options"]


def run_dir(spec: RunSpec) -> PurePosixPath:
    """Return where a resolved run lives: ``<dataset>/<partition>/<method>/seed<k>-<hash8>``."""
    partition, method = _slugs(spec.partition.model_dump_json(), spec.method.model_dump_json())
    return PurePosixPath(spec.dataset, partition, method, f"seed{spec.seed}-{spec.digest()[:8]}")


def split_dir(spec: RunSpec) -> PurePosixPath:
    """Return where its data's division lives: ``<dataset>/<partition>/n<N>-seed<k>-<hash8>``."""
    partition, _ = _slugs(spec.partition.model_dump_json(), spec.method.model_dump_json())
    name = f"n{spec.clients}-seed{spec.seed}-{json_digest(spec.split_key())[:8]}"
    return PurePosixPath(spec.dataset, partition, name)


def data_stems(spec: RunSpec) -> list[str]:
    """Return the names, without suffix, of the prepared files that the run's own data are.

    A text has tokens, and their tokenizer, besides.
    """
    tokens = [f"{spec.dataset}.bpe{spec.text.vocabulary}"] if spec.text else []
    return [spec.dataset, *tokens]


def stage_options(found: Mapping[str, Any]) -> list[str]:
    """Return the options of `train` for what earlier stages left, of a run's inputs."""
    if "logits" not in found:
        return []
    clients = Path(found["logits"]).parent.as_posix()
    options = ["--clients", clients, "--logits", f"{clients}/{layout.LOGITS}"]
    return options + (["--targets", found["targets"]] if "targets" in found else [])


@cache
def _slugs(partition: str, method: str) -> tuple[str, str]:
    """Return short folder names of a partition and a method, given as JSON calls."""
    from fedlogit import methods
    from fedlogit import partition as partitions

    return (
        slug_of(ComponentRef.model_validate_json(partition), partitions.get),
        slug_of(ComponentRef.model_validate_json(method), methods.get),
    )
