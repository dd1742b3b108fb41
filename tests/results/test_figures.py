from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.image import imread
from matplotlib.text import Text
from support.refusals import refused

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import save_npz
from fedlogit.results.analyses.contribution import ContributionsBesideShapley
from fedlogit.results.collect import collect
from fedlogit.results.figures import draw, figure_names, write_figure
from fedlogit.results.figures._panels import in_per_cent, reference_line, wrapped_labels
from fedlogit.results.figures.accuracy_by_heterogeneity import enlarged_partitions
from fedlogit.results.figures.accuracy_by_round import last_third
from fedlogit.results.figures.aggregation_weights import mean_weights
from fedlogit.results.figures.contributions_by_value import correlation
from fedlogit.results.figures.pseudo_labels import by_iteration
from fedlogit.results.runs.run import read_run
from fedlogit.results.style import CATEGORIES, MARKERS, look, new_figure
from fedlogit.results.tables import write_table
from fedlogit.results.verdicts.published import read_reference
from fedlogit.spec import RunSpec

CELM = {
    "contributions_by_round",
    "distribution_fidelity",
    "fpr_by_threshold",
    "partitions",
    "probe_heat_map",
    "probe_images",
}
TALLY = {"accuracy_by_setting", "bandwidth_ratio", "pareto", "peer_bands", "voting_theory"}
LOST = {"accuracy_lost", "lost_by_share"}
LOUD = {"share": 0.25, "attack": "loud_logits"}
AXES = {"dataset": "mnist", "partition": "k_classes(2)", "method": "average"}
METHODS = {"average": 0.6, "uwa": 0.8, "meta_model": 0.85}


@pytest.fixture
def figure(
    make_run, make_artefact, export_weights, make_celm, make_fedol, make_tally, make_tested,
    make_coalitions,
):  # fmt: skip
    """Return a function from a kind to an artefact with runs it can draw.

    What has many panels to a run takes long, and gets two rows of them.
    """

    def grid() -> list:
        return [
            make_run(
                [accuracy / 3, accuracy / 2, round(accuracy + 0.02 * seed, 4)],
                method=method,
                partition=partition,
                seed=seed,
            )
            for partition in ("k_classes(2)", "k_classes(5)")
            for method, accuracy in METHODS.items()
            for seed in (0, 1)
        ]

    def runs(kind: str) -> list:
        if kind in ("aggregation_weights", "logit_normality"):
            return [export_weights(make_run(method="uwa", seed=s), seed=s) for s in (0, 1)]
        if kind == "contributions_by_value":
            shares = [0.2, 0.5, 0.3]
            return [r for s in (0, 1) for r in make_coalitions((0.3, 0.1, 0.2), shares, seed=s)]
        if kind == "ensemble":
            return [make_fedol(method=m, seed=s) for m in ("feddf", "mine") for s in (0, 1)]
        if kind == "pseudo_labels":
            return [make_fedol(seed=s) for s in (0, 1)]
        if kind in TALLY:
            return [
                make_tally(method=f"tally_train(probes_per_round={n}, signal='{signal}')", seed=s)
                for n in ((16,) if kind == "voting_theory" else (16, 64))
                for signal in ("votes", "probabilities")
                for s in (0, 1)
            ]
        if kind in CELM:
            methods = ("celm(steps=5, rate=0.1)", "celm(steps=10, rate=0.1)", "cffl")
            chosen = {"probe_heat_map": methods[:2], "distribution_fidelity": methods[:1]}
            chosen["fpr_by_threshold"] = methods[1:]
            return [make_celm(method=m, seed=s) for m in chosen.get(kind, methods) for s in (0, 1)]
        if kind in LOST:
            given = {"axis": "adversaries"}
            return [
                make_tested(accuracy - bool(who) / 5, condition=who, method=m, seed=s, **given)
                for who in (None, LOUD)
                for m, accuracy in METHODS.items()
                for s in (0, 1)
            ]
        if kind == "accuracy_by_public":
            return [
                make_run(0.5, method=m, public={"size": size})
                for m in METHODS
                for size in (50, 100)
            ]
        return [*grid(), make_run(0.97, method="fully_informed", partition="iid")]

    def make(kind, **changes):
        if kind == "accuracy_by_setting":
            changes = {
                "options": {"x": "method.probes_per_round", "lines": ["method.signal"]}
            } | changes
        if kind == "contributions_by_value":
            changes = {"options": {"value": "fedavg"}} | changes
        if kind in LOST:
            changes = {"options": {"condition": "adversaries", "against": "all"}} | changes
        return make_artefact(*runs(kind), kind="figure", plot=kind, **changes)

    return make


def texts(figure) -> str:
    return " ".join(text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text")))


@pytest.mark.slow
@pytest.mark.parametrize("kind", figure_names())
def test_every_kind_writes_a_picture_and_a_pdf_with_the_same_bytes_every_time(
    figure, tmp_path, kind
):
    artefact = figure(kind)
    png, pdf, caption = written = write_figure(artefact, tmp_path / "out.png")
    image = imread(png)[..., :3]
    assert min(image.shape[:2]) > 400
    assert image.std() > 0.02  # not a blank page
    assert pdf.read_bytes().startswith(b"%PDF")
    assert re.search("Scale: paper; .*device: CPU test", caption.read_text().splitlines()[-1])
    again = write_figure(artefact, tmp_path / "again/out.png")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]


@pytest.mark.parametrize("kind", figure_names())
def test_every_kind_states_scale_and_seeds(figure, kind):
    """The device, and what else made the runs, is in the caption."""
    shown = texts(draw(figure(kind))).replace("\n", " ")
    for part in ("Table 1", "scale: paper", "seed"):
        assert part in shown
    assert "device" not in shown


@pytest.mark.parametrize("kind", figure_names())
def test_no_kind_calls_validation_accuracy_that_of_the_test_split(figure, monkeypatch, kind):
    monkeypatch.setattr(RunSpec, "samples", "validation")
    assert not re.search(r"\btest (accuracy|split)", texts(draw(figure(kind))), re.IGNORECASE)


