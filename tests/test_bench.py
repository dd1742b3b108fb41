"""The bench at a tiny size: same arrays, same accuracies; ratios by hand; reasons for absences."""

import json
import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.refusals import refused

from benchmarks import __main__ as bench
from benchmarks import gpu, gpu_point, growth, ours, repetitions, rows, tables
from benchmarks.export import export
from benchmarks.federations import federation
from benchmarks.growth_point import measure
from benchmarks.implementations import Implementation, implementations
from benchmarks.peers.protocol import Exported
from benchmarks.plain import KINDS
from benchmarks.repetitions import Measurement, repeat
from benchmarks.workloads import WORKLOADS, Workload, chosen
from fedlogit import methods, models
from fedlogit.aggregation.logit_maximisation import Ascent, maximise_logits
from fedlogit.component import ComponentRef
from fedlogit.engine.choose import check_engine
from fedlogit.runs.workloads import client_workloads
from fedlogit.spec import RunSpec

torch_models = import_module("torch_models")  # importable since benchmarks.plain is
SIZE = {"samples": 100, "operations": 5e11}


def timed(name: str, kind: str, *seconds: float) -> Measurement:
    return Measurement(Implementation(name, kind), list(seconds), 0.5, 1.0, 2**21)


def tiny(name: str, **settings: object) -> Workload:
    """Return a workload on scikit-learn's digits, which need no download."""
    given = {"dataset": "digits", "batch": 16, "train_size": None, "test_size": 100}
    spec = WORKLOADS[name].spec | given | settings
    return replace(WORKLOADS[name], spec=spec)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="module")
def folder(prepared, tmp_path_factory) -> Path:
    pytest.importorskip("torchvision")
    where = tmp_path_factory.mktemp("bench")
    export(tiny("W1", test_size=None), prepared, 2, where)
    return where


def test_ratios_are_of_neighbouring_turns():
    # 8/4, 6/2, 9/1: the median is 3; the medians' own ratio would be 8/2.
    assert rows.ratio(timed("a", "plain", 8, 6, 9), timed("b", "peer", 4, 2, 1)) == 3


def test_a_row_has_ratios_to_the_plain_loop_the_fastest_peer_and_the_limit():
    everybody = [
        timed("fedlogit, native", "fedlogit", 1, 2),
        timed(rows.PLAIN, "plain", 8, 16),
        timed("slow", "peer", 5, 50),
        timed("fast", "peer", 3, 6),
        timed("limit", "limit", 1, 2),
    ]
    found = rows.rows("W1", everybody, SIZE, "here")
    assert [row["implementation"] for row in found][-1] == "fast"  # the limit has no row
    ours = found[0]
    assert ours["times_as_fast_as_the_plain_loop"] == 8
    assert ours["times_as_fast_as_the_fastest_peer"] == 3
    assert ours["share_of_limit"] == 0.5  # half of 10^12 operations in the time of all of them
    assert (ours["seconds_median"], ours["samples_per_second"], ours["memory_mib"]) == (1.5, 67, 2)
    assert found[3]["note"] == "the fastest peer"


def test_the_summary_is_of_the_first_engine_and_names_the_fastest_peer():
    everybody = [
        timed("fedlogit, native", "fedlogit", 2),
        timed("fedlogit, loop", "fedlogit", 5),
        timed(rows.PLAIN, "plain", 17),
        timed("slow", "peer", 50),
        timed("fast", "peer", 6),
        timed("limit", "limit", 1),
    ]
    alone = [timed("fedlogit, loop", "fedlogit", 1), timed(rows.PLAIN, "plain", 1.5)]
    found = rows.rows("W1", everybody, SIZE, "here") + rows.rows("W2", alone, SIZE, "here")
    start, _, *lines = tables.summary(found).splitlines()
    assert start == "On here; float32. Speed-up of the default engine:"
    assert lines[2:] == [
        f"| W1 | {WORKLOADS['W1'].title} | 8.5 | 3.0 (fast) | 0.25 |",
        f"| W2 | {WORKLOADS['W2'].title} | 1.5 | – | – |",
    ]


