"""The figures of TallyTrain: what is drawn, by hand, from made runs."""

import math

import numpy as np
import pandas as pd
import pytest
from support.compared import compare
from support.drawn import header_text
from support.refusals import refused
from support.sealed import seal

from fedlogit.errors import FedlogitError
from fedlogit.results.figures import draw
from fedlogit.results.figures._beside import apart
from fedlogit.results.figures._label_placement import NEAR, Obstacle, anchors, cross, overlap, place
from fedlogit.results.figures.bandwidth_ratio import measured_ratios, ratio
from fedlogit.results.figures.pareto import frontier
from fedlogit.results.formatting import sentence
from fedlogit.results.metrics import metric_label
from fedlogit.results.runs.run import read_run
from fedlogit.results.style import CATEGORIES, INK, MARKERS, look
from fedlogit.results.verdicts.published import read_reference

AXES = {"dataset": "mnist", "partition": "iid"}
FIRST = "of equal ones the most accurate first"


def heights(axes):
    return [np.asarray(line.get_ydata(), float) for line in axes.lines]


@pytest.mark.parametrize(
    ("options", "low", "high"), [({}, 0.06, 0.54), ({"band": "range"}, 0.05, 0.6)]
)
def test_bands_of_peers(make_tally, make_artefact, options, low, high):
    """One standard deviation, .04, to both sides of .1 to .5; or from the least to the most."""
    runs = [make_tally((0.1, 0.3, 0.5), method="tally_train"), make_tally(method="local", seed=1)]
    artefact = make_artefact(*runs, kind="figure", plot="peer_bands", options=options)
    figure = draw(artefact)
    (band,) = figure.axes[0].collections
    y = band.get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == pytest.approx((low, high))
    assert any(np.allclose(y, [0.1, 0.3, 0.5]) for y in heights(figure.axes[0]))
    label = figure.legends[0].get_texts()[1].get_text()
    assert "over peers, mean over seeds" in label, "of seeds 0 and 1"


def test_methods_to_compare_with_are_grey_in_the_panels_of_others(make_tally, make_artefact):
    """Local's .1 is in the panels of both others, and once in its own; the legend names it."""
    runs = [make_tally((0.3,) * 3, method="tally_train"), make_tally((0.1,) * 3, method="local")]
    runs.append(make_tally((0.2,) * 3, method="fedmd"))
    options = {"beside": ["local"]}
    figure = draw(make_artefact(*runs, kind="figure", plot="peer_bands", options=options))
    lines = {
        axes.get_title(loc="left"): sorted(h[-1] for h in heights(axes)) for axes in figure.axes
    }
    assert lines == {"tally_train": [0.1, 0.3], "local": [0.1], "fedmd": [0.1, 0.2]}
    assert figure.legends[0].get_texts()[-1].get_text() == "mean of local"


def test_the_frontier_by_hand():
    # Bytes 0 1 2 3, accuracies .2 .5 .4 .5: the third is beaten by the second, as is the fourth.
    found = frontier(np.array([0, 1, 2, 3.0]), np.array([0.2, 0.5, 0.4, 0.5]))
    assert found.tolist() == [True, True, False, False]
    assert frontier(np.array([1, 1.0]), np.array([0.5, 0.5])).all(), "equals beat nobody"


def test_pareto_has_the_papers_points(make_tally, make_artefact, tmp_path):
    run = make_tally(method="tally_train", sent={"votes": 4_000_000}, axes=AXES | {"method": "tt"})
    other = make_tally(method="rc_fd", sent={"votes": 8_000_000}, axes=AXES | {"method": "rc"})
    path = tmp_path / "reference.csv"
    path.write_text(
        "table,dataset,partition,method,metric,mean,std\n"
        "table2,mnist,,tt,accuracy,0.9,\ntable2,mnist,,tt,payload_megabytes,2,\n"
        "table2,mnist,,rc,accuracy,0.8,\ntable2,mnist,,rc,payload_megabytes,3,\n"
        "table1,mnist,,rc,accuracy,0.7,\n"
    )
    paid = {"x": "payload_megabytes"}
    artefact = make_artefact(run, other, kind="figure", plot="pareto", options=paid)
    points = [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in draw(artefact, read_reference(path)).axes[0].lines
        if len(line.get_xdata())
    ]
    assert (2, 0.9) in points
    assert (1, 0.5) in points  # 4 MB of 4 peers
    assert not {0.7, 0.8} & {accuracy for _, accuracy in points}, "two tables differ"