@pytest.mark.parametrize("kind", figure_names())
def test_a_single_data_set_is_named_once_above_all_panels(figure, kind):
    drawn = draw(figure(kind, labels={"mnist": "MNIST"}))
    if "data: MNIST" in texts(drawn).replace("\n", " "):
        assert texts(drawn).count("MNIST") == 1


def test_each_data_set_by_round_has_the_samples_of_its_own_beside_its_axis(make_run, make_artefact):
    text = {"text": {"vocabulary": 300, "length": 8}, "dataset": "sklearn_docs"}
    curve = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]  # of so many rounds that the last are enlarged
    runs = [make_run(curve, method=m, **own) for own in ({}, text) for m in ("average", "uwa")]
    options = {"enlarge": True}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round", options=options))
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_visible()]
    assert labels == ["Test accuracy"] * 2 + ["Validation accuracy"] * 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("accuracy_by_round", "line: mean over seeds; band: from the lowest to the highest seed"),
        ("accuracy_by_heterogeneity", "mean over seeds; bars: standard deviation"),
    ],
)
def test_what_lines_bands_and_bars_are_is_said(figure, kind, said):
    assert said in texts(draw(figure(kind))).replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize("kind", figure_names())
@pytest.mark.parametrize("name", ["A", "A rather long name of a method"])
def test_no_text_leaves_the_page(figure, kind, name):
    drawn = draw(figure(kind, labels=dict.fromkeys([*METHODS, "fully_informed"], name)))
    drawn.draw_without_rendering()
    for part in [*drawn.legends, *drawn.texts]:
        box = part.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= drawn.bbox.x1
        assert box.y1 <= drawn.bbox.y1


def test_what_was_not_run_is_said(make_run, make_artefact, tmp_path):
    changes = {
        "left_out": {"cifar10": (6, 6), "mnist": (2, 3)},
        "labels": {"cifar10": "CIFAR-10", "mnist": "MNIST"},
    }
    drawn = draw(make_artefact(make_run(), kind="figure", plot="accuracy_by_round", **changes))
    assert "not run: CIFAR-10, MNIST (2 of 3 runs)" in texts(drawn).replace("\n", " ")
    _, markdown, _ = write_table(make_artefact(make_run(), **changes), tmp_path / "t")
    assert markdown.read_text().endswith("Not run: CIFAR-10, MNIST (2 of 3 runs).\n")


@pytest.mark.parametrize("seeds", [1, 2])
def test_what_the_band_of_the_reference_is_is_said(make_run, make_artefact, seeds):
    runs = [make_run(0.5 + s / 10, seed=s) for s in (0, 1)]
    runs += [make_run(0.8 + s / 10, method="fully_informed", seed=s) for s in range(seeds)]
    drawn = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_heterogeneity"))
    assert ("band of the dashed line: likewise" in texts(drawn).replace("\n", " ")) == (seeds == 2)


def test_heterogeneity_draws_the_means_the_reference_and_the_papers_numbers(figure, tmp_path):
    path = tmp_path / "reference.csv"
    path.write_text(
        "table,dataset,partition,method,metric,mean,std\n"
        "table1,mnist,k_classes(5),uwa,accuracy,0.9552,\n"
        "table1,mnist,,fully_informed,accuracy,0.9797,0.0018\n"
        "table2,mnist,k_classes(5),uwa,accuracy,0.9552,\n"
        "table1,mnist,k_classes(2),uwa,accuracy,0.7777,\n"
        "table2,mnist,k_classes(2),uwa,accuracy,0.7778,\n"
    )
    axes = draw(figure("accuracy_by_heterogeneity"), read_reference(path)).axes[0]
    heights = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    # The mean of seeds .60 and .62 is .61, at both partitions.
    assert any(np.allclose(y, [0.61, 0.61]) for y in heights)
    for level in (0.97, 0.9797, 0.9552):
        assert any(np.allclose(y, level) for y in heights if len(y))
    assert not any(np.isclose(y, 0.7777, atol=2e-4).any() for y in heights), "of two tables, which?"


def test_what_one_partition_presses_together_has_a_panel_of_its_own():
    # Means from .4 to .98, those after the first partition within .02 of it.
    means = {"k_classes(2)": (0.4, 0.9), "k_classes(5)": (0.96, 0.97), "k_classes(8)": (0.97, 0.98)}
    rows = [{"partition": p, "mean": m} for p, pair in means.items() for m in pair]
    cells, partitions = pd.DataFrame(rows), list(means)
    assert enlarged_partitions(cells, partitions) == partitions[1:]
    assert (
        enlarged_partitions(cells[cells["mean"] > 0.95], partitions[1:]) == []
    )  # half of the height
    assert enlarged_partitions(cells.iloc[:2], partitions) == []


def test_an_enlarged_panel_stands_beside_the_whole(make_run, make_artefact):
    runs = [
        make_run(a, method=m, partition=p)
        for p, pair in {"k_classes(2)": (0.3, 0.9), "k_classes(5)": (0.96, 0.97)}.items()
        for m, a in zip(("average", "uwa"), pair, strict=True)
    ]
    axes = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_heterogeneity")).axes
    assert [a.get_title(loc="left") for a in axes] == ["mnist", "mnist, part of it enlarged"]
    assert [len(a.get_xticks()) for a in axes] == [2, 1]
    assert axes[1].get_ylim()[0] > 0.95


def test_kinds_of_logits_differ_in_their_dashes(figure):
    figure = draw(figure("logit_normality"))
    dashes = [line.get_linestyle() for line in figure.legends[0].get_lines()]
    assert len(set(dashes)) == len(dashes) > 2


def test_the_largest_bubble_is_a_share_that_is_said(figure):
    axes = draw(figure("distribution_fidelity")).axes[0]
    assert re.fullmatch(r"Class \(largest bubble of the row: \d+\.\d%\)", axes.get_xlabel())


