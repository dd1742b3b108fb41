"""Finished runs in given folders as a table, a figure and rounds, without a paper's file.

Nothing of a run is imported: a method or partition is shown as its spec writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit import dotted_keys
from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact, RunRef
from fedlogit.papers.metric_names import is_share
from fedlogit.results.collect import collect, summarise
from fedlogit.results.formatting import markdown, number, sentence, spread
from fedlogit.results.metrics import metric_label
from fedlogit.results.runs.finished import finished_runs, folders_with
from fedlogit.results.runs.gathered import measured_on, samples_of
from fedlogit.results.runs.run import Run, read_run
from fedlogit.runs import layout
from fedlogit.runs.integrity import read_spec
from fedlogit.spec import RunSpec

__all__ = ["FoundRuns", "beside_each_other", "every_round", "find_runs", "run_table"]

_AXES = ("dataset", "partition", "method")
_BESIDES = {"bytes_sent": "bytes sent per client", "seconds": "seconds"}
_OWN_AXES = ("dataset", "partition.", "method.name", "seed")  # keys that those and the seed say
_NO_NUMBER: dict[str, Any] = {"export": ()}  # keys that change what is kept of a run, and no number


@dataclass(frozen=True)
class FoundRuns:
    """Runs below some folders.

    Attributes:
        runs: Those that have ended, each once, by folder; of runs that differ in nothing but what
            they export, and so have the same numbers, the one that exports most.
        unfinished: Folders of runs that were begun.
        damaged: Of those that cannot be read, why.
    """

    runs: tuple[Run, ...]
    unfinished: tuple[Path, ...]
    damaged: tuple[str, ...]


def find_runs(folders: Iterable[Path]) -> FoundRuns:
    """Find all runs in folders and below them.

    Raises:
        FedlogitError: if a folder is not there or holds no run.
    """
    runs: dict[str, Run] = {}
    unfinished: dict[Path, None] = {}
    damaged: dict[str, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise FedlogitError(f"{folder}: is not a folder; give one that holds runs")
        specs = list(folders_with(layout.SPEC, folder))
        ended = list(finished_runs(folder))
        if not specs and not ended:
            raise FedlogitError(f"{folder}: holds no run: no {layout.SPEC} below it")
        # A folder with `layout.CLIENTS` has clients that were trained for several runs.
        unfinished |= dict.fromkeys(
            p for p in specs if p not in ended and not (p / layout.CLIENTS).exists()
        )
        for path in ended:
            try:
                run = read_run(path, read_spec(path).digest())
            except FedlogitError as error:  # also of a spec that another version wrote
                damaged[str(error)] = None
            else:
                key = run.spec.model_copy(update=_NO_NUMBER).digest()
                if len(run.spec.export) > len(runs.setdefault(key, run).spec.export):
                    runs[key] = run
    return FoundRuns(tuple(runs.values()), tuple(unfinished), tuple(damaged))


def beside_each_other(runs: Sequence[Run], metric: str = "accuracy") -> Artefact:
    """Return a figure of these runs, by dataset, partition, method and seed.

    Methods of one name that differ in something else have it in their label:
    ``uwa(fit='em')``, ``average(optimizer.lr=0.01)``.
    """
    differing = _differing_keys([run.spec for run in runs])
    label = metric_label(metric, samples_of(run.spec for run in runs))
    refs = []
    for run in runs:
        axes = {
            "dataset": run.spec.dataset,
            "partition": str(run.spec.partition),
            "method": _label(run.spec, differing[run.spec.method.name]),
        }
        refs.append(RunRef(dir=run.folder, digest=run.spec.digest(), axes=axes))
    return Artefact(
        paper="runs",
        id="runs",
        title=f"{sentence(label)} by round",
        kind="figure",
        scale="each run's own",
        metric=metric,
        plot="accuracy_by_round",
        labels={  # between two dollar signs, matplotlib would find mathematics
            name: name.replace("$", r"\$") for ref in refs for name in map(str, ref.axes.values())
        },
        runs=tuple(refs),
    )


def _differing_keys(specs: Sequence[RunSpec]) -> dict[str, list[str]]:
    """Return the keys in which runs of one method, data set and partition differ, by method."""
    places: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for spec in specs:
        place = (spec.dataset, str(spec.partition), spec.method.name)
        places.setdefault(place, []).append(_flat_values(spec))
    found: dict[str, dict[str, None]] = {spec.method.name: {} for spec in specs}
    for (*_, method), several in places.items():
        for key in dict.fromkeys(key for values in several for key in values):
            # Without adversaries a run lacks the keys that one with them has.
            if len({repr(values.get(key)) for values in several}) > 1:
                found[method][key] = None
    return {method: list(keys) for method, keys in found.items()}


def _flat_values(spec: RunSpec, *, defaults: bool = True) -> dict[str, Any]:
    """Return a spec's values by dotted keys, with or without defaults, less what an axis says."""
    values = dotted_keys.flat(spec.model_dump(mode="json", exclude_defaults=not defaults))
    return {k: v for k, v in values if not k.startswith((*_OWN_AXES, *_NO_NUMBER))}


def _label(spec: RunSpec, keys: Sequence[str]) -> str:
    values = _flat_values(spec, defaults=False)
    given = [(key, values[key]) for key in keys if values.get(key) is not None]
    arguments = ", ".join(f"{k.removeprefix('method.params.')}={value!r}" for k, value in given)
    return f"{spec.method.name}({arguments})" if arguments else spec.method.name


def run_table(artefact: Artefact) -> str:
    """Return a line per dataset, partition and method: mean ± std over seeds, bytes and seconds."""
    frame = collect(artefact, ["bytes_sent"])
    cells = summarise(frame, _AXES, artefact.metric)
    shown = cells[list(_AXES)].copy()
    shown["seeds"] = [
        f"{n} ({diverged} diverged)" if diverged else f"{n}"
        for n, diverged in zip(cells["n"], cells["diverged"], strict=True)
    ]
    label = metric_label(artefact.metric, measured_on(artefact))
    heading = f"{label} [%]" if is_share(artefact.metric) else label
    shown[heading] = [
        spread(float(mean), float(std), artefact.metric, percent=True)
        for mean, std in zip(cells["mean"], cells["std"], strict=True)
    ]
    for metric, heading in _BESIDES.items():
        means = summarise(frame, _AXES, metric)["mean"]
        shown[heading] = [number(float(mean), metric) for mean in means]
    return markdown(shown, "simple", right=[*shown.columns[len(_AXES) :]])


def every_round(artefact: Artefact) -> pd.DataFrame:
    """Return a row per run and round: its folder, its axes, and the columns of ``rounds.csv``."""
    parts = []
    for ref in artefact.runs:
        run = read_run(ref.dir, ref.digest)
        axes = {"run": ref.dir.as_posix(), **ref.axes, "seed": run.spec.seed}
        parts.append(run.rounds.assign(**axes)[[*axes, *run.rounds.columns]])
    return pd.concat(parts, ignore_index=True)
