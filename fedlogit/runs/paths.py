"""Where things lie: folders that a run's spec names, and files below a folder of results.

Here and not in `fedlogit.papers`, since a machine that only trains has no package that reads YAML.
What the files inside a run's folder are called is in `fedlogit.runs.layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from fedlogit.component import ComponentRef, slug_of
from fedlogit.files import json_digest
from fedlogit.runs import layout
from fedlogit.spec import RunSpec

__all__ = ["ResultsLayout", "data_stems", "run_dir", "split_dir", "stage_options"]

Name = str | PathLike[str]


def run_dir(spec: RunSpec) -> PurePosixPath:
    """Return where a resolved run lives: ``<dataset>/<partition>/<method>/seed<k>-<hash8>``."""
    partition, method = _slugs(spec.partition.model_dump_json(), spec.method.model_dump_json())
    return PurePosixPath(spec.dataset, partition, method, f"seed{spec.seed}-{spec.digest()[:8]}")


def split_dir(spec: RunSpec) -> PurePosixPath:
    """Return where its data's partition lives: ``<dataset>/<partition>/n<N>-seed<k>-<hash8>``."""
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


@dataclass(frozen=True)
class ResultsLayout:
    """Paths below a folder of results, which need not be there.

    Attributes:
        root: The folder, such as ``results``.
    """

    root: Path

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.root / "runs"

    @property
    def listing(self) -> Path:
        """The list of published runs, of DVC."""
        return self.runs.with_suffix(".dvc")

    @property
    def partitions(self) -> Path:
        """The folder of all partitions of data."""
        return self.root / "partitions"

    @property
    def plans(self) -> Path:
        """The folder of what is planned."""
        return self.root / "plan"

    def run(self, run: Name) -> Path:
        """Return a run's folder; `run_dir` names it."""
        return self.runs / run

    def result(self, run: Name) -> Path:
        """Return the file that a finished run has."""
        return self.run(run) / layout.RESULT

    def clients(self, clients: Name) -> Path:
        """Return the folder of clients that runs in stages share; they are named like a run."""
        return self.root / "clients" / clients

    def targets(self, run: Name) -> Path:
        """Return the file of what the server's model of a run in stages learns."""
        return self.root / "targets" / run / layout.TARGETS

    def partition(self, split: Name) -> Path:
        """Return the folder of a partition of data, which `split_dir` names."""
        return self.partitions / split

    def artefact(self, kind: str, paper: str, scale: str, id_: str, suffix: str) -> Path:
        """Return a file of a drawn table or figure."""
        return self.root / f"{kind}s" / paper / scale / f"{id_}.{suffix}"

    def summary(self, paper: str, scale: str) -> Path:
        """Return the folder of a paper's comparison at a scale."""
        return self.root / "summary" / paper / scale

    def page(self, paper: str, scale: str) -> Path:
        """Return the page of the report on a paper at a scale."""
        return self.root / "report" / paper / f"{scale}.html"
