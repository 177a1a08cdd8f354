"""Code blocks of the pages, fenced or indented, each with its mark.

`<!-- account: REASON -->` says that a block needs an AWS account, so that no test runs it. It stands directly before
the block; before the first section, followed by anything else, it is about every block of the page.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

ACCOUNT = re.compile(r"<!-- account: (.+?) -->")
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One code block. `language`: first word after the fence; `account`: reason of its mark or of its page's, or None;
    `marked`: the mark is its own.
    """

    page: str
    line: int
    language: str
    text: str
    account: str | None
    marked: bool

    @property
    def where(self) -> str:
        """Place of the block, for a message."""
        return f"{self.page}:{self.line}"


def blocks(page: str, text: str) -> Iterator[Block]:
    """Return the code blocks of a page, in its order. An indented block has no language."""
    tokens = [token for token in _PARSER.parse(text) if token.nesting != -1]
    whole = _mark_of_page(tokens)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type not in {"fence", "code_block"}:
            continue
        own = ACCOUNT.search(before.content) if before is not None and before.type == "html_block" else None
        yield Block(
            page=page,
            line=(token.map or [0])[0] + 1,
            language=(token.info.split() or [""])[0],
            text=token.content,
            account=own[1] if own else whole,
            marked=own is not None,
        )


def _mark_of_page(tokens: list[Token]) -> str | None:
    """Return the reason of a mark before the first section that no block follows directly."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and token.tag != "h1":
            return None
        mark = ACCOUNT.search(token.content) if token.type == "html_block" else None
        if mark and (after is None or after.type not in {"fence", "code_block"}):
            return mark[1]
    return None
