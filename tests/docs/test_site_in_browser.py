"""The site in Chromium, on a phone and on a desktop, light and dark: no page scrolls sideways, text can be read."""

import json
import re
from pathlib import Path

import pytest

from tests.local.browser import Dom, chromium

__all__ = ["chromium"]  # a fixture

DRAWN = Path(__file__).with_name("drawn.js").read_text(encoding="utf-8")
DIAGRAMS = Path(__file__).with_name("diagrams.js").read_text(encoding="utf-8")
PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]
LAYOUT = Path(__file__).with_name("layout.js").read_text(encoding="utf-8")
PHONE, DESKTOP = 390, 1440
SMALLEST = 11  # pixels of text in a diagram
OPENED = (  # a copy of the page keeps the closed shadow root of each diagram
    "<script>const attach = Element.prototype.attachShadow;"
    "Element.prototype.attachShadow = function (how) { return (this.drawn = attach.call(this, how)); }</script>"
)
LIGHT, DARK = "default", "slate"  # Material's schemes


def found(chromium, script, task, *arguments):
    """Run the script in a page that may read the site's files, and return what it wrote."""
    page = (
        "<!DOCTYPE html><meta charset=utf-8><body><pre id=found></pre>"
        f"<script id=task type=application/json>{json.dumps(task)}</script><script>{script}</script>"
    )
    dom = Dom(
        chromium(page, "--window-size=1600,1000", "--allow-file-access-from-files", *arguments, "--dump-dom").stdout
    )
    return json.loads(dom.tags("pre")[0]["text"])


def article(page):
    """The content of a page, with what it loads named from anywhere."""
    html = page.read_text(encoding="utf-8")
    inner = re.search(r"(?s)<article[^>]*>(.*)</article>", html)[1]
    return re.sub(r'src="([^":]+)"', lambda found: f'src="{(page.parent / found[1]).resolve().as_uri()}"', inner)


@pytest.fixture
def whole(site):
    """One page with the content of all pages, for Chromium to read the styles once."""
    home = site / "index.html"
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    assert len(pages) > 40
    classes = "md-content__inner md-typeset"
    contents = "".join(
        f'<article class="{classes}" id="{page.relative_to(site)}">{article(page)}</article>' for page in pages
    )
    before, after = re.split(r"(?s)<article.*</article>", home.read_text(encoding="utf-8"))
    page = site / "whole.html"
    page.write_text(before + contents + after, encoding="utf-8")
    yield page
    page.unlink()


def test_no_page_scrolls_sideways_and_every_text_can_be_read(chromium, site, whole):
    """Contents all together; headers and navigation of the home page and of the one with the longest title."""
    titles = {page: len(page.stem) for page in (site / "designs").glob("*.html")}
    pages = [whole, site / "index.html", max(titles, key=titles.__getitem__)]
    task = {"pages": [page.as_uri() for page in pages], "widths": [PHONE, DESKTOP], "schemes": [LIGHT, DARK]}
    assert "\n".join(found(chromium, LAYOUT, task)) == ""


def test_a_page_that_is_wide_faint_or_never_dark_is_found(chromium, tmp_path):
    (tmp_path / "folder").mkdir()
    planted = tmp_path / "folder/planted.html"
    planted.write_text(
        "<!DOCTYPE html><body style='background:#fff'><article>"
        "<p style='color:#aaa'>faint</p><div style='width:900px'>wide</div></article>"
    )
    task = {"pages": [planted.as_uri()], "widths": [PHONE, DESKTOP], "schemes": [LIGHT, DARK]}
    said = "\n".join(found(chromium, LAYOUT, task))
    assert "planted.html 390: scrolls to 9" in said
    assert "1440: scrolls" not in said
    assert "default: faint article p." in said
    assert "slate: its background is light" in said


def test_mermaid_reads_every_diagram(chromium, site):
    diagrams = [
        (str(page), text) for page in PAGES for text in re.findall(r"(?ms)^```mermaid\n(.*?)^```$", page.read_text())
    ]
    diagrams.append(("planted", "flowchart TD\n  A -->"))
    mermaid = (site / "assets/vendor/mermaid.js").read_text(encoding="utf-8")
    assert len(diagrams) > 4
    refused = found(chromium, f"{mermaid}</script><script>{DIAGRAMS}", diagrams, "--virtual-time-budget=60000")
    assert [said.partition(":")[0] for said in refused] == ["planted"]


@pytest.fixture
def with_diagrams(site):
    """Copies of the pages with diagrams, with their scripts, whose drawings can be measured."""
    pages = [page for page in sorted(site.rglob("*.html")) if '<pre class="mermaid">' in page.read_text()]
    copies = [page.with_name(f"drawn-{page.name}") for page in pages]
    for page, copy in zip(pages, copies, strict=True):
        copy.write_text(page.read_text().replace("<head>", f"<head>{OPENED}", 1))
    yield copies
    for copy in copies:
        copy.unlink()


def test_every_diagram_can_be_read_on_a_phone_and_a_desktop_light_and_dark(chromium, with_diagrams):
    """As the site's scripts draw it. A diagram wider than the page scrolls within itself."""
    task = {"pages": [page.as_uri() for page in with_diagrams], "widths": [PHONE, DESKTOP], "schemes": [LIGHT, DARK]}
    assert len(task["pages"]) >= 3
    wrong = found(chromium, DRAWN, {**task, "smallest": SMALLEST}, "--virtual-time-budget=120000")
    assert "\n".join(wrong) == ""
