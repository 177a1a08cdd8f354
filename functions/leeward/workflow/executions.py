"""Names of executions, and the start of one under a name that is free.

Step Functions keeps the name of a closed execution for 90 days. While an execution is open, a start under its name is
idempotent: every starter derives the names from the record, so that any number of starts ends with one execution."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from leeward.errors import RecordChangedError
from leeward.model.counts import count_of

if TYPE_CHECKING:
    from leeward.ports.executions import NamedExecutions

LONGEST_NAME = 80
_STRANGE = re.compile(r"[^0-9A-Za-z_-]+")


def execution_name(subject: str, *numbers: int) -> str:
    """Return `SUBJECT-NUMBER...` in characters that Step Functions accepts; a subject that does not fit is cut and gets
    a hash.
    """
    suffix = "".join(f"-{number}" for number in numbers)
    plain = _STRANGE.sub("-", subject)
    if plain != subject or len(plain) + len(suffix) > LONGEST_NAME:
        suffix = f"-{sha256(subject.encode()).hexdigest()[:8]}{suffix}"
    return plain[: LONGEST_NAME - len(suffix)] + suffix


def start_first_free(executions: NamedExecutions, names: Iterable[str], document: Mapping[str, Any]) -> str:
    """Start an execution under the first name that no closed execution has, and return it. Idempotent while it is open.
    Raises RecordChangedError if every name is taken: others have started and ended them meanwhile.
    """
    tried = []
    for name in names:
        if executions.start(name, document):
            return name
        tried.append(name)
    raise RecordChangedError(f"{count_of(len(tried), 'name is', 'names are')} taken, {tried[0]} to {tried[-1]}")
