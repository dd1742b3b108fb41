"""Which override wins, which runs an artefact has, and what mistakes in a paper's file say."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import pytest
import yaml
from support.refusals import refused

from fedlogit.errors import FedlogitError
from fedlogit.papers import expand, load_paper, run_dir, split_dir
from fedlogit.papers.metric_names import (
    KNOWN_METRICS,
    LOGGED_COLUMNS,
    SHARE_METRICS,
    check_metric,
)
from fedlogit.papers.schema import analysis_names
from fedlogit.results import analyses
from fedlogit.results.metrics import METRICS
from fedlogit.yaml_files import load_yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PAPERS = REPOSITORY / "workflow" / "papers"


def small() -> dict:
    """A paper with every layer an override can come from."""
    return {
        "paper": "small",
        "title": "A small paper",
        "seeds": [0, 1],
        "defaults": {
            "clients": 4,
            "rounds": 10,
            "public": {"size": 100, "stratified": False},
            "local": {"epochs": 1, "first_epochs": 5},
            "optimizer": {"name": "adam", "lr": 0.001},
            "models": ["mlp(hidden=[8])"],
        },
        "datasets": {"digits": {}, "mnist": {"rounds": 20}},
        "partitions": {"k": "k_classes(private_size=50)", "iid": "iid"},
        "methods": {
            "average": "average",
            "uwa": {"method": "uwa(validation=0.2)", "export": ["aggregation"]},
            "reference": {"method": "fully_informed", "clients": 1, "partition": "iid"},
        },
        "labels": {"average": "Average", "uwa": "UWA", "reference": "Reference"},
        "tables": {
            "t": {
                "title": "T",
                "grid": [
                    {"dataset": ["digits"], "partition": ["k(2)"], "method": ["average", "uwa"]},
                    {"dataset": ["digits"], "method": ["reference"]},
                ],
                "rows": ["method"],
                "columns": ["partition"],
            }
        },
        "figures": {"f": {"title": "F", "plot": "accuracy_by_round", "from": "t"}},
        "scales": {"paper": {}, "tiny": {"seeds": [7]}},
    }


def load(folder: Path, data: dict):
    (folder / "small.yaml").write_text(yaml.safe_dump(data))
    return load_paper("small", folder)


def specs(folder: Path, data: dict, scale: str = "tiny", **options) -> dict:
    """The specs of table t by method, as plain data."""
    artefact = next(a for a in expand(load(folder, data), scale, **options) if a.id == "t")
    return {cell.axes["method"]: cell.spec.model_dump(mode="json") for cell in artefact.cells}


def change(data: dict, path: str, value: object) -> dict:
    """Set a dotted key in place."""
    *parents, last = path.split("/")
    for parent in parents:
        data = data.setdefault(parent, {})
    data[last] = value
    return data


def test_each_layer_wins_over_the_ones_before(tmp_path):
    # The documented order; `rounds` is set at one more layer each time.
    data = small()
    layers = [
        ("defaults/rounds", 11),
        ("scales/tiny/overrides", {"rounds": 12}),
        ("datasets/digits/rounds", 13),
        ("scales/tiny/datasets", {"digits": {"rounds": 14}}),
        ("methods/uwa/rounds", 15),
        ("scales/tiny/methods", {"uwa": {"rounds": 16}}),
        ("scales/tiny/artefacts", {"t": {"set": {"rounds": 17}}}),
    ]
    for path, value in layers:
        change(data, path, value)
        expected = (
            value if isinstance(value, int) else int("".join(filter(str.isdigit, str(value))))
        )
        assert specs(tmp_path, data)["uwa"]["rounds"] == expected
    assert specs(tmp_path, data, overrides={"rounds": 18})["uwa"]["rounds"] == 18
    data["tables"]["t"]["grid"][0]["rounds"] = [19]
    assert specs(tmp_path, data)["uwa"]["rounds"] == 19
    assert specs(tmp_path, data, overrides={"rounds": 18})["uwa"]["rounds"] == 19


def test_nested_keys_merge_and_null_removes(tmp_path):
    data = small()
    data["scales"]["tiny"]["overrides"] = {"local": {"epochs": 2}, "public": {"size": 30}}
    spec = specs(tmp_path, data)["average"]
    assert spec["local"] == {"epochs": 2, "first_epochs": 5, "steps": None}
    assert (spec["public"]["size"], spec["public"]["stratified"]) == (30, False)
    data["methods"]["reference"] |= {"method": "local", "public": None}
    assert specs(tmp_path, data)["reference"]["public"] is None


def test_a_method_keeps_its_clients_at_a_scale_that_changes_clients(tmp_path):
    data = small()
    data["scales"]["tiny"]["overrides"] = {"clients": 3}
    found = specs(tmp_path, data)
    assert (found["average"]["clients"], found["reference"]["clients"]) == (3, 1)


def test_names_take_further_parameters_from_paper_scale_and_cell(tmp_path):
    data = small()
    data["tables"]["t"]["grid"][0]["method"] = ["uwa(variance_floor=1e-6)"]
    data["scales"]["tiny"]["methods"] = {"uwa": "uwa(fit='em')"}
    data["scales"]["tiny"]["partitions"] = {"k": "k_classes(private_size=20)"}
    spec = specs(tmp_path, data)["uwa(variance_floor=1e-6)"]
    assert spec["method"]["name"] == "uwa"
    assert spec["method"]["params"] == {"validation": 0.2, "variance_floor": 1e-6, "fit": "em"}
    assert spec["export"] == ["aggregation"]  # what comes with uwa comes with its variants
    assert spec["partition"]["params"] == {"k": 2, "private_size": 20, "class_sets": "random"}


def test_dotted_axes_reach_into_the_spec(tmp_path):
    data = small()
    data["tables"]["t"]["grid"] = {
        "dataset": ["digits"], "partition": ["k(2)"], "method": ["average"],
        "public.size": [40, 20],
    }  # fmt: skip
    data["tables"]["t"]["rows"] = ["public.size"]
    (table, _) = expand(load(tmp_path, data), "tiny")
    assert [cell.spec.public.size for cell in table.cells] == [40, 20]
    assert [cell.axes["public.size"] for cell in table.cells] == [40, 20]


def test_a_scale_replaces_axes_grids_and_seeds(tmp_path):
    data = small()
    tiny = data["scales"]["tiny"]
    tiny["axes"] = {"partition": ["k(3)", "k(4)"]}
    (table, figure) = expand(load(tmp_path, data), "tiny")
    # 2 partitions x 2 methods + the reference, one seed; the figure has the table's runs
    assert len(table.cells) == 5
    assert {c.spec.digest() for c in table.cells} == {c.spec.digest() for c in figure.cells}
    tiny["artefacts"] = {"t": {"axes": {"partition": ["k(5)"]}, "seeds": [1, 2, 3]}}
    assert len(expand(load(tmp_path, data), "tiny")[0].cells) == 3 * 3
    tiny["artefacts"]["t"]["grid"] = {
        "dataset": ["digits"],
        "partition": ["k(2)"],
        "method": ["uwa"],
    }
    assert len(expand(load(tmp_path, data), "tiny")[0].cells) == 3
    del tiny["artefacts"]["t"]["axes"]  # the scale's are for the paper's grids, not for its own
    table = expand(load(tmp_path, data), "tiny")[0]
    assert {cell.axes["partition"] for cell in table.cells} == {"k(2)"}
    tiny["include"] = ["f"]
    assert [a.id for a in expand(load(tmp_path, data), "tiny")] == ["f"]


def test_seeds_go_from_user_to_artefact_to_paper(tmp_path):
    data = small()
    paper = load(tmp_path, data)
    seeds = lambda scale, **o: {c.spec.seed for c in expand(paper, scale, **o)[0].cells}  # noqa: E731
    assert seeds("paper") == {0, 1}
    assert seeds("tiny") == {7}
    assert seeds("tiny", seeds=(3,)) == {3}
    data["tables"]["t"]["seeds"] = [5]
    paper = load(tmp_path, data)
    assert seeds("paper") == {5}
    assert seeds("tiny") == {7}
    data["scales"]["tiny"]["artefacts"] = {"t": {"seeds": [9]}}
    paper = load(tmp_path, data)
    assert seeds("tiny") == {9}
    assert seeds("tiny", seeds=(3,)) == {3}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("defaults/seed", 5),
        ("datasets/digits/seed", 5),
        ("methods/uwa/seed", 5),
        ("scales/tiny/overrides", {"seed": 5}),
        ("tables/t/grid", [{**small()["tables"]["t"]["grid"][0], "seed": [5]}]),
    ],
)
def test_a_seed_among_the_settings_is_refused_and_not_ignored(tmp_path, path, value):
    data = small()
    change(data, path, value)
    with refused("seed = 5: no layer and no axis has a seed; give seeds: [5]"):
        specs(tmp_path, data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("defaults/dataset", "mnist"),
        ("datasets/digits/dataset", "mnist"),
        ("methods/uwa/dataset", "mnist"),
        ("scales/tiny/overrides", {"dataset": "mnist"}),
        ("scales/tiny/artefacts", {"t": {"set": {"dataset": "mnist"}}}),
        ("datasets/digits/method", "uwa"),
    ],
)
def test_what_an_axis_decides_is_refused_among_the_settings(tmp_path, path, value):
    data = small()
    change(data, path, value)
    with refused("has no effect here, as the grid's axis"):
        specs(tmp_path, data)


def test_several_data_sets_may_be_kept(tmp_path):
    data = small()
    data["datasets"]["cifar10"] = {}
    data["tables"]["t"]["grid"][0]["dataset"] = ["digits", "mnist", "cifar10"]
    data["tables"]["t"]["rows"] = ["dataset", "method"]
    for kept in (("digits",), ("mnist", "cifar10")):
        (table, *_) = expand(load(tmp_path, data), "tiny", datasets=kept)
        assert dict.fromkeys(cell.spec.dataset for cell in table.cells) == dict.fromkeys(kept)


def test_an_axis_that_a_grid_lacks_takes_what_its_runs_have(tmp_path):
    (table, _) = expand(load(tmp_path, small()), "tiny")
    reference = next(c for c in table.cells if c.axes["method"] == "reference")
    assert reference.axes["partition"] == "iid"


def test_a_table_may_have_a_parameter_of_the_method_as_an_axis(tmp_path):
    data = small()
    data["tables"]["t"]["rows"] = ["method.validation"]
    (table, _) = expand(load(tmp_path, data), "tiny")
    found = {c.axes["method"]: c.axes["method.validation"] for c in table.cells}
    assert found == {"average": None, "uwa": 0.2, "reference": None}


def test_datasets_filter_drops_empty_artefacts(tmp_path):
    paper = load(tmp_path, small())
    assert expand(paper, "tiny", datasets=("mnist",)) == []
    with pytest.raises(FedlogitError, match="did you mean 'digits'"):
        expand(paper, "tiny", datasets=("digit",))


def test_paths_name_what_a_run_is(tmp_path):
    (table, _) = expand(load(tmp_path, small()), "tiny")
    average, uwa, _ = (cell.spec for cell in table.cells)
    assert str(run_dir(average)).startswith("digits/k_classes-k2-private_size50/average/seed7-")
    assert run_dir(average).name == f"seed7-{average.digest()[:8]}"
    assert split_dir(average) == split_dir(uwa)  # methods share the division of the data
    assert split_dir(average).name.startswith("n4-seed7-")
    other = average.model_copy(update={"rounds": 11})
    assert run_dir(other) != run_dir(average)
    assert split_dir(other) == split_dir(average)


def test_artefact_json_is_plain_and_complete(tmp_path):
    data = small()
    options = {"left": {"method": "uwa"}, "right": {"method": "average"}}
    data["claims"] = {"c": {"text": "so it is", "from": "t", "test": "greater", "options": options}}
    table, figure = (a.as_artefact("runs").plain() for a in expand(load(tmp_path, data), "tiny"))
    assert (table["kind"], table["rows"], table["plot"]) == ("table", ["method"], None)
    assert (figure["kind"], figure["rows"], figure["plot"]) == ("figure", None, "accuracy_by_round")
    assert table["claims"]["c"]["test"] == "greater"
    assert figure["claims"] == {}
    run = table["runs"][0]
    assert run["axes"] == {"dataset": "digits", "partition": "k(2)", "method": "average", "seed": 7}
    assert run["dir"].startswith("runs/digits/")
    assert len(run["digest"]) == 64


def test_a_scale_has_captions_of_its_own(tmp_path):
    data = small()
    data["tables"]["t"]["caption"] = "Of ten peers."
    data["scales"]["tiny"]["artefacts"] = {"t": {"caption": "Of five peers."}}

    def of(scale):
        return expand(load(tmp_path, data), scale)[0].as_artefact("runs").plain()["caption"]

    assert (of("paper"), of("tiny")) == ("Of ten peers.", "Of five peers.")


def test_a_scale_changes_claims(tmp_path):
    """Words, options key by key, lists as a whole, and the table whose runs decide."""
    data = small()
    options = {"left": {"method": "uwa"}, "right": {"method": ["average"]}, "margin": 0.1}
    claim = {"text": "so it is", "from": "t", "test": "best", "options": options}
    data["claims"] = {"c": claim, "d": claim}
    tiny = data["scales"]["tiny"]
    tiny["claims"] = {"c": {"text": "here", "options": {"right": {"method": ["reference"]}}}}

    def of(scale):
        return [
            a.as_artefact("runs").plain()["claims"] for a in expand(load(tmp_path, data), scale)
        ]

    changed = claim | {"section": "", "text": "here"}
    changed["options"] = options | {"right": {"method": ["reference"]}}
    assert of("tiny") == [{"c": changed, "d": claim | {"section": ""}}, {}]
    assert of("paper") == [dict.fromkeys("cd", claim | {"section": ""}), {}]
    data["tables"]["u"] = data["tables"]["t"]
    tiny["claims"] = {"c": {"from": "u"}}
    assert [list(claims) for claims in of("tiny")] == [["d"], ["c"], []]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("scales/tiny/claims", {"cc": {}}, "scales.tiny.claims: unknown name 'cc'"),
        ("scales/tiny/claims", {"c": {"from": "tt"}}, "scales.tiny.claims.c: from: unknown name"),
        ("scales/tiny/claims", {"c": {"option": {}}}, "unknown key 'option'; did you mean"),
    ],
)
def test_mistakes_in_claims_of_a_scale(tmp_path, path, value, said):
    data = small()
    data["claims"] = {"c": {"text": "so it is", "from": "t", "test": "greater"}}
    change(data, path, value)
    with pytest.raises(FedlogitError) as caught:
        load(tmp_path, data)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("titel", "x", "small.yaml: unknown key 'titel'; did you mean 'title'"),
        ("tables/t/colums", [], "tables.t: unknown key 'colums'; did you mean 'columns'"),
        ("seeds", [0.5], "small.yaml: seeds.0 = 0.5"),
        ("seeds", ["a"], "small.yaml: seeds.0 = 'a'"),
        ("seeds", [-1], "small.yaml: seeds.0 = -1"),
        ("scales/tiny/seeds", ["0"], "scales.tiny.seeds.0 = '0'"),
        ("defaults/round", 3, "small.yaml: defaults: unknown key 'round'; did you mean 'rounds'"),
        ("defaults/local/epoch", 3, "defaults.local: unknown key 'epoch'; did you mean"),
        ("scales/tiny/overrides", {"publc": 1}, "scales.tiny.overrides: unknown key 'publc'"),
        ("scales/tiny/methods", {"uwaa": {}}, "tiny.methods: unknown name 'uwaa'; did you mean"),
        ("scales/tiny/include", ["tt"], "scales.tiny.include: unknown name 'tt'; did you mean 't'"),
        ("figures/f/from", "tee", "small.yaml: f: from: unknown name 'tee'"),
        ("tables/t/rows", ["methd"], "t: rows and columns: unknown axis 'methd'; did you mean"),
        ("figures/f/plot", "accuracy_by_rounds", "f: plot: unknown plot 'accuracy_by_rounds'"),
        ("tables/t/metric", "acuracy", "metric: unknown metric 'acuracy'; did you mean 'accuracy'"),
        ("tables/t/metric", "acc@10", "metric: unknown metric 'acc@10'; did you mean 'accuracy'?"),
        ("tables/t/metric", "acc", "(if a method logs the column 'acc', give it a name under 'lab"),
        ("tables/t/metric", "accuracy@last", "t: metric = 'accuracy@last': should be a metric and"),
        ("tables/t/metric", "accuracy@²", "t: metric = 'accuracy@²': should be a metric and"),
        ("tables/t/metric", "test accuracy", "should be a metric or a column of rounds.csv, such "),
        ("figures/f/metric", "balanced_acuracy", "did you mean 'balanced_accuracy'?"),
        ("scales/tiny/artefacts", {"t": {"axes": {"methd": [1]}}}, "t.axes: unknown axis 'methd'"),
        ("scales/tiny/axes", {"metod": ["uwa"]}, "scales.tiny.axes: unknown axis 'metod'; did you"),
        ("seeds", [], "small.yaml: seeds = []: should have one entry at least"),
        ("tables/t/seeds", [], "small.yaml: tables.t.seeds = []: should have one entry at least"),
        ("scales/tiny/seeds", [], "scales.tiny.seeds = []: should have one entry at least"),
        ("scales/tiny/include", [], "scales.tiny.include = []: should have one entry at least"),
        ("scales/tiny/axes", {"method": []}, "scales.tiny.axes.method = []: should have one entry"),
        ("scales/tiny/artefacts", {"t": {"seeds": []}}, "tiny.artefacts.t.seeds = []: should have"),
        ("scales/tiny/artefacts", {"t": {"grid": []}}, "tiny.artefacts.t.grid = []: should have"),
        ("tables/t/grid", {"dataset": ["digits"], "method": []}, "tables.t.grid.0.method = []: "),
        ("tables/t/grid", [], "tables.t.grid = []: should have one entry at least"),
        ("tables/t/metrics", [], "tables.t.metrics = []: should have one entry at least"),
        ("tables/t/rows", ["method", "method"], "t: rows and columns have the axis 'method' twice"),
        ("tables/t/rows", ["method", "partition"], "t: rows and columns have the axis 'partition'"),
        (
            "claims/c",
            {"text": "C", "from": "t", "test": "greater", "options": {"metric": "bal_acc"}},
            "c.options.metric: unknown metric 'bal_acc'; did you mean 'balanced_accuracy'",
        ),
        (
            "claims/c",
            {"text": "C", "from": "t", "test": "bigger"},
            "claims.c.test: unknown test 'bigger'",
        ),
        ("figures/f/grid", {}, ": give either grid or from"),
        ("methods", ["uwa"], "small.yaml: methods = ['uwa']: should be a mapping of keys to"),
        ("datasets/digits", None, "datasets.digits = None: should be a mapping of keys to values"),
        ("seeds", 3, "small.yaml: seeds = 3: should be a list, in brackets"),
        ("tables/t/rows", "method", "tables.t.rows = 'method': should be a list, in brackets"),
        ("labels/uwa", 5, "small.yaml: labels.uwa = 5: should be a text; put it in quotes"),
        ("figures/f/plot", True, "figures.f.plot = True: should be a text; put it in quotes"),
        ("tables/t/columns", [], "small.yaml: tables.t: give rows and columns, or analysis"),
        ("defaults/rounds", date(2024, 1, 2), "2024-01-02 is a date; put a text in quotes"),
        ("figures/t", {"title": "", "plot": "p", "from": "t"}, "both a table and a figure"),
    ],
)  # fmt: skip
def test_mistakes_are_found_on_reading(tmp_path, path, value, said):
    data = small()
    change(data, path, value)
    with pytest.raises(FedlogitError) as caught:
        load(tmp_path, data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_analysis_and_a_wrong_one_of_several_metrics_are_found_on_reading(tmp_path):
    data = small()
    table = data["tables"]["t"]
    table |= {"rows": ["method"], "columns": ["metric"], "metrics": ["accuracy", "acc"]}
    with refused("t: metrics: unknown metric 'acc'; did you mean 'accuracy'?"):
        load(tmp_path, data)
    table["metrics"] = ["accuracy", "balanced_accuracy"]
    load(tmp_path, data)
    for key in ("rows", "columns", "metrics"):
        del table[key]
    table["analysis"] = "answr"
    with refused("small.yaml: t: analysis: unknown analysis 'answr'; did you mean 'answer'"):
        load(tmp_path, data)
    table["analysis"] = "answer"
    load(tmp_path, data)


def test_a_column_that_a_method_logs_is_a_metric_and_a_label_says_so_of_any(tmp_path):
    data = small()
    for column in ("loss_private", "contribution_0", "bytes_up.model", "accuracy_min@3"):
        data["tables"]["t"]["metric"] = column
        load(tmp_path, data)
    data["tables"]["t"]["metric"] = "acc@3"
    data["labels"]["acc"] = "Accuracy of the committee"
    load(tmp_path, data)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (
            "averge",
            "small.yaml: labels: 'averge' is no axis, value on an axis, axis=value or metric in",
        ),
        ("averge", "in this file; did you mean 'average'?"),
        ("k(3)", "labels: 'k(3)' is no axis"),
        ("public.size", "labels: 'public.size' is no axis"),
        (
            "partition=k(3)",
            "labels.partition=k(3): unknown value of partition 'k(3)'; did you mean",
        ),
        ("zzz", "or metric in this file; leave it out"),
    ],
)
def test_a_label_that_names_nothing_in_the_file_is_refused(tmp_path, label, said):
    data = small()
    data["labels"][label] = "Label"
    with refused(said):
        load(tmp_path, data)


@pytest.mark.parametrize(
    "label",
    [
        *("small", "partition", "seed", "k(2)", "partition=k(2)", "k_classes", "digits", "fpr@3"),
        *(
            "adversaries=label_flips",
            "adversaries=all",
            "public.overlap=False",
            "balanced_accuracy",
        ),
    ],
)
def test_labels_name_axes_values_metrics_and_the_paper(tmp_path, label):
    data = small()
    data["tables"]["t"]["grid"][1]["adversaries"] = [{"share": 0.5, "attack": "label_flips"}, None]
    data["figures"]["f"] |= {"plot": "accuracy_by_setting", "options": {"x": "public.overlap"}}
    data["labels"][label] = "Label"
    load(tmp_path, data)


def test_every_column_of_the_librarys_own_methods_is_known():
    """Names of keywords of ``log(…)``, anywhere in the library; ``**{f"a_{i}": …}`` is ``a_0``."""
    logged = set()
    for path in (REPOSITORY / "fedlogit").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "log":
                for keyword in call.keywords:
                    numbered = [n.values for n in ast.walk(keyword) if isinstance(n, ast.JoinedStr)]
                    logged |= {f"{text.value}0" for text, _ in numbered if keyword.arg is None}
                    logged |= {keyword.arg} - {None}
    assert {"weight_over_99", "target_accuracy", "accuracy_present", "contribution_0"} <= logged
    assert logged <= KNOWN_METRICS | LOGGED_COLUMNS
    assert not KNOWN_METRICS & LOGGED_COLUMNS
    of_any_run = {"round", "accuracy_min", "accuracy_max", "seconds_test", "seconds_clients"}
    assert LOGGED_COLUMNS - logged == of_any_run - logged | {"theory_margin"}
    for column in (*logged, "server_public_accuracy_1", "contribution_12@3", "bytes_up.logits"):
        check_metric("metric", column, ())


@pytest.mark.parametrize(
    "name", ["f1_score", "auprc", "weight_min", "loss", "contribution_01", "bytes_up.", "present_1"]
)
def test_a_column_that_nobody_is_known_to_log_needs_a_label(tmp_path, name):
    data = small()
    for metrics in ({"metric": name}, {"metrics": ["accuracy", name], "columns": ["metric"]}):
        data["tables"]["t"] = small()["tables"]["t"] | {"rows": ["dataset", "method"]} | metrics
        data["labels"] = small()["labels"]
        (key,) = metrics.keys() - {"columns"}
        logs = f"(if a method logs the column {name!r}, give it a name under 'labels')"
        with refused(f"small.yaml: t: {key}: unknown metric {name!r} {logs}"):
            load(tmp_path, data)
        data["labels"] = small()["labels"] | {name: "Name"}
        load(tmp_path, data)


def test_names_of_metrics_and_analyses_are_those_that_results_have():
    assert set(METRICS) == KNOWN_METRICS
    assert {name for name, metric in METRICS.items() if metric.unit == "share"} == SHARE_METRICS
    assert analyses.analysis_names() == analysis_names()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("defaults/rounds", "many", "rounds = 'many'"),
        ("defaults/rounds", 0, "rounds = 0"),
        ("defaults/evaluation", {"rounds": [0]}, "evaluation.rounds"),
        (
            "defaults/participation",
            "80%",
            "participation = '80%': should be a share such as 0.8, {number: 4} or {schedule: [",
        ),
        ("defaults/public", 100, "public = 100: should be a mapping such as {size: 100}"),
        ("defaults/local", 5, "local = 5: should be a mapping such as {epochs: 1}"),
        ("defaults/optimizer", "adam", "should be a mapping such as {name: adam, lr: 0.001}"),
        ("defaults/local", {"steps": 5, "epochs": 1}, "give either epochs or steps"),
        ("methods/average", "averag", "unknown method 'averag'; did you mean 'average'"),
        ("methods/uwa/method", "uwa(floor=1)", "unknown key 'floor'"),
        ("partitions/k", "k_clases(private_size=5)", "unknown partition 'k_clases'; did you mean"),
        ("methods/average", "my_methods.Mine", "a class of your own is called 'my_methods:Mine'"),
        ("defaults/models", ["mpl"], "unknown model 'mpl'; did you mean 'mlp'"),
        (
            "defaults/models",
            ["mlp", "lenet"],
            "model lenet takes images of at least 12 x 12, not of shape (1, 8, 8)",
        ),
    ],
)
def test_mistakes_are_found_on_expanding(tmp_path, path, value, said):
    data = small()
    change(data, path, value)
    with pytest.raises(FedlogitError) as caught:
        specs(tmp_path, data)
    assert said in str(caught.value)
    assert str(caught.value).startswith("small.yaml: t at scale tiny, dataset=digits")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("defaults/train_size", 1438, "train_size = 1438: give at most the 1437 training samples"),
        ("defaults/test_size", 361, "test_size = 361: give at most the 360 test samples"),
        ("defaults/public", {"size": 1437}, "public.size = 1437: give less than the 1437 training"),
        *(
            ("partitions/k", call, f"partition {said}, ")
            for call, said in (
                ("k_classes(k=11)", "k_classes: k = 11: at most 10"),
                ("pathological(classes_per_client=11)", "pathological: classes_per_client = 11: at"
                 " most 10"),
                ("fr(common=11)", "fr: common = 11: at most 10"),
                ("pls(m0=11, s_max=9, s_min=1)", "pls: m0 = 11: at most 10"),
                ("sls(m0=11)", "sls: m0 = 11: at most 10"),
                ("sls_random(m0=11)", "sls_random: m0 = 11: at most 10"),
                ("maverick(rare=10)", "maverick: rare = 10: at most 9"),
                ("frm(rare=8, common=3)", "frm: common = 3: at most 2"),
            )
        ),
    ],
)  # fmt: skip
def test_numbers_that_a_data_set_does_not_have_are_found_on_expanding(tmp_path, path, value, said):
    data = small()
    data["tables"]["t"]["grid"] = [
        {"dataset": ["digits"], "partition": ["k"], "method": ["average", "uwa"]}
    ]
    data["partitions"]["k"] = "k_classes(k=10)"
    specs(tmp_path, data)
    change(data, path, value)
    with refused(f"small.yaml: t at scale tiny: {said}") as error:
        specs(tmp_path, data)
    assert str(error.value).endswith(" of digits")


def test_what_fits_a_data_set_exactly_is_planned(tmp_path):
    data = small()
    data["defaults"] |= {"train_size": 1437, "test_size": 360, "public": {"size": 1436}}
    specs(tmp_path, data)


BEST = "accuracy_at_best_validation"


@pytest.mark.parametrize(
    ("metric", "tested", "said"),
    [
        ("accuracy@11", {}, "accuracy@11: no run has a round 11; the longest has 10"),
        ("accuracy@3", {"every": 5}, "accuracy@3: runs are not tested in round 3; name it in"),
        (BEST, {"validation": 9}, f"{BEST}: its runs need both accuracies; give evaluation: {{va"),
        (f"{BEST}@3", {}, f"{BEST}@3: the round is chosen by validation; give {BEST}"),
        (BEST, {"validation": 9, "with_test": True}, ""),
        ("accuracy@3", {"every": 5, "rounds": [3]}, ""),
        ("accuracy@10", {"every": 7}, ""),  # the last round is tested
        ("bytes_up@3", {"every": 5}, ""),
        ("seconds_test@3", {"every": 5}, "seconds_test@3: runs are not tested in round 3; name it"),
        ("accuracy_gain@3", {"every": 5}, ""),  # a method's own column, of every round
    ],
)
def test_a_metric_of_a_round_that_no_run_will_have(tmp_path, metric, tested, said):
    data = small()
    data["tables"]["t"]["metric"] = metric
    if metric.startswith("accuracy_gain"):
        data["labels"]["accuracy_gain"] = "Gain"
    data["defaults"]["evaluation"] = tested
    if not said:
        specs(tmp_path, data)
        return
    with pytest.raises(FedlogitError) as caught:
        specs(tmp_path, data)
    assert str(caught.value).startswith(f"small.yaml: t at scale tiny: {said}")


@pytest.mark.parametrize(
    ("axis", "value", "said"),
    [
        ("method", "uva", "unknown method 'uva'; did you mean 'uwa'"),
        ("partition", "kk(2)", "unknown partition 'kk'; did you mean 'k'"),
        ("dataset", "digit", "unknown dataset 'digit'; did you mean 'digits'"),
        ("dataset", [], "unknown dataset []"),
        ("dataset", "{x}", "unknown dataset '{x}'"),
        ("dataset", '{"a": ' * 2000, "unknown dataset '{"),
        ("dataset", "a\nb", r"dataset='a\nb', "),
        ("partition", "k(2", "name or name(0.5); put a call that has a comma in quotes"),
        ("public.sise", 5, "small.yaml: t: grid.public: unknown key 'sise'; did you mean 'size'"),
        (
            "partitoin",
            "k(2)",
            "small.yaml: t: grid: unknown key 'partitoin'; did you mean 'partiti",
        ),
        ("method", 5, "method = 5: should be a name or a call"),
        (
            "method",
            "uwa(variance_floor={1})",
            "variance_floor = {1}: should be a number, a text in",
        ),
        ("method", "uwa(validation=b'x')", "validation = b'x': should be a number, a text in quot"),
        ("method", "uwa(validation=1j)", "validation = 1j: should be a number, a text in quotes"),
        ("partition", "k({1, 2})", "0 = {1, 2}: should be a number, a text in quotes, True"),
    ],
)
def test_misspelt_cells_name_the_nearest(tmp_path, axis, value, said):
    data = small()
    data["tables"]["t"]["grid"][0][axis] = [value]
    with refused(said):
        specs(tmp_path, data)


def test_a_misspelt_cell_is_named_before_the_claims_and_labels_that_it_leaves_without_a_value(
    tmp_path,
):
    data = small()
    data["claims"] = {
        "c": {
            "text": "UWA is better",
            "from": "t",
            "test": "greater",
            "options": {"left": {"method": "uwa"}, "right": {"method": "average"}},
        }
    }
    load(tmp_path, data)
    data["tables"]["t"]["grid"][0]["method"] = ["average", "uwaa"]
    with refused("small.yaml: t: grid: unknown method 'uwaa'; did you mean 'uwa'?"):
        load(tmp_path, data)


def test_a_misspelt_axis_of_a_grid_is_named_before_rows_that_have_it_right(tmp_path):
    data = small()
    data["tables"]["t"]["rows"] = ["dataset", "method", "partition"]
    data["tables"]["t"]["grid"] = [
        {"dataset": ["digits"], "method": ["uwa"], "partitoin": ["k(2)"]}
    ]
    with refused("small.yaml: t: grid: unknown key 'partitoin'; did you mean 'partition'?"):
        load(tmp_path, data)
    data = small()
    data["tables"]["t"]["rows"] = ["dataset", "method", "partition"]
    data["scales"]["tiny"]["artefacts"] = {"t": {"grid": [{"methd": ["uwa"]}]}}
    with refused("small.yaml: t: grid: unknown key 'methd'; did you mean 'method'?"):
        load(tmp_path, data)


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        (["method", "partition"], "the grid has no axis 'dataset', but method, partition; add it"),
        (["dataset", "partition"], "the grid has no axis 'method', but dataset, partition; add it"),
        (["dataset", "method"], "key 'partition' is missing: give it as an axis, or under 'de"),
    ],
)  # fmt: skip
def test_a_grid_that_lacks_an_axis_says_which(tmp_path, axes, said):
    data = small()
    values = {"dataset": "digits", "method": "uwa", "partition": "k(2)"}
    grid = {axis: [values[axis]] for axis in axes}
    data["figures"]["g"] = {"title": "G", "plot": "accuracy_by_round", "grid": grid}
    with refused(f": {said}") as error:
        specs(tmp_path, data)
    assert str(error.value).startswith("small.yaml: g at scale tiny, ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.yaml is empty: should be a mapping of keys to values"),
        ("- a\n", "x.yaml: should be a mapping of keys to values"),
        ("title: Table 1: a\n", "at line 1, column 15; indent the keys of a mapping alike, and"),
        ("a: 1\n b: 2\n", "at line 2, column 3; indent the keys of a mapping alike, and put"),
        ("a: 1\nb:2\nc: 3\n", "at line 3, column 1; write 'key: value', with a space after"),
        ("a: [mlp(hidden=[16])]\n", "; close the list, and put a call that has a comma or"),
        ("a:\n\tb: 1\n", "at line 2, column 1; indent with spaces, not tabs, and put a text that"),
        ("a: 1\nb: 2\na: 3\n", "x.yaml: key 'a' is given twice: at lines 1 and 3"),
    ],
)
def test_yaml_that_cannot_be_read_says_how_to_write_it(tmp_path, text, said):
    (tmp_path / "x.yaml").write_text(text)
    with refused(said):
        load_paper("x", tmp_path)


def test_unknown_paper_and_scale(tmp_path):
    paper = load(tmp_path, small())
    with pytest.raises(FedlogitError, match="unknown paper 'smal'; did you mean 'small'"):
        load_paper("smal", tmp_path)
    with refused(f"there is no {tmp_path / 'elsewhere'}/*.yaml; give the folder of the papers'"):
        load_paper("small", tmp_path / "elsewhere")
    with pytest.raises(
        FedlogitError, match="unknown scale of paper small 'tny'; did you mean 'tiny'"
    ):
        expand(paper, "tny")


def test_yaml_with_fewer_traps(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("a: 1e-3\nb: -2E+4\nc: e5\n")
    assert load_yaml(path) == {"a": 1e-3, "b": -2e4, "c": "e5"}
    path.write_text("a: 1\nb: {c: 1, c: 2}\n")
    with pytest.raises(FedlogitError, match=r"x.yaml: key 'c' is given twice: at lines 2 and 2"):
        load_yaml(path)
    path.write_text("a: [1\n")
    with pytest.raises(FedlogitError, match="not valid YAML"):
        load_yaml(path)
    path.write_text("a: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(FedlogitError, match="not valid YAML"):
        load_yaml(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("010", "x.yaml: 010 at line 2 would be the number 8; write that, or put a text in"),
        ("-0_7", "x.yaml: -0_7 at line 2 would be the number -7"),
        ("1:30", "x.yaml: 1:30 at line 2 would be the number 90"),
        ("1:30.5", "x.yaml: 1:30.5 at line 2 would be the number 90.5"),
        ("010: 1", "x.yaml: 010 at line 2 would be the number 8; write that, or put a text in"),
        ("0x" + "f" * 4000, "x.yaml: the number at line 2 has 4002 digits; give at most 100"),
        ("1" * 5000, "x.yaml: the number at line 2 has 5000 digits; give at most 100"),
    ],
    ids=["octal", "with _", "base 60", "fraction in base 60", "key", "long in base 16", "long"],
)
def test_yaml_numbers_that_mean_another_one_or_are_endless_are_refused(tmp_path, text, said):
    path = tmp_path / "x.yaml"
    path.write_text(f"a: 1\nseeds: [{text}]\n")
    with refused(said):
        load_yaml(path)


def test_yaml_numbers_that_mean_what_they_look_like_are_read(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("[0, -0, 10, +3, 1_000, 0x1f, 0b11, .5, -.inf, 1.50, 08, '010', '1:30', 'a:b']")
    found = [0, 0, 10, 3, 1000, 31, 3, 0.5, float("-inf"), 1.5, "08", "010", "1:30", "a:b"]
    assert load_yaml(path) == found


@pytest.mark.parametrize(
    ("stands_for", "said"),
    [
        ({}, "stands_for = {}: give table or axes"),
        ({"table": "tt"}, "stands_for.table: unknown table 'tt'; did you mean 't'"),
        ({"axes": {"metod": {"x": "uwa"}}}, "stands_for.axes: unknown axis 'metod'; did you mean"),
        ({"axes": {"method": {"x": "uw"}}}, "stands_for.axes.method: unknown value 'uw'; did you"),
    ],
)
def test_what_stands_for_published_numbers_must_be_there(tmp_path, stands_for, said):
    data = small()
    change(data, "scales/tiny/artefacts", {"t": {"stands_for": stands_for}})
    with refused(said):
        load(tmp_path, data)


def test_what_is_said_of_a_method_is_of_one_that_is_there(tmp_path):
    with refused("small.yaml: about: unknown name 'averge'; did you mean 'average'"):
        load(tmp_path, small() | {"about": {"averge": "The mean."}})


@pytest.mark.parametrize(
    ("seeds", "said"), [([], "one entry at least"), ([0, 1, 1], "each seed once")]
)
def test_seeds_are_named_once_and_not_none(tmp_path, seeds, said):
    with pytest.raises(FedlogitError, match=rf"seeds = .*{said}"):
        load(tmp_path, small() | {"seeds": seeds})


def test_a_table_that_leaves_out_an_axis_is_refused_before_training(tmp_path):
    data = small()
    data["tables"]["t"]["grid"][0]["dataset"] = ["digits", "mnist"]
    paper = load(tmp_path, data)
    with refused(
        "small.yaml: t at scale tiny: two runs of a seed share a cell (method, partition);"
        " axis dataset is digits and mnist: put it into rows or columns"
    ):
        expand(paper, "tiny")
    assert expand(paper, "tiny", datasets=("digits",))
    data["tables"]["t"]["rows"] = ["dataset", "method"]
    assert len(expand(load(tmp_path, data), "tiny")[0].cells) == 5


def test_an_analysis_has_rows_of_its_own(tmp_path):
    data = small()
    data["tables"]["t"]["grid"][0]["dataset"] = ["digits", "mnist"]
    data["tables"]["t"] |= {"analysis": "ranks", "rows": [], "columns": []}
    assert expand(load(tmp_path, data), "tiny")
