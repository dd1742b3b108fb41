"""The finished runs of a table or figure, which must have seen the same data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from fedlogit.errors import DataError, FedlogitError
from fedlogit.papers.artefact import Artefact, RunRef
from fedlogit.results.runs.run import Run, read_run
from fedlogit.spec import RunSpec

__all__ = ["gather", "gather_one_dataset", "measured_on", "samples_of"]


def gather(artefact: Artefact) -> list[tuple[RunRef, Run]]:
    """Return the runs of an artefact, in its order.

    Raises:
        DataError: if a run is missing, incomplete, or not the one that was asked for; or if two
            runs that should have seen the same data did not.
    """
    found = [(ref, read_run(ref.dir, ref.digest)) for ref in artefact.runs]
    _check_data(artefact.name, [run for _, run in found])
    return found


def gather_one_dataset(artefact: Artefact) -> list[tuple[RunRef, Run]]:
    """Return the runs of an artefact whose rows would mix data sets, which must be on one.

    Raises:
        DataError: as `gather`.
        FedlogitError: if there are several data sets.
    """
    found = gather(artefact)
    if len(datasets := sorted({run.spec.dataset for _, run in found})) > 1:
        raise FedlogitError(
            f"{artefact.name}: dataset = {datasets}: give one; another is another table"
        )
    return found


def measured_on(artefact: Artefact) -> str:
    """Return `samples_of` an artefact's runs.

    Raises:
        DataError: as `gather`.
    """
    return samples_of(run.spec for _, run in gather(artefact))


def samples_of(specs: Iterable[RunSpec]) -> str:
    """Return which samples runs' scores are of: ``test``, ``validation``, or both with an "or"."""
    return " or ".join(sorted({spec.samples for spec in specs}))


def _check_data(name: str, runs: list[Run]) -> None:
    """Refuse runs on one data set of other content, or on one partition of it that differs."""
    first: dict[tuple[str, str], tuple[str, Run]] = {}
    for run in runs:
        for what, shared, digest in _digests_seen(run):
            known, before = first.setdefault((what, shared), (digest, run))
            if known != digest:
                raise DataError(
                    f"{name}: {run.folder} and {before.folder} saw different data: their {what}"
                    " differ; prepare the data again and train one of them anew"
                )


def _digests_seen(run: Run) -> Iterator[tuple[str, str, str]]:
    """Yield what a run saw: its name, the settings that it should be the same for, its digest."""
    spec, source = run.spec, run.result.provenance
    other = spec.public.dataset if spec.public else None
    yield "data sets", spec.dataset, source.dataset_digest
    if source.normalised_by:
        yield "normalisations", spec.dataset, json.dumps(source.normalised_by, sort_keys=True)
    if source.tokenizer_digest:
        yield "tokens", f"{spec.dataset} {spec.text}", source.tokenizer_digest
    if source.probes_digest:
        yield "public images", str(other), source.probes_digest
    yield "partitions", json.dumps(spec.split_key(), sort_keys=True), source.split_digest
