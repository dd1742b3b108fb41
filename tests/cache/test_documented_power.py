"""What docs/seeds-and-sizes.md says of the power of new seeds is what `power` computes."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from support.calls import ROOT, dvc, script

from fedlogit.commands._cache import read_listing, write_listing
from fedlogit.commands._many.selection import paper_options, planned_runs
from fedlogit.results.verdicts.claim_power import POOLED

pytestmark = pytest.mark.slow
PAGE = " ".join((ROOT / "docs/seeds-and-sizes.md").read_text(encoding="utf-8").split())


def _pulled(clone: Path, *options: str) -> None:
    """Clone the last commit with the published runs that options of `train_many` select."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git, or no checkout to clone")
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    parser = argparse.ArgumentParser()
    paper_options(parser)
    papers = ("--papers", str(clone / "workflow/papers"))
    planned = planned_runs(parser.parse_args([*options, *papers]), clone / "results")
    listing = clone / "results/runs.dvc"
    write_listing(listing, {k: v for k, v in read_listing(listing).items() if k in planned})
    pulled = dvc("pull", "--quiet", str(listing), cwd=clone)
    assert pulled.returncode == 0, pulled.stderr


def _power(clone: Path, *options: str) -> pd.DataFrame:
    folders = ("--results", str(clone / "results"), "--papers", str(clone / "workflow/papers"))
    done = script("power", *options, *folders, "--csv", str(clone / "power.csv"))
    assert done.returncode == 0, done.stderr
    return pd.read_csv(clone / "power.csv").set_index(["claim", "comparison"])


def test_of_fedols_twenty_seeds(tmp_path):
    select = ("--paper", "fedol", "--scale", "extended")
    _pulled(tmp_path / "clone", *select, "--artefacts", "budget", "ablation")
    claims = ("equal_long", "equal_short", "pseudo_labels_help")
    found = _power(tmp_path / "clone", *select, "--seeds", "20", "--claims", *claims)
    long, short, labels = (round(100 * found.loc[(claim, POOLED), "power"]) for claim in claims)
    assert re.search(
        rf"seeds have a power of {long} % to .* {short} % to show it below .* and {labels} % to",
        PAGE,
    )


def test_of_celms_ten_seeds(tmp_path):
    select = ("--paper", "celm", "--scale", "paper")
    data = ("--datasets", "fashion_mnist")
    _pulled(tmp_path / "clone", *select, *data, "--artefacts", "table1")
    found = _power(tmp_path / "clone", *select, "--seeds", "10", "--claims", "celm_over_fedavg")
    line = found.loc[("celm_over_fedavg", "Fashion-MNIST, Dir(0.01): CELM vs FedAvg")]
    gain, std = 100 * line["difference"], 100 * line["std"]
    assert (
        f"a gain over FedAvg of {gain:.1f} points, with a standard deviation of {std:.1f} between"
        f" seeds; ten seeds have a power of {line['power']:.0%}".replace("%", " %")
    ) in PAGE
