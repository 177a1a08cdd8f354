"""Run records, drawn as an HTML page that must hold no markup but its own."""

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

from fuzz import corpus
from fuzz.mutations import mutated_json
from fuzz.reduction import smaller_json
from fuzz.target import Disagreement, Target
from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from leeward.errors import InvalidInputError

HOSTILE = (
    "<zq onload=alert(1)>", "</title><zq>", '"><zq x="', "'><zq x='", "javascript:alert(1)", "</style><zq>", "]]><zq>",
    "<!--<zq>", "&lt;zq&gt;", "<zq/onerror=x", "\x00<zq>", "\ud800<zq>", "url(http://evil)", "<script>zq</script>",
)  # fmt: skip
ELEMENTS = frozenset(
    {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "h3",
        "i",
        "details",
        "summary",
        "p",
        "main",
        "ul",
        "li",
        "b",
        "span",
        "div",
    }
    | {"svg", "g", "defs", "pattern", "rect", "line", "path", "text", "tspan", "circle", "polygon", "polyline", "title"}
    | {"a", "table", "thead", "tbody", "tr", "th", "td", "br"}
)
LOADING = frozenset({"href", "src", "xlink:href"})
_TAG = re.compile(
    r"""<(?: !DOCTYPE\ html
        | /?([A-Za-z][A-Za-z0-9]*) ((?:\s+ [A-Za-z_:][\w:.-]* (?:= (?: "[^"<]*" | '[^'<]*' | [\w\#%./-]+))? )*) \s*/?
    )>""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""\s([A-Za-z_:][\w:.-]*)(?:=("[^"]*"|'[^']*'|[^\s>]+))?""")
VOID = frozenset({"meta", "br"})


class Reports(Target[Any]):
    """Run records with hostile texts in every place."""

    name = "reports"
    goal = 170_000
    short = 800

    def generate(self, chance: Random) -> Any:
        """Return a record with hostile texts, in two of three cases changed afterwards."""
        raw = json.loads(chance.choice(corpus.texts("reports/*.json")))
        for key in ("nodes", "workloads", "marks"):
            raw[key] = chance.sample(raw[key], k=chance.choice((0, 1, 1, len(raw[key]))))
        hostile = _with_texts(chance, raw)
        return hostile if chance.random() < 0.33 else mutated_json(chance, hostile)

    def check(self, value: Any) -> None:
        """Read and draw it."""
        try:
            record = RunRecord.from_json(value)
        except InvalidInputError as error:
            if ", expected " not in str(error):
                raise Disagreement(f"refusal: found {error}, expected what was found and expected") from error
            return
        hold(page(record))
        again = RunRecord.from_json(json.loads(json.dumps(record.to_json())))
        if again.to_json() != record.to_json():
            raise Disagreement("spelling: found another record, expected the same")

    def smaller(self, value: Any) -> Iterator[Any]:
        """Yield records with one part less."""
        return smaller_json(value)


def hold(html: str) -> None:
    """Raises Disagreement for a page with a tag or an attribute that the drawing does not make."""
    html.encode()
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    body = html if style is None else html.replace(style[1], "", 1)
    stack: list[str] = []
    at = 0
    for start in re.finditer("<", body):
        if start.start() < at:
            continue
        tag = _TAG.match(body, start.start())
        if tag is None:
            text = body[start.start() : start.start() + 100]
            raise Disagreement(f"tag: found {text!r}, expected one of the page's own")
        at = tag.end()
        if tag[1] is not None:
            _hold_tag(tag, stack)
    if stack:
        raise Disagreement(f"tag: found {stack} open, expected all closed")


def _hold_tag(tag: re.Match[str], stack: list[str]) -> None:
    name = tag[1]
    if name not in ELEMENTS:
        raise Disagreement(f"element: found {tag[0][:100]!r}, expected one of the page's own")
    for attribute, text in _ATTRIBUTE.findall(tag[2] or ""):
        known, value = attribute.lower(), text.strip("\"'").strip()
        if known.startswith("on") or (known in LOADING and not value.startswith("#")):
            raise Disagreement(f"attribute: found {attribute}={text[:100]}, expected none that acts or loads")
    if tag[0].startswith("</"):
        if not stack or stack.pop() != name:
            raise Disagreement(f"nesting: found {tag[0]}, expected the end of the innermost element")
    elif not tag[0].endswith("/>") and name not in VOID:
        stack.append(name)


def _with_texts(chance: Random, raw: Any, key: str = "") -> Any:
    if isinstance(raw, dict):
        return {name: _with_texts(chance, inner, name) for name, inner in raw.items()}
    if isinstance(raw, list):
        return [_with_texts(chance, inner, key) for inner in raw]
    free = key in {"name", "instance", "group", "zone", "capacityType", "text", "about", "notes", "node", "workload"}
    if isinstance(raw, str) and free and chance.random() < 0.5:
        return chance.choice(("", raw)) + chance.choice(HOSTILE)
    return raw