def test_rounds_draws_the_mean_over_seeds(figure):
    axes = draw(figure("accuracy_by_round")).axes[0]
    heights = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    assert any(len(y) == 3 and np.allclose(y, [0.2, 0.3, 0.61]) for y in heights)


def test_rounds_stand_across_by_another_axis_than_the_partition(make_run, make_artefact):
    runs = [
        make_run(
            [0.2, 0.3, 0.6 + 0.1 * common],
            same_init=common,
            seed=seed,
            axes=AXES | {"same_init": common},
        )
        for common in (False, True)
        for seed in (0, 1)
    ]
    given = {
        "kind": "figure", "plot": "accuracy_by_round",
        "labels": {"same_init=True": "common weights", "same_init=False": "different weights"},
    }  # fmt: skip
    with refused("axis 'same_init' varies (False, True) within it; accuracy_by_round cannot"):
        draw(make_artefact(*runs, **given))
    axes = draw(make_artefact(*runs, **given, options={"across": "same_init"})).axes
    titles = [panel.get_title(loc="left") or panel.get_title() for panel in axes]
    assert titles[0].endswith("different weights")
    assert titles[1].endswith("common weights")
    ends = [max(np.asarray(panel.lines[0].get_ydata(), float)) for panel in axes]
    assert np.allclose(ends, [0.6, 0.7])


@pytest.mark.parametrize(("number", "bars"), [(5, 0), (6, 6)])
def test_seeds_of_many_methods_are_bars_beside_the_last_round(
    make_run, make_artefact, number, bars
):
    methods = ["average", "uwa", "fedavg", "celm", "fedol", "cffl"][:number]
    runs = [
        make_run([0.1, 0.2, e], method=m, seed=s) for m in methods for s, e in enumerate((0.4, 0.8))
    ]
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round"))
    drawn = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert len(drawn) == bars
    assert len(figure.axes[0].collections) == number
    places = [bar.get_segments()[0] for bar in drawn]
    assert all(place[:, 0].min() > 3 for place in places)
    assert max(figure.axes[0].get_xticks()) == 3
    means = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert sorted(line.get_marker() for line in means) == sorted(
        look(method).marker for method in methods[:bars]
    )
    assert all(line.get_ydata() == pytest.approx([0.6]) for line in means)
    assert all(place[:, 1].tolist() == [0.4, 0.8] for place in places)
    said = texts(figure).replace("\n", " ")
    assert ("bar beside the last round" in said) == bool(bars)
    assert ("band:" in said) != bool(bars)


@pytest.mark.parametrize("wanted", [True, False])
def test_warm_up_is_shaded_where_it_is_wanted(make_celm, make_artefact, wanted):
    runs = [make_celm([0.1, 0.2, 0.3]), make_celm([0.1, 0.2, 0.3], method="cffl")]
    options = {"shade_warm_up": wanted}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_round", options=options)
    # Probing took time in rounds 1 and 2.
    spans = [(p.get_x(), p.get_x() + p.get_width()) for p in draw(artefact).axes[0].patches]
    assert spans == ([(0.5, 2.5)] if wanted else [])


def test_nothing_is_shaded_where_nobody_probes(figure):
    assert not draw(figure("accuracy_by_round", options={"shade_warm_up": True})).axes[0].patches


def test_probe_images_have_their_rows_and_columns_named(make_celm, make_artefact):
    figure = draw(make_artefact(make_celm(), kind="figure", plot="probe_images"))
    rows = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert rows == ["global\nmodel", "client 0", "client 1", "client 2", "client 3"]
    columns = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert columns == ["class 0", "class 1", "class 2"]


