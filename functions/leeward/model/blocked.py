"""One line of what a drain waits for, as steps write it into records and into their answers."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from leeward.model.times import parse_instant

_OF_A_POD = re.compile(r"([^\s/]+/[^\s/:]+): (.*)", re.DOTALL)  # namespace/name: why
_UNTIL = re.compile(r", until (\d{4}-\d\d-\d\dT[\d:.]+Z)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedLine:
    """`pod`: who does not leave, None where the line is about no pod; `until`: as the line itself says."""

    pod: str | None
    why: str
    until: datetime | None = None

    @classmethod
    def read(cls, line: str) -> Self:
        """A pod's line is `namespace/name: why`; any other is all why."""
        of_a_pod, said = _OF_A_POD.match(line), _UNTIL.search(line)
        return cls(
            pod=of_a_pod[1] if of_a_pod else None,
            why=of_a_pod[2] if of_a_pod else line,
            until=parse_instant(said[1]) if said else None,
        )
