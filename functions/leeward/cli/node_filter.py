"""Filters of commands that list nodes: `--group NAME` and kubectl's `-l SELECTOR`.

Decides what the options mean; the command decides which of its rows are of which node."""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from leeward.cli.context import ClusterContext

Labels = Mapping[str, str]
_NAME = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9._-]*"
_SET = re.compile(rf"(?P<key>{_NAME})\s+(?P<not>not)?in\s*\(\s*(?P<values>{_VALUE}(\s*,\s*{_VALUE})*)\s*\)")
_EQUAL = re.compile(rf"(?P<key>{_NAME})\s*(?P<how>!=|==|=)\s*(?P<value>{_VALUE})")
_EXISTS = re.compile(rf"(?P<not>!)?\s*(?P<key>{_NAME})")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """Nodes that a command lists. `group`: of this Auto Scaling group alone; `matches`: labels of nodes that count."""

    group: str | None
    matches: tuple[Callable[[Labels], bool], ...]

    def includes(self, labels: Labels, group: str | None) -> bool:
        """Return whether a node with these labels in this group counts."""
        return self.group in {None, group} and all(match(labels) for match in self.matches)


def add_node_filters(parser: argparse.ArgumentParser) -> None:
    """Add `--group` and `-l`."""
    parser.add_argument("--group", metavar="GROUP", help="only nodes of this Auto Scaling group")
    parser.add_argument(
        "-l", "--selector", metavar="SELECTOR", type=selector, default=(), help="only nodes with these labels: a=b,c!=d"
    )


def node_filter(arguments: argparse.Namespace, context: ClusterContext) -> NodeFilter:
    """Return the filter of the options. Raises InvalidInputError for a group that does not exist."""
    if arguments.group is not None:
        context.group(arguments.group)
    return NodeFilter(group=arguments.group, matches=arguments.selector)


def selector(text: str) -> tuple[Callable[[Labels], bool], ...]:
    """Parse a label selector as kubectl takes it. Raises ArgumentTypeError."""
    return tuple(_requirement(part.strip(), text) for part in _parts(text))


def _parts(text: str) -> Iterator[str]:
    """Yield the requirements: commas inside parentheses separate values."""
    yield from re.split(r",(?![^(]*\))", text)


def _requirement(part: str, text: str) -> Callable[[Labels], bool]:
    if found := _SET.fullmatch(part):
        key, negated = found["key"], bool(found["not"])
        values = {value.strip() for value in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) is not negated
    if found := _EQUAL.fullmatch(part):
        key, value, wanted = found["key"], found["value"], found["how"] != "!="
        return lambda labels: (labels.get(key) == value) is wanted
    if found := _EXISTS.fullmatch(part):
        key, absent = found["key"], bool(found["not"])
        return lambda labels: (key in labels) is not absent
    raise argparse.ArgumentTypeError(f"found {text!r}, expected a label selector such as team=web,zone!=a")
