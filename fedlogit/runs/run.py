"""One run: from a spec to a folder that describes itself, through rounds and checkpoints."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fedlogit.data import Dataset
from fedlogit.engine.evaluation import Scores
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import write_json
from fedlogit.locks import remove_unheld
from fedlogit.methods import Method
from fedlogit.partition import Split
from fedlogit.runs import layout
from fedlogit.runs.checkpoint import (
    check_memory,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from fedlogit.runs.context import RunContext, RunOptions
from fedlogit.runs.finishing import log_line, make_outputs_once
from fedlogit.runs.folder_lock import folder_lock
from fedlogit.runs.integrity import read_spec
from fedlogit.runs.outputs import write_outputs
from fedlogit.runs.progress import RoundProgress
from fedlogit.runs.stages import Precomputed, RoundFunction, continue_from
from fedlogit.spec import RunSpec
from fedlogit.stopping import exit_code, stop_after_round

__all__ = ["check_folder", "run", "run_lock"]

_FOLDER = re.compile(r"seed\d+-([0-9a-f]{8})")


def check_folder(spec: RunSpec, folder: Path) -> None:
    """Refuse a folder that is another run's, or in which no checkpoint could be written.

    Raises:
        FedlogitError: if the folder's name, or the spec in it, has another hash; if that spec
            cannot be read; if a checkpoint is a folder.
    """
    digest = spec.digest()
    match = _FOLDER.fullmatch(folder.name)
    if match and match[1] != digest[:8]:
        raise FedlogitError(
            f"the spec's hash is {digest[:8]}, but the folder is {folder.name}; "
            "one of them is from another run"
        )
    if (folder / layout.SPEC).exists():
        found = read_spec(folder).digest()
        left = {path.name for path in folder.iterdir()} - {layout.SPEC, layout.LOCK}
        if found != digest and left:  # a spec alone is of a run that was refused
            raise FedlogitError(
                f"{folder} holds the run {found[:8]}, not {digest[:8]}; give another folder, or"
                " remove it"
            )
    for path in (folder / layout.CHECKPOINT, folder / layout.CHECKPOINT_BEFORE):
        if path.is_dir():
            raise FedlogitError(f"{path} is a folder; remove it, or give another folder")


def _check_vacant(folder: Path) -> None:
    """Refuse a folder that has files of something else, and none by which it would be a job's.

    Raises:
        FedlogitError: naming one of the others.
    """
    there = {path.name for path in folder.glob("[!.]*")}
    if (others := sorted(there - layout.UNSIGNED)) and there.isdisjoint(layout.SIGNS):
        raise FedlogitError(
            f"{folder} holds {others[0]} and no run; give a folder that is empty or not there"
        )


@contextmanager
def run_lock(folder: Path, last: str = layout.RESULT) -> Iterator[bool]:
    """Hold a folder while it is made; yield whether there is anything to do.

    A job that a killed Snakemake left behind may still be making it when a second one asks for it
    again: then the second job waits, and finds it finished.

    Args:
        folder: The run's folder.
        last: The file that is written last: with it, the folder is finished.

    Raises:
        FedlogitError: if the folder cannot be written, or holds files but no run.
    """
    if (folder / last).exists():  # also where nothing can be written
        # Of a process that was killed when all was done but this.
        remove_unheld(folder / layout.LOCK)
        yield False
        return
    _check_vacant(folder)
    with folder_lock(folder):
        yield not (folder / last).exists()


def run(
    spec: RunSpec,
    method: Method,
    dataset: Dataset,
    split: Split,
    folder: Path,
    options: RunOptions,
    precomputed: Precomputed | None = None,
) -> None:
    """Train as `spec` says and write `folder`; go on from its checkpoint if there is one.

    A run that had finished, but whose job failed all the same, only gets its result back.

    Args:
        spec: A resolved spec; its hash must fit the folder.
        method: The method it names.
        dataset: The data set it names.
        split: The partition of the training split it implies.
        folder: The run's folder; made if missing.
        options: How to run.
        precomputed: What earlier jobs did, for a run in stages.

    Raises:
        FedlogitError: if the folder is another run's or cannot be written, or if its checkpoint was
            made by other code or of other data.
    """
    check_folder(spec, folder)
    write_json(folder / layout.SPEC, spec.model_dump(mode="json"))
    context = RunContext(spec, method, dataset, split, options)
    provenance = context.provenance
    if precomputed is not None:
        provenance.add(precomputed.note)

    def make() -> None:
        with (
            closing(RoundProgress(spec, options.progress)) as progress,
            context.federation(progress.stage) as fed,
        ):
            run_round: RoundFunction = method.round
            if precomputed is not None:
                run_round = continue_from(fed, method, precomputed)
            training = _Training(fed, folder, options, progress)
            with stop_after_round() as stop:
                diverged, scores = training.train(method, run_round, stop)
                if fed.devices[:-1]:
                    provenance.add({"earlier_devices": fed.devices[:-1]})
                # Within the block: no checkpoint has the last round, so a signal waits for the
                # outputs.
                write_outputs(fed, folder, training.rows, diverged, provenance, scores)

    facts = provenance.decisive()
    make_outputs_once(
        folder, layout.OUTPUTS_OF_RUN, facts, make=make, tidy=lambda: remove_checkpoints(folder)
    )


class _Training:
    """The rounds of a run: a row of each, and checkpoints between them.

    Attributes:
        rows: Of the rounds so far.
    """

    def __init__(
        self, fed: Federation, folder: Path, options: RunOptions, progress: RoundProgress
    ) -> None:
        """Go on from the folder's checkpoint, if there is one.

        Args:
            fed: The federation; a checkpoint is restored into it.
            folder: For checkpoints.
            options: How often to write them.
            progress: To show rounds.
        """
        self._fed, self._folder, self._progress = fed, folder, progress
        self._checkpoint_seconds = options.checkpoint_seconds
        self.rows = load_checkpoint(folder, fed)
        self._saved = 0.0
        progress.rounds(self.rows)

    def train(
        self, method: Method, run_round: RoundFunction, stop: Sequence[int]
    ) -> tuple[str, Scores | None]:
        """Do the rounds that are left, and let the method finish.

        Args:
            method: What begins and finishes the run.
            run_round: The method's, or of the stage.
            stop: The signals that have come; with one, the process ends after a checkpoint.

        Returns:
            Why the run diverged, or "", and the scores of the last test, if the models are still
            those that were tested.
        """
        if self.rows or self._fed.steps.restored:
            log_line(f"goes on after {_where(self._fed)}")
        else:
            method.init(self._fed)
        diverged, scores = self._rounds(run_round, stop)
        diverged = diverged or _finish(self._fed, method)
        if type(method).finish is not Method.finish:
            scores = None  # models may have changed since the test
        return diverged, scores

    def _rounds(self, run_round: RoundFunction, stop: Sequence[int]) -> tuple[str, Scores | None]:
        """Add a row per round that is left; return as `train`."""
        fed, scores = self._fed, None
        self._saved = time.monotonic()
        fed.steps.after_step = partial(self._save_if_due, stop)
        while fed.round < fed.spec.rounds:
            try:
                row, scores = _round(fed, run_round)
            except Diverged as error:
                return f"round {fed.round}: {error}", None
            self.rows.append(row)
            self._progress.rounds(self.rows)
            if fed.round < fed.spec.rounds:
                self._save_if_due(stop)
        return "", scores

    def _save_if_due(self, stop: Sequence[int]) -> None:
        """Save what there is if it is time to, and end if a signal came."""
        fed = self._fed
        if stop or time.monotonic() - self._saved >= self._checkpoint_seconds:
            check_memory(fed)
            save_checkpoint(self._folder, fed, self.rows)
            self._saved = time.monotonic()
        if stop:
            log_line(f"stopped by signal {stop[0]} after {_where(fed)}; the same command goes on")
            raise SystemExit(exit_code(stop[0]))


def _finish(fed: Federation, method: Method) -> str:
    """Let the last round end and the method finish; return why it diverged, or ""."""
    try:
        fed.end_rounds()
        method.finish(fed)
    except Diverged as error:
        return f"after round {fed.round}: {error}"
    return ""


def _round(fed: Federation, run_round: RoundFunction) -> tuple[dict[str, Any], Scores | None]:
    """Do the next round; return its row and, if it was tested, the scores."""
    fed.start_round(fed.round + 1)
    run_round(fed, fed.round)
    fed.check_round()
    seconds = fed.steps.seconds
    fed.steps.clear()
    check_memory(fed)
    row: dict[str, Any] = {"round": fed.round}
    own = fed.take_log()  # before tests log columns of theirs, which would replace a method's
    scores = None
    if fed.spec.tests_in(fed.round):
        start = time.perf_counter()
        scores = fed.evaluate()
        row |= scores.row()
        row["seconds_test"] = time.perf_counter() - start  # which are not in `seconds`
    tested, booked = fed.take_log(), fed.ledger.of_round(fed.round)
    if taken := sorted(own.keys() & {*row, *tested, *booked, "seconds"}):
        raise FedlogitError(
            f"method {fed.spec.method.name}: log({taken[0]}=…) is a column that every run has; log"
            " it under another name"
        )
    return row | own | tested | booked | {"seconds": seconds}, scores


def _where(fed: Federation) -> str:
    """Say which round is over, or which step of the one that is not."""
    steps = [*fed.steps.done, *fed.steps.restored]
    within = f"{steps[-1]} in " if steps else ""
    going_on = fed.round + bool(fed.steps.restored)  # the round that goes on has not begun again
    return f"{within}round {going_on} of {fed.spec.rounds}"
