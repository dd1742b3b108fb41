"""Metrics computed from what a run left, by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from support.refusals import refused
from support.sealed import seal

from fedlogit.errors import DataError
from fedlogit.files import read_json, save_npz, write_json
from fedlogit.partition import distances
from fedlogit.results.metrics import value
from fedlogit.results.runs.run import Run, read_run
from fedlogit.results.tables import write_table


@pytest.fixture
def run(make_celm):
    ref = make_celm()
    return read_run(ref.dir, ref.digest)


def read(ref):
    return read_run(ref.dir, ref.digest)


@pytest.mark.parametrize("name", ["acc", "acuracy@1", "accurcy"])
def test_an_unknown_metric_is_told_with_the_nearest_and_each_known_one_once(run, name):
    said = f"{run.folder}: unknown metric {name!r}; did you mean 'accuracy'? (one of: "
    with refused(said) as error:
        value(run, name)
    known = str(error.value).partition("(one of: ")[2].rstrip(")").split(", ")
    assert len(known) == len(set(known))
    assert {"accuracy", "bytes_up", "round"} <= set(known)


def test_rare_accuracy_is_the_mean_recall_of_the_rare_classes(make_celm):
    # Recalls .2, .7 and .9.
    ref = make_celm()
    result = read_json(ref.dir / "result.json")
    for rare, wanted in ([0], 0.2), ([0, 1], 0.45), ([2, 0], 0.55):
        result["split"]["rare_classes"] = rare
        write_json(ref.dir / "result.json", result)
        seal(ref.dir)
        assert value(read(ref), "rare_accuracy") == pytest.approx(wanted)


def test_free_riders_by_hand(run):
    # Contributions .4 .3 .2 .1, the last rides free and is below all others.
    assert value(run, "auroc") == 1
    # mean .25, std sqrt(.0125) = .1118: z of the honest 1.342, .447, -.447. The third is below the
    # thresholds -.4, -.3, -.2, -.1, 0, five of 21.
    assert value(run, "fpr") == pytest.approx(5 / 21 / 3)


def test_free_riders_are_not_sought_among_clients_that_may_be_absent(make_celm):
    run = read(make_celm(participation={"number": 2}))
    for name in ("auroc", "fpr"):
        with refused("who is absent contributes 0, as a free rider may"):
            value(run, name)


def test_distances_of_evidence_are_not_of_clients_that_may_be_absent(make_celm):
    run = read(make_celm(participation={"number": 2}))
    for name in ("jsd", "emd@1", "hellinger_mean", "jsd_shares"):
        with refused("an absent client has no evidence"):
            value(run, name)
    assert value(run, "jsd_uniform") > 0


def test_distances_compare_the_last_evidence_with_the_counts(run):
    counts = np.array([[60, 0, 0], [0, 20, 20], [0, 20, 20], [0, 3, 3]])
    assert value(run, "jsd") == pytest.approx(distances(counts, counts + 1.0)["jsd"])
    assert value(run, "hellinger_uniform") == pytest.approx(distances(counts)["hellinger"])
    assert value(run, "jsd") < value(run, "jsd_uniform")


def test_distances_of_each_warm_up_round_of_their_mean_and_of_class_shares(run):
    # Evidence is 1 everywhere in round 1, and the counts plus 1 in round 2, the last of warm-up.
    counts = np.array([[60, 0, 0], [0, 20, 20], [0, 20, 20], [0, 3, 3]])
    assert value(run, "jsd@1") == pytest.approx(value(run, "jsd_uniform"))
    assert value(run, "emd@2") == value(run, "emd")
    assert np.isnan(value(run, "hellinger@3"))
    assert value(run, "jsd_mean") == pytest.approx(distances(counts, counts / 2 + 1)["jsd"])
    # Columns of counts + 1 sum to 64, 47 and 47.
    shares = (counts + 1) / [64, 47, 47]
    assert value(run, "hellinger_shares") == pytest.approx(distances(counts, shares)["hellinger"])
    with pytest.raises(DataError, match="metric jsd@0: the round must be a number from 1"):
        value(run, "jsd@0")


def test_a_class_without_evidence_has_no_shares(make_celm):
    ref = make_celm()
    q = np.array([[1.0, 0, 0], [1, 2, 0], [0, 2, 0], [0, 0, 0]])
    save_npz(ref.dir / "exports/evidence.npz", {"evidence": q[None]})
    shares = np.array([[0.5, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0], [0, 0, 0]])
    run = read(ref)
    assert value(run, "jsd_shares") == pytest.approx(distances(run.counts(), shares)["jsd"])


def test_contrast_of_probe_images_by_hand(make_run):
    ref = make_run(clients=2, classes=3)
    # Two pixels of a and -a have the standard deviation a; the server's images do not count.
    sizes = np.array([[90, 90, 90], [1, 2, 3], [4, 5, 6]], dtype=float)
    images = np.stack([sizes, -sizes], axis=-1)[:, :, None, None, :]
    owned = np.array([[1, 0, 0], [1, 0, 1]])
    save_npz(ref.dir / "exports/probes.npz", {"images": images, "owned": owned})
    assert value(read_run(ref.dir, ref.digest), "probe_contrast_present") == pytest.approx(
        (1 + 4 + 6) / 3
    )
    assert value(read_run(ref.dir, ref.digest), "probe_contrast_absent") == pytest.approx(
        (2 + 3 + 5) / 3
    )
    save_npz(ref.dir / "exports/probes.npz", {"images": images, "owned": np.ones((2, 3), bool)})
    assert math.isnan(value(read_run(ref.dir, ref.digest), "probe_contrast_absent"))


def test_rank_correlation_with_shapley_values(run):
    # Ranks of contributions 4 3 2 1, of values 2 4 3 1: d = 2, -1, -1, 0; 1 - 6 * 6 / (4 * 15) = .4
    assert value(run, "shapley_correlation") == pytest.approx(0.4)


@pytest.mark.parametrize(
    "alike", [[0.25, 0.25, 0.25 + 1e-12, 0.25], [0.2000, 0.2001, 0.1999, 0.2002]]
)
def test_contributions_that_are_nearly_equal_rank_nobody(make_celm, alike):
    ref = make_celm()
    text = (ref.dir / "rounds.csv").read_text()
    last = f",{','.join(map(str, alike))},"
    (ref.dir / "rounds.csv").write_text(text.replace(",0.4,0.3,0.2,0.1,", last))
    seal(ref.dir)
    assert math.isnan(value(read(ref), "shapley_correlation"))


def test_values_that_are_equal_rank_nobody(make_celm):
    ref = make_celm()
    save_npz(ref.dir / "exports/shapley.npz", {"values": np.array([0.1, 0.1, 0.1 + 1e-12, 0.1])})
    assert math.isnan(value(read(ref), "shapley_correlation"))


def test_contributions_of_the_last_round_are_ranked_and_riders_sought_in_each(make_celm):
    # Of rounds 1 and 2 the rider, client 3, has most: it is above all others, and below none.
    ref = make_celm()
    text = (ref.dir / "rounds.csv").read_text()
    assert text.count(",0.4,0.3,0.2,0.1,") == 3
    (ref.dir / "rounds.csv").write_text(text.replace(",0.4,0.3,0.2,0.1,", ",0.1,0.2,0.3,0.4,", 2))
    seal(ref.dir)
    assert value(read(ref), "shapley_correlation") == pytest.approx(0.4)
    assert value(read(ref), "auroc") == pytest.approx(1 / 3)


def test_probing_is_measured_over_warm_up_rounds(run):
    assert value(run, "seconds_probe") == pytest.approx(0.375)
    assert value(run, "probe_share") == pytest.approx(0.75 / 3.0)  # 1.5 s a round


def test_the_share_of_probing_is_of_the_time_of_all_warm_up_rounds_together(make_celm):
    ref = make_celm()
    rounds = pd.read_csv(ref.dir / "rounds.csv").assign(seconds=[1.0, 5.0, 9.0])
    rounds.to_csv(ref.dir / "rounds.csv", index=False)
    seal(ref.dir)
    assert value(read(ref), "probe_share") == pytest.approx((0.5 + 0.25) / (1.0 + 5.0))


def test_classes_that_nobody_holds(make_celm):
    ref = make_celm()
    assert value(read_run(ref.dir, ref.digest), "lost_classes") == 0
    result = read_json(ref.dir / "result.json")
    result["split"]["counts"] = [[5, 0, 0], [1, 0, 2], [1, 0, 0], [1, 0, 0]]
    write_json(ref.dir / "result.json", result)
    seal(ref.dir)
    assert value(read_run(ref.dir, ref.digest), "lost_classes") == 1


def test_the_tail_weighs_rounds_and_not_tests(make_run):
    # Tests in rounds 2, 3 and 6 of 6: rounds 1 and 2 have .2, 3 has .4, and 4 to 6 have .8.
    curve = [None, 0.2, 0.4, None, None, 0.8]
    for tail, wanted in ((6, (0.4 + 0.4 + 2.4) / 6), (4, (0.4 + 2.4) / 4), (2, 0.8), (9, 3.2 / 6)):
        run = read(make_run(curve, evaluation={"every": 2, "tail": tail}))
        assert value(run, "tail_accuracy") == pytest.approx(wanted)


def test_where_all_rounds_are_tested_the_tail_is_their_mean(make_run):
    run = read(make_run([0.9, 0.1, 0.2, 0.6], evaluation={"tail": 3}))
    assert value(run, "tail_accuracy") == pytest.approx(0.3)
    assert value(run, "peak_accuracy") == 0.9


def test_the_best_perplexity_is_the_smallest_of_any_test(make_run):
    ref = make_run([0.1, 0.2, 0.3])
    head, *rows = (ref.dir / "rounds.csv").read_text().splitlines()
    rows = [f"{row},{p}" for row, p in zip(rows, ("90.5", "12.5", "30.0"), strict=True)]
    (ref.dir / "rounds.csv").write_text("\n".join([f"{head},perplexity", *rows]) + "\n")
    seal(ref.dir)
    assert value(read(ref), "best_perplexity") == 12.5


@pytest.fixture
def make_peers(make_run):
    """Return a function that makes a run of so many peers, of which those tested score so."""

    def make(tested: list[float], peers: int) -> Run:
        ref = make_run(0.5, clients=peers)
        result = read_json(ref.dir / "result.json")
        result["final"]["per_client"] = tested
        write_json(ref.dir / "result.json", result)
        seal(ref.dir)
        return read(ref)

    return make


def test_peers_that_are_honest_anyway_are_the_same_with_and_without_byzantine_ones(make_peers):
    # Of five peers one may be Byzantine, the last: the first four count, .1 + .2 + .3 + .6 over 4.
    for tested in ([0.1, 0.2, 0.3, 0.6, 0.9], [0.1, 0.2, 0.3, 0.6]):
        run = make_peers(tested, 5)
        assert value(run, "honest_anyway_accuracy") == pytest.approx(0.3)


@pytest.mark.parametrize(("peers", "byzantine"), [(1, 0), (2, 0), (3, 0), (10, 0), (10, 4)])
def test_peers_that_are_honest_anyway_have_their_own_mean(make_peers, peers, byzantine):
    run = make_peers([0.8] * (peers - byzantine), peers)
    assert value(run, "honest_anyway_accuracy") == pytest.approx(0.8)


@pytest.mark.parametrize(("peers", "byzantine"), [(2, 1), (10, 5), (10, 7)])
def test_more_byzantine_peers_than_votes_tolerate_leave_no_accuracy_of_the_honest_anyway(
    make_peers, peers, byzantine
):
    run = make_peers([0.8] * (peers - byzantine), peers)
    with pytest.raises(DataError, match=rf"which {peers - byzantine} were tested; votes tolerate"):
        value(run, "honest_anyway_accuracy")


def test_a_run_without_a_tail_says_so(make_run):
    with pytest.raises(DataError, match=r"accuracy has no tail, as evaluation\.tail = 0; give"):
        value(read(make_run([0.1, 0.2])), "tail_accuracy")


def test_bytes_of_a_client(make_run):
    # 400 bytes up a round from 4 clients: 100 each; 3 rounds.
    ref = make_run()
    run = read_run(ref.dir, ref.digest)
    assert value(run, "mebibytes_up") == pytest.approx(100 / 2**20)
    assert value(run, "mebibytes_up_f64") == pytest.approx(200 / 2**20)
    assert value(run, "payload_megabytes") == pytest.approx(300 / 1e6)
    assert value(run, "payload_gigabytes") == pytest.approx(300 / 1e9)


def test_models_through_a_server_count_both_ways(make_run):
    for method, wanted in (
        ("tally_train", 300 + 1000),
        ("tally_train(merge_cost='mesh')", 300),
    ):
        ref = make_run(method=method)
        result = read_json(ref.dir / "result.json")
        result["bytes"]["down"]["model"] = 4000
        write_json(ref.dir / "result.json", result)
        seal(ref.dir)
        run = read_run(ref.dir, ref.digest)
        assert value(run, "payload_megabytes") == pytest.approx(wanted / 1e6)


def test_what_cgsv_s_server_sends_in_place_of_a_model_counts_too(make_run):
    # 300 bytes up of a client, and 4,000 + 2,000 down of four.
    ref = make_run(method="cgsv")
    result = read_json(ref.dir / "result.json")
    result["bytes"]["down"] |= {"model": 4000, "reward": 2000}
    write_json(ref.dir / "result.json", result)
    seal(ref.dir)
    assert value(read(ref), "payload_megabytes") == pytest.approx((300 + 1500) / 1e6)


RESNET18 = 4 * 11_181_642  # bytes of the model that Table 2's payloads come from
FA200 = "tally_train(signal='none', label_weight=0.0, warm_up=0, merge_every=200{})"


def booked(make_run, up, down, **changes):
    """Return a run, mostly of ten peers, that booked these bytes, all peers together."""
    ref = make_run(**{"clients": 10} | changes)
    result = read_json(ref.dir / "result.json")
    result["bytes"] = {"up": up, "down": down}
    write_json(ref.dir / "result.json", result)
    seal(ref.dir)
    return read(ref)


@pytest.mark.parametrize("mesh", [False, True])
def test_merges_can_be_counted_both_ways_whichever_was_booked(make_run, mesh):
    """SPEC §10: a merge is 89.453 MB in a star, 402.5 in a mesh; fa200's 15 are 1,342 and 6,038."""
    copies = 9 if mesh else 1
    for merges, star, in_mesh in ((1, 89.453, 402.539), (15, 1341.797, 6038.087)):
        models = {"model": 10 * merges * copies * RESNET18}
        method = FA200.format(", merge_cost='mesh'" * mesh)
        run = booked(make_run, models, models, method=method, seed=merges)
        assert value(run, "payload_star_megabytes") == pytest.approx(star, abs=1e-3)
        assert value(run, "payload_mesh_megabytes") == pytest.approx(in_mesh, abs=1e-3)
        printed = value(run, "payload_megabytes")
        assert printed == value(run, f"payload_{'mesh' if mesh else 'star'}_megabytes")


