"""Target of the fuzzer: the source of its inputs and the check of each of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from random import Random
from typing import ClassVar, Generic, TypeVar

Input = TypeVar("Input")


class Disagreement(Exception):
    """Answer that the target's oracle does not give; the message says what was found and what was expected."""


class Target(ABC, Generic[Input]):
    """Reader of something from outside. An input is a JSON value, so that one that fails can be kept in a file."""

    name: ClassVar[str]
    goal: ClassVar[int]  # inputs of `make fuzz`
    short: ClassVar[int]  # inputs of `make test`

    @abstractmethod
    def generate(self, chance: Random) -> Input:
        """Return an input that follows from `chance` alone."""

    @abstractmethod
    def check(self, value: Input) -> None:
        """Read the input. Raises Disagreement, and whatever the reader raises that it does not document."""

    @abstractmethod
    def smaller(self, value: Input) -> Iterator[Input]:
        """Yield inputs with less in them, the smallest first."""

    def close(self) -> None:
        """Give back what the target holds outside of the process; most hold nothing."""
        return


def shorter_texts(text: str) -> Iterator[str]:
    """Yield the text without one of its parts: first large ones, in the end single characters."""
    size = len(text) // 2
    while size:
        for start in range(0, len(text), size):
            yield text[:start] + text[start + size :]
        size //= 2