def test_a_heat_map_s_cells_are_means_in_per_cent(make_celm, make_artefact):
    accuracies = {(5, 0.1): (0.5, 0.6), (10, 0.1): (0.7, 0.7), (5, 0.01): (0.2, 0.3)}
    runs = [
        make_celm(accuracy, method=f"celm(steps={steps}, rate={rate})", seed=seed)
        for (steps, rate), pair in accuracies.items()
        for seed, accuracy in enumerate(pair)
    ]
    axes = draw(make_artefact(*runs, kind="figure", plot="probe_heat_map")).axes[0]
    # Rates down, steps across; nobody ran 10 steps of 0.01.
    cells = {tuple(t.get_position()): t.get_text() for t in axes.texts}
    assert cells == {(0.5, 0.5): "25.00", (0.5, 1.5): "55.00", (1.5, 1.5): "70.00"}
    assert [t.get_text() for t in axes.get_xticklabels()] == ["5", "10"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["0.01", "0.1"]


def test_a_heat_map_of_one_cell_is_left_out_beside_others_and_named(make_celm, make_artefact):
    methods = [f"celm(steps={steps}, rate=0.1)" for steps in (5, 10)]
    runs = [make_celm(a, method=m) for a, m in zip((0.5, 0.502), methods, strict=True)]
    alone = make_celm(0.3, method=methods[0], dataset="cifar10")
    alone = alone.model_copy(update={"axes": alone.axes | {"dataset": "cifar10"}})
    drawn = draw(make_artefact(*runs, alone, kind="figure", plot="probe_heat_map"))
    (axes,) = drawn.axes
    assert axes.get_title(loc="left") == "mnist, frm"
    assert "left out, as one cell was run: cifar10, frm" in texts(drawn).replace("\n", " ")
    # The lowest tenth is below 50.02, the best is 50.2: half a point to both sides of 50.11.
    assert axes.collections[0].get_clim() == pytest.approx((49.61, 50.61))
    assert len(draw(make_artefact(alone, kind="figure", plot="probe_heat_map")).axes) == 1


def test_a_single_low_cell_leaves_the_others_distinct(make_celm, make_artefact):
    accuracies = [0.2, *(0.8 + 0.01 * n for n in range(10))]
    runs = [
        make_celm(accuracy, method=f"celm(steps={steps}, rate=0.1)")
        for steps, accuracy in enumerate(accuracies, 1)
    ]
    (axes,) = draw(make_artefact(*runs, kind="figure", plot="probe_heat_map")).axes
    assert axes.collections[0].get_clim() == pytest.approx((80, 89)), "the lowest of eleven is left"


def test_a_correlation_of_some_partitions_says_of_which(make_artefact, make_run):
    artefact = make_artefact(make_run(), labels={"dir": "Dir(0.3)"})
    values = np.array([0.1, 0.2, 0.3])
    alike = ContributionsBesideShapley("k_classes(2)", "uwa", 0, np.full(3, 1 / 3), values)
    ranked = ContributionsBesideShapley("dir", "uwa", 0, values, values)
    assert correlation(artefact, [alike]) == "equal shares"
    assert correlation(artefact, [ranked]) == "rank correlation 1.00"
    assert correlation(artefact, [alike, ranked]) == "rank correlation 1.00 (Dir(0.3) only)"


def test_contributions_that_hardly_differ_look_alike(figure):
    panels = draw(figure("contributions_by_value")).axes
    assert panels
    for axes in panels:
        low, high = axes.get_ylim()
        assert high - low >= 0.1 - 1e-12


def test_targets_of_each_method_have_their_own_mark(make_fedol, make_artefact):
    runs = [make_fedol(method="feddf"), make_fedol(method="mine")]
    axes = draw(make_artefact(*runs, kind="figure", plot="ensemble")).axes[0]
    marks = {(line.get_color(), line.get_marker()) for line in axes.lines}
    assert {look("feddf"), look("mine")} <= marks


def test_rounds_copes_with_a_method_that_diverged(make_run, make_artefact):
    runs = [make_run([0.1, 0.2, 0.3]), make_run(method="uwa", status="diverged", rows=0)]
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round"))
    assert "1 diverged" in texts(figure)


def test_rounds_has_no_empty_panels(make_run, make_artefact):
    places = [("mnist", "k_classes(2)"), ("mnist", "k_classes(5)"), ("cifar10", "k_classes(2)")]
    runs = [make_run(dataset=dataset, partition=partition) for dataset, partition in places]
    panels = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round")).axes
    assert [axes.get_visible() for axes in panels] == [True, True, True, False]
    assert [axes.get_xlabel() for axes in panels] == ["", "Round", "Round", ""]


def test_the_first_panel_of_a_row_has_numbers_wherever_it_is(make_run, make_artefact):
    places = [("mnist", "k_classes(2)"), ("mnist", "k_classes(5)"), ("cifar10", "k_classes(5)")]
    runs = [make_run(dataset=dataset, partition=partition) for dataset, partition in places]
    panels = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round")).axes
    numbers = [any(t.label1.get_visible() for t in axes.yaxis.get_major_ticks()) for axes in panels]
    assert [numbers[i] for i in (0, 1, 3)] == [True, False, True]


def test_the_last_third_of_the_rounds_has_a_row_with_the_methods_near_the_best(
    make_run, make_artefact
):
    curves = {"uwa": [0.1, 0.5, 0.80, 0.81, 0.82, 0.83], "average": [0.0] * 6}
    curves |= {"meta_model": [0.5, 0.8, 0.88, 0.88, 0.88, 0.88], "fully_informed": [0.85] * 6}
    runs = [make_run(curve, method=method) for method, curve in curves.items()]
    options = {"enlarge": True}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round", options=options))
    whole, part = figure.axes
    assert part.get_title(loc="left") == "rounds 4–6"
    said = texts(figure).replace("\n", " ")
    assert "the last rounds of the methods that end near the best" in said
    assert "own vertical axis" not in said, "of one panel"
    assert (whole.get_xlabel(), part.get_xlabel()) == ("", "Round")
    # Rounds 4 to 6: from UWA's .81 to the meta-model's .88, and a twentieth of that on both sides.
    assert part.get_xlim() == pytest.approx((3.9, 6.1))
    assert part.get_ylim() == pytest.approx((0.81 - 0.0035, 0.88 + 0.0035))
    assert whole.get_ylim()[0] < 0
    drawn = [{line.get_color() for line in axes.lines} for axes in (whole, part)]
    assert drawn[0] - drawn[1] == {look("average").colour}, "nor its band"
    assert len(part.collections) == 2


def test_every_enlarged_panel_has_numbers_of_its_own(make_run, make_artefact):
    runs = [
        make_run([0.1] * 5 + [a], method=method, partition=p)
        for a, p in ((0.5, "k_classes(2)"), (0.9, "iid(10)"))
        for method in ("average", "uwa")
    ]
    options = {"enlarge": True}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round", options=options))
    numbers = [any(t.label1.get_visible() for t in a.yaxis.get_major_ticks()) for a in figure.axes]
    assert numbers == [True, False, True, True]
    assert "near the best, each panel with its own vertical axis" in texts(figure).replace(
        "\n", " "
    )


def test_the_last_round_has_a_tick_and_none_touches_it(make_run, make_artefact):
    """Of 15 rounds, 4, 8 and 12 have one, too; of 21, 20 is too near."""
    for rounds, ticks in ((15, [4, 8, 12, 15]), (21, [4, 8, 12, 16, 21])):
        run = make_run(list(np.linspace(0.1, 0.5, rounds)))
        axes = draw(make_artefact(run, kind="figure", plot="accuracy_by_round")).axes[0]
        assert axes.get_xticks().tolist() == ticks


def test_a_method_of_one_round_is_said_to_be_continued(make_run, make_artefact):
    """If there is a later round of another, to continue it to."""
    runs = [make_run([0.5], method="fedol"), make_run([0.1, 0.2], method="average")]

    def labels(*shown):
        figure = draw(make_artefact(*shown, kind="figure", plot="accuracy_by_round"))
        return [text.get_text() for text in figure.legends[0].get_texts()]

    assert "fedol, its one round continued" in labels(*runs)
    assert labels(runs[0]) == ["fedol"]


def test_a_method_far_above_all_others_is_not_enlarged_alone(make_run, make_artefact):
    """UWA ends beside Average with 5 classes, far below with 2; nothing is near on CIFAR-10."""
    ends = {("mnist", 2): (0.1, 0.9), ("mnist", 5): (0.89, 0.9), ("cifar10", 2): (0.1, 0.9)}
    runs = [
        make_run([0.0] * 5 + [end], method=m, dataset=dataset, partition=f"k_classes({k})")
        for (dataset, k), pair in ends.items()
        for m, end in zip(("uwa", "average"), pair, strict=True)
    ]
    options = {"enlarge": True}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_round", options=options)
    shown = [(a.get_title(loc="left"), a.get_visible()) for a in draw(artefact).axes]
    assert [title for title, visible in shown if visible] == [
        "mnist, 2 classes",
        "mnist, k_classes(5)",
        "rounds 4–6",
        "cifar10, 2 classes",
    ]
    assert len(shown) == 6  # three rows: there is none to enlarge CIFAR-10's


def test_of_few_rounds_none_are_enlarged(make_run, make_artefact):
    runs = [make_run([0.1, 0.2, 0.3, 0.4, 0.5], method=m) for m in ("average", "uwa")]
    options = {"enlarge": True}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round", options=options))
    assert len(figure.axes) == 1
    assert "near the best" not in texts(figure)


def test_near_the_best_is_judged_where_a_method_ends():
    rows = [("a", 9, 0.9), ("a", 10, 0.9), ("b", 9, 0.9), ("b", 10, 0.7), ("c", 3, 0.9)]
    frame = pd.DataFrame(rows, columns=["method", "round", "accuracy"])
    assert last_third(frame, "accuracy", 0.1)["method"].tolist() == ["a", "a"]
    assert last_third(frame, "accuracy", 0.2)["method"].tolist() == ["a", "a", "b", "b"]


def test_the_band_of_a_reference_by_round_goes_from_the_lowest_to_the_highest_seed(
    make_run, make_artefact
):
    ends = (0.5, 0.6, 0.9)
    runs = [make_run(end, method="fully_informed", seed=seed) for seed, end in enumerate(ends)]
    (axes,) = draw(make_artefact(make_run(), *runs, kind="figure", plot="accuracy_by_round")).axes
    (band,) = axes.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.5, 0.9))


