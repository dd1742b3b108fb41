from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from support.refusals import refused
from support.sealed import seal

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import read_json, write_json
from fedlogit.papers.artefact import read_artefact
from fedlogit.results.collect import (
    axis_value_matches,
    collect,
    curves,
    describe,
    describe_briefly,
    seeds,
    sources,
    summarise,
    summarise_one,
)
from fedlogit.results.provenance import caption, provenance


def test_a_run_becomes_a_row(make_run, make_artefact):
    row = collect(make_artefact(make_run([0.1, 0.2, 0.3])), ["accuracy@2"]).iloc[0]
    assert row["accuracy"] == 0.3
    assert row["accuracy@2"] == 0.2
    # 400 bytes a round from 4 clients: 100 each; 200 back: 50 each.
    assert row["bytes_up"] == 100
    assert row["bytes_down"] == 50
    assert row["seconds"] == 12.5
    assert (row["dataset"], row["partition"], row["method"]) == ("mnist", "k_classes(2)", "average")
    assert (row["scale"], row["device"], row["seed"]) == ("paper", "CPU test", 0)
    assert not row["diverged"]


def test_curves_have_a_row_for_each_run_and_round(make_run, make_artefact):
    artefact = make_artefact(make_run([0.1, None, 0.3]), make_run([0.5, 0.6, 0.7], seed=1))
    frame = curves(artefact)
    assert list(frame["round"]) == [1, 2, 3, 1, 2, 3]
    assert list(frame["seed"]) == [0, 0, 0, 1, 1, 1]
    np.testing.assert_equal(list(frame["accuracy"]), [0.1, math.nan, 0.3, 0.5, 0.6, 0.7])


def test_a_tampered_spec_is_refused(make_run, make_artefact):
    run = make_run()
    spec = read_json(run.dir / "spec.json")
    write_json(run.dir / "spec.json", spec | {"batch": 64})
    with pytest.raises(DataError, match=rf"spec.json: expected spec {run.digest[:12]}…, found "):
        collect(make_artefact(run))


def test_a_result_of_another_run_is_refused(make_run, make_artefact):
    run, other = make_run(), make_run(seed=1)
    (run.dir / "result.json").write_text((other.dir / "result.json").read_text())
    with pytest.raises(DataError, match=rf"result.json: expected .* found {other.digest[:12]}"):
        collect(make_artefact(run))


@pytest.mark.parametrize("name", ["spec.json", "rounds.csv", "result.json"])
def test_a_missing_file_is_named(make_run, make_artefact, name):
    run = make_run()
    (run.dir / name).unlink()
    with pytest.raises(DataError, match=name):
        collect(make_artefact(run))


def test_a_missing_directory_is_named(make_run, make_artefact):
    run = make_run()
    run.dir.rename(run.dir.with_name("elsewhere"))
    with pytest.raises(DataError, match=rf"{run.dir.name} does not exist"):
        collect(make_artefact(run))


@pytest.mark.parametrize("kept", [1, 3, 0])
def test_missing_rounds_are_noticed(make_run, make_artefact, kept):
    run = make_run([0.1, 0.2, 0.3, 0.4], rows=kept)
    with pytest.raises(DataError, match=rf"rounds.csv is truncated: {kept} of 4 rounds"):
        collect(make_artefact(run))


def test_a_line_cut_short_is_noticed(make_run, make_artefact):
    run = make_run()
    path = run.dir / "rounds.csv"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"rounds\.csv is damaged or truncated: result.json has"):
        collect(make_artefact(run))
    seal(run.dir)
    with pytest.raises(DataError, match="truncated: its last line has no end"):
        collect(make_artefact(run))


@pytest.mark.parametrize("name", ["spec.json", "result.json"])
def test_json_cut_short_is_noticed(make_run, make_artefact, name):
    run = make_run()
    (run.dir / name).write_text((run.dir / name).read_text()[:40])
    with pytest.raises(DataError, match=f"{name} is not valid JSON: .*; remove {run.dir} and run"):
        collect(make_artefact(run))


