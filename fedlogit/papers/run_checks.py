"""Checks before anything starts: may runs that are missing be trained, and can the engine do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fedlogit.errors import FedlogitError
from fedlogit.papers.plan import Plan
from fedlogit.papers.planned import PlannedArtefact

__all__ = ["refuse_missing", "refuse_unfit"]


def refuse_missing(plan: Plan, artefacts: Iterable[PlannedArtefact]) -> None:
    """Refuse to go on if training is frozen and runs of these tables and figures are missing.

    Raises:
        FedlogitError: with a line per missing run: its path, and what needs it.
    """
    if not plan.settings.frozen:
        return
    missing: dict[str, list[str]] = {}
    needed = set()
    for artefact in artefacts:
        for run in plan.runs(artefact):
            needed.add(run)
            if not plan.finished(run):
                name = f"{artefact.paper.paper}/{artefact.scale}/{artefact.id}"
                missing.setdefault(run, []).append(name)
    if missing:
        raise FedlogitError(
            f"frozen = true, but {len(missing)} of {len(needed)} runs are missing"
            " (make pull may bring them; frozen = false trains them):"
            + "".join(f"\n  {run}  for {', '.join(of)}" for run, of in missing.items())
        )


def refuse_unfit(plan: Plan, runs: Iterable[str]) -> None:
    """Refuse to go on if some of these runs are missing and could not be trained as configured.

    Raises:
        FedlogitError: with each reason, and how many runs it stops.
    """
    settings = plan.settings
    if settings.frozen or settings.engine == "auto":
        return
    # With PyTorch, which planning does without where nothing has to be checked.
    from fedlogit import methods
    from fedlogit.engine.choose import check_engine
    from fedlogit.runs.workloads import client_workloads

    device = "cuda" if settings.device.startswith("cuda") else "cpu"
    missing = [run for run in dict.fromkeys(runs) if not plan.finished(run)]
    reasons: Counter[str] = Counter()
    for spec in (spec for spec in map(plan.spec_of_run, missing) if not spec.ledger_only):
        workloads = client_workloads(spec, methods.get(spec.method), device)
        try:
            check_engine(settings.engine, workloads)
        except FedlogitError as error:
            reasons[str(error)] += 1
    if reasons:
        why = "; ".join(f"{n} of {len(missing)} runs: {r}" for r, n in reasons.items())
        raise FedlogitError(f"engine = {settings.engine!r} does not fit: {why}")
