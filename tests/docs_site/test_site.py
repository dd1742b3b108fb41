"""The site is built strictly, and its pages are opened in a real browser, wide and narrow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import Markup

from fedlogit.results.formatting import markdown
from fedlogit.results.pages.chapter import breakable, scrolled, settings_below, shell, to_html
from fedlogit.results.verdicts.comparison_table import RIGHT

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(os.environ.get("DOCS_ENVIRONMENT", Path(sys.prefix, "docs")))
MKDOCS = PACKAGES / "bin/mkdocs"
# One worker builds the site and opens it.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("docs_site")]


def mkdocs(pages: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    if not MKDOCS.exists():
        pytest.skip(f"no MkDocs in {PACKAGES}; make docs-environment")
    return subprocess.run(
        [MKDOCS, "build", "--strict", "--site-dir", out, *options],
        cwd=ROOT,
        env=os.environ | {"DOCS_PAGES": str(pages), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    if not MKDOCS.exists():
        pytest.skip(f"no MkDocs in {PACKAGES}; make docs-environment")
    folder = tmp_path_factory.mktemp("docs_site")
    staged = [sys.executable, "-m", "scripts.docs_site", "--out", str(folder / "pages")]
    subprocess.run(staged, cwd=ROOT, check=True)
    done = mkdocs(folder / "pages", folder / "site")
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="session")
def chromium():
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium here; make test-packages")
    sys.path += map(str, PACKAGES.glob("lib/python*/site-packages"))
    playwright = pytest.importorskip("playwright.sync_api", reason="make docs-environment")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A tab that remembers errors and what it asked the network for, as `complaints`."""
    tab = chromium.new_page()
    tab.complaints = []
    tab.on("pageerror", lambda error: tab.complaints.append(f"{tab.url}: {error}"))
    tab.on("console", lambda said: _told(tab, said))
    tab.on("request", lambda request: _asked(tab, request.url))
    yield tab
    tab.close()


def _told(tab, said) -> None:
    if said.type == "error":
        tab.complaints.append(f"{tab.url}: {said.text}")


