"""Which of many like worlds `make test` plays: a choice by the commit, the same on every machine.

Each commit tries others, so that some commits together try all of them; `make test-long` tries all at once. A build
that is broken on purpose (`tests/simulation/mutations`) meets all of them too, so that no draw hides it."""

import os
import subprocess
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from leeward import __version__

BROKEN_BUILD = "LEEWARD_BROKEN_BUILD"  # name of the build that is planted before the tests run


@cache
def commit() -> str:
    """The commit that is checked out, the version where there is no repository."""
    root = Path(__file__).parent
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() or __version__


def chosen(values: Iterable[Any], one_in: int, lot: str) -> list[Any]:
    """One in so many of the values, rounded up, in their own order."""
    given = list(values)
    number = -(-len(given) // one_in)
    first = sorted(given, key=lambda value: sha256(f"{lot} {value!r}".encode()).digest())[:number]
    return [value for value in given if value in first]


def drawn(values: Iterable[Any], one_in: int = 3) -> list[Any]:
    """The values as parameters of a test, those that are not drawn for the long forms. A tuple is several."""
    given = list(values)
    short = given if BROKEN_BUILD in os.environ else chosen(given, one_in, commit())
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=() if value in short else pytest.mark.long
        )
        for value in given
    ]