def test_pareto_is_of_what_a_client_sends_in_the_whole_run(make_tally, make_artefact):
    """Bytes are drawn in MB: 8 MB of 4 peers; what models cost to receive is left out."""
    run = make_tally(method="fedavg", sent={"model": 8_000_000})
    artefact = make_artefact(run, kind="figure", plot="pareto")
    (axes,) = draw(artefact).axes
    assert axes.get_xlabel() == "Bytes that a client sends in the whole run [MB]"
    assert any(line.get_xydata().tolist() == [[2.0, 0.5]] for line in axes.lines)
    with pytest.raises(FedlogitError, match="unknown key 'y'"):
        draw(make_artefact(run, kind="figure", plot="pareto", options={"y": "bytes_sent"}))


def sent_and_drawn(figure):
    """Return by accuracy where the points of the first panel stand."""
    drawn = (line.get_data() for line in figure.axes[0].lines)
    return {float(y[0]): float(x[0]) for x, y in drawn if len(x) == 1}


def test_points_of_about_equal_bytes_stand_side_by_side(make_tally, make_artefact):
    """Three of about one accuracy send 1 MB: the middle one stays there, the best comes first.

    One of another accuracy, and one of 2 MB, stay, too.
    """
    ends = {"fedavg": 0.499, "tally_train": 0.5, "fedmd": 0.501, "local": 0.9, "fedkt": 0.1}
    sent = dict.fromkeys(ends, 4_000_000) | {"local": 8_000_000}  # by four peers
    runs = [
        make_tally(
            (0.1, 0.2, end), method=name, sent={"votes": sent[name]}, axes=AXES | {"method": name}
        )
        for name, end in ends.items()
    ]
    figure = draw(make_artefact(*runs, kind="figure", plot="pareto"))
    found = sent_and_drawn(figure)
    assert [found[end] for end in (0.1, 0.5, 0.9)] == pytest.approx([1, 1, 2])
    assert found[0.501] < 1 < found[0.499]
    (front,) = (line for line in figure.axes[0].lines if len(line.get_xdata()) > 1)
    assert [front.get_xdata()[0], front.get_ydata()[0]] == pytest.approx([1, 0.501])
    most = max(1 - found[0.501], found[0.499] - 1)
    assert f"side by side, {FIRST}, at most {math.ceil(100 * most)}% from" in header_text(figure)
    alone = draw(make_artefact(runs[0], *runs[3:], kind="figure", plot="pareto"))
    assert "side by side" not in header_text(alone)


def test_panels_of_bytes_say_that_they_have_axes_of_their_own(make_tally, make_artefact):
    runs = [
        make_tally((0.1, 0.2, end), dataset=name, sent={"votes": 4}, axes=AXES | {"dataset": name})
        for name, end in (("mnist", 0.9), ("cifar10", 0.5))
    ]

    def said(*shown):
        return header_text(draw(make_artefact(*shown, kind="figure", plot="pareto")))

    assert "every panel has its own vertical axis" in said(*runs)
    assert "own vertical axis" not in said(runs[0])


def test_rows_of_theory_say_that_they_have_axes_of_their_own(make_tally, make_artefact):
    runs = [
        make_tally(method=name, variance=(v, v, v / 2), axes=AXES | {"method": name})
        for name, v in (("tally_train", 0.2), ("fedmd", 40.0))
    ]
    said = [
        header_text(draw(make_artefact(*shown, kind="figure", plot="voting_theory")))
        for shown in (runs, runs[:1])
    ]
    assert ["every row has its own vertical axis" in text for text in said] == [True, False]


