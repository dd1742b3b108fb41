"""The report: each number leads to its runs, the contents to each heading, and nothing outside."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from markupsafe import Markup
from support.refusals import refused

from fedlogit.errors import DataError
from fedlogit.results.collect import collect
from fedlogit.results.formatting import markdown
from fedlogit.results.pages.chapter import (
    breakable,
    scrolled,
    settings_below,
    shell,
    to_html,
    write_page,
)
from fedlogit.results.pages.report import find_pages, write_report
from fedlogit.results.pages.run_lists import run_anchor, runs_by_cell
from fedlogit.results.pages.templating import render
from fedlogit.results.record.counts import OUTCOMES
from fedlogit.results.summary import write_summary
from fedlogit.results.tables import cell_of_run
from fedlogit.results.verdicts.published import nothing_published, read_reference
from fedlogit.results.verdicts.rules import CLAIM_RESULTS
from fedlogit.runs.paths import ResultsLayout

NUMBER = re.compile(r'<a href="#([^"]+)">(0\.\d+)[^<]*</a>')


@pytest.fixture
def page(tmp_path, two_methods, make_artefact):
    """Return a function that writes the page of two methods and two seeds at a scale."""

    def write(scale: str = "quick"):
        made = make_artefact(*two_methods, scale=scale)
        numbers = tmp_path / "reference.csv"
        numbers.write_text(
            "table,dataset,partition,method,metric,mean,std\ntable1,mnist,k_classes(2),uwa,accuracy,.8,\n"
        )
        folder = tmp_path / "summary/who_to_trust" / scale
        write_summary([made], read_reference(numbers), folder)
        path = tmp_path / f"report/who_to_trust/{scale}.html"
        return made, write_page([made], tmp_path, path).read_text()

    return write


def runs_at(page: str, anchor: str) -> list[str]:
    """Return the rows of the runs that the cell with an anchor leads to."""
    (cell,) = re.findall(rf'<li id="{anchor}">(.*?)</li>', page)
    return [
        re.search(rf'<tr id="{run}">(.*?)</tr>', page)[1]
        for run in re.findall(r'<a href="#([^"]+)">', cell)
    ]


def test_each_number_leads_to_its_runs(page):
    made, text = page()
    frame = collect(made)
    found = NUMBER.findall(text)
    assert sorted({number for _, number in found}) == ["0.6000", "0.9000"]
    for anchor, number in found:
        runs = frame[frame["accuracy"] == float(number)]
        rows = runs_at(text, anchor)
        assert len(runs) == len(rows) == 2
        assert all(run in row for run, row in zip(runs["dir"], rows, strict=True))


def test_tables_that_nobody_ran_are_left_out_of_the_page(page, tmp_path, make_artefact):
    made, text = page()
    missing = [{"before": 0, "axes": run.axes} for run in made.runs]
    unrun = make_artefact(id="table9", scale="quick", missing=missing)
    out = tmp_path / "report/who_to_trust/quick.html"
    assert write_page([unrun, made], tmp_path, out).read_text() == text
    with refused("no table or figure of who_to_trust at scale quick has runs"):
        write_page([unrun], tmp_path, out)


@pytest.mark.parametrize(
    ("scale", "published", "own"),
    [
        ("paper", "Full size: numbers are judged against the published ones.", "Full size."),
        ("quick", "are not comparable with the published ones.", "which effects are strong."),
    ],
)
def test_a_study_without_published_numbers_is_not_compared_with_them(
    page, tmp_path, scale, published, own
):
    made, text = page(scale)
    assert f"{published}</p>" in text
    write_summary([made], nothing_published(), tmp_path / "summary/who_to_trust" / scale)
    text = write_page([made], tmp_path, tmp_path / "own.html").read_text()
    assert f"{own}</p>" in text
    assert "published ones" not in text


def test_a_number_beside_the_papers_leads_to_its_runs_too(page):
    _, text = page()
    compared = text.partition('id="who_to_trust-quick-compared"')[2].partition("-tables")[0]
    ((anchor, number),) = NUMBER.findall(compared)
    assert number == "0.9000"
    assert anchor == "who_to_trust-quick-table1-1"


def test_cells_count_in_order_of_appearance_and_seeds_share_one(page):
    made, _ = page()
    assert list(cell_of_run(made, collect(made))) == [0, 0, 1, 1]


def test_the_report_has_each_page_once_and_contents_that_lead_there(page, tmp_path):
    for scale in ("quick", "paper"):
        page(scale)
    pages = find_pages(tmp_path)
    assert [path.stem for path in pages] == ["paper", "quick"]
    text = write_report(pages, tmp_path, tmp_path / "report.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", text)
    contents = text.partition("</nav>")[0]
    for scale in ("quick", "paper"):
        assert f'<a href="#who_to_trust-{scale}-table1">' in contents
        assert f'<a href="#who_to_trust-{scale}-compared">Reported and reproduced</a>' in contents
    assert '">1 of 1</td>' in text or "<td>1 of 1</td>" in text


def test_of_the_pages_of_a_study_that_at_the_papers_scale_comes_first(tmp_path):
    for page in ("a/quick", "a/paper", "a/extended", "b/extended"):
        (tmp_path / "report" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"report/{page}.html").touch()
    found = [f"{path.parent.name}/{path.stem}" for path in find_pages(tmp_path)]
    assert found == ["a/paper", "a/extended", "a/quick", "b/extended"]


def test_runs_that_two_tables_show_are_counted_and_listed_once(page, tmp_path, make_artefact):
    made, text = page()
    again = make_artefact(*made.runs, id="table2", title="Table 2", scale="quick")
    both = write_page([made, again], tmp_path, tmp_path / "both.html").read_text()
    assert '<li data-fact="runs"><b>Runs</b>4</li>' in text
    assert '<li data-fact="runs"><b>Runs</b>4</li>' in both
    assert 'id="who_to_trust-quick-table2"' in both
    assert all(both.count(f"<code>{run.dir}</code>") == 1 for run in made.runs)
    for table in ("table1", "table2"):
        assert runs_at(both, f"who_to_trust-quick-{table}-0") == runs_at(
            text, "who_to_trust-quick-table1-0"
        )


def test_many_versions_of_the_code_are_shown_when_one_asks(page):
    versions = "<summary>3 versions</summary>0.1.0+a, 0.1.0+b, 0.1.0+c</details>"
    assert "<b>Code</b>0.1.0+abc</li>" in page()[1]
    facts = {"numbers": "none published", "compared": "", "claims": "", "evidence": ""}
    assert versions in render(
        "chapter.html",
        **facts,
        **{"name": "a", "paper": "a", "label": "a", "title": "a", "scale": "paper"},
        **{"reduced": False, "parts": [], "runs": [], "hours": "", "devices": ""},
        versions=["0.1.0+a", "0.1.0+b", "0.1.0+c"],
    )


def test_the_picture_of_the_record_opens_the_report_where_there_is_one(page, tmp_path):
    page()
    (tmp_path / "record.png").write_bytes(b"picture")
    (tmp_path / "record.counts.md").write_text("Of 1 number, 0 <i>are</i> judged.\n\n- Why.\n")
    text = write_report(find_pages(tmp_path), tmp_path, tmp_path / "report.html").read_text()
    assert "base64,cGljdHVyZQ==" in text
    assert "0 &lt;i&gt;are&lt;/i&gt; judged" in text
    assert "<li>Why.</li>" in text


def test_without_pages_the_report_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="has no page; make reproduce or make figures first"):
        write_report([], tmp_path, tmp_path / "report.html")


def test_a_file_that_is_no_page_is_named(tmp_path):
    (tmp_path / "old.html").write_text("<p>something else</p>")
    with pytest.raises(DataError, match=r"old\.html is not a page"):
        write_report([tmp_path / "old.html"], tmp_path, tmp_path / "report.html")


def test_a_file_that_is_no_text_is_named(page, tmp_path):
    _, path = page(), tmp_path / "report/who_to_trust/quick.html"
    whole = path.read_bytes()
    path.write_bytes(b"\xff" + whole)
    with refused(f"{path} is not UTF-8: "):
        write_report([path], tmp_path, tmp_path / "report.html")
    path.write_bytes(whole)
    (tmp_path / "record.png").write_bytes(b"picture")
    (tmp_path / "record.counts.md").write_bytes(b"\xff")
    with refused(f"{tmp_path / 'record.counts.md'} is not UTF-8: "):
        write_report([path], tmp_path, tmp_path / "report.html")


@pytest.mark.parametrize("said", sorted({*OUTCOMES, *CLAIM_RESULTS, "undecided, one seed"}))
def test_whatever_comes_of_a_number_or_a_claim_is_a_badge(said):
    html = to_html(f"| Verdict |\n|---|\n| {said} |")
    assert re.search(f'<td><span class="badge (good|bad|open)">{said}</span></td>', html)


@pytest.mark.parametrize(
    ("said", "look"),
    [
        ("does not hold, 3 of 10 run", "bad"),
        ("holds on average (MNIST: holds)", "open"),
        ("undecided, 1 of 2 run (MNIST: holds)", "open"),
    ],
)
def test_what_is_said_beside_a_claims_result_is_in_its_badge(said, look):
    html = to_html(f"| Result |\n|---|\n| {said} |")
    assert f'<td><span class="badge {look}">{said}</span></td>' in html


@pytest.mark.parametrize(
    "said", ["irreproducible", "reproduced, one seed", "holds water", "*reproduced*", "0.5"]
)
def test_other_cells_are_none(said):
    assert "badge" not in to_html(f"| Verdict |\n|---|\n| {said} |")


def schemes() -> list[dict[str, str]]:
    """The colours of the page, light and dark, by the names of the variables."""
    style = shell("Results", Markup(""), []).partition("</style>")[0]
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = [dict(re.findall(r"--([\w-]+): (#\w+)", part)) for part in (light, dark)]
    assert colours[0].keys() == colours[1].keys()
    assert not re.findall(
        r"#[0-9a-f]{3,8}", style.partition(dark)[2].replace("background: #fff", "")
    )
    return colours


def luminance(colour: str) -> float:
    """The relative luminance of `#rgb` or `#rrggbb` after WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    shares = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    ("text", "grounds"),
    [
        ("ink", ("page", "tint", "mark")),
        ("soft", ("page", "tint", "open")),
        ("accent", ("page", "tint")),
        ("on-good", ("good",)),
        ("on-bad", ("bad",)),
    ],
)
def test_text_has_the_contrast_of_wcag_aa_in_the_light_and_in_the_dark(text, grounds):
    for colours in schemes():
        for ground in grounds:
            dark, light = sorted(luminance(colours[name]) for name in (text, ground))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground, colours)


