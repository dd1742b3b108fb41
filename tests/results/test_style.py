from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from seaborn.utils import relative_luminance

from fedlogit.errors import FedlogitError
from fedlogit.results import method_order, style
from fedlogit.results.style import (
    CATEGORIES,
    PALETTE,
    grow,
    header,
    in_order,
    look,
    looks,
    new_figure,
    save_figure,
)

SETS = [
    ("average", "uwa", "meta_model", "local", "fully_informed"),
    ("fedavg", "cffl", "cgsv", "shapfed", "celm"),
    ("tally_train", "fedmd", "fedavg", "feddf", "fedprox", "local"),
    ("lm_tally_train", "lm_fedmd", "lm_fedavg", "lm_bridge"),
    ("fedol", "fedavg", "fedprox", "feddf", "fedet", "fedkt", "fedhkt", "mine", "local"),
    # What the comparison draws as lines: by adversaries and by public samples.
    ("fedavg", "celm", "average", "uwa", "meta_model", "tally_train", "fedmd", "fedol"),
    ("average", "uwa", "meta_model", "tally_train", "fedmd", "feddf", "fedol"),
]


def test_methods_of_tally_trains_second_figure_have_different_colours():
    methods = ["local", "feddf", "fedavg(merge_every=5)", "fedprox(merge_every=5)", "tally_train",
               "tally_train(merge_every=20)", "fedmd(merge_every=20)"]  # fmt: skip
    assert len({look(method).colour for method in methods}) == len(methods)


def test_fedavg_has_one_colour_however_often_it_averages():
    names = ["fedavg", "fedavg(merge_every=5)", "lm_fedavg_1"]
    assert len({look(name).colour for name in names}) == 1
    assert len({look(name).marker for name in names}) == len(names)


@pytest.mark.parametrize("method", ["fedavg", "fedmd", "tally_train"])
def test_a_method_of_the_language_model_looks_as_it_does_on_images(method):
    assert look(f"lm_{method}") == look(method)


def test_no_category_has_the_colour_of_a_method():
    assert not set(CATEGORIES) & set(PALETTE.values())


def test_categories_differ_in_grey_print():
    grey = sorted(relative_luminance(colour) for colour in CATEGORIES)
    assert min(np.diff(grey)) > 0.08


def test_no_figure_is_wider_than_letters_allow():
    """Ten inches, on a page of 800 pixels: a letter of 9 points is 10 pixels high."""
    figure, _ = new_figure(1, 8, panel=(4.0, 3.0))
    assert figure.get_size_inches()[0] < 10.5


def test_a_figure_that_grows_keeps_its_header_at_the_top():
    figure, _ = new_figure()
    header(figure, "Title", "subtitle")

    def from_the_top() -> list[float]:
        tall = figure.get_size_inches()[1]
        reserved = figure.get_layout_engine().get()["rect"][3]
        return [tall * (1 - y) for y in (*(t.get_position()[1] for t in figure.texts), reserved)]

    before, tall = from_the_top(), figure.get_size_inches()[1]
    grow(figure, 1.5)
    assert figure.get_size_inches()[1] == pytest.approx(tall + 1.5)
    assert from_the_top() == pytest.approx(before)


@pytest.mark.parametrize("methods", SETS)
def test_methods_that_share_a_figure_differ_in_colour_and_in_marker(methods):
    found = looks(methods)
    assert len({found[method].colour for method in methods}) == len(methods)
    assert len({found[method].marker for method in methods}) == len(methods)
    assert found == {method: look(method) for method in methods}


def test_a_new_method_looks_the_same_wherever_it_appears():
    assert look("my_method") == look("my_method")
    assert look("my_method").colour in PALETTE.values()
    assert look("my_method") != look("another_method")


def test_a_new_method_looks_like_no_method_of_a_paper():
    known = set(style._LOOKS.values())
    names = [f"method_{i}" for i in range(200)]
    assert not {look(name) for name in names} & known


def test_no_two_methods_of_a_figure_look_alike_in_whatever_order():
    names = [*(f"method_{i}" for i in range(20)), *(f"celm(steps={i})" for i in range(5)), "fedavg"]
    found = looks(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert looks(reversed(names)) == found
    assert found["fedavg"] == look("fedavg")
    assert len({found[f"celm(steps={i})"].colour for i in range(5)}) == 1


def test_a_method_with_other_parameters_keeps_its_colour_and_changes_its_marker():
    variant = look("tally_train(probes_per_round=32)")
    assert variant.colour == look("tally_train").colour
    assert variant.marker != look("tally_train").marker
    assert look("tally_train(merge_every=20)").colour == look("lm_bridge").colour


def test_methods_have_one_order_and_unknown_ones_come_last_as_given():
    given = ["new", "fully_informed", "celm", "other", "fedavg(merge_every=20)", "local"]
    ordered = ["local", "fedavg(merge_every=20)", "celm", "fully_informed", "new", "other"]
    assert in_order(given) == ordered


def test_every_method_that_has_a_look_has_a_place_in_the_order():
    assert set(style._LOOKS) == set(method_order._ORDER.split())
    as_on_images = {"lm_fedavg", "lm_fedmd", "lm_tally_train"}
    others = style._LOOKS.keys() - as_on_images
    assert len({style._LOOKS[method] for method in others}) == len(others)


def test_a_long_title_is_wrapped_and_makes_room():
    figure, _ = new_figure()
    before = figure.get_size_inches()[1]
    header(figure, "word " * 40, "note " * 60)
    assert figure.get_size_inches()[1] > before + 0.5
    assert all("\n" in text.get_text() for text in figure.texts)


def test_files_are_reproducible_and_leave_nothing_behind(tmp_path):
    figure = Figure()
    figure.subplots().plot([1, 2])
    first = [path.read_bytes() for path in save_figure(figure, tmp_path / "a.pdf")]
    assert first == [path.read_bytes() for path in save_figure(figure, tmp_path / "a")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png"]


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(FedlogitError, match=r"cannot write .*a.png"):
        save_figure(Figure(), tmp_path / "a")


def test_a_title_that_is_wider_than_its_figure_is_in_lines_that_fit():
    figure, _ = new_figure()
    title = "Coverage and accuracy of FedOL's pseudo-labels by iteration"  # 62 bold letters
    header(figure, title, "scale: quick; " * 12)
    renderer = FigureCanvasAgg(figure).get_renderer()
    assert figure.texts[0].get_text().replace("\n", " ") == title
    assert len(figure.texts[1].get_text().splitlines()) > 1
    for text in figure.texts:
        assert text.get_window_extent(renderer).x1 <= figure.bbox.x1
