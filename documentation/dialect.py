"""Markdown as Git hosts read it, rewritten for Python-Markdown, which MkDocs uses.

Pages are written for both readers. Python-Markdown wants a blank line before a list or a table, nested blocks four
columns deeper, and plain pipes in code within tables; it does not know alerts (`> [!NOTE]`).
"""

import re
from collections.abc import Iterable, Iterator

from documentation.blocks import ACCOUNT

ACCOUNT_NOTE = r'<p class="account">needs an AWS account: \1</p>'
ALERTS = {"NOTE": "note", "TIP": "tip", "IMPORTANT": "info", "WARNING": "warning", "CAUTION": "danger"}
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})")
_ITEM = re.compile(r"^(\s*)([*+-]|\d+[.)])(\s+)(?=\S)")
_ALERT = re.compile(r"^> \[!(\w+)\]\s*$")
_CODE = re.compile(r"(`+)(.+?)\1(?!`)")


def fenced(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Return each line with whether it belongs to a fenced block, its fences included."""
    end = None
    for line in lines:
        match = FENCE.match(line)
        if end is None and match:
            end = match[2]
            yield line, True
        elif end is not None:
            yield line, True
            if match and match[2].startswith(end) and not line.strip().strip(end[0]):
                end = None
        else:
            yield line, False


def for_python_markdown(text: str) -> str:
    """Return the page with the same meaning for Python-Markdown."""
    return "\n".join(_separated(_indented(_alerts(text.splitlines())))) + "\n"


def _alerts(lines: Iterable[str]) -> Iterator[str]:
    """Rewrite alerts as admonitions, marks as notes, and escaped pipes in code of tables as pipes."""
    inside = False
    for line, code in fenced(lines):
        alert = _ALERT.match(line)
        if code:
            yield line
        elif alert and alert[1] in ALERTS:
            inside = True
            yield f"!!! {ALERTS[alert[1]]}"
        elif inside and line.startswith(">"):
            yield f"    {line[1:].strip()}".rstrip()
        else:
            inside = False
            yield _plain_pipes(line) if line.startswith("|") else ACCOUNT.sub(ACCOUNT_NOTE, line)


def _plain_pipes(row: str) -> str:
    return _CODE.sub(lambda code: code[0].replace(r"\|", "|"), row)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    """Indent what belongs to a list item by four columns for each level, whatever its marker's width."""
    contents: list[int] = []  # of each open item, the column at which its content begins
    for line, code in fenced(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            yield line
            continue
        item = None if code else _ITEM.match(line)
        if not contents and not item:
            yield line
            continue
        while contents and indent < contents[-1] and not (code and indent == 0 and not FENCE.match(line)):
            contents.pop()
        depth = len(contents)
        yield " " * (4 * depth + indent - (contents[-1] if contents else 0)) + line.lstrip()
        if item:
            contents.append(len(item[0]))


def _separated(lines: Iterable[str]) -> Iterator[str]:
    """Insert a blank line before a list or a table that follows a paragraph, also one within an item of the list."""
    before, in_list, in_table, continued = "", False, False, False
    for line, code in fenced(lines):
        starts_item = not code and bool(_ITEM.match(line))
        starts_row = not code and line.lstrip().startswith("|")
        begins_list = starts_item and (not in_list or continued)
        if before.strip() and (begins_list or (starts_row and not in_table)):
            yield ""
        if line.strip():
            continued = not starts_item and (continued or not before.strip())  # a later paragraph of the item
            in_list = starts_item or (in_list and (line.startswith(" ") or before.strip() != ""))
            in_table = starts_row
        elif before.strip():
            in_table = False
        before = line
        yield line