def test_no_point_is_drawn_far_from_its_bytes(make_tally, make_artefact):
    """Eight of one accuracy and of 1 MB stand within 1.5 % of the axis, by their accuracies."""
    ends = {f"fedavg(merge_every={n + 1})": 0.5 + n / 1000 for n in range(8)} | {"fedmd": 0.9}
    runs = [
        make_tally(
            (0.1, 0.2, end), method=name, axes=AXES | {"method": name},
            sent={"votes": 400_000_000 if name == "fedmd" else 4_000_000},
        )
        for name, end in ends.items()
    ]  # fmt: skip
    figure = draw(make_artefact(*runs, kind="figure", plot="pareto"))
    (axes,) = figure.axes
    found = sent_and_drawn(figure)
    crowd = [found[round(0.5 + n / 1000, 3)] for n in range(8)]
    assert crowd == sorted(crowd, reverse=True)
    to_share = axes.transData + axes.transAxes.inverted()
    (true, *drawn) = to_share.transform([(x, 0.5) for x in (1, *crowd)])[:, 0]
    assert np.abs(drawn - true).max() == pytest.approx(0.015, rel=1e-6)
    assert found[0.9] == pytest.approx(100)


def test_the_axis_of_bytes_ends_where_the_names_of_the_last_points_do(make_tally, make_artefact):
    runs = [
        make_tally(method=name, sent={"votes": sent}, axes=AXES | {"method": name})
        for name, sent in (("fedmd", 4_000_000), ("fedavg", 400_000_000))
    ]

    def share(label):
        artefact = make_artefact(
            *runs, kind="figure", plot="pareto", labels={"fedavg": label, "fedmd": "A long name"}
        )
        (axes,) = draw(artefact).axes
        return (axes.transData + axes.transAxes.inverted()).transform((100, 0.5))[0]

    assert 0.7 <= share("A name so long that it has no room") < share("A") < 1


def test_points_that_would_hide_each_other_move_apart_by_little():
    """In inches: by .04 from one to the next, or less; who meets nobody stays."""
    x, y = np.array([1.0, 1.0, 1.02, 1.0]), np.array([1.0, 1.08, 2.0, 3.0])
    assert apart(x, y, y, y, 1.0).tolist() == pytest.approx([0.98, 1.02, 1.02, 1.0])
    low = y - [0, 0, 0.96, 0]  # a bar down to the two side by side
    assert apart(x, y, low, y, 1.0).tolist() == pytest.approx([0.96, 1, 1.06, 1.0])
    assert apart(x, y, low, y, 0.01).tolist() == pytest.approx([0.99, 1, 1.03, 1.0])


def test_a_name_alone_stands_at_the_right_of_its_point():
    (box,) = place(np.array([[2.0, 1.0]]), ["FedAvg"], [], (5.0, 3.0))
    assert box[0] == pytest.approx(2 + NEAR)
    assert (box[1] + box[3]) / 2 == pytest.approx(1)


def test_a_name_without_room_at_the_right_stands_at_the_left():
    (box,) = place(np.array([[4.9, 1.0]]), ["FedAvg"], [], (5.0, 3.0))
    assert box[2] == pytest.approx(4.9 - NEAR)


def test_no_name_lies_on_another_or_on_a_line_and_no_leaders_cross():
    points = np.array([[2.0, 1.0 + 0.02 * i] for i in range(6)])
    line = Obstacle((2.0, 1.1, 4.0, 1.1), 3.0)
    boxes = place(points, ["FedAvg"] * 6, [line], (5.0, 3.0))
    assert overlap(boxes, boxes).sum() == 6  # each with itself
    assert not overlap(boxes, np.array([line.box])).any()
    ends = anchors(points, boxes)
    assert not any(cross(points[i], ends, points, ends)[i].any() for i in range(6))


def test_the_ratio_is_the_ledgers():
    # §3.2: 4 C to one byte up to 256 classes, to two above; packed 32 C to ⌈log2 C⌉ bits.
    assert [ratio(c, packed=False) for c in (10, 100, 256, 257, 2048)] == [40, 400, 1024, 514, 4096]
    assert [round(ratio(c, packed=True), 1) for c in (10, 2048)] == [80, 5957.8]