def test_a_summary_has_a_table_for_each_machine_and_a_table_a_line_that_names_it(tmp_path):
    pair = [timed("fedlogit, loop", "fedlogit", 1), timed(rows.PLAIN, "plain", 2)]
    found = rows.rows("W1", pair, SIZE, "here") + rows.rows("W2", pair, SIZE, "there")
    told = tables.summary(found)
    assert told.index("On here;") < told.index("| W1 |") < told.index("On there;")
    assert told.index("On there;") < told.index("| W2 |")
    assert told.count("|---|---|---|---|---|") == 2
    tables.write(found, tmp_path)
    page = (tmp_path / "speed.md").read_text()
    assert page.count(", on here.") == page.count(", on there.") == 1
    assert page.count(" | memory MiB | ") == 2


def test_a_part_of_the_bench_leaves_the_other_rows_as_they_are(monkeypatch, tmp_path):
    def measured(name: str, where: str) -> list[rows.Row]:
        return rows.rows(name, [timed("fedlogit, loop", "fedlogit", 1)], SIZE, where)

    monkeypatch.setattr(bench, "measure", lambda name, args, where: measured(name, "now"))
    tables.write([row for name in ("W1", "W3") for row in measured(name, "before")], tmp_path)
    bench.main(["--only", "W2,W3", "--out", str(tmp_path)])
    found = [(row["workload"], row["machine"]) for row in tables.read(tmp_path / "speed.csv")]
    assert found == [("W1", "before"), ("W2", "now"), ("W2 epoch", "now"), ("W3", "now")]


def test_a_peer_that_is_not_installed_has_a_row_that_says_so(tmp_path):
    everybody = implementations(WORKLOADS["W1"], tmp_path, tmp_path, 1, tmp_path / "none")
    jax = next(c for c in everybody if c.name == "FedJAX")
    row = rows.rows("W1", repeat([jax], 1, lambda _: None), SIZE, "here")[0]
    assert row["note"].startswith("not installed")
    assert row["seconds_median"] == row["times_as_fast_as_the_plain_loop"] == ""


def test_a_peer_that_cannot_do_a_workload_says_why(tmp_path):
    workload = replace(WORKLOADS["W1"], peers=(), reason="no distillation")
    found = implementations(workload, tmp_path, tmp_path, 1, tmp_path)
    assert {c.reason for c in found if c.kind == "peer"} == {"no distillation"}


def test_who_fails_has_the_error_in_its_row_and_others_play_on(folder, prepared):
    broken = Implementation("broken", "peer", ("python", "-c", "raise SystemExit('no such thing')"))
    loop = next(c for c in implementations(WORKLOADS["W1"], folder, prepared, 1, None)
                if c.name == "plain PyTorch, tensors")  # fmt: skip
    failed, fine = repeat([broken, loop], 1, lambda _: None)
    assert failed.reason == "failed: no such thing"
    assert len(fine.seconds) == 1


def test_who_does_not_answer_in_time_is_ended(monkeypatch):
    monkeypatch.setattr(repetitions, "ANSWER_SECONDS", 0.5)
    stuck = Implementation("stuck", "peer", ("sh", "-c", "sleep 600 & wait"))
    (found,) = repeat([stuck], 1, lambda _: None)
    assert found.reason == "failed: no answer in 0.5 s"


@pytest.mark.slow
def test_everybody_that_takes_the_same_minibatches_gets_the_same_accuracy(folder, prepared):
    everybody = implementations(WORKLOADS["W1"], folder, prepared, 1, None, bf16=True)
    assert "fedlogit, loop, bf16" in [one.name for one in everybody]
    found = repeat(everybody, 1, lambda _: None)
    assert not [one.reason for one in found if one.reason]
    accuracies = [one.accuracy for one in found if one.implementation.kind != "limit"]
    assert accuracies[0] > 0.3  # two rounds learn something
    assert np.ptp(accuracies) < 0.02  # rounding grows in training
    assert all(one.memory > 2**20 and one.first > 0 for one in found)


