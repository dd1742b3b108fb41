"""The study's answer and its costs, from made runs, by hand."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.sealed import seal

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import read_json, write_json
from fedlogit.results.analyses import analyse, analysis_names
from fedlogit.results.collect import collect
from fedlogit.results.statistics.best_methods import candidates
from fedlogit.results.tables import table_and_caption, write_table

NO_AXES = {"rows": None, "columns": None}


def frame(*values: list[float]) -> pd.DataFrame:
    return pd.DataFrame(np.array(values).T, columns=list("abcdef"[: len(values)]))


def test_a_candidate_by_hand():
    # b - a: mean .02 and deviation .01 of three, t = .02 / (.01 / √3) = 3.4641 with 2 degrees of
    # freedom, for which the one-sided p is (1 - t / √(t² + 2)) / 2.
    t = 2 * 3**0.5
    p = (1 - t / (t**2 + 2) ** 0.5) / 2
    best, other = candidates(frame([0.5, 0.5, 0.5], [0.51, 0.52, 0.53])).to_dict("records")
    assert (best["method"], best["result"], best["difference"]) == ("b", "best mean", 0)
    assert best["p"] == pytest.approx(1 - p)
    assert (other["result"], other["beaten_by"]) == ("excluded", "b")
    assert other["p"] == pytest.approx(p) == pytest.approx(0.0371, abs=1e-4)
    # 95 %: t = 4.3027 for 2 degrees of freedom.
    assert [other[key] for key in ("difference", "low", "high")] == pytest.approx(
        [0.02, 0.02 - 0.024841, 0.02 + 0.024841], abs=1e-5
    )
    # With a third method p is doubled, and 0.074 excludes nobody.
    third = candidates(frame([0.5, 0.5, 0.5], [0.51, 0.52, 0.53], [0.4, 0.6, 0.5]))
    assert third["result"].tolist() == ["best mean", "not excluded", "not excluded"]
    assert third.set_index("method").loc["a", "p"] == pytest.approx(2 * p)
    assert (third["beaten_by"] == "").all()


def test_a_single_seed_shows_nothing():
    found = candidates(pd.DataFrame({"a": [0.4], "b": [0.5]}))
    assert found["result"].tolist() == ["best mean", "no test"]
    assert found["p"].isna().all()
    assert np.isnan(found.loc[1, ["low", "high"]].astype(float)).all()


def test_a_method_is_excluded_by_whoever_is_surely_above_it():
    """Not by the best mean alone, which may vary too much to show anything."""
    found = candidates(
        frame([0.9, 0.5, 0.9, 0.5], [0.6, 0.61, 0.6, 0.61], [0.5, 0.51, 0.501, 0.509])
    ).set_index("method")
    assert found["result"].to_dict() == {
        "a": "best mean", "b": "not excluded", "c": "excluded"
    }  # fmt: skip
    assert found.loc["c", "beaten_by"] == "b"


@pytest.mark.parametrize("seed", range(3))
def test_candidates_are_those_of_a_second_version(seed):
    values = np.random.default_rng(seed).normal([0.0, 0.5, 3.0, 3.2], 0.3, size=(5, 4))
    found = candidates(pd.DataFrame(values, columns=list("abcd"))).set_index("method")
    for j, method in enumerate("abcd"):
        p = 3 * min(
            stats.ttest_rel(values[:, i], values[:, j], alternative="greater").pvalue
            for i in range(4)
            if i != j
        )
        assert found.loc[method, "p"] == pytest.approx(min(1, p))
        assert (found.loc[method, "result"] == "excluded") == (p < 0.05)


def test_the_best_is_seldom_excluded():
    """Of six methods that are all alike each is the best, and excluded in one of twenty at most."""
    rng = np.random.default_rng(0)
    found = [
        candidates(pd.DataFrame(rng.normal(0, [1, 1, 2, 2, 3, 3], (5, 6)))).set_index("method")
        for _ in range(400)
    ]
    excluded = np.mean([frame["result"].eq("excluded").sort_index() for frame in found], axis=0)
    assert 0 < excluded.max() < 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5


def sends(run, bytes_up: int):
    """Let a run of four clients have sent so many bytes in all; return the reference to it."""
    result = read_json(run.dir / "result.json")
    result["bytes"] = {"up": {"logits": bytes_up}, "down": {}}
    write_json(run.dir / "result.json", result)
    seal(run.dir)
    return run


@pytest.fixture
def study(make_run, make_artefact):
    """Return a function from accuracies to a table.

    UWA sends 1 kB a client, Average 10 kB, FedAvg 1 MB, Local nothing.
    """

    def make(analysis: str, seeds: int, options: dict | None = None, **accuracy: float):
        gains = [0.0, 0.003, 0.001, 0.004, 0.002]
        runs = [
            sends(
                make_run(a + gains[(s + i) % 5] + s / 100, method=m, seed=s),
                {"local": 0, "uwa": 4_000, "average": 40_000, "fedavg": 4_000_000}[m],
            )
            for i, (m, a) in enumerate(accuracy.items())
            for s in range(seeds)
        ]
        runs += [make_run(1.0, method="fully_informed", partition="iid", seed=s) for s in range(5)]
        return make_artefact(*runs, analysis=analysis, options=options or {}, **NO_AXES)

    return make


def cells(path) -> dict[str, str]:
    head, _, *rows = [x for x in path.read_text().splitlines() if x.startswith("|")]
    names, first = ([c.strip() for c in line.strip("|").split("|")] for line in (head, rows[0]))
    return dict(zip(names, first, strict=True))


def test_the_answer_names_one_only_where_all_others_are_excluded(study, tmp_path):
    artefact = study("answer", 5, uwa=0.5, average=0.501, fedavg=0.8)
    csv, text, _ = write_table(artefact, tmp_path / "answer")
    row = cells(text)
    assert row["If you have"] == "2 classes"
    assert "Bold: all others are excluded" in text.read_text()
    assert row["up to 10 kB: use"] == "Average 52.3 or UWA 52.2"
    # FedAvg sends exactly 1 MB, which a budget of 1 MB allows.
    assert row["up to 1 MB: use"] == row["up to 10 MB, or more: use"] == "**fedavg 82.2**"
    frame = pd.read_csv(csv).set_index(["budget", "method"])
    assert frame.loc[("100 kB", "uwa"), "bytes_sent"] == 1000
    assert ("100 kB", "fedavg") not in frame.index
    assert frame.loc[("any", "uwa"), "result"] == "excluded"
    assert frame.loc[("any", "uwa"), "difference"] == pytest.approx(0.3, abs=1e-3)


def test_of_many_that_may_be_the_best_the_answer_names_two(study, tmp_path):
    # Local, of which a mean of 10.2 is excluded, is not the lowest of those named.
    artefact = study("answer", 5, uwa=0.5, average=0.501, fedavg=0.502, local=0.1)
    text = write_table(artefact, tmp_path / "answer")[1]
    row = cells(text)
    assert row["up to 10 MB, or more: use"] == "fedavg 52.4; Average 52.3; or another, 52.2"
    assert "Bold: " not in text.read_text()  # as no cell is
    assert "the two with the highest means, the number of others" in text.read_text()


def test_names_with_commas_are_told_apart(study, tmp_path):
    labels = {"uwa": "UWA, EM-fitted", "average": "Average, plain"}
    artefact = study("answer", 5, uwa=0.5, average=0.501, fedavg=0.502)
    row = cells(write_table(artefact.model_copy(update={"labels": labels}), tmp_path / "a")[1])
    assert row["up to 10 MB, or more: use"].startswith("fedavg 52.4; Average, plain 52.3; or ")


def test_methods_that_diverged_are_named_as_in_the_table(make_run, make_artefact):
    runs = [make_run(0.5 + s / 100, method=m, seed=s) for m in ("uwa", "average") for s in (0, 1)]
    runs += [make_run(method=m, seed=2, status="diverged") for m in ("uwa", "average")]
    labels = {"uwa": "UWA, EM-fitted"}
    found = analyse(make_artefact(*runs, analysis="answer", labels=labels, **NO_AXES))
    assert (
        "Seeds at which a method diverged are left out: UWA, EM-fitted; average" in found.sentences
    )


def test_methods_with_labelled_samples_have_a_column_of_their_own(study, tmp_path):
    options = {"labelled": ["fedavg"]}
    csv, text, _ = write_table(
        study("answer", 5, options, uwa=0.5, average=0.7, fedavg=0.8), tmp_path / "answer"
    )
    row = cells(text)
    assert row["up to 10 MB, or more: use"] == "**Average 72.2**"  # though FedAvg is better
    assert row["1.0 MB and labelled samples at the server: use"] == "only fedavg 82.2"
    frame = pd.read_csv(csv)
    assert set(frame.loc[frame["method"] == "fedavg", "budget"]) == {"labelled"}


def test_the_column_of_labelled_samples_says_what_the_costliest_method_sends(study):
    options = {"labelled": ["average", "fedavg"]}  # 10 kB and 1 MB
    shown = analyse(study("answer", 2, options, uwa=0.5, average=0.7, fedavg=0.8)).shown
    assert shown.columns[-1] == "1.0 MB and labelled samples at the server: use"


def test_places_of_one_seed_and_of_several_are_told_as_such(make_run, make_artefact):
    runs = [
        make_run(0.5 + seed / 100, method=method, partition=partition, seed=seed)
        for partition, seeds in (("k_classes(2)", 3), ("k_classes(5)", 1))
        for method in ("uwa", "average")
        for seed in range(seeds)
    ]
    said = ". ".join(analyse(make_artefact(*runs, analysis="answer", **NO_AXES)).sentences)
    assert "paired t test over 1–3 seeds" in said
    assert "One seed" not in said


def test_the_answer_of_one_seed_says_that_there_was_no_test(study, tmp_path):
    csv, text, _ = write_table(study("answer", 1, uwa=0.5, fedavg=0.8), tmp_path / "answer")
    assert cells(text)["up to 10 MB, or more: use"].startswith("fedavg 80.")
    assert "One seed: no test, and so no winner" in text.read_text()
    assert pd.read_csv(csv)["p"].isna().all()


def test_a_budget_that_no_method_keeps_has_a_dash_and_one_that_one_keeps_no_winner(study, tmp_path):
    text = write_table(study("answer", 2, fedavg=0.8), tmp_path / "answer")[1]
    assert cells(text)["up to 100 kB: use"] == "–"
    # Nothing else is allowed, so there is nothing that it is better than.
    assert cells(text)["up to 1 MB: use"].startswith("only fedavg 80.")


def test_methods_without_a_common_seed_are_refused(make_run, make_artefact):
    runs = [make_run(method="average"), make_run(method="uwa", seed=1)]
    with pytest.raises(DataError, match=r"partition k_classes\(2\): no seed has a result of all"):
        analyse(make_artefact(*runs, analysis="answer", **NO_AXES))


def test_costs_count_to_the_first_test_at_nine_tenths_of_the_ceiling(make_run, make_artefact):
    # Ceiling 1: .9 is reached in round 3 of 4 at seed 0, never at seed 1. 400 bytes a round of four
    # clients are 100 each.
    runs = [
        make_run([0.5, None, 0.9, 0.95], seed=0),
        make_run([0.5, None, 0.6, 0.7], seed=1),
        *(make_run(1.0, method="fully_informed", partition="iid", seed=s) for s in (0, 1)),
    ]
    found = analyse(make_artefact(*runs, analysis="costs", **NO_AXES))
    (row,) = found.numbers.to_dict("records")
    assert (row["n"], row["reached"], row["rounds_to"], row["bytes_to"]) == (2, 1, 3, 300)
    assert (row["bytes_sent"], row["seconds"]) == (400, 12.5)
    assert found.shown.loc[0, "kB in all"] == "0.4"
    assert found.more["kB to 90 %"].iloc[0, 1] == "0.3 (1 of 2)"


def test_bytes_in_all_are_those_of_the_metric_also_of_what_no_round_sent(make_run, make_artefact):
    run = make_run()
    result = read_json(run.dir / "result.json")
    result["bytes"]["up"]["model"] = 40  # in `finish`, of four clients together
    write_json(run.dir / "result.json", result)
    seal(run.dir)
    ceiling = make_run(1.0, method="fully_informed", partition="iid")
    found = analyse(make_artefact(run, ceiling, analysis="costs", **NO_AXES))
    assert found.numbers["bytes_sent"].tolist() == [300 + 10]
    assert collect(make_artefact(run), ["bytes_sent"])["bytes_sent"].tolist() == [300 + 10]


def test_costs_are_printed_by_method_and_then_by_heterogeneity(make_run, make_artefact, tmp_path):
    """Average was not run on the second partition; what hardly varies is a median over both."""
    places = ("k_classes(2)", "dir(0.3)")
    runs = [
        make_run(0.5, method="average", partition=places[0]),
        *(make_run(a, method="uwa", partition=p) for a, p in zip((0.6, 0.7), places, strict=True)),
        make_run(1.0, method="fully_informed", partition="iid"),
    ]
    shown = write_table(make_artefact(*runs, analysis="costs", **NO_AXES), tmp_path / "costs")
    numbers, text, latex = (path.read_text() for path in shown)
    assert len(numbers.splitlines()) == 4
    table, caption = table_and_caption(text)
    first, *others = table.split("\n\n**")
    assert [line.split("|")[1].strip() for line in first.splitlines()[2:]] == ["Average", "UWA"]
    titles = [other.partition("**")[0] for other in others]
    assert titles == ["kB to 90 %", "Worst client's accuracy, %", "ECE, %"]
    head, _, average, uwa = others[1].splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (head, average, uwa)]
    assert len(cells[0]) == 3
    assert cells[1][2] == "", "not run"
    assert "kB are what a client sends" in caption
    labels = re.findall(r"label\{tab:(.*?)\}", latex)
    assert len({*labels}) == latex.count("\\begin{tabular}") == 4
    assert latex.count("usepackage") == 1


def test_seconds_include_the_clients_that_methods_share(make_run, make_artefact):
    run = make_run()
    result = read_json(run.dir / "result.json")
    result["provenance"]["clients_wall_seconds"] = 7.5
    write_json(run.dir / "result.json", result)
    seal(run.dir)
    ceiling = make_run(1.0, method="fully_informed", partition="iid")
    found = analyse(make_artefact(run, ceiling, analysis="costs", **NO_AXES))
    assert found.numbers["seconds"].tolist() == [20.0]
    # What the clients said was there, so that all 4.5 seconds of the run's own rounds are
    # aggregation.
    assert found.numbers["aggregation_share"].tolist() == [4.5 / 20]


def test_seconds_are_the_median_so_that_one_run_on_a_busy_machine_does_not_count(
    make_run, make_artefact
):
    runs = [make_run(seed=seed) for seed in range(3)]
    # The rounds take 3 * 1.5 = 4.5 seconds in each; shares 4.5 / 10, 4.5 / 30 and 4.5 / 1000.
    for run, seconds in zip(runs, (10.0, 1000.0, 30.0), strict=True):
        result = read_json(run.dir / "result.json")
        own = {"wall_seconds": seconds - 5.0, "clients_wall_seconds": 5.0}
        result["provenance"] |= own
        write_json(run.dir / "result.json", result)
        seal(run.dir)
    ceilings = [make_run(1.0, method="fully_informed", partition="iid", seed=s) for s in range(3)]
    found = analyse(make_artefact(*runs, *ceilings, analysis="costs", **NO_AXES))
    assert found.numbers["seconds"].tolist() == [30.0]
    assert found.numbers["aggregation_share"].tolist() == pytest.approx([4.5 / 30])


def test_aggregation_is_what_clients_do_not_take(make_run, make_artefact):
    timed, old = make_run([0.5, 0.6, 0.6], seed=0), make_run([0.5, 0.6], seed=1)
    head, *seen = (timed.dir / "rounds.csv").read_text().splitlines()
    # In the third round clients do nothing: all of it is aggregation.
    taken = zip([head, *seen], ("seconds_clients", "2", "0.5", ""), strict=True)
    rows = [f"{row},{clients}" for row, clients in taken]
    (timed.dir / "rounds.csv").write_text("\n".join(rows) + "\n")
    seal(timed.dir)
    ceilings = [make_run(1.0, method="fully_informed", partition="iid", seed=s) for s in (0, 1)]
    found = analyse(make_artefact(timed, old, *ceilings, analysis="costs", **NO_AXES))
    whole = sum(float(row.split(",")[head.split(",").index("seconds")]) for row in seen)
    # Of a run of 12.5 seconds; the other run does not count.
    assert found.numbers["aggregation_share"].tolist() == [pytest.approx((whole - 2.5) / 12.5)]
    alone = analyse(make_artefact(old, ceilings[1], analysis="costs", **NO_AXES))
    assert alone.shown["Aggregation, %"].tolist() == ["–"]


def test_costs_without_a_ceiling_are_refused(make_run, make_artefact):
    with pytest.raises(DataError, match="nothing to reach for mnist at seed 0; add fully_informed"):
        analyse(make_artefact(make_run(), analysis="costs", **NO_AXES))


def test_an_analysis_that_does_not_exist_is_named(make_run, make_artefact):
    assert "answer" in analysis_names()
    with pytest.raises(FedlogitError, match=r"analysis of who_to_trust/table1.*anser.*answer"):
        analyse(make_artefact(make_run(), analysis="anser", **NO_AXES))


def test_the_best_mean_has_no_interval_of_its_own():
    values = pd.DataFrame({"a": [0.5, 0.6], "b": [0.4, 0.5]})
    best = candidates(values).iloc[0]
    assert (best["method"], best["difference"], best["low"], best["high"]) == ("a", 0, 0, 0)