def test_runs_that_differ_in_the_signal_measure_the_ratio(make_tally):
    runs = [
        make_tally(method=f"tally_train(warm_up=1, probes_per_round=16, signal='{s}')", sent=sent)
        for s, sent in (("votes", {"votes": 384}), ("probabilities", {"probabilities": 15360}))
    ]
    assert measured_ratios([read_run(r.dir, r.digest) for r in runs]) == {10: 40}
    assert measured_ratios([read_run(runs[0].dir, runs[0].digest)]) == {}


def test_a_setting_across_a_line_each_and_the_papers_numbers(make_tally, make_artefact, tmp_path):
    runs = [
        make_tally(
            (0.1, 0.2, 0.4 + n / 100),
            method=f"tally_train(probes_per_round={n})",
            axes=AXES | {"method": f"tt({n})", "public.size": 60},
        )
        for n in (10, 20)
    ]
    path = tmp_path / "reference.csv"
    path.write_text(
        "table,dataset,partition,method,metric,mean,std,where\n"
        "table6,mnist,,tt(20),accuracy,0.77,,public.size=60\n"
        "table6,mnist,,tt(10),accuracy,0.66,,public.size=61\n"
    )
    options = {"x": "method.probes_per_round", "per_class": True, "table": ["table6"]}
    options |= {"lines": ["method.name"], "levels": []}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options)
    figure = draw(artefact, read_reference(path))
    assert figure.legends[0].get_texts()[-1].get_text() == "reported in the paper"
    axes = figure.axes[0]
    assert any(np.allclose(y, [0.5, 0.6]) for y in heights(axes))
    hollow = [line for line in axes.lines if list(line.get_ydata()) == [0.77]]
    assert [list(line.get_xdata()) for line in hollow] == [[2]]  # 20 probes, ten classes
    assert not any(0.66 in y for y in heights(axes)), "another public set"


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ((80, 240), "with 4 × the public samples"),
        ((80, 300), "with other public samples: 80 at 20, 300 at 60"),
    ],
)
def test_the_papers_numbers_of_other_settings_say_so(
    make_tally, make_artefact, tmp_path, theirs, said
):
    """Where runs with 20 and 60 public samples stand for the paper's with more."""
    runs = [
        make_tally(public={"size": n}, axes=AXES | {"method": "tally_train", "public.size": n})
        for n in (20, 60)
    ]
    rows = (f"table8,mnist,,tally_train,accuracy,0.77,,public.size={n}\n" for n in theirs)
    path = tmp_path / "reference.csv"
    path.write_text(f"table,dataset,partition,method,metric,mean,std,where\n{''.join(rows)}")
    ours = dict(zip(map(str, theirs), (20, 60), strict=True))
    artefact = make_artefact(
        *runs, kind="figure", plot="accuracy_by_setting",
        labels={"public.size": "Public samples"},
        options={"x": "public.size", "table": ["table8"]},
        stands_for={"table": "table8", "axes": {"public.size": ours}},
    )  # fmt: skip
    figure = draw(artefact, read_reference(path))
    label = figure.legends[0].get_texts()[-1].get_text().replace("\n", " ")
    assert label == f"reported in the paper, {said}"
    assert [
        x for line in figure.axes[0].lines if 0.77 in line.get_ydata() for x in line.get_xdata()
    ] == [20, 60]


def test_lines_with_bars_stand_side_by_side(make_tally, make_artefact):
    """Two lines, and two places 16 apart: each is moved by half of 1.8 % of that.

    Where only one of the lines has a point, that is where it is.
    """
    runs = [
        make_tally(method=f"tally_train(probes_per_round={n}, signal='{signal}')", seed=seed)
        for n in (16, 32)
        for signal in ("votes", "probabilities")
        for seed in (0, 1)
    ]
    options = {"x": "method.probes_per_round", "lines": ["method.signal"]}
    several = make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options)
    single = make_artefact(*runs[::2], kind="figure", plot="accuracy_by_setting", options=options)

    def places(artefact):
        lines = draw(artefact).axes[0].lines
        return sorted({float(line.get_xdata()[0]) for line in lines if line.get_marker() in "vo"})

    assert places(single) == [16]
    assert places(several) == pytest.approx([15.856, 16.144])
    logarithmic = several.model_copy(update={"options": options | {"log": True}})
    assert places(logarithmic) == pytest.approx([16 / 2**0.009, 16 * 2**0.009])
    partly = make_artefact(*runs[:-2], kind="figure", plot="accuracy_by_setting", options=options)
    drawn = [line for line in draw(partly).axes[0].lines if line.get_marker() in ("v", "o")]
    ends = [x for line in drawn for x in line.get_xdata()]
    assert sorted(ends) == pytest.approx([15.856, 16.144, 32])