def test_rounds_out_of_order_are_refused(make_run, make_artefact):
    run = make_run()
    path = run.dir / "rounds.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[2], lines[1], lines[3]]) + "\n")
    seal(run.dir)
    with pytest.raises(DataError, match="must count 1, 2, 3"):
        collect(make_artefact(run))


def test_an_unfinished_run_is_refused(make_run, make_artefact):
    with pytest.raises(
        DataError, match="status = 'running': Input should be 'finished' or 'diverged'"
    ):
        collect(make_artefact(make_run(status="running")))


def test_a_finished_run_needs_an_accuracy(make_run, make_artefact):
    run = make_run()
    result = read_json(run.dir / "result.json")
    write_json(run.dir / "result.json", result | {"final": {"accuracy": None}})
    seal(run.dir)
    with pytest.raises(DataError, match="finished without a final accuracy"):
        collect(make_artefact(run))


def test_a_result_without_a_digest_is_refused(make_run, make_artefact):
    run = make_run()
    result = read_json(run.dir / "result.json")
    del result["digest"]
    write_json(run.dir / "result.json", result)
    said = f"is damaged: its digest does not match; remove {run.dir} and run it again"
    with pytest.raises(DataError, match=said):
        collect(make_artefact(run))


def test_a_run_on_data_of_other_clients_is_refused(make_run, make_artefact):
    run = make_run()
    result = read_json(run.dir / "result.json")
    write_json(run.dir / "result.json", result | {"split": {"counts": [[40] * 10]}})
    seal(run.dir)
    with pytest.raises(
        DataError, match=r"among 1 clients, the spec has 4; remove .* and run it again"
    ):
        collect(make_artefact(run))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"final": {"accuracy": 0.5, "per_class": [0.5] * 9}},
         "final.per_class has 9 classes, split.counts has 10; remove"),
        (
            {"final": {"accuracy": 0.5, "per_client": [0.5] * 5}},
            "final.per_client has 5 values for 4 clients; remove",
        ),
        ({"status": "diverged", "rounds": 4}, "rounds.csv has 4 rounds, the spec has 3; remove"),
    ],
)  # fmt: skip
def test_more_classes_or_rounds_than_asked_for_are_refused(make_run, make_artefact, changes, said):
    run = make_run()
    rounds = run.dir / "rounds.csv"
    if changes.pop("rounds", 3) == 4:
        rounds.write_text(f"{rounds.read_text()}4,0.5,400,200,1.5\n")
    write_json(run.dir / "result.json", read_json(run.dir / "result.json") | changes)
    seal(run.dir)
    with refused(said):
        collect(make_artefact(run))


@pytest.mark.parametrize("rows", [0, 2])
def test_a_diverged_run_is_a_flagged_row_of_nan(make_run, make_artefact, rows):
    run = make_run([0.1, 0.2, 0.3], rows=rows, status="diverged")
    row = collect(make_artefact(run), ["accuracy@1"]).iloc[0]
    assert row["diverged"]
    assert row[["accuracy", "accuracy@1", "bytes_up", "seconds"]].isna().all()


def test_an_unknown_metric_suggests_the_nearest(make_run, make_artefact):
    with pytest.raises(FedlogitError, match="did you mean 'accuracy'"):
        collect(make_artefact(make_run(), metric="acuracy"))


def test_a_round_beyond_the_end_is_nan_and_one_not_measured_is_an_error(make_run, make_artefact):
    artefact = make_artefact(make_run([0.1, None, 0.3]))
    rounds = collect(artefact, ["accuracy@1", "accuracy@3", "accuracy@4"]).iloc[0]
    assert (rounds["accuracy@1"], rounds["accuracy@3"]) == (0.1, 0.3)
    assert math.isnan(rounds["accuracy@4"])
    with pytest.raises(DataError, match="accuracy was not measured in round 2"):
        collect(artefact, ["accuracy@2"])


