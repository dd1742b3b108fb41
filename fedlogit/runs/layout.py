"""Names of the files in the folder of a job: a run, clients that runs share, or a partition.

Which of them are there says whether a job is done or can be resumed. `.dvcignore` has those that
the cache does not keep.
"""

from __future__ import annotations

__all__ = [
    "CHECKPOINT",
    "CHECKPOINTS",
    "CHECKPOINT_BEFORE",
    "CLIENTS",
    "EXPORTS",
    "FINISHED_NOTE",
    "INDICES",
    "LOCK",
    "LOGITS",
    "LOGITS_RECORD",
    "NOT_KEPT",
    "OUTPUTS_OF_CLIENTS",
    "OUTPUTS_OF_RUN",
    "PARTS",
    "RECORDS",
    "RESULT",
    "ROUNDS",
    "SIGNS",
    "SPEC",
    "TARGETS",
    "UNSIGNED",
    "WEIGHTS",
    "WRITTEN",
    "part_of",
]

SPEC = "spec.json"
"""What was asked for: the resolved spec. It is written first, before anything is trained."""
ROUNDS = "rounds.csv"
"""A row for each round: metrics, bytes, seconds, and what the method logs."""
RESULT = "result.json"
"""What came of a run: last metrics, provenance and digests. With it, all else is there."""
EXPORTS = "exports"
"""The folder of arrays that `spec.export` asks for."""

CLIENTS = "clients.json"
"""The record of clients that several runs share. With it, their weights are there."""
WEIGHTS = "weights.safetensors"
"""Models: of the clients in their folder, or of a run in its exports."""
LOGITS = "logits.npz"
"""Logits: the shared clients' in their folder, or a run's in its exports."""
LOGITS_RECORD = "logits.json"
"""The record of the shared clients' logits. With it, the logits are there."""
TARGETS = "targets.npz"
"""What an aggregator has made of the clients' logits."""

INDICES = "indices.npz"
"""Each client's samples, in the folder of a partition of data."""

CHECKPOINT = "checkpoint.safetensors"
"""The state of a run that has not finished, after some round."""
CHECKPOINT_BEFORE = "checkpoint.previous.safetensors"
"""The checkpoint before that one, should it be damaged."""
CHECKPOINTS = "checkpoint*.safetensors"
"""Both, as a pattern."""
PARTS = "part-*.safetensors"
"""Shared clients that are trained while others are not yet, a file each; a pattern."""
LOCK = ".lock"
"""Held by the process that makes the folder."""
FINISHED_NOTE = ".finished.json"
"""What a finished job made, by digests (`fedlogit.runs.finishing`)."""

OUTPUTS_OF_RUN = (RESULT,)
"""What Snakemake deletes of a run whose job fails; it has a second, hidden name."""
OUTPUTS_OF_CLIENTS = (WEIGHTS, CLIENTS)
"""The same of shared clients; the record comes last."""
RECORDS = (SPEC, ROUNDS, RESULT)
"""What each finished run has, in the order in which it travels: the result last."""
NOT_KEPT = (LOGITS, WEIGHTS)
"""Exports for people, which the cache does not keep (.dvcignore), nor an archive of runs."""

SIGNS = frozenset({SPEC, RESULT, CLIENTS, CHECKPOINT, CHECKPOINT_BEFORE})
"""A folder with any of them is a job's."""
UNSIGNED = frozenset({ROUNDS, EXPORTS})
"""What a folder may have without one of `SIGNS`: a killed pull leaves it so."""

_DELETED = (RESULT, CLIENTS, WEIGHTS)
WRITTEN = (
    *(SPEC, ROUNDS, CHECKPOINT, CHECKPOINT_BEFORE),
    *_DELETED,
    *(f".{name}" for name in _DELETED),
    FINISHED_NOTE,
)
"""What jobs write in their folder, outputs also under their hidden names; without parts."""


def part_of(client: int) -> str:
    """Return the name of a client's own file, one of `PARTS`."""
    return PARTS.replace("*", str(client))