def drawn_lines(axes):
    """Return colour, marker and dash of each line with a marker."""
    return [
        (line.get_color(), line.get_marker(), line.get_linestyle())
        for line in axes.lines
        if line.get_marker() in MARKERS
    ]


def test_lines_of_methods_look_like_these_methods(make_tally, make_artefact):
    methods = ["tally_train", "fedmd", "fedmd(rule='median')"]
    runs = [make_tally(method=method) for method in methods]
    options = {"x": "public.size", "lines": ["method.name", "method.rule"]}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    first, second, third = drawn_lines(figure.axes[0])
    assert first == (*look("tally_train"), "-")
    assert second == (*look("fedmd"), "-")
    assert third[0] == look("fedmd").colour
    assert third[1] != look("fedmd").marker
    assert third[2] == "--"


def test_lines_of_conditions_have_colours_of_no_method(make_tally, make_artefact):
    runs = [make_tally(method="tally_train", dataset=name) for name in ("mnist", "cifar10")]
    options = {"x": "public.size", "lines": ["dataset"], "panels": []}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    assert [colour for colour, *_ in drawn_lines(figure.axes[0])] == list(CATEGORIES[:2])


def test_levels_are_lines_across(make_tally, make_artefact):
    runs = [
        make_tally((0.1, 0.3, 0.5), method="tally_train", axes=AXES | {"method": "tt"}),
        make_tally((0.1, 0.7, 0.6), method="local", axes=AXES | {"method": "bridge"}),
    ]
    levels = [{"method": "bridge"}, {"method": "bridge", "metric": "peak_accuracy"}]
    options = {"x": "public.size", "levels": levels}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options)
    figure = draw(artefact)
    across = [y.tolist() for y in heights(figure.axes[0]) if len(y) == 2]
    assert across == [[0.6, 0.6], [0.7, 0.7]], "the last round, and the best"
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[-2:] == ["bridge", "bridge, in the best tested round"]


def test_of_several_metrics_the_axis_has_what_they_share_and_each_entry_the_rest(
    make_tally, make_artefact
):
    last = {"evaluation": {"tail": 2}}
    runs = [
        make_tally(method="tally_train", axes=AXES | {"method": "tt"}, **last),
        make_tally(method="local", axes=AXES | {"method": "bridge"}, **last),
    ]
    options = {
        "x": "public.size",
        "lines": ["method"],
        "metrics": ["tail_accuracy", "peak_accuracy"],
        "levels": [{"method": "bridge"}, {"method": "bridge", "metric": "peak_accuracy"}],
    }
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    assert figure.axes[0].get_ylabel() == "Test accuracy"
    each = ["mean over the last rounds", "in the best tested round"]
    assert [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()] == [
        f"{name}, {metric}" for name in ("tt", "bridge") for metric in each
    ]


def test_of_metrics_that_share_no_words_the_axis_names_each(make_tally, make_artefact):
    run = make_tally(method="tally_train", axes=AXES | {"method": "tt"})
    options = {"x": "public.size", "lines": ["method"], "metrics": ["accuracy", "bytes_sent"]}
    figure = draw(make_artefact(run, kind="figure", plot="accuracy_by_setting", options=options))
    label = " ".join(figure.axes[0].get_ylabel().split())
    assert (
        label
        == f"{sentence(metric_label('accuracy', 'test'))}, {metric_label('bytes_sent', 'test')}"
    )