def test_the_dark_page_is_dark_and_its_pictures_are_on_white():
    light, dark = (luminance(colours["page"]) for colours in schemes())
    assert light > 0.9
    assert dark < 0.05
    page = shell("Results", Markup(""), [])
    assert "color-scheme: light dark" in page
    assert re.search(r"\nimg \{[^}]*background: #fff", page)


def test_settings_stand_below_the_method_and_not_in_columns_that_are_nearly_empty():
    columns = ["Method", "Setting", "Setting of ours", "Ours"]
    rows = [
        ["A", "", "", "1"],
        ["B", "lr=1", "", "2"],
        ["C", "lr=1", "lr=2", "3"],
        ["D", "", "lr=2", "4"],
    ]
    table = settings_below(pd.DataFrame(rows, columns=columns))
    assert list(table) == ["Method", "Ours"]
    assert list(table["Method"]) == ["A", "B *lr=1*", "C *lr=1; ours: lr=2*", "D *ours: lr=2*"]
    html = to_html(markdown(table[2:3].assign(Method="C *of=tally_train(some_key=8)*")))
    assert "<em>of=<wbr>tally_<wbr>train(<wbr>some_<wbr>key=<wbr>8)</em></td>" in breakable(html)
    bare = table[["Method", "Ours"]]
    assert settings_below(bare).equals(bare)


