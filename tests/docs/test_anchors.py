"""Links to a section lead there on a Git host as well, whose anchors `mkdocs build --strict` does not know."""

import posixpath
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from tests.docs.pages import PAGES

COMMONMARK = MarkdownIt("commonmark").enable("table")


@cache
def anchors(page):
    """The anchors of a page as GitHub makes them: lower case, without punctuation, blanks as hyphens, then a number."""
    tokens, found = COMMONMARK.parse(Path(page).read_text()), []
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(child.content for child in inline.children if child.type in {"text", "code_inline"})
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return frozenset(found)


def links(page):
    for token in COMMONMARK.parse(Path(page).read_text()):
        for child in token.children or ():
            if child.type == "link_open" and "#" in child.attrs["href"]:
                yield child.attrs["href"]


def test_every_link_to_a_section_leads_there_on_a_git_host():
    dead, seen = [], 0
    for page in map(str, PAGES):
        for href in links(page):
            path, _, anchor = href.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            if "://" in href or not target.endswith(".md"):
                continue
            seen += 1
            if anchor not in anchors(target):
                dead.append(f"{page}: {href}")
    assert seen > 100
    assert "\n".join(dead) == ""
