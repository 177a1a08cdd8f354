"""Reader of a NodeConfig that is written in YAML, by ruamel.yaml's safe loader within limits.

The text is untrusted: every principal that may write a launch template can write it. It is short, shallow and plain, or
it is refused. Anchors, aliases and tags are refused, because a NodeConfig needs none; so are keys that occur twice, as
nodeadm's strict decoding does. Imported only where a NodeConfig is YAML: ruamel.yaml takes longer than many functions
need to begin."""

import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, ScalarEvent
from ruamel.yaml.nodes import MappingNode
from ruamel.yaml.scanner import Scanner

from leeward.errors import InvalidInputError

LONGEST = 16 * 1024  # characters; EC2 takes as many bytes of user data
DEEPEST = 24  # levels; a NodeConfig has six
LONGEST_PROBLEM = 200  # characters
_RESOLVED = ("null", "bool", "int", "float", "timestamp", "value", "merge")  # what a plain text may be taken for
_SCALARS: Mapping[str, Any] = {
    "": None, "~": None, "null": None, "true": True, "True": True, "false": False, "False": False
}  # fmt: skip
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def load(text: str) -> Any:
    """Return the one document of the text: mappings, lists, texts, integers, truth values and None. Every other plain
    scalar (a date, a fraction, `yes`) is its text. Raises InvalidInputError, which names the line where it is known.
    """
    if len(text) > LONGEST:
        raise InvalidInputError(f"found {len(text)} characters, expected at most {LONGEST}")
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = DEEPEST
    yaml.Scanner, yaml.Composer, yaml.Constructor = _ShallowScanner, _PlainComposer, _PlainConstructor
    try:
        return yaml.load(text)
    except InvalidInputError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise InvalidInputError(f"{where}{_one_line(error.problem or error.context)}") from error
    except YAMLError as error:
        raise InvalidInputError(_one_line(error)) from error
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        # the library's own mistakes with a text that is no YAML: the node counts with EKS' defaults all the same
        raise InvalidInputError(f"found what ruamel.yaml cannot read: {_one_line(repr(error))}") from error


class _ShallowScanner(Scanner):
    """Scanner that stops at a depth. The composer's limit comes too late for `[[[[…`: each bracket may begin a key, so
    that the scanner reads on, in a time that grows with the square of the depth.
    """

    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:
        if len(self.flow_context) >= DEEPEST:
            raise _refused(self.reader.get_mark(), "more brackets", f"at most {DEEPEST} levels")
        super().fetch_flow_collection_start(TokenClass, to_push)


class _PlainComposer(Composer):
    """Composer that refuses what could grow, or could make objects, before it is composed."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise _refused(event.start_mark, "an anchor or an alias", "each value written out")
        if event.ctag is not None:
            raise _refused(event.start_mark, f"the tag {event.ctag}", "a value without a tag")
        if isinstance(parent, MappingNode) and index is None and not isinstance(event, ScalarEvent):
            raise _refused(event.start_mark, "a list or a mapping as a key", "a text")
        return super().compose_node(parent, index)


class _PlainConstructor(SafeConstructor):
    """Constructor that takes plain scalars for texts, integers, truth values and None."""

    def plain(self, node: Any) -> Any:
        """Return the value of a plain scalar."""
        text = self.construct_scalar(node)
        if text in _SCALARS:
            return _SCALARS[text]
        return int(text) if _INTEGER.fullmatch(text) else text


for _tag in _RESOLVED:
    _PlainConstructor.add_constructor(f"tag:yaml.org,2002:{_tag}", _PlainConstructor.plain)


def _refused(mark: Any, found: str, expected: str) -> InvalidInputError:
    return InvalidInputError(f"line {mark.line + 1}: found {found[:LONGEST_PROBLEM]}, expected {expected}")


def _one_line(said: Any) -> str:
    return " ".join(str(said).split())[:LONGEST_PROBLEM]
