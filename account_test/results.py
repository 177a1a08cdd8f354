"""Table of steps: the claim, outcome and duration of each, and the differences between AWS and our model."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from account_test.judge import Finding


class Outcome(StrEnum):
    """Outcome of a step."""

    KEPT = "kept"
    BROKEN = "broken"
    UNPROVEN = "unproven"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference between our model and a measurement. `same`: they agree, and the figure is still reported."""

    about: str
    model: str
    measured: str
    same: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of a step. `why`: reason that the step was not run or could not be carried out."""

    name: str
    proves: str
    findings: Sequence[Finding] = ()
    why: str = ""
    broken: bool = False
    seconds: float = 0.0
    differences: Sequence[Difference] = field(default_factory=tuple)

    @property
    def outcome(self) -> Outcome:
        """Outcome of the step: without a single finding it was not run, whatever else is reported. One promise that
        could not be shown leaves the step unproven, however many others were kept.
        """
        if self.broken or any(one.broken for one in self.findings):
            return Outcome.BROKEN
        if any(one.unproven for one in self.findings):
            return Outcome.UNPROVEN
        return Outcome.KEPT if self.findings else Outcome.NOT_RUN

    @property
    def sentence(self) -> str:
        """Sentence for the table: broken promises, those that are unproven, the reason for not running, or the number
        of promises kept.
        """
        parts = [f"{one.promise}: {one.found}" for one in self.findings if one.broken]
        if self.outcome in {Outcome.KEPT, Outcome.UNPROVEN}:
            parts.append(f"{sum(one.kept for one in self.findings)} of {len(self.findings)} promises")
        parts += [f"unproven: {one.promise}: {one.found}" for one in self.findings if one.unproven]
        return "; ".join([*parts, *([self.why] if self.why else [])])

    def shown_by(self, step: str, promises: Callable[[str], bool]) -> Self:
        """Return the result in which these unproven promises are kept, because another step has shown them."""
        findings = [
            replace(one, kept=True, unproven=False, found=f"shown by the step {step}")
            if one.unproven and promises(one.promise)
            else one
            for one in self.findings
        ]
        return replace(self, findings=findings)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for results.json."""
        return {**asdict(self), "outcome": self.outcome.value, "sentence": self.sentence}


def succeeded(results: Sequence[Result]) -> bool:
    """Return whether at least one step was run and nothing is broken. What is unproven is no success: the last lines of
    the run name it.
    """
    return any(one.outcome is Outcome.KEPT for one in results) and not any(
        one.outcome is Outcome.BROKEN for one in results
    )
