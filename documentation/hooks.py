"""Hooks of MkDocs: pages of the repository's root, files that pages link to, and scripts from node_modules."""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from documentation import links
from documentation.dialect import for_python_markdown

ROOT = Path(__file__).parent.parent
SCRIPTS = {  # from npm, so that a page calls nothing outside -> in the site
    "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js": "assets/vendor/mermaid.js",
    "node_modules/iframe-worker/shim/index.js": "assets/vendor/iframe-worker.js",
}

ANSWERS, DESIGNS = 3.0, 0.05
SEARCH: dict[str, dict[str, Any]] = {  # beginning of a page's path -> how the search treats it; the first that fits
    "benchmarks.md": {"exclude": True},
    "account-results.md": {"exclude": True},
    "project/": {"boost": DESIGNS},
    "designs/": {"boost": DESIGNS},
    "architecture.md": {"boost": DESIGNS},
    "features.md": {"boost": DESIGNS},
    "schema/": {"boost": DESIGNS},
    "how-to/": {"boost": ANSWERS},
    "troubleshooting.md": {"boost": 2 * ANSWERS},
    "operations.md": {"boost": ANSWERS},
    "runbooks.md": {"boost": 2 * ANSWERS},
    "coming-from/": {"boost": ANSWERS},
    "security.md": {"boost": ANSWERS},
    "zonal-shift.md": {"boost": ANSWERS},
    "coexistence.md": {"boost": ANSWERS},
}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the root, the scripts, and each file outside docs/ that a page links to."""
    for source, page in links.ROOT_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    for script, copy in SCRIPTS.items():
        files.append(File.generated(config, copy, abs_src_path=str(ROOT / script)))
    for file in files.documentation_pages():
        source = links.repository_file(file.src_uri)
        for target in links.targets(source, file.content_string):
            if (ROOT / target).is_file() and files.get_file_from_path(links.site_file(target)) is None:
                files.append(File.generated(config, links.site_file(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Return the page with links of the site, in the dialect of its parser; note how the search treats it."""
    source = links.repository_file(page.file.src_uri)
    settings = (how for start, how in SEARCH.items() if page.file.src_uri.startswith(start))
    page.meta.setdefault("search", next(settings, {}))
    return for_python_markdown(links.for_site(source, markdown, ROOT))