def test_votes_cost_the_same_however_merges_are_counted(make_run):
    """The bridge: 14 merges and .3888 MB of votes; 1,252.7 MB, or 5,635.9."""
    model = {"model": 10 * 14 * RESNET18}
    run = booked(make_run, {"votes": 3_888_000} | model, model, method="tally_train")
    assert value(run, "payload_star_megabytes") == pytest.approx(1252.73, abs=0.01)
    assert value(run, "payload_mesh_megabytes") == pytest.approx(5635.94, abs=0.01)
    assert value(run, "payload_mesh_gigabytes") == pytest.approx(5.63594, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "up", "each", "reduction"),
    [
        # Two rounds of 16 probes, ten peers with nine hearers each: 2,880 times what is said.
        ("", {"votes": 2880}, 1, 40),
        (", signal='probabilities'", {"probabilities": 40 * 2880}, 40, 1),
        (", signal='top_k', k=3", {"votes": 3 * 2880, "probabilities": 12 * 2880}, 15, 40 / 15),
        (", signal='top_k', k=5", {"votes": 5 * 2880, "probabilities": 20 * 2880}, 25, 1.6),
        (", packed=True", {"votes": 1440}, 0.5, 80),
        (", topology='ring'", {"votes": 2 * 16 * 10 * 2}, 1, 40),
        (", topology='regular', degree=4", {"votes": 2 * 16 * 10 * 4}, 1, 40),
        (", merge_every=2", {"votes": 2880, "model": 999}, 1, 40),
        (", signal='none'", {}, 0, None),
    ],
)
def test_bytes_of_a_probe_by_hand(make_run, settings, up, each, reduction):
    method = f"tally_train(warm_up=1, probes_per_round=16{settings})"
    run = booked(make_run, up, up, method=method)
    assert value(run, "bytes_per_probe") == each
    found = value(run, "reduction")
    assert found != found if reduction is None else found == pytest.approx(reduction)