def test_tables_scroll_beside_their_last_head_and_prose_does_not():
    text = "Before.\n\n| A | B | N |\n|---|:--|--:|\n| a | b | 1 |\n\nAfter."
    html = scrolled(to_html(text), "compared")
    assert re.search(r'<p>Before.</p>\s*<div class="scroll compared heads2"><table>', html)
    assert re.search(r"</table></div>\s*<p>After.</p>", html)
    prose = to_html("| Claim | Result |\n|---|---|\n| a | holds |")
    assert '<div class="scroll heads1"><table>' in scrolled(prose)


def test_the_page_scrolls_its_claims_and_tables_alone(page, tmp_path):
    made, _ = page()
    claims = tmp_path / "summary/who_to_trust/quick/claims.md"
    claims.write_text("# Claims\n\n| Claim | Result |\n|---|---|\n| a | holds |\n\nThe rule.\n")
    text = write_page([made], tmp_path, tmp_path / "page.html").read_text()
    assert re.search(r'<div class="claims"><div class="scroll heads1"><table>', text)
    assert '<div class="scroll compared heads' in text
    assert re.search(r'"who_to_trust-quick-table1">.*?</h4>\s*<div class="scroll heads2">', text)
    scrolling = re.findall(r'<div class="scroll.*?</div>', text, re.DOTALL)
    assert len(scrolling) == 4  # with the list of runs
    assert not any("<p>" in part for part in scrolling)
    assert "<p>The rule.</p>" in text


