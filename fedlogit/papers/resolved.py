"""Resolved specs, and a cache of them: what was planned before is planned again without PyTorch.

Resolving a spec fills in every default. It takes the components that the spec names, and those
import PyTorch: two seconds at every start of Snakemake, on a cluster in each job. What they answer
depends on the spec's text and on the library's own files alone, so it is kept in a file that is
named by a digest of these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import fedlogit
from fedlogit.data import DATASETS
from fedlogit.errors import DataError, FedlogitError, Unsupported
from fedlogit.files import read_sealed, write_sealed
from fedlogit.papers.schema import Paper
from fedlogit.runs.external_code import external_code
from fedlogit.runs.paths import run_dir, split_dir
from fedlogit.spec import RunSpec

__all__ = ["ResolutionCache", "ResolvedRun", "RunIndex", "resolve_run"]

# A new file replaces those of other versions by this name; by another they would stay for ever.
_PREFIX = "completed-"


@dataclass(frozen=True)
class ResolvedRun:
    """A resolved spec, and what its components say of it.

    Attributes:
        spec: The spec; equal runs have equal ones.
        run: Where the run lives, as a path below the folder of runs.
        split: Where the partition of its data lives, as a path below their folder.
        clients: Of a run in stages, the clients that it shares with others.
    """

    spec: RunSpec
    run: str
    split: str
    clients: ResolvedRun | None = None

    @classmethod
    def of(cls, spec: RunSpec, clients: RunSpec | None = None) -> Self:
        """Return a resolved spec with its places."""
        shared = cls.of(clients) if clients else None
        return cls(spec, str(run_dir(spec)), str(split_dir(spec)), shared)

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        clients = self.clients.plain() if self.clients else None
        spec = self.spec.model_dump_json()
        return {"spec": spec, "run": self.run, "split": self.split, "clients": clients}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Return what `plain` returned the data of."""
        clients = cls.from_plain(data["clients"]) if data["clients"] else None
        spec = RunSpec.model_validate_json(data["spec"])
        return cls(spec, data["run"], data["split"], clients)


@cache
def resolve_run(text: str) -> ResolvedRun:
    """Validate a spec and fill in every default, so that equal runs have equal hashes.

    Args:
        text: The spec as JSON.

    Raises:
        FedlogitError: for what is wrong with it.
    """
    from fedlogit import methods
    from fedlogit.runs.stages import clients_spec, in_stages

    spec = methods.resolve(RunSpec.read(json.loads(text), "run"))
    _check_models(spec)
    staged = in_stages(spec)
    return ResolvedRun.of(spec, clients_spec(spec) if staged else None)


def _check_models(spec: RunSpec) -> None:
    """Refuse models that cannot take images of the size that the data set's card has.

    Raises:
        FedlogitError: naming the model and what it takes.
    """
    from fedlogit import models

    card = DATASETS.get(spec.dataset)
    if card is None or card.kind != "images" or spec.ledger_only:
        return
    height, width, channels = card.shape
    for model in (*spec.models, *([spec.server.model] if spec.server else [])):
        models.get(model).check((channels, height, width))


class RunIndex:
    """The resolved runs so far, by their paths below the folders of runs, clients and partitions.

    Attributes:
        runs: Runs.
        clients: The clients that runs in stages share.
        splits: The spec of some run whose data are divided so.
        validation: The most samples that a run validates on, of partitions whose runs do.
    """

    def __init__(self) -> None:
        self.runs: dict[str, ResolvedRun] = {}
        self.clients: dict[str, ResolvedRun] = {}
        self.splits: dict[str, RunSpec] = {}
        self.validation: dict[str, int] = {}

    def add(self, run: ResolvedRun) -> None:
        """Remember a run, the partition of its data, and the clients of one in stages."""
        if run.run in self.runs:
            return
        self.runs[run.run] = run
        self.splits.setdefault(run.split, run.spec)
        if size := run.spec.evaluation.validation:
            self.validation[run.split] = max(size, self.validation.get(run.split, 0))
        if run.clients:
            self.clients[run.clients.run] = run.clients


class ResolutionCache:
    """What `resolve_run` returned, and which papers' calls were checked.

    Specs of components from outside of the library are resolved anew in every process; those of
    functions from outside (an aggregator's), when the function's file has changed.
    """

    def __init__(self, folder: Path) -> None:
        """Read what was remembered in `folder`; nothing if the library has changed since."""
        self._path = folder / f"{_PREFIX}{_library_digest()}.json"
        self._data: dict[str, Any] = {}
        self._runs: dict[str, ResolvedRun] = {}
        self._new = False
        if self._path.exists():
            with suppress(DataError):  # damaged: as if it were not there; it is written again
                self._data = read_sealed(self._path, "it is made again")

    def resolve(self, text: str) -> ResolvedRun:
        """Return `resolve_run(text)`, or raise what it raises."""
        key = _key("spec", text + json.dumps(external_code(json.loads(text))))
        if key not in self._runs:
            known = self._data.get(key)
            if isinstance(known, list):
                raise Unsupported(*known)
            run = ResolvedRun.from_plain(known) if known else self._resolve_anew(text, key)
            self._runs[key] = run
        return self._runs[key]

    def _resolve_anew(self, text: str, key: str) -> ResolvedRun:
        """Resolve a spec and remember it; or remember why its method does not support it."""
        try:
            found = resolve_run(text)
        except Unsupported as error:
            if _is_of_library(RunSpec.read(json.loads(text), "run")):
                self._data[key] = [error.what, error.method, error.why]
                self._new = True
            raise
        if _is_of_library(found.spec):
            self._data[key] = found.plain()
            self._new = True
        return found

    def check(self, paper: Paper, check: Callable[[Paper], None]) -> None:
        """Call `check(paper)`, which looks at the library's own, unless an equal paper passed."""
        key = _key("paper", paper.model_dump_json())
        if key not in self._data:
            check(paper)
            self._data[key] = True
            self._new = True

    def save(self) -> None:
        """Write what is new, where that can be; files of other versions of the library go."""
        if not self._new:
            return
        with suppress(FedlogitError, OSError):  # it only saves time
            write_sealed(self._path, self._data)
            for other in self._path.parent.glob(f"{_PREFIX}*.json"):
                if other != self._path:
                    other.unlink(missing_ok=True)
        self._new = False


def _is_of_library(spec: RunSpec) -> bool:
    """Return whether all components are the library's, not from outside as ``module:name``."""
    calls = [
        spec.method,
        spec.partition,
        *spec.models,
        *([spec.server.model] if spec.server else ()),
    ]
    return all(":" not in call.name or call.name.startswith("fedlogit.") for call in calls)


def _key(kind: str, text: str) -> str:
    return f"{kind} {hashlib.sha256(text.encode()).hexdigest()}"


def _library_digest() -> str:
    """Return a digest of the library's modules."""
    root = Path(fedlogit.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