def test_mean_weights_by_class():
    # Class 0: points 0 and 2, weights of client 0: (1, .5), mean .75; class 1: point 1; 2: none.
    weights = np.array([[1.0, 0.2, 0.5], [0.0, 0.8, 0.5]])
    means = mean_weights(weights, np.array([0, 1, 0]), 3)
    np.testing.assert_allclose(means, [[0.75, 0.2, np.nan], [0.25, 0.8, np.nan]])


def test_mean_weights_are_sums_in_float64_in_the_order_of_the_samples():
    """A matrix product's bits would depend on the processor, and those of a PDF with them."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(7), 999).T.astype(np.float32)
    labels = rng.integers(0, 3, 999)
    means = mean_weights(weights, labels, 3)
    for client, own in enumerate(weights.astype(np.float64)):
        of_class = [own[labels == label] for label in range(3)]
        assert means[client].tolist() == [np.cumsum(w)[-1] / len(w) for w in of_class]


def test_weights_tell_how_much_goes_to_clients_that_hold_the_class(make_run, make_artefact):
    run = make_run(method="uwa", clients=2, classes=2)
    owned = np.array([[True, False], [False, True]])
    # Point 0 (class 0): owner's weight 1; point 1 (class 1): .5. Mean 75 %.
    arrays = {"weights": np.array([[1.0, 0.5], [0.0, 0.5]]), "labels": np.array([0, 1])}
    save_npz(run.dir / "exports/aggregation.npz", arrays | {"owned": owned})
    figure = draw(make_artefact(run, kind="figure", plot="aggregation_weights"))
    assert "75% of weight" in figure.axes[0].get_title(loc="left")


def test_titles_of_weights_beside_each_other_do_not_touch(make_run, make_artefact):
    runs = [
        make_run(method="uwa", dataset=data, clients=2, classes=2) for data in ("mnist", "cifar10")
    ]
    arrays = {"weights": np.full((2, 2), 0.5), "labels": np.array([0, 1])}
    for run in runs:
        save_npz(run.dir / "exports/aggregation.npz", arrays | {"owned": np.eye(2, dtype=bool)})
    long = {"mnist": "digits under a long name", "cifar10": "CIFAR-10"}
    figure = draw(make_artefact(*runs, kind="figure", plot="aggregation_weights", labels=long))
    FigureCanvasAgg(figure).draw()
    left, right = (axes._left_title.get_window_extent() for axes in figure.axes[:2])
    assert left.x1 < right.x0


def test_weights_need_the_export(make_run, make_artefact):
    run = make_run(method="uwa", clients=2, classes=2)
    artefact = make_artefact(run, kind="figure", plot="aggregation_weights")
    with pytest.raises(DataError, match=r"aggregation.npz does not exist"):
        draw(artefact)
    save_npz(run.dir / "exports/aggregation.npz", {"weights": np.ones((2, 3))})
    with pytest.raises(DataError, match="array 'labels' is missing"):
        draw(artefact)
    wrong = {"weights": np.ones((2, 3)), "labels": np.zeros(4, int), "owned": np.ones((2, 2), bool)}
    save_npz(run.dir / "exports/aggregation.npz", wrong)
    with pytest.raises(DataError, match=r"'labels' has shape \(4,\), should have \(3 points\)"):
        draw(artefact)


def test_public_coverage_stands_at_the_number_of_classes(make_run, make_artefact):
    runs = [
        make_run(0.9, axes={"dataset": "mnist", "method": "uwa", "public.classes": None}),
        make_run(
            0.4,
            public={"size": 60, "classes": [0, 1, 2]},
            axes={"dataset": "mnist", "method": "uwa", "public.classes": [0, 1, 2]},
        ),
    ]
    axes = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_public")).axes[0]
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_xdata(), float), [3, 10])
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata(), float), [0.4, 0.9])


def test_the_figure_of_ranks_says_what_a_bar_joins(figure):
    assert "a bar joins neighbours of which no two differ" in " ".join(
        texts(draw(figure("critical_difference"))).split()
    )


def test_the_figure_of_ranks_names_what_makes_its_cells_and_numbers_few_ranks(
    make_run, make_artefact
):
    axes = [{"dataset": "mnist", "partition": "iid", "method": m} for m in ("average", "uwa")]
    runs = [make_run([0.5 + i / 10], seed=s, axes=a) for i, a in enumerate(axes) for s in (0, 1)]
    drawn = draw(make_artefact(*runs, kind="figure", plot="critical_difference"))
    assert "2 cells of partition and seed" in " ".join(texts(drawn).split())
    assert drawn.axes[0].get_xticks().tolist() == [1, 2]
    other = [a | {"dataset": "digits"} for a in axes]
    runs += [make_run([0.5], seed=s, dataset="digits", axes=a) for a in other for s in (0, 1)]
    drawn = draw(make_artefact(*runs, kind="figure", plot="critical_difference"))
    assert "4 cells of data set, partition and seed" in " ".join(texts(drawn).split())


def test_a_long_word_below_a_tick_is_broken_before_its_bracket(make_run, make_artefact):
    labels = {"dir(0.5)": "Dirichlet(0.5)", "dir": "Dir(0.5)", "few": "Up to 6 classes"}
    found = wrapped_labels(make_artefact(make_run(), labels=labels), labels)
    assert found == ["Dirichlet\n(0.5)", "Dir(0.5)", "Up to 6\nclasses"]


def test_public_needs_one_axis(figure):
    with pytest.raises(FedlogitError, match="option x = 'publik' is no axis"):
        draw(figure("accuracy_by_public", options={"x": "publik"}))
    artefact = figure("accuracy_by_round").model_copy(update={"plot": "accuracy_by_public"})
    with pytest.raises(FedlogitError, match="set option x"):
        draw(artefact)


def test_pseudo_labels_draw_the_means_by_iteration(figure, make_run):
    axes = draw(figure("pseudo_labels")).axes[0]
    lines = [line.get_ydata() for line in axes.lines]
    # Means of two seeds, the second 0.01 above the first.
    assert np.allclose(lines[0], [0.205, 0.505, 0.805])
    assert np.allclose(lines[2], [0.305, 0.405, 0.605])
    ref = make_run()
    with pytest.raises(FedlogitError, match="method average has no pseudo_share"):
        by_iteration(read_run(ref.dir, ref.digest), "pseudo_share")


def test_a_panel_of_pseudo_labels_with_none_below_it_names_its_axis(make_fedol, make_artefact):
    partitions = ["iid", "dir_class(0.5)", "dir_class(0.05)"]
    runs = [make_fedol(method="fedol", partition=partition) for partition in partitions]
    drawn = draw(make_artefact(*runs, kind="figure", plot="pseudo_labels"))
    names = [axes.get_xlabel() for axes in drawn.axes if axes.get_visible()]
    assert names == ["", "Iteration", "Iteration"]


def test_targets_lie_beside_a_client_alone_and_the_oracle_is_written(figure):
    axes = draw(figure("ensemble")).axes[0]
    # Means of two seeds, the second 0.01 above the first; two methods in two rows.
    assert np.allclose(axes.lines[0].get_xdata(), [0.305, 0.505])
    dots = [line.get_xdata() for line in axes.lines if np.allclose(line.get_xdata(), 0.505)]
    assert len(dots) == 2
    assert axes.get_title(loc="left").endswith("(oracle: 90.5%)")
    assert axes.get_xlim()[1] < 0.6  # the oracle would press all others together


def test_an_oracle_of_other_clients_has_a_range(make_fedol, make_artefact):
    runs = [make_fedol(method="feddf"), make_fedol(method="mine", seed=1)]
    drawn = draw(make_artefact(*runs, kind="figure", plot="ensemble"))
    assert drawn.axes[0].get_title(loc="left").endswith("(oracle: 90.0–91.0%)")


def test_functions_in_the_place_of_a_method_have_the_colours_of_no_method(
    make_fedol, make_artefact
):
    runs = [
        make_fedol(method=method, axes=AXES | {"method": name})
        for name, method in (
            ("mean", "aggregator"),
            ("mine", "mine"),
            ("median", "aggregator('examples.median:median')"),
        )
    ]
    (axes,) = draw(make_artefact(*runs, kind="figure", plot="ensemble")).axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    dots = [
        line
        for line in axes.lines
        if np.allclose(line.get_xdata(), 0.5) and line.get_marker() not in ("|", "None")
    ]
    drawn = dict(zip(names, [dot.get_color() for dot in dots], strict=True))
    assert drawn == {"mine": look("mine").colour, "mean": CATEGORIES[0], "median": CATEGORIES[1]}


def test_pseudo_labels_have_one_axis_of_shares_and_say_of_what(figure):
    drawn = draw(figure("pseudo_labels"))
    assert drawn.axes[0].get_ylabel() == "Share"
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [
        "Public samples with a pseudo-label",
        "Pseudo-labels that are correct",
        "Public samples that the server classifies correctly",
    ]


def test_ticks_in_per_cent_say_where_they_are():
    axes = new_figure()[1][0, 0]
    axes.set_ylim(0, 0.13)
    in_per_cent(axes.yaxis)
    written = axes.yaxis.get_major_formatter()
    assert [written(share) for share in (0.0, 0.025, 0.07, 1.0)] == ["0%", "2.5%", "7%", "100%"]
    ticks = 100 * axes.yaxis.get_major_locator().tick_values(0, 0.13)
    assert ticks == pytest.approx(np.round(ticks))  # not 2.5, 7.5


def test_a_method_of_one_round_has_a_line_across(make_run, make_artefact):
    runs = [make_run([0.7], method="fedol"), make_run([0.2, 0.3, 0.4], method="feddf")]
    axes = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round")).axes[0]
    across = [line for line in axes.lines if list(line.get_ydata()) == [0.7, 0.7]]
    assert len(across) == 1


def test_a_single_round_has_its_tick_alone(make_run, make_artefact):
    axes = draw(make_artefact(make_run([0.7]), kind="figure", plot="accuracy_by_round")).axes[0]
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]


def test_peers_of_a_single_round_are_seen(make_run, make_artefact):
    axes = draw(make_artefact(make_run([0.7]), kind="figure", plot="peer_bands")).axes[0]
    assert axes.lines[0].get_marker() == "o"


def test_lines_by_method_and_panels_by_partition_have_their_labels(make_run, make_artefact):
    axes = {"dataset": "mnist", "partition": "k_classes(2)"}
    runs = [
        make_run(method=method, axes=axes | {"method": method, "rounds": 3}, seed=seed)
        for method in ("average", "uwa")
        for seed in (0, 1)
    ]
    options = {"x": "rounds", "lines": ["method"], "panels": ["partition"]}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options)
    labels = artefact.labels | {"average": "Average", "uwa": "UWA", "k_classes(2)": "2 classes"}
    figure = draw(artefact.model_copy(update={"labels": labels}))
    assert figure.axes[0].get_title(loc="left") == "2 classes"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Average", "UWA"]


def test_a_long_name_above_a_panel_is_in_lines_within_the_page(make_run, make_artefact):
    labels = {"iid": "k_classes(class_sets='random', k=1, private_size=40, and more of it)"}
    axes = {"dataset": "mnist", "partition": "iid", "method": "average"}
    artefact = make_artefact(make_run(axes=axes), kind="figure", plot="accuracy_by_round")
    figure = draw(artefact.model_copy(update={"labels": artefact.labels | labels}))
    figure.draw_without_rendering()
    (title,) = (t for t in figure.axes[0].findobj(Text) if t.get_text().startswith("k_classes"))
    assert labels["iid"] in title.get_text().replace("\n", " ")
    assert title.get_window_extent().x1 <= figure.bbox.x1


def test_an_unknown_kind_suggests_the_nearest(figure):
    artefact = figure("accuracy_by_round").model_copy(update={"plot": "acuracy_by_round"})
    with pytest.raises(FedlogitError, match="did you mean 'accuracy_by_round'"):
        draw(artefact)


@pytest.mark.parametrize("plot", ["accuracy_by_round", "peer_bands"])
def test_runs_that_differ_in_an_axis_that_a_figure_cannot_show_are_refused(
    make_run, make_artefact, plot
):
    axes = {"dataset": "mnist", "partition": "iid", "method": "average"}
    runs = [make_run([0.2, 0.4], batch=n, axes=axes | {"batch": n}) for n in (1, 2)]
    with refused(f"axis 'batch' varies (1, 2) within it; {plot} cannot show it"):
        draw(make_artefact(*runs, kind="figure", plot=plot))


def test_a_heat_map_of_probes_is_of_celm(make_run, make_artefact):
    with refused("method average has no rate; probe_heat_map is of CELM's probes"):
        draw(make_artefact(make_run(), make_run(seed=1), kind="figure", plot="probe_heat_map"))


def test_equal_bests_of_a_heat_map_are_all_bold(make_run, make_artefact):
    accuracies = {"average": 0.80001, "uwa": 0.80002, "meta_model": 0.7}  # 80.0 in print
    runs = [
        make_run(a if p == "iid" else a / 2, method=m, partition=p)
        for m, a in accuracies.items()
        for p in ("iid", "k_classes(2)")
    ]
    axes = draw(make_artefact(*runs, kind="figure", plot="method_heat_map")).axes[0]
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert sorted(bold) == ["40.0", "40.0", "80.0", "80.0"]


def test_the_word_at_a_line_lies_where_no_other_line_is(make_run, make_artefact):
    """Of two clients the largest weight is never below 1/2, and here not above it."""
    run, owned = make_run(method="uwa", clients=2, classes=2), np.eye(2, dtype=bool)
    arrays = {"weights": np.full((2, 2), 0.5), "labels": np.array([0, 1]), "owned": owned}
    save_npz(run.dir / "exports/aggregation.npz", arrays)
    figure = draw(make_artefact(run, kind="figure", plot="aggregation_weights"))
    (word,) = figure.axes[1].texts
    assert (word.get_text(), word.get_va()) == ("uniform", "top")


def test_lines_on_each_other_have_their_markers_apart(make_celm, make_artefact):
    runs = [make_celm(method=m) for m in ("celm", "cffl")]
    axes = draw(make_artefact(*runs, kind="figure", plot="fpr_by_threshold")).axes[0]
    assert len({line.get_markevery() for line in axes.lines}) == 2


def test_a_panel_with_fewer_seeds_says_so(make_celm, make_artefact):
    runs = [make_celm(method="cffl", seed=seed) for seed in (0, 1)]
    other = make_celm(method="cffl", seed=2)
    other = other.model_copy(update={"axes": other.axes | {"dataset": "cifar10"}})
    drawn = draw(make_artefact(*runs, other, kind="figure", plot="fpr_by_threshold"))
    told = [axes.get_title(loc="left") for axes in drawn.axes]
    assert [title.partition(" (")[2] for title in told] == ["2 seeds)", "1 seed)"]


def test_a_panel_without_a_run_says_so(make_celm, make_artefact):
    """CELM was run on both data sets, CFFL on one."""
    runs = [make_celm(method="celm"), make_celm(method="cffl")]
    other = make_celm(method="celm", seed=1)
    other = other.model_copy(update={"axes": other.axes | {"dataset": "cifar10", "seed": 0}})
    figure = draw(make_artefact(*runs, other, kind="figure", plot="contributions_by_round"))
    told = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert told == [[], [], [], ["not run"]]
    assert [len(axes.lines) for axes in figure.axes] == [4, 4, 4, 0]


def test_contributions_of_a_run_off_the_partition_axis_are_drawn(make_celm, make_artefact):
    run = make_celm()
    run = run.model_copy(update={"axes": {"dataset": "mnist", "method": "celm"}})
    figure = draw(make_artefact(run, kind="figure", plot="contributions_by_round"))
    assert [len(axes.lines) for axes in figure.axes] == [4]


def test_more_partitions_than_markers_are_drawn(make_coalitions, make_artefact):
    runs = [
        run.model_copy(update={"axes": run.axes | {"partition": f"dir({place})"}})
        for place in range(len(MARKERS) + 1)
        for run in make_coalitions((0.3, 0.1), [0.7, 0.3])
    ]
    given = {"kind": "figure", "plot": "contributions_by_value", "options": {"value": "fedavg"}}
    figure = draw(make_artefact(*runs, **given))
    markers = [entry.get_marker() for entry in figure.legends[0].legend_handles]
    assert markers == [*MARKERS, MARKERS[0]]


def test_roles_are_named_in_a_division(make_celm, make_artefact):
    """60 samples of the rare class are the first client's; the last of four rides free on 6."""
    figure = draw(make_artefact(make_celm(), kind="figure", plot="partitions"))
    told = [text.get_text() for text in figure.axes[2].texts]
    assert told == ["60\nmaverick", "40", "40", "6\nfree rider"]