def test_on_a_ring_of_two_each_has_one_hearer(make_run):
    method = "tally_train(warm_up=1, probes_per_round=16, topology='ring')"
    run = booked(make_run, {"votes": 2 * 16 * 2}, {}, method=method, clients=2)
    assert value(run, "bytes_per_probe") == 1


def test_a_position_of_a_text_is_a_probe(make_run):
    # 2 rounds x 4 sequences x 8 positions x 10 peers x 9 hearers x 2 bytes.
    changes = {
        "dataset": "sklearn_docs",
        "text": {"vocabulary": 300, "length": 8},
        "models": ["tiny_gpt(layers=1, width=16, heads=2, context=8)"],
        "partition": "contiguous",
        "method": "tally_train(warm_up=1, probes_per_round=4)",
    }
    sent = {"votes": 2 * 4 * 8 * 10 * 9 * 2}
    run = booked(make_run, sent, sent, axes={"dataset": "sklearn_docs"}, **changes)
    assert value(run, "bytes_per_probe") == 2
    # A soft label has 4 bytes for each token, of which the partition's counts know nothing.
    result = read_json(run.folder / "result.json")
    result["final"]["per_class"] = [0.1] * 300
    result["split"]["counts"] = [[10]] * 10
    write_json(run.folder / "result.json", result)
    seal(run.folder)
    of_tokens = read_run(run.folder, run.spec.digest())
    assert value(of_tokens, "reduction") == 4 * 300 / 2