def test_clients_have_the_samples_of_the_split_and_minibatches_cover_them(folder):
    data = Exported(str(folder))
    assert data.present(1) == list(range(5))
    for i, size in enumerate(data.sizes()):
        batches = data.order(1, i)
        assert all(len(b) == 16 for b in batches[:-1])
        assert sorted(np.concatenate(batches)) == list(range(size))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("lenet", (1, 28, 28)),
        ("lenet", (3, 32, 32)),
        ("lenet_bn", (3, 32, 32)),
        ("tf_cnn", (3, 32, 32)),
    ],
)
def test_models_of_peers_are_the_librarys(name, shape):
    own = models.build(ComponentRef(name=name), shape, 10, torch.Generator().manual_seed(3))
    settings = {"model": name, "augment": False}
    weights = [p.detach().numpy() for p in own.parameters()]
    theirs = torch_models.network(SimpleNamespace(weights=lambda _: weights, settings=settings))
    x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(theirs(x), own(x))


def test_peers_crop_windows_of_the_padded_image_and_flip_half_of_them_in_training_alone():
    torch.manual_seed(0)
    # Black, 0 of an image, is -1 here.
    x = torch.arange(1.0, 401.0).reshape(1, 1, 20, 20).expand(300, 2, 20, 20)
    padded = torch.nn.functional.pad(x[0, 0] + 1, [4] * 4) - 1
    windows = {(i, j, f): padded[i : i + 20, j : j + 20].flip([1] if f else [])
               for i in range(9) for j in range(9) for f in (0, 1)}  # fmt: skip
    found = []
    layer = torch_models.CropFlip([0.5, 0.5], [0.5, 0.5])
    for image in layer(x):
        assert torch.equal(image[0], image[1])  # channels are cut alike
        found += [key for key, window in windows.items() if torch.equal(window, image[0])]
    assert len(found) == 300
    assert 100 < sum(f for *_, f in found) < 200
    assert len({(i, j) for i, j, _ in found}) > 60
    assert torch.equal(layer.eval()(x), x)


def test_the_table_is_read_back_and_drawn(tmp_path):
    everybody = [timed("fedlogit, native", "fedlogit", 1), timed(rows.PLAIN, "plain", 8),
                 Measurement(Implementation("x", "peer"), reason="not installed")]  # fmt: skip
    found = rows.rows("W1", everybody, SIZE, "here")
    tables.write(found, tmp_path)
    tables.draw(found, tmp_path / "ratios")
    assert [row["note"] for row in tables.read(tmp_path / "speed.csv")] == ["", "", "not installed"]
    assert "Not measured: x (not installed)." in (tmp_path / "speed.md").read_text()
    assert (tmp_path / "ratios.png").stat().st_size > 1000


