"""What it took to make a paper's runs, as `dvc metrics` and the pages tell it."""

from __future__ import annotations

from fedlogit.files import read_json
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts.compare import nothing_published

MISSING = {"before": 0, "axes": {"dataset": "mnist", "method": "average", "seed": 0}}


def trained(folder, *artefacts) -> dict[str, object]:
    """Return what the summary of tables says of their training."""
    write_summary(artefacts, nothing_published(), folder)
    return read_json(folder / "metrics.json")["training"]


def test_without_any_finished_run_nothing_was_trained(make_artefact, tmp_path):
    table = make_artefact(missing=[MISSING])
    assert trained(tmp_path, table) == {"runs": 0, "hours": 0.0, "devices": ""}
