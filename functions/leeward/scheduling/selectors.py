"""Label selectors and node requirements, parsed once into values that are equal when they mean the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, assert_never

from leeward.errors import InvalidInputError


class Operator(StrEnum):
    """Operator of a requirement; the last two are for nodes only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One line of `matchExpressions`. NotIn also holds where the label is missing, as in apimachinery."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a raw requirement; values are sorted, so that order makes no difference. Raises InvalidInputError for
        an unknown operator.
        """
        try:
            operator = Operator(raw["operator"])
        except ValueError:
            expected = ", ".join(Operator)
            raise InvalidInputError(f"operator: found {raw['operator']!r}, expected one of {expected}") from None
        return cls(key=raw["key"], operator=operator, values=tuple(sorted(set(raw.get("values") or ()))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet it. Gt and Lt compare whole numbers; any other value does not match."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                return self._compares(value)
            case _:
                assert_never(self.operator)

    def _compares(self, value: str | None) -> bool:
        try:
            have, bound = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return have > bound if self.operator is Operator.GT else have < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """One LabelSelector: all requirements hold. `nothing`: there was none, which selects no pod."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether it selects an object with these labels; the empty selector selects everything."""
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def empty(self) -> bool:
        """True if it selects everything."""
        return not self.nothing and not self.requirements

    @property
    def pair(self) -> tuple[str, str] | None:
        """Label that every selected pod carries, for looking selectors up by it; None when there is no such label."""
        for requirement in self.requirements:
            if requirement.operator is Operator.IN and len(requirement.values) == 1:
                return requirement.key, requirement.values[0]
        return None


def selector(
    raw: Mapping[str, Any] | None,
    own: Mapping[str, str],
    *,
    same: Sequence[str] = (),
    different: Sequence[str] = (),
) -> Selector:
    """Return a LabelSelector with `matchLabelKeys` (`same`) and `mismatchLabelKeys` (`different`) of a pod's `own`
    labels.

    Keys that the pod does not carry are left out (KEP 3243, KEP 3633). Raises InvalidInputError.
    """
    if raw is None:
        return Selector(nothing=True)
    found = [_is(key, value) for key, value in (raw.get("matchLabels") or {}).items()]
    found += [Requirement.from_json(one) for one in raw.get("matchExpressions") or ()]
    found += [_is(key, own[key]) for key in same if key in own]
    found += [Requirement(key=k, operator=Operator.NOT_IN, values=(own[k],)) for k in different if k in own]
    return Selector(requirements=canonical(found))


def canonical(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Return the requirements without duplicates, in a fixed order."""
    return tuple(sorted(set(requirements), key=lambda one: (one.key, one.operator, one.values)))


def _is(key: str, value: str) -> Requirement:
    return Requirement(key=key, operator=Operator.IN, values=(value,))
