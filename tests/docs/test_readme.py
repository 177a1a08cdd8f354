"""README is one screen: the problem, a picture, how to try it, how to test it, its state, and where to read on."""

import re
from pathlib import Path

README = Path("README.md").read_text()
ONE_SCREEN = 50  # lines


def test_readme_is_one_screen_with_what_a_visitor_looks_for():
    assert len(README.splitlines()) <= ONE_SCREEN
    parts = (
        r"!\[.+\]\(docs/",
        r"(?m)^make demo",
        r"(?m)^make test",
        r"(?m)^pipx install",
        r"\*\*Status\*\*",
        r"docs/troubleshooting",
    )
    assert [part for part in parts if not re.search(part, README)] == []


def test_readme_leads_to_every_section_of_the_site():
    navigation = re.findall(r"(?m)^  - ([A-Z][\w -]+):", Path("mkdocs.yml").read_text().partition("\nnav:")[2])
    assert {"How-to", "Coming from", "Operate", "Reference", "Internals"} <= set(navigation)
    pages = ("getting-started-local", "getting-started-account", "how-to/README", "coming-from/README", "concepts")
    pages += ("comparison", "costs", "compatibility", "permissions", "troubleshooting", "security", "glossary")
    assert [page for page in pages if f"(docs/{page}.md)" not in README] == []