def test_a_level_is_of_its_panel(make_tally, make_artefact):
    runs = [
        make_tally((0.1, 0.2, at), method=method, dataset=data, axes={**AXES, "method": method})
        for data, accuracies in (("mnist", (0.5, 0.4)), ("cifar10", (0.9, 0.8)))
        for method, at in zip(("tally_train", "local"), accuracies, strict=True)
    ]
    options = {"x": "public.size", "levels": [{"method": "local"}]}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    across = [[y.tolist() for y in heights(axes) if len(y) == 2] for axes in figure.axes]
    assert across == [[[0.4, 0.4]], [[0.8, 0.8]]]


def test_a_level_that_lies_in_no_panel_is_in_all(make_tally, make_artefact):
    runs = [
        make_tally(method="tally_train", public={"size": n}, axes=AXES | {"method": str(n)})
        for n in (10, 20)
    ]
    level = AXES | {"method": "local"}
    runs.append(make_tally((0.1, 0.2, 0.4), method="local", public={"size": 50}, axes=level))
    options = {"x": "public.size", "panels": ["public.size"], "levels": [{"method": "local"}]}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    across = [[y.tolist() for y in heights(axes) if len(y) == 2] for axes in figure.axes]
    assert across == [[[0.4, 0.4]]] * 2


@pytest.mark.parametrize(
    ("lines", "colour"),
    [("method.signal", look("tt").colour), ("public.size", INK)],
    ids=["lines are methods", "lines are of another setting"],
)
def test_a_level_has_the_colour_of_its_methods_line(make_tally, make_artefact, lines, colour):
    """And the name that the figure gives it, if any."""
    runs = [
        make_tally(method="tally_train", axes=AXES | {"method": "tt"}),
        make_tally(method="tally_train(warm_up=1)", axes=AXES | {"method": "no decay"}),
    ]
    level = {"method": "no decay", "label": "TallyTrain, no decay"}
    options = {"x": "public.size", "lines": [lines], "panels": [], "levels": [level]}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    (across,) = (line for line in figure.axes[0].lines if len(line.get_ydata()) == 2)
    assert across.get_color() == colour
    handle = figure.legends[0].get_lines()[-1]
    assert (handle.get_label(), handle.get_color()) == ("TallyTrain, no decay", colour)


def test_levels_that_differ_in_more_than_the_seed_are_not_averaged(make_tally, make_artefact):
    level = {"method": "local", "axes": AXES | {"method": "local"}}
    runs = [
        make_tally(method="tally_train", axes=AXES | {"method": "tt"}),
        make_tally((0.1, 0.2, 0.3), **level),
        make_tally((0.1, 0.2, 0.9), **level, public={"size": 50}),
    ]
    options = {"x": "public.size", "levels": [{"method": "local"}]}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options)
    with refused("two runs share the cell method=local, seed=0"):
        draw(artefact)


NO_ZERO = "numbers of 0 or less have no place on the logarithmic axis"


@pytest.mark.parametrize(("log", "places"), [(True, [1, 4]), (False, [0, 1, 4])])
def test_what_a_logarithmic_axis_leaves_out_is_said(make_tally, make_artefact, log, places):
    runs = [
        make_tally(method=f"tally_train(warm_up={n})", axes=AXES | {"method": str(n)})
        for n in (0, 1, 4)
    ]
    options = {"x": "method.warm_up", "log": log}
    figure = draw(make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options))
    assert figure.axes[0].lines[0].get_xdata().tolist() == places
    assert (NO_ZERO in header_text(figure)) == log


def test_of_numbers_that_are_all_0_a_logarithmic_axis_has_none(make_tally, make_artefact):
    run = make_tally(method="tally_train(warm_up=0)")
    options = {"x": "method.warm_up", "log": True}
    figure = make_artefact(run, kind="figure", plot="accuracy_by_setting", options=options)
    with refused("no run has a number above 0, as log = true needs, for x = 'method.warm_up'"):
        draw(figure)


def test_variances_of_0_are_said_to_be_left_out(make_tally, make_artefact):
    run = make_tally(method="tally_train", variance=[0.2, 0.1, 0.0])
    figure = draw(make_artefact(run, kind="figure", plot="voting_theory"))
    assert NO_ZERO in header_text(figure)
    run = make_tally(method="tally_train", seed=1)
    figure = draw(make_artefact(run, kind="figure", plot="voting_theory"))
    assert NO_ZERO not in header_text(figure)


