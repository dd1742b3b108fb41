"""Captions on pages: they say what those of the files say, and lead to what they name."""

from __future__ import annotations

import re

import pytest
from markupsafe import Markup

from fedlogit.results.pages.captions import Place, alt_text, caption_html
from fedlogit.results.pages.chapter import write_page
from fedlogit.results.summary import write_summary
from fedlogit.results.tables import write_table
from fedlogit.results.verdicts.published import nothing_published
from fedlogit.runs.paths import ResultsLayout

PLACES = {"chosen": Place("p-quick-chosen", 'The "chosen" settings')}


@pytest.fixture
def caption_beside_markdown(two_methods, make_run, make_artefact, tmp_path):
    """Return a function from what a table is to its caption on a page and that of its file."""
    runs = [*two_methods, make_run(seed=2, status="diverged")]

    def make(**given):
        table = make_artefact(*runs, **given)
        layout = ResultsLayout(tmp_path)
        path = layout.artefact("table", table.paper, table.scale, table.id, "md")
        written = write_table(table, path.with_suffix(""))[1].read_text()
        write_summary(
            [make_artefact(*runs)], nothing_published(), layout.summary("who_to_trust", "paper")
        )
        page = write_page([table], tmp_path, tmp_path / "page.html").read_text()
        (found,) = re.findall(r'<p class="caption">(.*?)</p>', page, re.DOTALL)
        return str(Markup(found).striptags()), written.splitlines()[-1]

    return make


def test_a_table_has_the_caption_of_its_file(caption_beside_markdown):
    on_page, in_file = caption_beside_markdown(options={"percent": True})
    assert on_page == in_file
    assert "Test accuracy in %, mean ± standard deviation over seeds. " in on_page
    assert "†k: training diverged for k seeds" in on_page


def test_an_analysis_has_the_caption_of_its_file(caption_beside_markdown):
    on_page, in_file = caption_beside_markdown(analysis="answer", rows=None, columns=None)
    assert on_page == in_file.replace("`", "")
    assert "Bytes are what a client sends in the whole run. " in on_page


def test_code_is_a_link_where_it_names_what_is_on_the_page():
    html = caption_html("As table `chosen`, with `packed=True` and **bold** n/a.", PLACES)
    assert html == (
        'As table <a href="#p-quick-chosen" title="The &#34;chosen&#34; settings">'
        "<code>chosen</code></a>, with <code>packed=True</code> and <strong>bold</strong> n/a."
    )


@pytest.mark.parametrize(
    "text",
    ["p < 0.05 & n > 1", "<b>x</b>", "[a](#b)", "![a](b.png)", "<http://a.b>", "k_a_b", "# 1"],
)
def test_all_else_in_a_caption_is_shown_as_it_is(text):
    html = caption_html(text, PLACES)
    assert "<" not in html
    assert Markup(html).unescape() == text
    assert caption_html(f"`{text}`", PLACES) == Markup("<code>{}</code>").format(text)


def test_a_picture_is_described_by_its_title_and_the_first_sentence(make_artefact, make_run):
    about = "As `heat_map`, at 5.8 points. Second."
    artefact = make_artefact(make_run(), title="Figure 1. Losses", caption=about)
    assert alt_text(artefact) == "Figure 1. Losses. As heat_map, at 5.8 points."
    assert alt_text(artefact.model_copy(update={"caption": ""})) == "Figure 1. Losses"