def test_an_implementation_has_one_marker_whoever_else_was_measured(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(tables, "save_figure", lambda figure, stem: drawn.append(figure))
    for others in ([], [timed("FedJAX", "peer", 2)]):
        everybody = [timed(rows.PLAIN, "plain", 8), *others, timed("fluke", "peer", 1)]
        tables.draw(rows.rows("W1", everybody, SIZE, "here"), tmp_path)
    marks = [{x.get_label(): x.get_marker() for x in figure.axes[0].lines} for figure in drawn]
    assert marks[0]["fluke"] == marks[1]["fluke"] == ">"


def test_a_last_minibatch_of_one_sample_is_exported_as_it_is_trained(prepared, tmp_path):
    # 17 samples in batches of 8: fedlogit trains on 8 and 9.
    workload = tiny("W1", batch=8, partition="iid(17)", clients=2)
    export(workload, prepared, 1, tmp_path)
    assert [len(b) for b in Exported(str(tmp_path)).order(1, 0)] == [8, 9]


PERCEPTRON = {"models": ["mlp(hidden=[16])"]}
SMALL = {
    "W1": PERCEPTRON,
    "W2": PERCEPTRON | {"public": {"size": 40}},
    "W4": PERCEPTRON | {"augment": "none", "public": {"size": 40, "stratified": False}},
    "W5 MLP": PERCEPTRON,
    "W7": {
        "dataset": "sklearn_docs", "text": {"vocabulary": 300, "length": 64}, "batch": 4,
        "test_size": 16, "clients": 3,
        "public": {"size": 20, "last": True, "stratified": False},
    },
    "W6": PERCEPTRON | {"clients": 20, "partition": "iid(20)", "participation": {"number": 5}},
    "W8 MLP": PERCEPTRON,
    "W9": PERCEPTRON | {"augment": "none", "clients": 4},
}  # fmt: skip


class NoClock:
    def stop(self) -> None: ...


def begun(name: str, prepared: Path, folder: Path) -> tuple:
    """Return the plain loop of a workload, fedlogit's repetition of it, and its federation."""
    workload = tiny(name, **SMALL[name])
    export(workload, prepared, 2, folder)
    fed, method = federation(workload.spec, prepared, "loop", 1)
    plain = KINDS[workload.kind](Exported(str(folder)), "tensors")
    return plain, ours.repetition_of(workload.kind, fed, method, NoClock()), fed


PLAYED = [name for name in SMALL if name not in ("W5 MLP", "W7")]


@pytest.mark.parametrize("name", [*PLAYED, pytest.param("W7", marks=pytest.mark.slow)])
def test_the_plain_loop_plays_what_fedlogit_plays(prepared, tmp_path, name):
    plain, repetition, _ = begun(name, prepared, tmp_path)
    for round_ in (1, 2):
        plain.run(round_)
        own = repetition(round_)
    assert abs(own - plain.accuracy()) < 0.015  # rounding grows in training


def test_the_obvious_ascent_reaches_the_logits_that_fedlogits_reaches(prepared, tmp_path):
    plain, repetition, fed = begun("W5 MLP", prepared, tmp_path)
    plain.run(1)
    assert np.isnan(repetition(1))
    start = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    ascent = Ascent(200, 0.01, 1e-3)
    reached, _ = maximise_logits(fed.clients[0].model, start, torch.arange(10), ascent)
    # Other noise to start from; all six models have the same weights.
    assert np.mean(plain.reached) == pytest.approx(float(reached.mean()), rel=0.1)
    assert len(plain.reached) == 6 * 10


def test_samples_and_operations_of_a_turn_are_those_of_the_pencil(prepared, tmp_path):
    # 64 inputs, 16 units, 10 classes: a sample's forward pass is 2 (64 16 + 16 10) operations,
    # a step three times as many but for the gradient of the inputs, 2 64 16.
    workload = tiny("W1", models=["mlp(hidden=[16])"], partition="iid(50)", clients=4)
    size = export(workload, prepared, 1, tmp_path)
    assert size == {"samples": 200, "operations": 200 * (3 * 2 * (64 * 16 + 160) - 2 * 64 * 16)}


def test_a_workloads_first_word_names_all_of_its_kind():
    assert chosen("W1,W5") == ["W1", "W5 MLP", "W5 CNN"]
    assert chosen("W8 CNN") == ["W8 CNN"]
    with pytest.raises(ValueError, match="W10: known are W1, W2"):
        chosen("W1,W10")


def test_growth_has_the_slope_of_the_last_three_points_a_table_and_a_picture(tmp_path):
    # Of 1, 10, 100, 1000 clients: 7 s, then 2, 20, 200 s, which is linear.
    table = [
        {"axis": "clients", "size": 10**i, "seconds": seconds, "memory_mib": 500 + 10**i - 1,
         "parameters": 9.0, "seconds_to_first_step": 3.0}
        for i, seconds in enumerate([7.0, 2.0, 20.0, 200.0])
    ]  # fmt: skip
    assert growth.slope(table, "seconds") == pytest.approx(1)
    assert growth.slope(table, "memory_mib") == pytest.approx(1, abs=0.03), "above the first point"
    assert math.isnan(growth.slope(table[:2], "seconds")), "of two points"
    growth.write(table, [{"axis": "plan", "size": "", "seconds": 6.25}], tmp_path, 1)
    growth.draw(table, tmp_path / "growth", "a machine")
    page = (tmp_path / "growth.md").read_text()
    assert "| clients | 1 | 1,000 | 7.000 – 200.000 | 1.00 | 500 – 1,499 | 1.02 |" in page
    assert "| plan | 6.2 |" in page
    assert "measured once: the faster of two rounds" in page
    assert (tmp_path / "growth.png").stat().st_size > 1000


def test_a_point_of_growth_is_a_round_with_a_first_step(tmp_path):
    sizes = growth.BASE | {"clients": 2, "samples": 20, "public": 30}
    found = measure(sizes, "loop", rounds=2)
    assert found["parameters"] == 64 * 64 + 64 * 64 + 64 * 10 + 64 + 64 + 10
    assert min(found.values()) > 0


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_a_run_that_its_engines_play(name):
    workload = WORKLOADS[name]
    spec = methods.resolve(RunSpec.read(workload.spec, name))
    method = methods.get(spec.method)
    kinds = client_workloads(spec, method, "cpu")
    for engine in workload.engines:
        check_engine(engine, kinds)
    elsewhere = {"resnet18", "tiny_gpt"}  # torchvision's and ours: `plain_rounds.model_of`
    assert {model.name for model in spec.models} <= elsewhere | set(torch_models.MODELS)


def test_engines_on_a_gpu_are_told_beside_the_loop(tmp_path):
    """Two processes of 30 and 50 minibatches a second share a GPU: 80, twice the loop's 40."""
    where = {"case": "tf_cnn", "processes": 1, "memory_mib": 9.0, "device": "a GPU", "torch": "2"}
    loop, one, other = (
        where | {"engine": engine, "batches_per_second": rate}
        for engine, rate in (("loop", 40.0), ("graphed", 30.0), ("graphed", 50.0))
    )
    gpu.write([loop, gpu.joined([one, other])], tmp_path)
    text = (tmp_path / "engines.md").read_text()
    assert "on a GPU, PyTorch 2" in text
    assert "| CELM's CNN | 5 | 128 | `graphed` | 2 | 80 | 2.0 | 9 |" in text


def test_a_case_without_a_number_on_a_gpu_has_the_reason(tmp_path):
    """The process prints lines of its own, too, fails at one case and dies at another."""
    cases = ["tf_cnn", "lenet", "mlp_net"]
    good = {"case": "tf_cnn", "engine": "graphed", "processes": 1, "batches_per_second": 40.0}
    good |= {"memory_mib": 9.0, "device": "a GPU", "torch": "2"}
    bad = {"case": "lenet", "engine": "graphed", "error": "out of memory"}
    printed = "\n".join(["a warning", json.dumps(good), json.dumps(bad)])
    found = gpu.answered("graphed", cases, printed, -9)
    died = {"case": "mlp_net", "engine": "graphed", "error": "its process ended with exit code -9"}
    assert found == [good, bad, died]
    gpu.write([*found, gpu.joined([good, died])], tmp_path)
    assert len((tmp_path / "engines.csv").read_text().splitlines()) == 2
    *_, first, second, third = (tmp_path / "engines.md").read_text().splitlines()
    assert first.endswith(", `graphed`: out of memory")
    assert second.endswith(", `graphed`: its process ended with exit code -9")
    assert third.endswith(", `graphed`, 2 processes: its process ended with exit code -9")


def test_a_point_counts_minibatches_of_all_clients():
    found = gpu_point.measure("mlp_net", "loop", torch.device("cpu"), 0.0, 0.2)
    assert found["batches_per_second"] > 0
    assert (found["processes"], found["memory_mib"]) == (1, 0.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="measures for minutes where there is a GPU")
def test_without_a_gpu_its_bench_is_refused_in_one_line(tmp_path):
    with refused("device = 'cuda' is not there"):
        gpu.main(["--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())
