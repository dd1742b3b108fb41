"""What it took to make a paper's runs, as `dvc metrics` and the pages tell it."""

from __future__ import annotations

import pytest
from support.sealed import seal

from fedlogit.files import read_json, write_json
from fedlogit.papers.artefact import RunRef
from fedlogit.results.pages.chapter import write_page
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts.published import nothing_published

MISSING = {"before": 0, "axes": {"dataset": "mnist", "method": "average", "seed": 0}}


def trained(folder, *artefacts) -> dict[str, object]:
    """Return what the summary of tables says of their training."""
    write_summary(artefacts, nothing_published(), folder)
    return read_json(folder / "metrics.json")["training"]


def test_without_any_finished_run_nothing_was_trained(make_artefact, tmp_path):
    table = make_artefact(missing=[MISSING])
    assert trained(tmp_path, table) == {"runs": 0, "hours": 0.0, "devices": ""}


@pytest.fixture
def make_staged(make_run):
    """Return a function that makes a run in stages, on clients that began at a minute."""

    def make(method: str, minute: int, hours: float, seed: int) -> RunRef:
        run = make_run(method=method, seed=seed)
        result = read_json(run.dir / "result.json")
        clients = {"clients_started": f"2026-11-25T00:{minute}:00+00:00"}
        clients |= {"clients_wall_seconds": hours * 3600}
        result["provenance"] |= clients | {"wall_seconds": 1800}
        write_json(run.dir / "result.json", result)
        seal(run.dir)
        return run

    return make


def test_hours_have_the_clients_that_runs_in_stages_share_once(
    make_run, make_staged, make_artefact, tmp_path
):
    # Three runs of half an hour, two of them on clients of 2 h, one on others of 2 h, and 12.5 s.
    staged = [make_staged("average", 10, 2, 0), make_staged("uwa", 10, 2, 0)]
    staged += [make_staged("average", 20, 2, 1)]
    table = make_artefact(make_run(method="fedavg"), *staged)
    summary = tmp_path / "summary/who_to_trust/paper"
    assert trained(summary, table)["hours"] == pytest.approx(3 * 0.5 + 2 * 2)
    page = write_page([table], tmp_path, tmp_path / "page.html").read_text()
    assert '<li data-fact="training"><b>Training</b>5.5 h</li>' in page
