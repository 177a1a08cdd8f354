"""A page has the same lists, tables, blocks and headings on a Git host and on the site."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import markdown
import pytest
from markdown_it import MarkdownIt

from documentation.dialect import for_python_markdown
from documentation.links import for_site, site_file
from tests.docs.pages import PAGES

COMMONMARK = MarkdownIt("commonmark").enable("table")
COUNTED = {"h1", "h2", "h3", "h4", "li", "ol", "ul", "table", "tr", "td", "th", "pre", "img"}


class Elements(HTMLParser):
    """How many elements of each kind the text of a page has."""

    def __init__(self, text):
        super().__init__()
        self.counted, self._kinds = Counter(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in COUNTED and "pre" not in self._kinds:
            self.counted[tag] += 1
        if tag == "pre":
            self._kinds.append(tag)

    def handle_endtag(self, tag):
        if tag == "pre" and self._kinds:
            self._kinds.pop()


def on_a_git_host(text):
    return Elements(COMMONMARK.render(text)).counted


def on_the_site(html):
    article = html.partition("<article")[2].partition("</article>")[0]
    return Elements(article.partition('class="md-source-file"')[0]).counted


def test_a_page_has_the_same_parts_on_both(site):
    different = []
    for page in PAGES:
        html = site / site_file(str(page)).replace("README.md", "index.md").replace(".md", ".html")
        host, ours = on_a_git_host(page.read_text()), on_the_site(html.read_text())
        if host != ours:
            different.append(f"{page}: {dict(host - ours)} only on a Git host, {dict(ours - host)} only on the site")
    assert "\n".join(different) == ""


EXTENSIONS = ["admonition", "tables", "pymdownx.superfences"]
LIST_AFTER_TEXT = "Text:\n* one\n* two\n\n  ```bash\n  ls\n  ```\n"
NESTED = "1. one\n   * inner\n\n   more\n2. two\n"
TABLE_AFTER_TEXT = "Text\n| a | b |\n|---|---|\n| `x\\|y` | z |\n"


@pytest.mark.parametrize("text", [LIST_AFTER_TEXT, NESTED, TABLE_AFTER_TEXT])
def test_what_the_parsers_read_differently_is_rewritten(text):
    def read(source):
        return Elements(markdown.markdown(source, extensions=EXTENSIONS)).counted

    assert read(for_python_markdown(text)) == on_a_git_host(text)
    assert read(text) != on_a_git_host(text) or "|" in text


def test_a_pipe_in_code_of_a_table_is_shown_once():
    assert "<code>x|y</code>" in markdown.markdown(for_python_markdown(TABLE_AFTER_TEXT), extensions=EXTENSIONS)


def test_alerts_and_marks_are_shown():
    page = "> [!WARNING]\n> Read this.\n\n<!-- account: it deploys -->\n\n```bash\n> [!NOTE]\n```\n"
    shown = for_python_markdown(page)
    assert "!!! warning\n    Read this." in shown
    assert "needs an AWS account: it deploys" in shown
    assert "\n> [!NOTE]\n" in shown


def test_links_between_root_and_docs_stay_links():
    text = "[a](docs/policy.md#x) `[b](docs/y.md)` ![c](docs/a.svg) [d](https://example.com) [e](docs/designs/)\n"
    assert for_site("README.md", text, Path.cwd()) == (
        "[a](policy.md#x) `[b](docs/y.md)` ![c](a.svg) [d](https://example.com) [e](designs/README.md)\n"
    )
    assert for_site("docs/policy.md", "[a](../README.md) [b](../Makefile)\n", Path.cwd()) == (
        "[a](index.md) [b](repository/Makefile)\n"
    )