def test_the_page_has_a_numbers_settings_below_its_method(page, tmp_path):
    made, _ = page()
    numbers = tmp_path / "where.csv"
    numbers.write_text(
        "table,dataset,partition,method,metric,mean,std,where\n"
        "table1,mnist,k_classes(2),uwa,accuracy,.8,,seed=1\n"
    )
    write_summary([made], read_reference(numbers), tmp_path / "summary/who_to_trust/quick")
    text = write_page([made], tmp_path, tmp_path / "page.html").read_text()
    assert ">UWA <em>seed=1</em></td>" in text
    assert "Setting</th>" not in text


def test_the_page_compares_in_per_cent_where_its_table_is(page, tmp_path):
    made, _ = page()
    percent = made.model_copy(update={"options": {"percent": True}})
    text = write_page([percent], tmp_path, tmp_path / "page.html").read_text()
    assert ">80.00 %</td>" in text
    assert '">90.00 ± 0.00 %</a></td>' in text


def test_a_picture_on_the_page_is_described_by_the_first_sentence_of_its_caption(
    page, tmp_path, make_artefact
):
    made, _ = page()
    figure = make_artefact(*made.runs, id="fig", kind="figure", scale="quick", title="Losses")
    path = ResultsLayout(tmp_path).artefact("figure", "who_to_trust", "quick", "fig", "png")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"picture")
    text = write_page([made, figure], tmp_path, tmp_path / "page.html").read_text()
    assert '<img alt="Losses. A caption."' in text


def test_long_settings_of_a_comparison_may_be_broken():
    head = "| Setting | Ours |\n|---|---|\n"
    long = "| method=tally_train(some_key=8) | [0.1](#a_b_c_d_e_f_g_h_i) |\n"
    html = breakable(to_html(f"{head}{long}| (k_classes=1) | |"))
    assert "<td>method=<wbr>tally_<wbr>train(<wbr>some_<wbr>key=<wbr>8)</td>" in html
    assert '<a href="#a_b_c_d_e_f_g_h_i">' in html
    assert "<td>(k_classes=1)</td>" in html  # short enough


def test_the_runs_of_a_cell_are_named_by_what_differs(make_run, make_artefact):
    sizes = [(10, 0), (10, 1), (2000, 0)]
    runs = [make_run(seed=seed, public={"size": size}) for size, seed in sizes]
    labels = {"public.size": "Samples"}
    figure = make_artefact(*runs, rows=None, columns=None, labels=labels)
    cells = runs_by_cell(figure, [0, 0, 1], "c")
    assert [(cell.place, [run.seed for run in cell.runs]) for cell in cells] == [
        ("Samples 10", [0, 1]),
        ("Samples 2,000", [0]),
    ]
    assert cells[0].runs[0].anchor == run_anchor("c", runs[0].digest)
    table = make_artefact(*runs)  # whose rows and columns have one value each
    assert runs_by_cell(table, [0, 0, 0], "c")[0].place == "Average"
