"""The bubble plot: areas, totals, and files that are the same every time."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError
from fedlogit.partition import Roles
from fedlogit.results import bubbles
from fedlogit.results.bubbles import bubble_plot

NONE = Roles()


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Return a function that plots counts and returns the figure."""

    def draw(counts, roles=NONE) -> Figure:
        kept = []
        monkeypatch.setattr(bubbles, "save_figure", lambda figure, path: kept.append(figure))
        bubble_plot(np.array(counts), tmp_path / "x.png", "title", roles)
        return kept[0]

    return draw


def test_areas_are_proportional_to_counts_and_zeros_are_not_drawn(drawn):
    main = drawn([[400, 0, 100], [0, 200, 0]]).axes[0]
    scatter = main.collections[0]
    assert scatter.get_offsets().tolist() == [[0, 0], [2, 0], [1, 1]]
    sizes = scatter.get_sizes()
    assert sizes / sizes[0] == pytest.approx([1, 0.25, 0.5])


def test_one_sample_is_still_seen(drawn):
    sizes = drawn([[100_000, 1]]).axes[0].collections[0].get_sizes()
    assert sizes[1] >= 2


def test_bars_are_the_totals(drawn):
    _, top, right, _ = drawn([[400, 0, 100], [0, 200, 0]]).axes
    assert [bar.get_height() for bar in top.patches] == [400, 200, 100]
    assert [bar.get_width() for bar in right.patches] == [500, 200]


def test_mavericks_and_free_riders_are_named_beside_their_totals(drawn):
    """The first holds the rare class 2, the second no rare class, the third rides free."""
    counts = [[0, 0, 1500], [400, 100, 0], [10, 0, 0]]
    right = drawn(counts, Roles(rare_classes=(2,), free_riders=(2,))).axes[2]
    assert [t.get_text() for t in right.texts] == ["1,500\nmaverick", "500", "10\nfree rider"]
    assert [t.get_text() for t in drawn(counts).axes[2].texts] == ["1,500", "500", "10"]


@pytest.mark.parametrize("shape", [(1, 2), (20, 10), (5, 47), (10, 100), (60, 10)])
def test_bubbles_of_neighbours_do_not_overlap(drawn, shape):
    figure = drawn(np.full(shape, 7))
    main = figure.axes[0]
    box, inches = main.get_position(), figure.get_size_inches()
    cell = min(box.width * inches[0] / shape[1], box.height * inches[1] / shape[0]) * 72
    assert np.sqrt(main.collections[0].get_sizes().max()) < cell


def test_both_files_are_written_and_do_not_change(tmp_path):
    counts = np.arange(1, 13).reshape(3, 4)
    files = bubble_plot(counts, tmp_path / "a.png", "A title", NONE)
    again = bubble_plot(counts, tmp_path / "b.png", "A title", NONE)
    assert [file.name for file in files] == ["a.png", "a.pdf"]
    assert [f.read_bytes() for f in files] == [f.read_bytes() for f in again]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert files[1].read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("counts", [np.zeros((2, 2)), np.ones(3), np.empty((0, 2))])
def test_nothing_to_draw_is_refused(counts, tmp_path):
    with pytest.raises(FedlogitError, match="clients × classes matrix with samples"):
        bubble_plot(counts, tmp_path / "x.png", "title", NONE)
    assert list(tmp_path.iterdir()) == []


def test_three_panels_stand_two_in_a_row_and_none_on_another():
    figure = bubbles.bubble_panels(
        [(np.full((5, 10), 7), "a", NONE), (np.ones((3, 4)), "b" * 99, NONE)] * 2
    )
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 16
    assert all(0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1 for box in boxes)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    corners = {(box.x0, box.y0) for box in boxes[::4]}
    assert len({x for x, _ in corners}) == len({y for _, y in corners}) == 2


def test_totals_of_all_panels_are_on_one_scale():
    few, many = np.full((2, 3), 10), np.full((2, 3), 40)
    axes = bubbles.bubble_panels([(few, "a", NONE), (many, "b", NONE)]).axes
    assert axes[1].get_ylim() == axes[5].get_ylim() == (0, pytest.approx(84))
    assert axes[2].get_xlim() == axes[6].get_xlim() == (0, pytest.approx(126))


def test_one_panel_is_as_wide_as_it_needs():
    one, two = (bubbles.bubble_panels([(np.ones((3, 4)), "a", NONE)] * n) for n in (1, 2))
    assert two.get_size_inches() == pytest.approx(one.get_size_inches() * [2, 1])
