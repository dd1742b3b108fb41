"""Pictures of accuracy lost: bars and lines at their heights, and "n/a"."""

from __future__ import annotations

import json

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from seaborn.utils import relative_luminance
from support.drawn import header_text
from support.refusals import refused

from fedlogit.results.figures import draw
from fedlogit.results.figures._legend import dashes, legend, method_handle, strokes
from fedlogit.results.figures.accuracy_lost import colours
from fedlogit.results.style import CATEGORIES, look, new_figure

LOUD = {"share": 0.25, "attack": "loud_logits"}
LABELS = {"adversaries=all": "None", json.dumps(LOUD): "A quarter loud"}
PLACE = {"dataset": "mnist", "partition": "k_classes(2)"}


@pytest.fixture
def lost(make_tested, make_artefact):
    """Return a function that draws Average, which loses 20 points, and FedAvg, which cannot."""

    def run(accuracy, adversaries, method="average", seed=0):
        place = {"axis": "adversaries", "condition": adversaries}
        return make_tested(accuracy, method=method, seed=seed, **place)

    def make(kind, seeds=(), **more):
        axes = PLACE | {"method": "fedavg", "adversaries": json.dumps(LOUD)}
        return draw(
            make_artefact(
                run(0.6, None, "fedavg"),
                run(0.7, None),
                run(0.5, LOUD),
                *(run(0.7, None, seed=seed) for seed in seeds),
                kind="figure",
                plot=kind,
                labels=LABELS,
                options={"condition": "adversaries", "against": "None", **more},
                cannot=[{"before": 3, "axes": axes, "why": "has a reason"}],
            )
        )

    return make


