"""Links of the pages: from paths of the repository, as Git hosts resolve them, to files of the site."""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from documentation.dialect import fenced

DOCS = "docs"
ROOT_PAGES = {  # pages of the repository's root -> their files in the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "CHANGELOG.md": "project/changelog.md",
}
SOURCES = "repository"  # folder of the site with the files outside docs/ that pages link to
_LINK = re.compile(r"(?<!\\)(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))")
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1")
_OUTSIDE = re.compile(r"^(?:https?|mailto):")


def site_file(repository_path: str) -> str:
    """Return the file of the site that shows a file of the repository."""
    if repository_path in ROOT_PAGES:
        return ROOT_PAGES[repository_path]
    if repository_path.startswith(f"{DOCS}/"):
        return repository_path.removeprefix(f"{DOCS}/")
    return f"{SOURCES}/{repository_path}"


def repository_file(site_path: str) -> str:
    """Return the file of the repository that a page of the site is made from."""
    for source, page in ROOT_PAGES.items():
        if page == site_path:
            return source
    return f"{DOCS}/{site_path}"


def targets(page: str, text: str) -> Iterator[str]:
    """Return the paths within the repository that the page's links lead to, without anchors."""
    found: list[str] = []

    def remember(target: str) -> str:
        found.append(target)
        return target

    _map_links(text, remember)
    for target in found:
        path = target.partition("#")[0]
        if path and not _OUTSIDE.match(target):
            yield _resolved(page, path)


def for_site(page: str, text: str, root: Path = Path()) -> str:
    """Return the text of a page (a path of the repository) with its links as paths between files of the site."""
    own = posixpath.dirname(site_file(page))

    def rewritten(target: str) -> str:
        path, hash_, anchor = target.partition("#")
        if _OUTSIDE.match(target) or not path:
            return target
        resolved = _resolved(page, path)
        if (root / resolved).is_dir():
            resolved += "/README.md"
        return posixpath.relpath(site_file(resolved), own or ".") + hash_ + anchor

    return _map_links(text, rewritten)


def _resolved(page: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def _map_links(text: str, change: Callable[[str], str]) -> str:
    """Apply a function to the target of every link that stands outside of code."""
    lines = [
        line if code or line.startswith("    ") else _map_line(line, change) for line, code in fenced(text.splitlines())
    ]
    return "\n".join(lines) + "\n"


def _map_line(line: str, change: Callable[[str], str]) -> str:
    spans = [match.span() for match in _CODE.finditer(line)]

    def replaced(match: re.Match[str]) -> str:
        if any(start <= match.start() and match.end() <= end for start, end in spans):
            return match[0]
        return f"{match[1]}{change(match[2])}{match[3]}"

    return _LINK.sub(replaced, line)