@pytest.mark.parametrize("log", [True, False])
def test_rounds_without_a_correct_answer_are_said_to_be_left_out(make_run, make_artefact, log):
    run = make_run([0.0, 0.1, 0.2])
    options = {"log": log}
    figure = draw(make_artefact(run, kind="figure", plot="accuracy_by_round", options=options))
    assert (NO_ZERO in header_text(figure)) == log


@pytest.mark.parametrize("log", [True, False])
def test_numbers_at_ticks_have_room(make_tally, make_artefact, log):
    """21 is too near to 20, and stands a line lower; 22 too near to both, and only has its tick."""
    runs = [
        make_tally(method=f"tally_train(probes_per_round={n})", axes=AXES | {"method": str(n)})
        for n in (20, 21, 22, 60)
    ]
    options = {"x": "method.probes_per_round", "lines": ["method.name"], "log": log}
    artefact = make_artefact(*runs, kind="figure", plot="accuracy_by_setting", options=options)
    axes = draw(artefact).axes[0]
    assert list(axes.get_xticks()) == [20, 21, 22, 60]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["20", "\n21", "", "60"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"x": "method.probe"}, "no run has a number for x = 'method.probe'"),
        ({}, "key 'x' is missing"),
        ({"x": "public.size", "line": []}, "unknown key 'line'; did you mean 'lines'"),
    ],
)
def test_options_that_do_not_fit(make_tally, make_artefact, options, said):
    run = make_tally(method="tally_train")
    artefact = make_artefact(run, kind="figure", plot="accuracy_by_setting", options=options)
    with pytest.raises(FedlogitError, match=said):
        draw(artefact)


def test_a_band_of_another_kind_is_refused(make_tally, make_artefact):
    run = make_tally(method="tally_train")
    artefact = make_artefact(run, kind="figure", plot="peer_bands", options={"band": "iqr"})
    with pytest.raises(FedlogitError, match="band = 'iqr'"):
        draw(artefact)


def test_theory_needs_its_columns(make_run, make_artefact):
    with pytest.raises(FedlogitError, match=r"lack export: \[theory\]"):
        draw(make_artefact(make_run(), kind="figure", plot="voting_theory"))


def test_theory_draws_what_was_measured(make_tally, make_artefact):
    run = make_tally(method="tally_train(warm_up=2)")
    figure = draw(make_artefact(run, kind="figure", plot="voting_theory"))
    first, second, third = (heights(axes) for axes in figure.axes)
    assert any(np.allclose(y, [0.3, 0.6, 0.8]) for y in first)
    assert any(np.allclose(y, [0.9, 0.5, 0.2]) for y in second)
    assert any(np.allclose(y, [0.5, 0.4, 0.3]) for y in third)
    marks = [line.get_xdata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert marks == [2]


@pytest.mark.parametrize("measured", [True, False])
def test_theory_says_where_no_bound_can_be_drawn(make_tally, make_artefact, measured):
    run = make_tally(method="tally_train")
    if not measured:
        rounds = pd.read_csv(run.dir / "rounds.csv")
        rounds.assign(theory_bound="").to_csv(run.dir / "rounds.csv", index=False)
        seal(run.dir)
    drawn = draw(make_artefact(run, kind="figure", plot="voting_theory"))
    assert ("bound not drawn" in header_text(drawn)) != measured


def test_published_numbers_may_name_further_axes(make_run, make_artefact, tmp_path):
    runs = [make_run(0.4 + s / 1000, public={"size": s}) for s in (50, 100)]
    path = tmp_path / "reference.csv"
    path.write_text(
        "table,dataset,partition,method,metric,mean,std,where\n"
        "table1,mnist,,average,accuracy,0.5,,public.size=100\n"
        "table1,mnist,,average,accuracy,0.6,,public.size=200\n"
    )
    rows = compare([make_artefact(*runs)], read_reference(path))
    assert rows["ours"].round(3).tolist()[0] == 0.5
    assert rows["verdict"].tolist() == ["single run, within", "not run"]
    assert rows["where"].tolist() == ["public.size=100", "public.size=200"]
