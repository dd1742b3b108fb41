"""Metrics computed from what a run left, by hand."""

import numpy as np
import pytest

from fedlogit.errors import DataError
from fedlogit.files import read_json, save_npz, write_json
from fedlogit.partition import distances
from fedlogit.results.runs import read_run
from fedlogit.results.tables import write_table


@pytest.fixture
def run(make_celm):
    ref = make_celm()
    return read_run(ref.dir, ref.digest)


def read(ref):
    return read_run(ref.dir, ref.digest)


def test_rare_accuracy_is_the_mean_recall_of_the_rare_classes(run):
    assert run.value("rare_accuracy") == 0.2


def test_free_riders_by_hand(run):
    # Contributions .4 .3 .2 .1, the last rides free and is below all others.
    assert run.value("auroc") == 1
    # mean .25, std sqrt(.0125) = .1118: z of the honest 1.342, .447, -.447. The third is below the
    # thresholds -.4, -.3, -.2, -.1, 0, five of 21.
    assert run.value("fpr") == pytest.approx(5 / 21 / 3)


def test_distances_compare_the_last_evidence_with_the_counts(run):
    counts = np.array([[60, 0, 0], [0, 20, 20], [0, 20, 20], [0, 3, 3]])
    assert run.value("jsd") == pytest.approx(distances(counts, counts + 1.0)["jsd"])
    assert run.value("hellinger_uniform") == pytest.approx(distances(counts)["hellinger"])
    assert run.value("jsd") < run.value("jsd_uniform")


def test_rank_correlation_with_shapley_values(run):
    # Ranks of contributions 4 3 2 1, of values 2 4 3 1: d = 2, -1, -1, 0; 1 - 6 * 6 / (4 * 15) = .4
    assert run.value("shapley_correlation") == pytest.approx(0.4)


def test_probing_is_measured_over_warm_up_rounds(run):
    assert run.value("seconds_probe") == pytest.approx(0.375)
    assert run.value("probe_share") == pytest.approx(0.75 / 3.0)  # 1.5 s a round


def test_classes_that_nobody_holds(make_celm):
    ref = make_celm()
    assert read_run(ref.dir, ref.digest).value("lost_classes") == 0
    result = read_json(ref.dir / "result.json")
    result["split"]["counts"] = [[5, 0, 0], [1, 0, 2]]
    write_json(ref.dir / "result.json", result)
    assert read_run(ref.dir, ref.digest).value("lost_classes") == 1


def test_tail_is_over_the_last_rounds_and_peak_over_all(make_run):
    # 1,100 rounds: 1,000 at 0.1, one of which reached 0.9, then 100 at 0.5, half of them measured.
    run = read(make_run([0.1] * 999 + [0.9] + [None, 0.5] * 50))
    assert run.value("tail_accuracy") == pytest.approx(0.5)
    # The last fifth of the 1,050 rounds that were measured: 160 at 0.1, and the 50.
    assert run.value("tail_fifth_accuracy") == pytest.approx((159 * 0.1 + 0.9 + 50 * 0.5) / 210)
    assert run.value("peak_accuracy") == 0.9
    short = read(make_run([0.1, 0.1, 0.1, 0.1, 0.4, 0.8]))  # of 6, two
    assert short.value("tail_fifth_accuracy") == pytest.approx(0.6)


def test_the_tail_of_a_short_run_is_its_last_tenth(make_run):
    assert read(make_run([0.1] * 72 + [0.5] * 8)).value("tail_accuracy") == pytest.approx(0.5)
    assert read(make_run([0.1] * 71 + [0.5] * 8)).value("tail_accuracy") == pytest.approx(0.5)
    assert read(make_run([0.1, 0.2, 0.5])).value("tail_accuracy") == 0.5


def test_bytes_of_a_client(make_run):
    # 400 bytes up a round from 4 clients: 100 each; 3 rounds.
    ref = make_run()
    run = read_run(ref.dir, ref.digest)
    assert run.value("mebibytes_up") == pytest.approx(100 / 2**20)
    assert run.value("payload_megabytes") == pytest.approx(300 / 1e6)
    assert run.value("payload_gigabytes") == pytest.approx(300 / 1e9)


def test_models_through_a_server_count_both_ways(make_run):
    for method, wanted in (
        ("tally_train", 300 + 1000),
        ("tally_train(merge_cost='mesh')", 300),
    ):
        ref = make_run(method=method)
        result = read_json(ref.dir / "result.json")
        result["bytes"]["down"]["model"] = 4000
        write_json(ref.dir / "result.json", result)
        run = read_run(ref.dir, ref.digest)
        assert run.value("payload_megabytes") == pytest.approx(wanted / 1e6)


def test_what_a_run_lacks_is_named(make_run):
    ref = make_run()
    plain = read_run(ref.dir, ref.digest)
    for metric, message in {
        "auroc": "has no contributions",
        "rare_accuracy": "has no rare_classes",
        "jsd_uniform": "split.counts",
        "probe_share": "does not probe",
        "jsd": "evidence.npz does not exist|split.counts",
    }.items():
        with pytest.raises(DataError, match=message):
            plain.value(metric)


def test_a_table_of_several_metrics(make_celm, make_artefact, tmp_path):
    artefact = make_artefact(
        *(make_celm(seed=s) for s in (0, 1)),
        rows=["dataset", "metric"],
        columns=["method"],
        metrics=["auroc", "rare_accuracy", "jsd_uniform"],
        labels={"auroc": "AUROC"},
    )
    write_table(artefact, tmp_path / "t")
    text = (tmp_path / "t.md").read_text()
    assert "AUROC" in text
    assert "1.0000 ± 0.0000" in text
    assert "0.2000 ± 0.0000" in text
    assert (tmp_path / "t.csv").read_text().count("\n") == 4


def test_final_models_together_by_hand(make_run):
    """Three models, three samples of three classes.

    Labels 0, 1, 2. Sample 0: argmax 0, 0, 1: a majority, and means (5, 4, 0) / 3. Sample 1:
    argmax 0, 1, 2, a tie that the smallest class wins, wrongly; means (2, 9, 2) / 3 are right.
    Sample 2: nobody.
    """
    ref = make_run()
    logits = np.array(
        [
            [[3, 0, 0], [2, 0, 0], [9, 0, 0]],
            [[2, 0, 0], [0, 9, 0], [9, 0, 0]],
            [[0, 4, 0], [0, 0, 2], [0, 9, 0]],
        ],
        dtype=np.float32,
    )
    (ref.dir / "exports").mkdir()
    save_npz(ref.dir / "exports/test_logits.npz", {"logits": logits, "labels": np.arange(3)})
    run = read_run(ref.dir, ref.digest)
    assert run.value("vote_accuracy") == pytest.approx(1 / 3)
    assert run.value("mean_logits_accuracy") == pytest.approx(2 / 3)
    assert run.value("oracle_test_accuracy") == pytest.approx(2 / 3)