def _asked(tab, url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:", "about:")):
        tab.complaints.append(f"{tab.url}: asks for {url}")


def too_wide(tab) -> bool:
    return tab.evaluate("document.documentElement.scrollWidth > innerWidth")


# What a screen reader or the Tab key would meet: a heading two levels below the one before, a
# picture without a text, a link without a name.
FAULTS = """() => {
  const of = (what) => [...document.querySelectorAll(`article ${what}`)];
  const levels = of("h1, h2, h3, h4, h5, h6").map((heading) => Number(heading.tagName[1]));
  return [
    ...levels.filter((level, i) => i && level > levels[i - 1] + 1).map((level) => `h${level}`),
    ...of("img").filter((picture) => !picture.alt).map((picture) => picture.src),
    ...of("a[href]")
      .filter((a) => !a.textContent.trim() && !a.querySelector("img") && !a.title)
      .map((a) => a.href),
  ];
}"""


@pytest.mark.parametrize(("text", "said"), [("[a](b.md)", "b.md"), ("[a](#nowhere)", "nowhere")])
def test_a_link_to_nothing_fails_the_build(tmp_path, text, said):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text(f"# Page\n\n{text}\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\nnav: [index.md]\n")
    done = mkdocs(tmp_path / "pages", tmp_path / "site", "--config-file", str(config))
    assert done.returncode == 1
    assert f"'{said}'" in done.stderr or f"'#{said}'" in done.stderr


def test_mistakes_of_a_page_are_noticed(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        "<!doctype html><div style='width: 2000px'>wide</div><script>undefined_name()</script>"
        "<article><h1>1</h1><h3>3</h3><a href='#x'></a>"
        "<img src='http://127.0.0.1:9/picture.png'></article>"
    )
    page.goto(path.as_uri())
    assert too_wide(page)
    assert len(page.evaluate(FAULTS)) == 3
    assert any("undefined_name" in said for said in page.complaints)
    assert any("asks for http://127.0.0.1:9" in said for said in page.complaints)


def pages_of(site: Path) -> list[Path]:
    """Every page but those of source files and, of the tables, all but a few, which are all alike.

    The 404 page is for a host, which shows it at any address, so its links begin with ``/``.
    """
    pages = [path.relative_to(site) for path in sorted(site.rglob("*.html"))]
    tables = [path for path in pages if path.parts[0] == "results"]
    left_out = {Path("404.html"), *tables[8:]}
    return [path for path in pages if path not in left_out and path.parts[0] != "source"]


def test_every_page_opens_from_disk_and_fits(page, site):
    """As wide as a desktop's window and as narrow as a phone; its parts have levels and names."""
    pages = pages_of(site)
    assert len(pages) > 60
    wide, faults = [], []
    for path in pages:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto((site / path).as_uri())
        wide += [(path, "wide")] * too_wide(page)
        faults += [(path, fault) for fault in page.evaluate(FAULTS)]
        page.set_viewport_size({"width": 390, "height": 900})
        wide += [(path, "narrow")] * too_wide(page)
    assert not wide
    assert not faults
    assert not page.complaints


def test_the_record_is_filtered(page, site):
    page.goto((site / "record-table.html").as_uri())
    rows, said = page.locator("#record tbody tr:visible"), page.locator(".record-filter output")
    every = rows.count()
    assert every > 400
    form = page.locator("form.record-filter")
    form.get_by_label("Paper").select_option("CELM")
    form.get_by_label("Verdict").select_option("reproduced")
    found = rows.all_inner_texts()
    assert 0 < len(found) < every
    assert all("CELM" in text and "reproduced" in text for text in found)
    assert said.inner_text() == f"{len(found)} of {every} numbers"
    form.get_by_label("Text").fill("shapfed TABLE 1")
    assert all("ShapFed" in text for text in rows.all_inner_texts())
    assert 0 < rows.count() < len(found)
    rows.first.get_by_role("link").click()
    assert "scale paper" in page.locator("h1").inner_text()
    page.go_back()
    form.get_by_label("Text").fill("no such method")
    assert rows.count() == 0


@pytest.fixture(params=["disk", "host"])
def address(request, site):
    """Where the site's folder is opened: as files, and below a path of a web server."""
    if request.param == "disk":
        yield site.as_uri()
        return
    handler = partial(QuietHandler, directory=site.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/site"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def test_the_search_finds_a_page(page, address):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}/index.html")
    page.get_by_placeholder("Search").fill("variance_floor")
    page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
    assert "methods" in page.locator(".md-search-result__link").first.get_attribute("href")


@pytest.mark.parametrize("width", [1000, 1200, 1240, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_number_of_the_report_lies_behind_a_verdict(page, tmp_path, width, scheme):
    """The row is as wide as the widest of the committed comparisons."""
    row = {
        "Table": "Table 3",
        "Metric": "tail accuracy",
        "Dataset": "Fashion-MNIST",
        "Partition": "Dir(0.05)",
        "Method": "FedProx-fa50, μ = 0.01",
        "Setting": "local.steps=50; optimizer.lr=0.003",
        "Setting of ours": "method=tally_train(probes_per_round=128, warm_up=2)",
        "Paper": "0.8064 ± 0.0225",
        "Ours": "0.8087 ± 0.0345",
        "n": "3",
        "Difference": "+0.0023",
        "90 % interval": "-0.0559 to +0.0605",
        "Verdict": "partly reproduced",
    }
    table = to_html(markdown(settings_below(pd.DataFrame([row])), right=RIGHT))
    compared = scrolled(breakable(table), "compared")
    path = tmp_path / "report.html"
    path.write_text(shell("Results", Markup(""), [compared]))
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.as_uri())
    hidden = page.evaluate("""() => {
      const cells = [...document.querySelectorAll("tbody td")];
      const verdict = cells.pop().getBoundingClientRect().left;
      return cells.filter((cell) => cell.getBoundingClientRect().right > verdict + 0.5).length;
    }""")
    assert hidden == 0
    assert not too_wide(page)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    assert page.complaints == []
