"""The code blocks of all pages, and the stored cluster on which offline commands are run."""

from pathlib import Path

from documentation.blocks import blocks
from documentation.links import ROOT_PAGES
from tests.docs.shell import SHELLS

PAGES = [page for page in map(Path, ROOT_PAGES) if page.name != "CHANGELOG.md"] + sorted(Path("docs").rglob("*.md"))
BLOCKS = [block for page in PAGES for block in blocks(str(page), page.read_text())]
COMMANDS = [block for block in BLOCKS if block.language in SHELLS]
DRAWN = "mermaid"  # by tests/docs/test_site_in_browser.py
DATA = {"json", "yaml"}
OUTPUT = "text"
RUN_BY = {"docs/getting-started-local.md": "tests/local/test_first_day.py"}  # pages that a test writes from its own run
FOLDER = Path("fuzz/corpus/folders/everything")
NAMES = {
    "NODE": "node-1",
    "GROUP": "web",
    "web-on-demand": "web",
    "message.json": "tests/events/spot_interruption.json",
}
