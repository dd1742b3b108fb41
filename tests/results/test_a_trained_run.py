"""What training writes is what tables and figures read."""

from __future__ import annotations

import pandas as pd

from fedlogit.files import read_json
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect, curves
from fedlogit.results.figures import draw
from fedlogit.spec import RunSpec


def test_a_trained_run_can_be_tabled_and_drawn(train):
    folder = train(method="uwa", export=["aggregation"])
    spec = RunSpec.read(read_json(folder / "spec.json"), "spec")
    axes = {"dataset": "digits", "partition": "k_classes(3)", "method": "uwa"}
    artefact = Artefact.model_validate(
        {
            "paper": "p",
            "scale": "smoke",
            "id": "f",
            "title": "A figure",
            "kind": "figure",
            "plot": "aggregation_weights",
            "runs": [{"dir": str(folder), "digest": spec.digest(), "axes": axes}],
        }
    )
    row = collect(artefact, ["weight_max"]).iloc[0]
    # 60 public points x 10 classes x 4 bytes of logits, and 60 x 4 bytes of densities.
    assert row["bytes_up"] == 60 * 10 * 4 + 60 * 4
    assert row["accuracy"] == curves(artefact)["accuracy"].iloc[-1]
    assert 1 / 4 <= row["weight_max"] <= 1
    assert pd.notna(row["seconds"])
    assert "of weight" in draw(artefact).axes[0].get_title(loc="left")
