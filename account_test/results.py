"""The table of steps: what each proves, how it went, how long it took, and what AWS did differently from our model."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from account_test.judge import Finding


class Outcome(StrEnum):
    """Of a step."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What our model says, and what was measured. `same`: they agree; it is a figure worth having all the same."""

    about: str
    model: str
    measured: str
    same: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`why`: of a step that was not run, or that could not be carried out."""

    name: str
    proves: str
    findings: Sequence[Finding] = ()
    why: str = ""
    broken: bool = False
    seconds: float = 0.0
    differences: Sequence[Difference] = field(default_factory=tuple)

    @property
    def outcome(self) -> Outcome:
        """A step without a single finding was not run, whatever else is said."""
        if self.broken or any(not one.kept for one in self.findings):
            return Outcome.BROKEN
        return Outcome.KEPT if self.findings else Outcome.NOT_RUN

    @property
    def sentence(self) -> str:
        """For the table: what is broken, why it was not run, or how many promises were kept."""
        if self.outcome is Outcome.KEPT:
            rest = f"; {self.why}" if self.why else ""
            return f"{len(self.findings)} of {len(self.findings)} promises{rest}"
        broken = [f"{one.promise}: {one.found}" for one in self.findings if not one.kept]
        return "; ".join([*broken, *([self.why] if self.why else [])])

    def to_json(self) -> dict[str, Any]:
        """For results.json."""
        return {**asdict(self), "outcome": self.outcome.value, "sentence": self.sentence}


def succeeded(results: Sequence[Result]) -> bool:
    """Something was run, and nothing is broken."""
    return any(one.outcome is Outcome.KEPT for one in results) and not any(
        one.outcome is Outcome.BROKEN for one in results
    )
