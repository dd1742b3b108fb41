"""The library's paths below a folder of results are those of the workflow's rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedlogit.runs.paths import ResultsLayout

RULES = Path(__file__).resolve().parents[2] / "workflow/rules"
LAYOUT = ResultsLayout(Path("results"))
RUN = "{run}"


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ("train.smk", LAYOUT.result(RUN)),
        ("one_shot.smk", LAYOUT.clients(RUN) / "clients.json"),
        ("one_shot.smk", LAYOUT.targets(RUN)),
        ("one_shot.smk", LAYOUT.plans / "clients" / f"{RUN}.json"),
        ("logits.smk", LAYOUT.clients(RUN) / "logits.json"),
        ("partition.smk", LAYOUT.partition("{split}") / "indices.npz"),
        ("results.smk", LAYOUT.artefact("table", "{paper}", "{scale}", "{id}", "md")),
        ("results.smk", LAYOUT.artefact("figure", "{paper}", "{scale}", "{id}", "png")),
        ("results.smk", LAYOUT.summary("{paper}", "{scale}") / "summary.md"),
        ("results.smk", LAYOUT.page("{paper}", "{scale}")),
    ],
    ids=str,
)
def test_a_rule_makes_it_there(rules, path):
    assert str(path) in re.findall(r'"(results/[^"]*)"', (RULES / rules).read_text())


def test_another_folder_has_the_same_below_it(tmp_path):
    assert ResultsLayout(tmp_path).run("a/b") == tmp_path / "runs/a/b"
