"""`make docs`: every page is in the navigation, every link and anchor leads somewhere, and no page calls outside."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import yaml

from documentation.links import ROOT_PAGES
from documentation.reference import pages as generated_pages
from tests.docs.conftest import build

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Loads(HTMLParser):
    """Return the addresses that a page loads without a click."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag in LOADED and named.get(LOADED[tag]) and named.get("rel") not in {"canonical", "next", "prev"}:
            self.found.append(named[LOADED[tag]])


def test_no_page_loads_anything_from_outside(site):
    pages, styles = sorted(site.rglob("*.html")), sorted(site.rglob("*.css"))
    assert len(pages) > 40
    outside = [
        f"{page.relative_to(site)}: {url}"
        for page in pages
        for url in Loads(page.read_text()).found
        if re.match(r"(?:https?:)?//", url)
    ]
    outside += [
        str(style) for style in styles if re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text())
    ]
    assert outside == []


def test_what_a_page_loads_is_in_the_site(site):
    missing = [
        f"{page.relative_to(site)}: {url}"
        for page in sorted(site.rglob("*.html"))
        if page.name != "404.html"  # a server shows it below any path
        for url in Loads(page.read_text()).found
        if not url.startswith("data:") and not (page.parent / url.partition("?")[0]).exists()
    ]
    assert missing == []


def test_a_dead_link_a_dead_anchor_and_a_page_without_navigation_fail_the_build(tmp_path):
    docs = tmp_path / "docs"
    shutil.copytree("docs", docs)
    with (docs / "glossary.md").open("a") as page:
        page.write("\n[a page](missing.md), [a section](policy.md#missing), [a file](../missing.py)\n")
    (docs / "lonely.md").write_text("# Lonely\n")
    planted = tmp_path / "mkdocs.yml"
    settings = Path("mkdocs.yml").read_text().replace("docs_dir: docs", f"docs_dir: {docs}")
    planted.write_text(settings.replace("[documentation/", f"[{Path.cwd()}/documentation/"))
    done = build("--config-file", planted, "--site-dir", tmp_path / "site")
    assert done.returncode != 0
    assert [word for word in ("missing.md", "#missing", "missing.py", "lonely.md") if word not in done.stderr] == []


def test_every_page_of_the_repository_is_a_page_of_the_site(site):
    files = [str(file.relative_to("docs")) for file in sorted(Path("docs").rglob("*.md"))] + list(ROOT_PAGES.values())
    shown = [file.replace("README.md", "index.html") if file.endswith("README.md") else file for file in files]
    assert [file for file in shown if not (site / file).with_suffix(".html").is_file()] == []


def test_generated_pages_say_what_parsers_and_schemas_say():
    stale = [str(page) for page, text in generated_pages().items() if page.read_text() != text]
    assert stale == [], "make reference writes them"


def test_plugins_and_themes_of_the_site_are_pinned_with_a_known_licence():
    pinned, licences = Path("requirements.in").read_text(), Path("supply_chain/licences.md").read_text()
    for package in ("mkdocs", "mkdocs-material", "markdown", "pymdown-extensions"):
        assert re.search(rf"(?m)^{package}==[\d.]+", pinned), package
        assert f"| {package} |" in licences, package
    for package in ("@mermaid-js/tiny", "iframe-worker"):
        assert f"| {package} |" in licences, package
    plugins = re.search(r"(?ms)^plugins:\n(.*?)^\S", Path("mkdocs.yml").read_text())
    names = [next(iter(plugin)) if isinstance(plugin, dict) else plugin for plugin in yaml.safe_load(plugins[1])]
    assert names == ["search", "offline"]  # both come with the two packages above
