"""Evaluator of a NodeConfig's `maxPodsExpression`: the part of CEL that counts pods.

Whole numbers, the variables that nodeadm defines, arithmetic, comparisons and `a ? b : c`. Any other expression is
unknown, not an error. Source: awslabs/amazon-eks-ami, nodeadm/doc/api.md and internal/kubelet/maxpods."""

import re
from collections.abc import Callable, Mapping

LONGEST, DEEPEST, LARGEST = 200, 16, 10**6  # characters, brackets, pods and their factors
EXAMPLE: Mapping[str, int] = {"default_enis": 15, "ips_per_eni": 50, "max_pods": 737}  # of a large type
_TOKEN = re.compile(r"\s*(\d{1,6}|[a-z_]+|&&|\|\||[<>=!]=|[-+*/%()?:<>])", re.ASCII)


def _quotient(dividend: int, divisor: int) -> int:
    """Divide as CEL and Go do: towards zero."""
    size = abs(dividend) // abs(divisor)
    return size if (dividend < 0) == (divisor < 0) else -size


_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
        "==": lambda a, b: int(a == b),
        "!=": lambda a, b: int(a != b),
    },
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b)},
)


def evaluate(text: str, values: Mapping[str, int]) -> int | None:
    """Return the value of the expression; None where it cannot be read or is no number of pods."""
    if len(text) > LONGEST:
        return None
    try:
        reader = _ExpressionReader(_tokens(text), values)
        found = reader.choice()
        reader.expect("")
    except (ArithmeticError, KeyError, ValueError):
        return None
    return found if 0 < found < LARGEST else None


def is_understood(text: str) -> bool:
    """Return whether the expression counts pods on a large type: one that takes some off is negative on a tiny type."""
    return evaluate(text, EXAMPLE) is not None


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(text)
        tokens.append(match[1])
        at = match.end()
    return tokens


class _ExpressionReader:
    """Recursive descent over the tokens. Raises ValueError, KeyError or ArithmeticError for another language."""

    def __init__(self, tokens: list[str], values: Mapping[str, int]) -> None:
        self._tokens, self._values, self._depth = [*tokens, ""], values, 0

    def choice(self) -> int:
        """Read `condition ? value : value`, or what binds closer."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError("depth")
        condition = self._level(0)
        if self._tokens[0] == "?":
            self.expect("?")
            yes = self.choice()
            self.expect(":")
            no = self.choice()
            condition = yes if condition else no
        self._depth -= 1
        return condition

    def expect(self, token: str) -> None:
        """Consume the token."""
        if self._tokens.pop(0) != token:
            raise ValueError(token)

    def _level(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unit()
        found = self._level(level + 1)
        while self._tokens[0] in _LEVELS[level]:
            operator = _LEVELS[level][self._tokens.pop(0)]
            found = operator(found, self._level(level + 1))
            if abs(found) > LARGEST**2:
                raise ValueError("size")
        return found

    def _unit(self) -> int:
        token = self._tokens.pop(0)
        if token == "(":
            found = self.choice()
            self.expect(")")
            return found
        if token == "-":
            raise ValueError(token)  # a negative number counts no pods
        return int(token) if token.isdigit() else self._values[token]