def test_methods_without_probes_say_nothing_about_them(make_run):
    assert value(read(make_run(method="local")), "bytes_per_probe") == 0


def test_what_a_run_lacks_is_named(make_run):
    ref = make_run()
    plain = read_run(ref.dir, ref.digest)
    for metric, message in {
        "auroc": "has no contributions",
        "rare_accuracy": "has no rare_classes",
        "probe_share": "does not probe",
        "jsd": "evidence.npz does not exist",
    }.items():
        with pytest.raises(DataError, match=message):
            value(plain, metric)


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
    assert "Mean ± standard deviation over seeds" in text, "of two"
    assert (tmp_path / "t.csv").read_text().count("\n") == 4


def test_final_models_together_by_hand(make_run):
    """Three models, five samples of three classes.

    Labels 0, 1, 2, 0, 1. Sample 0: argmax 0, 0, 1: a majority, and means (5, 4, 0) / 3. Sample 1:
    argmax 0, 1, 2, a tie that the smallest class wins, wrongly; means (2, 9, 2) / 3 are right.
    Sample 2: nobody. Sample 3: the same tie, rightly; means (1, 1, 9) / 3 are wrong. Sample 4:
    argmax 0, 0, 1, and means (4, 9, 0) / 3 are right, where means of the softmax, whose third is
    not much surer than the others, would be wrong: 2 x .79 of class 0 against .21 + 1 of class 1.
    """
    ref = make_run(classes=3)
    logits = np.array(
        [
            [[3, 0, 0], [2, 0, 0], [9, 0, 0], [1, 0, 0], [2, 0, 0]],
            [[2, 0, 0], [0, 9, 0], [9, 0, 0], [0, 1, 0], [2, 0, 0]],
            [[0, 4, 0], [0, 0, 2], [0, 9, 0], [0, 0, 9], [0, 9, 0]],
        ],
        dtype=np.float32,
    )
    (ref.dir / "exports").mkdir()
    save_npz(ref.dir / "exports/test_logits.npz", {"logits": logits, "labels": np.arange(5) % 3})
    run = read_run(ref.dir, ref.digest)
    assert value(run, "vote_accuracy") == 2 / 5
    assert value(run, "mean_logits_accuracy") == 3 / 5
    assert value(run, "oracle_test_accuracy") == 4 / 5


@pytest.mark.parametrize("metric", ["bytes_per_probe", "reduction", "payload_mesh_megabytes"])
def test_what_is_counted_by_all_peers_is_refused_where_some_are_absent(make_run, metric):
    sent = {"votes": 2880, "model": 999}
    method = "tally_train(warm_up=1, probes_per_round=16)"
    run = booked(make_run, sent, sent, method=method, participation=0.5)
    with pytest.raises(DataError, match="of peers that are all there in every round"):
        value(run, metric)
