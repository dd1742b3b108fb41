"""What the README says of each paper is what the results' files say."""

from __future__ import annotations

import re

import pandas as pd
from documented import ROOT

from fedlogit.results.formatting import in_words

README = (ROOT / "README.md").read_text(encoding="utf-8")
SPLITS = {"dir(0.01)": "Dir(0.01)", "dir(0.05)": "Dir(0.05)", "dir(0.1)": "Dir(0.10)", "sls": "SLS"}


def passage(paper: str) -> str:
    """Return what the README says of a paper: from its name to the next empty line."""
    (found,) = re.findall(rf"^\*{{3}}{re.escape(paper)}\*{{3}} .*?\n\n", README, re.M | re.S)
    return found


def numbers(paper: str, scale: str, table: str, dataset: str) -> pd.DataFrame:
    found = pd.read_csv(ROOT / f"results/summary/{paper}/{scale}/compare.csv")
    return found[(found["table"] == table) & (found["dataset"] == dataset)]


def differences(paper: str, scale: str, claim: str) -> list[tuple[float, float, float]]:
    """Return a claim's differences in points: the mean and its 90 % interval, cell by cell."""
    claims = pd.read_csv(ROOT / f"results/summary/{paper}/{scale}/claims.csv", index_col="id")
    found = re.findall(
        r"\(n=\d+, (-?[\d.]+) \[(-?[\d.]+) to (-?[\d.]+)\]", claims.loc[claim, "evidence"]
    )
    return [(100 * float(mean), 100 * float(low), 100 * float(high)) for mean, low, high in found]


def gap(claim: str) -> float:
    """Return by how many points one side of a claim of TallyTrain is above the other."""
    ((mean, _, _),) = differences("tally_train", "extended", claim)
    return mean


def test_mnist_is_as_near_to_the_paper_as_the_readme_says():
    apart = 100 * numbers("who_to_trust", "paper", "table1", "mnist")["difference"].abs()
    assert len(apart) == 10
    assert f"all means are within {apart.max():.1f} points of the paper's" in passage(
        "Who to Trust?"
    )


def test_celm_leads_on_cifar10_where_the_readme_says():
    found = numbers("celm", "paper", "table1", "cifar10")
    means = found[found["n"] >= 3].pivot(index="partition", columns="method", values="ours")
    leads = [SPLITS[split] for split in means.index if means.loc[split].idxmax() == "celm"]
    gains = 100 * (means["celm"] - means["fedavg"])
    said = passage("CELM").split("CIFAR-10, three seeds: ")[1]
    assert said.startswith(f"in {in_words(leads)} CELM has the best mean")
    ahead = in_words([f"{gain:.1f}" for gain in gains[means.idxmax(axis=1) == "celm"]])
    assert f"{ahead} points above FedAvg" in said
    assert (means.loc["pls_cifar10"].idxmax(), means.loc["sls"].idxmax()) == ("shapfed", "cffl")
    orders = pd.read_csv(ROOT / "results/record.orders.csv").query(
        "paper == 'celm' and table == 'table1' and dataset == 'cifar10'"
        " and partition in ('pls_cifar10', 'sls') and first == 'celm' and second == 'fedavg'"
    )
    assert orders["order"].tolist() == ["not distinguished"] * 2


def test_votes_are_as_much_above_soft_labels_as_the_readme_says():
    orders = pd.read_csv(ROOT / "results/record.orders.csv")
    (published,) = orders.loc[
        (orders["paper"] == "tally_train")
        & (orders["table"] == "table1")
        & (orders["metric"] == "tail_accuracy")
        & orders["first"].str.startswith("tally_train")
        & orders["second"].str.startswith("fedmd"),
        "published",
    ]
    ours = gap("hard_beats_soft"), gap("hard_beats_soft_cifar10")
    said = f"by {ours[0]:.1f} and {ours[1]:.1f} points (the paper: {100 * published:.2f})"
    assert said in passage("TallyTrain")


def test_public_labels_alone_do_as_the_readme_says():
    said = "within a point of votes on CIFAR-100 and above them on CIFAR-10"
    assert said in passage("TallyTrain")
    (first,), (second,) = (
        differences("tally_train", "extended", claim)
        for claim in ("votes_add", "votes_add_cifar10")
    )
    assert max(map(abs, first)) < 1
    assert max(second) < 0


def test_on_text_tally_train_is_as_near_to_fedavg_as_the_readme_says():
    ((mean, low, high),) = differences("tally_train", "extended", "lm_bridge")
    said = f"({mean:.1f} points above; 90 % interval {low:.2f} to {high:.2f})"
    assert said in passage("TallyTrain")


def test_uwa_is_as_near_to_average_on_cifar10_as_the_readme_says():
    _, (mean, low, high) = differences("who_to_trust", "reduced", "uwa_beats_average")
    said = f"(by {mean:.1f}; 90 % interval {low:.1f} to {high:.1f})"
    assert said in passage("Who to Trust?")
    assert high < 3


def test_fedavg_by_size_is_as_near_to_celm_as_the_readme_says():
    said = r"within a point of CELM\]\(docs/findings.md#[\w-]+\) wherever clients differ in size"
    assert re.search(said, passage("CELM"))
    found = [
        difference
        for claim in ("more_than_size", "more_than_size_twenty")
        for difference in differences("celm", "ten_seeds", claim)
    ]
    assert len(found) == 7
    assert max(abs(end) for _, low, high in found for end in (low, high)) < 1


def test_fedols_gain_changes_with_skew_as_the_readme_says():
    ((_, *dirichlet),), ((_, *classes),) = (
        differences("fedol", "twenty_seeds", claim)
        for claim in ("most_in_skew", "most_in_few_classes")
    )
    assert (
        f"{dirichlet[0]:.1f} to {dirichlet[1]:.1f} points from Dir(1) to Dir(0.05),"
        f" {classes[0]:.1f} to {classes[1]:.1f} from three classes per client to two"
    ) in passage("FedOL")
    assert all(low < 0 < high for low, high in (dirichlet, classes))


def test_more_exchanges_gain_as_much_as_the_readme_says():
    found = pd.read_csv(ROOT / "results/tables/comparison/paper/public_steps.csv")
    means = found.pivot(index=["method", "partition"], columns="rounds", values="mean")
    gains = 100 * (means[375] - means[75])
    assert (gains > 0).all()
    assert f"gain up to {gains.max():.0f} points" in README