def test_axes_become_scalars(make_run, make_artefact):
    axes = {"method": "average", "public.classes": [0, 1], "public.size": None}
    row = collect(make_artefact(make_run(axes=axes))).iloc[0]
    assert row["public.classes"] == json.dumps([0, 1])
    assert row["public.size"] == "all"
    assert row["partition"] == "k_classes"  # off the axis: what the spec says, by name


def test_summarise_gives_mean_sample_deviation_and_counts(make_run, make_artefact):
    runs = [make_run(a, seed=i) for i, a in enumerate([0.80, 0.82, 0.84])]
    failed = make_run(seed=3, status="diverged")
    cell = summarise(collect(make_artefact(*runs, failed)), ["method"], "accuracy").iloc[0]
    # deviations -.02, 0, .02: sqrt((.0004 + .0004) / 2) = .02
    assert cell["mean"] == pytest.approx(0.82)
    assert cell["std"] == pytest.approx(0.02)
    assert (cell["n"], cell["diverged"]) == (3, 1)


def test_summarise_refuses_a_cell_within_which_something_else_varies(make_run, make_artefact):
    artefact = make_artefact(make_run(), make_run(partition="iid"))
    wanted = (
        r"two runs share the cell method=average, seed=0:"
        r" axis 'partition' varies \(k_classes\(2\), iid\) within it"
    )
    with pytest.raises(FedlogitError, match=wanted):
        summarise(collect(artefact), ["method"], "accuracy")
    with pytest.raises(FedlogitError, match="did you mean 'partition'"):
        summarise(collect(artefact), ["partitions"], "accuracy")


def test_description_names_scale_seeds_device_divergence_and_stand_ins(make_run, make_artefact):
    artefact = make_artefact(
        make_run(note="resized digits stand in"), make_run(seed=1, status="diverged")
    )
    runs = collect(artefact)
    for frame in (runs, pd.concat([runs, runs])):  # two tables may have the same run
        assert describe(frame).startswith(
            "scale: paper; 2 seeds; device: CPU test; engine: loop; 1 diverged; MNIST: resized"
        )


def test_what_is_to_be_one_number_is_refused_of_two_data_sets(make_run, make_artefact):
    runs = [make_run(0.4), make_run(0.6, seed=1), make_run(0.9, dataset="digits")]
    cell = summarise_one(collect(make_artefact(*runs[:2])), "accuracy")
    assert (cell["mean"], cell["n"]) == (pytest.approx(0.5), 2)
    with refused("runs of mnist, average and digits, average would be one number; give those of"):
        summarise_one(collect(make_artefact(*runs)), "accuracy")


def test_seeds_are_counted_in_each_cell_of_all_axes(make_run, make_artefact):
    runs = [
        make_run(clients=clients, seed=seed, axes={"clients": clients, "seed": seed})
        for clients, seed in ((5, 0), (5, 1), (5, 2), (10, 0))
    ]
    for frame in (collect, provenance):
        assert "; 3 seeds; " in describe(frame(make_artefact(*runs[:3])))
        assert "; 1–3 seeds; " in describe(frame(make_artefact(*runs)))


def test_engines_of_clients_and_server_can_be_told_from_two_engines():
    known = {"scale": "paper", "seed": 0, "device": "CPU test", "digest": "a", "diverged": False}
    frame = pd.DataFrame([known | {"engine": e, "dataset_note": "", "dataset": "mnist"}
                          for e in ("native", "loop, server native")])  # fmt: skip
    assert describe(frame).endswith("; engine: loop (server native), native")


def test_seed_counts_may_differ_between_cells():
    frame = pd.DataFrame({"method": ["a", "a", "b"], "seed": [3, 7, 7]})
    assert seeds(frame) == "1–2 seeds"
    assert seeds(frame[frame["method"] == "b"]) == "1 seed"


def test_an_artefact_file_with_a_wrong_key_is_one_line(tmp_path, make_run, make_artefact):
    data = json.loads(make_artefact(make_run()).model_dump_json())
    path = tmp_path / "artefact.json"
    write_json(path, data | {"kind": "chart"})
    with pytest.raises(FedlogitError, match=r"artefact.json: kind = 'chart'"):
        read_artefact(path)
    write_json(path, data)
    assert read_artefact(path).name == "who_to_trust/table1"


