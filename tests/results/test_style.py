from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError
from fedlogit.results.style import PALETTE, header, look, new_figure, save_figure

SETS = [
    ("average", "uwa", "meta_model", "local", "fully_informed"),
    ("fedavg", "cffl", "cgsv", "shapfed", "celm"),
    ("tally_train", "fedmd", "fedavg", "feddf", "fedprox", "local"),
    ("lm_tally_train", "lm_fedmd", "lm_fedavg", "lm_bridge", "lm_fedavg_1"),
    ("fedol", "feddf", "fedet", "fedkt", "fedhkt", "mine", "local"),
]


def test_methods_of_a_paper_have_different_colours():
    for methods in SETS:
        colours = [look(method).colour for method in methods]
        assert len(set(colours)) == len(colours)


def test_a_new_method_looks_the_same_wherever_it_appears():
    assert look("my_method") == look("my_method")
    assert look("my_method").colour in PALETTE.values()
    assert look("my_method") != look("another_method")


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