def test_a_bar_is_as_long_as_what_is_lost_and_who_cannot_has_the_word(lost):
    axes = lost("accuracy_lost").axes[0]
    (bar,) = axes.patches
    assert bar.get_width() == pytest.approx(20)
    assert [text.get_text() for text in axes.texts] == ["n/a"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["average", "fedavg"]


def test_a_gain_is_drawn_to_the_right_where_gains_are_wanted(lost):
    axes = lost("accuracy_lost", gained=True).axes[0]
    assert axes.patches[0].get_width() == pytest.approx(-20)
    assert axes.get_xlabel() == "Points gained (below 0: lost)"


def test_a_line_begins_at_nothing_lost_without_adversaries(lost):
    axes = lost("lost_by_share").axes[0]
    line = next(one for one in axes.lines if len(one.get_xdata()) == 2 and one.get_marker() == "o")
    assert line.get_xydata().ravel().tolist() == pytest.approx([0, 0, 25, 20])
    assert [text.get_text() for text in axes.texts] == ["n/a: fedavg"]


def test_an_axis_says_that_below_nothing_is_a_gain_and_is_the_same_in_all_panels(
    make_tested, make_artefact
):
    runs = []
    for partition, loss in (("k_classes(2)", 0.4), ("k_classes(5)", -0.1)):
        for accuracy, who in ((0.5, None), (0.5 - loss, LOUD)):
            run = make_tested(accuracy, partition=partition, axis="adversaries", condition=who)
            runs.append(run.model_copy(update={"axes": run.axes | {"partition": partition}}))
    options = {"condition": "adversaries", "against": "None"}
    artefact = make_artefact(
        *runs, kind="figure", plot="accuracy_lost", labels=LABELS, options=options
    )
    left, right = draw(artefact).axes
    assert left.get_xlabel() == "Points lost (below 0: gained)"
    assert left.get_xlim() == right.get_xlim()
    assert left.get_xlim()[0] < -10
    assert left.get_xlim()[1] > 40


@pytest.fixture
def lost_by_temperature(make_tested, make_artefact):
    """Return a function that draws what Average loses at temperatures, compared with T = 1."""

    def make(accuracies, seeds=(0,)):
        """Draw accuracies by temperature; later seeds are 4 points better at the others than 1."""
        runs = [
            make_tested(
                accuracy + 0.04 * seed * (temperature != 1),
                seed=seed,
                axis="temperature",
                condition=temperature,
            )
            for seed in seeds
            for temperature, accuracy in accuracies.items()
        ]
        labels = {f"temperature={t}": f"T = {t}" for t in accuracies}
        options = {"condition": "temperature", "against": "T = 1.0"}
        return draw(
            make_artefact(
                *runs, kind="figure", plot="accuracy_lost", labels=labels, options=options
            )
        )

    return make


def test_beside_a_bar_that_hides_the_others_the_axis_is_logarithmic(lost_by_temperature):
    """40 points of one, and at most one of the others; or 5 and 4."""
    levels = (2.0, 3.0, 4.0, 5.0, 6.0)
    uneven = dict(zip(levels, (0.69, 0.69, 0.7, 0.69, 0.3), strict=True)) | {1.0: 0.7}
    even = dict(zip(levels, (0.66, 0.65, 0.66, 0.65, 0.66), strict=True)) | {1.0: 0.7}
    for accuracies, scale in (uneven, "symlog"), (even, "linear"):
        figure = lost_by_temperature(accuracies)
        assert figure.axes[0].get_xscale() == scale
        assert ("axis logarithmic beyond 1 point" in header_text(figure)) == (scale == "symlog")


def test_levels_of_a_condition_go_from_dark_to_light(lost_by_temperature):
    figure = lost_by_temperature({1.0: 0.7, 2.0: 0.6, 3.0: 0.5, 4.0: 0.4})
    shades = [relative_luminance(bar.get_facecolor()) for bar in figure.axes[0].patches]
    assert shades == sorted(shades)
    assert len(set(shades)) == 3


@pytest.mark.parametrize("names", [["30 % absent", "Half join"], ["2 bits", "8 bits", "4 bits"]])
def test_conditions_without_an_order_have_colours_of_categories(names):
    assert colours(names) == dict(zip(names, CATEGORIES, strict=False))


@pytest.mark.parametrize("kind", ["lost_by_share", "accuracy_lost"])
def test_spread_is_that_of_the_differences(make_tested, make_artefact, kind):
    runs = [
        make_tested(accuracy, seed=seed, axis="adversaries", condition=who)
        for seed in (0, 1)
        for accuracy, who in ((0.7 + seed / 10, None), (0.6, LOUD))
    ]
    options = {"condition": "adversaries", "against": "None"}
    artefact = make_artefact(*runs, kind="figure", plot=kind, labels=LABELS, options=options)
    said = header_text(draw(artefact))
    assert "mean over seeds of the difference of each seed" in said
    assert "standard deviation" in said


def test_a_whisker_ends_in_caps_and_stands_out_from_its_bar(lost_by_temperature):
    axes = lost_by_temperature({1.0: 0.7, 2.0: 0.6}, seeds=(0, 1)).axes[0]
    ends = sorted(
        float(x) for line in axes.lines if line.get_marker() == "|" for x in line.get_xdata()
    )
    assert len(ends) == 2
    (whisker,) = axes.collections
    assert whisker.get_path_effects()


@pytest.mark.parametrize("kind", ["lost_by_share", "accuracy_lost"])
def test_seeds_of_what_it_is_against_alone_are_no_spread(lost, kind):
    said = header_text(lost(kind, seeds=(1, 2)))
    assert "1–3 seeds" in said
    assert "standard deviation" not in said


def test_all_points_of_a_line_are_of_the_seeds_that_all_of_them_have(make_run, make_artefact):
    # Seed 1 is at 100 alone: .4 and .6 of seed 0, and not (.4 + .8) / 2 at 100.
    runs = [
        make_run(accuracy, method="tally_train", public={"size": size}, seed=seed)
        for accuracy, size, seed in ((0.4, 100, 0), (0.8, 100, 1), (0.6, 50, 0))
    ]
    drawn = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_public"))
    line = drawn.axes[0].lines[0]
    assert line.get_xydata().ravel().tolist() == pytest.approx([50, 0.6, 100, 0.4])
    said = header_text(drawn)
    assert "of each line the seeds that all its points have" in said
    assert "standard deviation" not in said


def test_of_few_seeds_each_is_a_dot(make_run, make_artefact):
    """One of three fails: mean and bar are where no run is."""
    runs = [
        make_run(accuracy, method="uwa", public={"size": 50}, seed=seed)
        for seed, accuracy in enumerate((0.66, 0.12, 0.7))
    ]
    drawn = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_public"))
    (dots,) = (line for line in drawn.axes[0].lines if line.get_marker() == ".")
    assert sorted(dots.get_ydata()) == [0.12, 0.66, 0.7]
    assert "dots: single seeds" in header_text(drawn)
    alone = draw(make_artefact(runs[0], kind="figure", plot="accuracy_by_public"))
    assert not any(line.get_marker() == "." for line in alone.axes[0].lines)


def test_methods_of_one_colour_have_other_lines():
    assert dashes(["average", "celm", "fedavg", "celm(steps=5)", "celm(steps=6)"]) == {
        "average": "-",
        "celm": "-",
        "fedavg": "-",
        "celm(steps=5)": "--",
        "celm(steps=6)": ":",
    }


def test_no_two_methods_of_a_figure_are_drawn_alike():
    methods = ["fedavg", "meta_model", "uwa", *(f"my_method_{i}" for i in range(9))]
    assert len(set(strokes(methods).values())) == len(methods)


@pytest.mark.parametrize(
    ("methods", "wide"), [(["celm", "fedol"], 2), (["celm", "celm(steps=5)"], 3.6)]
)
def test_lines_of_a_legend_are_long_where_one_is_dashed(make_artefact, make_run, methods, wide):
    artefact = make_artefact(make_run(), kind="figure")
    drawn, _ = new_figure()
    legend(drawn, [method_handle(artefact, *item) for item in strokes(methods).items()])
    assert drawn.legends[0].handlelength == wide


def test_a_legend_of_more_lines_makes_the_figure_taller(make_artefact, make_run):
    artefact = make_artefact(make_run(), kind="figure")

    def height(number: int) -> float:
        figure, _ = new_figure()
        names = strokes(f"a long name of method {i}" for i in range(number))
        legend(figure, [method_handle(artefact, *item) for item in names.items()])
        return figure.get_size_inches()[1]

    assert height(1) < height(3) < height(9)


def test_one_long_entry_of_a_legend_is_broken_rather_than_make_it_one_column():
    """In one column eight entries would be eight lines, seven more than the figure has room for."""
    names = [*(f"method {i}" for i in range(7)), "words of a long entry " * 3]
    drawn, _ = new_figure(panel=(5.2, 3))
    before = drawn.get_figheight()
    legend(drawn, [Line2D([], [], label=name.strip()) for name in names])
    FigureCanvasAgg(drawn).draw()
    found = drawn.legends[0]
    assert [text.get_text().replace("\n", " ") for text in found.get_texts()] == [
        name.strip() for name in names
    ]
    assert drawn.get_figheight() - before < 0.19 * 5.5
    box = found.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= drawn.bbox.width


@pytest.mark.parametrize(("second", "noted"), [(0.2, False), (0.6, True)])
def test_panels_that_cannot_be_compared_by_height_say_so(make_run, make_artefact, second, noted):
    runs = [
        make_run(value, method="average", dataset=data, public={"size": size})
        for data, values in (("mnist", (0.1, 0.2)), ("cifar10", (0.1, second)))
        for size, value in zip((50, 100), values, strict=True)
    ]
    drawn = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_public"))
    assert ("every panel has its own vertical axis" in header_text(drawn)) == noted


@pytest.mark.parametrize("kind", ["accuracy_by_round", "accuracy_by_heterogeneity"])
def test_methods_of_one_colour_can_be_told_apart(make_run, make_artefact, kind):
    methods = "tally_train", "tally_train(probes_per_round=50)"
    runs = [make_run([0.2, 0.4], method=method) for method in methods]
    drawn = draw(make_artefact(*runs, kind="figure", plot=kind))
    lines = {line.get_linestyle() for line in drawn.axes[0].lines if len(line.get_xdata())}
    assert {"-", "--"} <= lines
    in_legend = [line.get_linestyle() for line in drawn.legends[0].get_lines()]
    assert in_legend == ["-", "--"]


def test_methods_of_one_label_are_one_line(make_run, make_artefact):
    few = "tally_train(probes_per_round=50)"
    runs = [
        make_run(0.3, method=few, public={"size": 50}),
        make_run(0.6, method="tally_train", public={"size": 100}),
    ]
    labels = {few: "TallyTrain", "tally_train": "TallyTrain"}
    drawn = draw(
        make_artefact(
            *runs, kind="figure", plot="accuracy_by_public", labels=labels, options={"log": True}
        )
    )
    line = drawn.axes[0].lines[0]
    assert line.get_xydata().ravel().tolist() == pytest.approx([50, 0.3, 100, 0.6])
    assert line.get_color() == look("tally_train").colour
    assert drawn.axes[0].get_xscale() == "log"
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["TallyTrain"]


def test_a_public_set_of_no_samples_has_no_place_on_a_logarithmic_axis(make_run, make_artefact):
    """It may be one of an axis of one's own, such as of classes: a list of none is 0."""
    axes = {"dataset": "mnist", "partition": "iid", "method": "average"}
    runs = [
        make_run(0.1 * n, public={"size": n}, axes=axes | {"public.classes": classes})
        for n, classes in ((1, []), (2, [3]), (3, [3, 4]))
    ]
    drawn = draw(
        make_artefact(*runs, kind="figure", plot="accuracy_by_public", options={"log": True})
    )
    assert drawn.axes[0].lines[0].get_xdata().tolist() == [1, 2]
    assert "numbers of 0 or less" in header_text(drawn)
    alone = make_artefact(runs[0], kind="figure", plot="accuracy_by_public", options={"log": True})
    with refused("no run has public.classes > 0, as option log = true needs"):
        draw(alone)