def test_whole_numbers_on_an_axis_stay_whole_beside_others(make_artefact, make_run):
    axes = {"dataset": "mnist", "partition": "iid", "method": "average"}
    runs = [make_run(batch=n, axes=axes | {"decay": d}) for n, d in ((1, 0), (2, 0.5), (3, 1))]
    assert [str(value) for value in collect(make_artefact(*runs))["decay"]] == ["0", "0.5", "1"]


@pytest.mark.parametrize(
    ("made_by", "said"),
    [
        ([("1", {"lab": "aa"}), ("1", {"lab": "aa"})], ""),
        ([("1", {"lab": "aa"}), ("1", {})], ""),  # a method of the library beside one's own
        ([("1", {"lab": "aa"}), ("1", {"lab": "bb"})], "; 2 versions of lab"),
        ([("1", {"lab": "aa"}), ("1", {"own": "bb"})], ""),
        ([("1", {}), ("2", {})], "; 2 versions of the code"),
        ([("1", {"lab": "aa"}), ("2", {"lab": "aa"})], "; 2 versions of the code"),
        (
            [("1", {"lab": "aa"}), ("2", {"lab": "bb", "own": "c"}), ("2", {"lab": "cc"})],
            "; 2 versions of the code; 3 versions of lab",
        ),
    ],
)
def test_a_caption_names_the_code_that_runs_have_several_versions_of(
    make_run, make_artefact, made_by, said
):
    runs = [make_run(seed=seed) for seed, _ in enumerate(made_by)]
    for run, (library, own) in zip(runs, made_by, strict=True):
        result = read_json(run.dir / "result.json")
        result["provenance"] |= {"code_version": library, "own_code": own}
        write_json(run.dir / "result.json", result)
        seal(run.dir)
    artefact = make_artefact(*runs)
    frame = collect(artefact)
    assert sources(frame) == describe(frame) + said
    assert caption(artefact).endswith(f"{describe(frame)[1:]}{said}.")


def test_values_on_an_axis_are_compared_as_numbers_or_as_text():
    values = pd.Series([1, 1.0, "1", "1e0", True, "True", "all", "0.5"], dtype=object)
    assert axis_value_matches(values, [1]).tolist() == [True] * 4 + [False] * 4
    assert axis_value_matches(values, ["True"]).tolist() == [False] * 4 + [True] * 2 + [False] * 2
    assert axis_value_matches(values, [0.5, "all"]).tolist() == [False] * 6 + [True] * 2


def test_a_data_set_of_which_runs_have_two_notes_is_told_with_both(make_run, make_artefact):
    runs = [make_run(seed=seed, note=note) for seed, note in enumerate(("resized", "cut"))]
    assert describe(collect(make_artefact(*runs))).endswith("; MNIST: resized; MNIST: cut")


def test_a_caption_says_what_is_not_drawn(make_run, make_artefact):
    artefact = make_artefact(make_run(), left_out={"mnist": (1, 2)})
    assert caption(artefact).endswith("; engine: loop; not run: mnist (1 of 2 runs).")


def test_the_caption_of_a_figure_says_why_something_is_not_applicable(make_run, make_artefact):
    unable = {"before": 1, "axes": {"method": "uwa"}, "why": "has a reason"}
    said = " Not applicable (n/a): UWA (has a reason)."
    assert caption(make_artefact(make_run(), cannot=[unable])).endswith(f"engine: loop.{said}")


def test_above_a_figure_a_note_names_its_data_set_only_beside_others(make_run, make_artefact):
    """The line there begins with the name of a single one."""
    runs = [make_run(note="resized"), make_run(dataset="digits", axes={"dataset": "digits"})]
    assert describe_briefly(collect(make_artefact(runs[0]))).endswith("1 seed; resized")
    assert describe_briefly(collect(make_artefact(*runs))).endswith("1 seed; MNIST: resized")
