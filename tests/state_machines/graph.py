"""A state machine's definition, read as data: its states and which leads to which."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import leeward
from infra.asl import read_definition
from simulation.definitions import FILES

EXPRESSION = re.compile(r"\{%(.*?)%\}", re.DOTALL)
(ROOT,) = leeward.__path__


@dataclass(frozen=True)
class Graph:
    """`name` as in `simulation.definitions`."""

    name: str

    @cached_property
    def text(self) -> str:
        return json.dumps(self.definition, ensure_ascii=False)

    @cached_property
    def definition(self) -> dict[str, Any]:
        return read_definition(Path(ROOT) / FILES[self.name])

    @cached_property
    def states(self) -> dict[str, Any]:
        return self.definition["States"]

    def of_type(self, *types: str) -> dict[str, Any]:
        return {name: state for name, state in self.states.items() if state["Type"] in types}

    @property
    def tasks(self) -> dict[str, Any]:
        return self.of_type("Task")

    @property
    def pauses(self) -> set[str]:
        """Tasks that wait for their token: no function runs behind them."""
        return {name for name, task in self.tasks.items() if task["Resource"].endswith(".waitForTaskToken")}

    @property
    def expressions(self) -> list[str]:
        return [expression for text in _texts(self.definition) for expression in EXPRESSION.findall(text)]

    def transitions(self, *, catches: bool = True) -> set[tuple[str, str]]:
        """(from, to) of all states."""
        return {(name, to) for name, state in self.states.items() for to in targets(state, catches=catches)}

    def reached(self) -> set[str]:
        """From the first state, by any way."""
        return _reached([self.definition["StartAt"]], {name: targets(state) for name, state in self.states.items()})

    def loops(self, without: Iterable[str]) -> list[str]:
        """States that lead back to themselves without the states left out."""
        left_out = set(without)
        graph = {name: targets(state) for name, state in self.states.items() if name not in left_out}
        return [name for name in graph if name in _reached(graph[name], graph)]


def targets(state: Mapping[str, Any], *, catches: bool = True) -> list[str]:
    """Where it can lead."""
    found = [state["Next"]] if "Next" in state else []
    found += [choice["Next"] for choice in state.get("Choices", ())]
    found += [state["Default"]] if "Default" in state else []
    return found + ([catch["Next"] for catch in state.get("Catch", ())] if catches else [])


def existing() -> Iterator[str]:
    """Machines whose file is there."""
    return (name for name, file in FILES.items() if (Path(ROOT) / file).exists())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _reached(first: Iterable[str], graph: Mapping[str, list[str]]) -> set[str]:
    seen, open_ = set(), list(first)
    while open_:
        name = open_.pop()
        if name not in seen:
            seen.add(name)
            open_ += graph.get(name, ())
    return seen
