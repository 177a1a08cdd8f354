"""The site in Chromium, on a phone and on a desktop, light and dark: no page scrolls sideways, text can be read."""

import json
import re
from pathlib import Path

from tests.local.browser import Dom, chromium

__all__ = ["chromium"]  # a fixture

DIAGRAMS = Path(__file__).with_name("diagrams.js").read_text(encoding="utf-8")
PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]
LAYOUT = Path(__file__).with_name("layout.js").read_text(encoding="utf-8")
PHONE, DESKTOP = 390, 1440
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


def test_no_page_scrolls_sideways_and_every_text_can_be_read(chromium, site):
    pages = [page.as_uri() for page in sorted(site.rglob("*.html")) if page.name != "404.html"]  # needs a server
    task = {"pages": pages, "widths": [PHONE, DESKTOP], "schemes": [LIGHT, DARK]}
    assert len(pages) > 40
    assert "\n".join(found(chromium, LAYOUT, task)) == ""


def test_mermaid_reads_every_diagram(chromium, site):
    diagrams = [
        (str(page), text) for page in PAGES for text in re.findall(r"(?ms)^```mermaid\n(.*?)^```$", page.read_text())
    ]
    mermaid = (site / "assets/vendor/mermaid.js").read_text(encoding="utf-8")
    assert len(diagrams) >= 6
    assert found(chromium, f"{mermaid}</script><script>{DIAGRAMS}", diagrams, "--virtual-time-budget=60000") == []
    broken = [("here", "flowchart TD\n  A -->")]
    assert found(chromium, f"{mermaid}</script><script>{DIAGRAMS}", broken, "--virtual-time-budget=60000") != []
