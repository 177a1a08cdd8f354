"""Split requests into the sizes that AWS takes, and join pages."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any


def chunks(values: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield distinct values in their first order, at most `size` at a time."""
    distinct = iter(dict.fromkeys(values))
    while chunk := list(islice(distinct, size)):
        yield chunk


def pages(client: Any, operation: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every page of a paged operation (botocore's snake_case name)."""
    yield from client.get_paginator(operation).paginate(**arguments)