def test_partitions_that_share_a_label_are_not_one_curve(make_run, make_artefact):
    runs = [make_run([0.1, 0.2, a], partition=f"k_classes({k})") for k, a in ((2, 0.3), (5, 0.9))]
    labels = {"k_classes(2)": "Skewed", "k_classes(5)": "Skewed"}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_round", labels=labels)
    with pytest.raises(
        FedlogitError, match=r"k_classes.* and k_classes.* of mnist share the label"
    ):
        draw(artefact)


RUNS_ALONE = [
    *("aggregation_weights", "contributions_by_round", "distribution_fidelity", "ensemble"),
    *("fpr_by_threshold", "logit_normality", "partitions", "peer_bands", "probe_heat_map"),
    *("probe_images", "pseudo_labels"),
]


@pytest.mark.parametrize("kind", RUNS_ALONE)
def test_a_figure_whose_runs_all_diverged_is_refused_in_one_line(make_run, make_artefact, kind):
    run = make_run(rows=0, status="diverged")
    with refused("test/none: every run diverged, so there is nothing to draw"):
        draw(make_artefact(run, paper="test", id="none", kind="figure", plot=kind))


def test_a_line_to_reach_is_of_one_data_set(make_run, make_artefact):
    given = {"method": "fully_informed", "partition": "iid"}
    frame = collect(make_artefact(make_run(**given), make_run(dataset="digits", **given)))
    _, grid = new_figure()
    with refused("runs of mnist, fully_informed and digits, fully_informed would be one number"):
        reference_line(grid[0, 0], frame, "accuracy")


def test_the_reference_alone_is_a_method_as_any_other(make_run, make_artefact):
    run = make_run([0.1, 0.2], method="fully_informed")
    drawn = draw(make_artefact(run, kind="figure", plot="accuracy_by_round"))
    assert list(drawn.axes[0].lines[0].get_ydata()) == [0.1, 0.2]


def test_the_reference_of_a_panel_is_of_its_partition(make_run, make_artefact):
    runs = [make_run([0.1, 0.2])]
    for k, accuracy in ((2, 0.9), (5, 0.8)):
        runs.append(make_run(accuracy, method="fully_informed", partition=f"k_classes({k})"))
    drawn = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round"))
    assert 0.9 in [line.get_ydata()[0] for line in drawn.axes[0].lines]
    assert 0.8 not in [line.get_ydata()[0] for line in drawn.axes[0].lines]


def test_a_run_that_was_tested_once_is_no_method_of_one_round(make_run, make_artefact):
    runs = [make_run([0.1, 0.2, 0.3]), make_run([None, None, 0.8], method="uwa")]
    drawn = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_round"))
    places = [len(set(line.get_xdata())) for line in drawn.axes[0].lines]
    assert 3 in places
    assert 2 not in places  # no level across


@pytest.mark.parametrize("plot", ["method_heat_map", "accuracy_by_heterogeneity"])
def test_labels_side_by_side_do_not_touch(make_run, make_artefact, plot):
    places = {"k_classes(2)": "2 classes per client", "k_classes(5)": "5 classes per client"}
    runs = [make_run(partition=place) for place in places]
    drawn = draw(make_artefact(*runs, kind="figure", plot=plot, labels=places))
    ticks = [text.get_text() for text in drawn.axes[0].get_xticklabels()]
    assert ticks == ["2 classes\nper client", "5 classes\nper client"]


def test_a_heat_map_has_the_partitions_of_its_data_set(make_run, make_artefact):
    runs = [
        make_run(0.5),
        make_run(0.6, dataset="fashion_mnist", partition="iid", models=["mlp"]),
    ]
    drawn = draw(make_artefact(*runs, kind="figure", plot="method_heat_map"))
    assert [len(axes.get_xticks()) for axes in drawn.axes] == [1, 1]


@pytest.mark.parametrize("plot", ["accuracy_by_heterogeneity", "accuracy_by_public"])
def test_a_unit_keeps_its_capitals_beside_an_axis(make_run, make_artefact, plot):
    run = make_run(public={"size": 60})
    figure = draw(make_artefact(run, kind="figure", plot=plot, metric="mebibytes_up"))
    assert figure.axes[0].get_ylabel() == "Sent per client per round [MiB]"
