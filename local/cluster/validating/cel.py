"""Small part of the Common Expression Language, enough for admission policies of tests.

Supported: literals (`true`, `null`, numbers, strings, lists), fields and indexes, `==`, `!=`, `<`, `<=`, `>`, `>=`,
`in`, `&&`, `||`, `!`, parentheses, `has()`, `size()` and the methods `startsWith`, `endsWith`, `contains`, `matches`.
Missing: arithmetic, the ternary, macros (`all`, `exists`, `map`), types, optionals and the Kubernetes libraries.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

Expression = Callable[[Mapping[str, Any]], Any]

_TOKEN = re.compile(
    r"""\s*(?:(\d+\.\d+|\d+)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_]\w*)|(&&|\|\||[=!<>]=|[-!<>()\[\].,]))"""
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"} | {sign: sign for sign in "\\'\"`?"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda item, container: item in container,
}
_METHODS: dict[str, Callable[..., Any]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "size": len,
}


class CelSyntaxError(ValueError):
    """Error: the expression is outside the supported part of CEL."""


class CelError(ValueError):
    """Error: the expression cannot be evaluated for this request, for example because a field is absent."""


def compiled(text: str) -> Expression:
    """Return the expression as a function of its variables. Raises CelSyntaxError; the function raises CelError."""
    parser = _Parser(_tokens(text))
    expression = parser.disjunction()
    if parser.peek():
        raise CelSyntaxError(f"unexpected {parser.peek()!r} in {text!r}")
    return expression


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            raise CelSyntaxError(f"unexpected {text[position:].strip()[:10]!r} in {text!r}")
        tokens.append(found.group().strip())
        position = found.end()
    return tokens


class _Parser:
    """Recursive descent parser; each method returns a function of the variables."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens

    def peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise CelSyntaxError(f"found {token or 'the end'!r}, expected {expected or 'an operand'!r}")
        return self._tokens.pop(0)

    def disjunction(self) -> Expression:
        left = self._conjunction()
        while self.peek() == "||":
            self._take()
            left = _joined(left, self._conjunction(), decided_by=True)
        return left

    def _conjunction(self) -> Expression:
        left = self._comparison()
        while self.peek() == "&&":
            self._take()
            left = _joined(left, self._comparison(), decided_by=False)
        return left

    def _comparison(self) -> Expression:
        left = self._unary()
        if self.peek() not in _COMPARISONS:
            return left
        return _applied(_COMPARISONS[self._take()], left, self._unary())

    def _unary(self) -> Expression:
        match self.peek():
            case "!":
                self._take()
                return _applied(operator.not_, self._unary())
            case "-":
                self._take()
                return _applied(operator.neg, self._unary())
            case _:
                return self._postfix(self._operand())

    def _operand(self) -> Expression:
        token = self._take()
        if token == "(":
            inner = self.disjunction()
            self._take(")")
            return inner
        if token == "[":
            items = self._arguments("]")
            return lambda variables: [item(variables) for item in items]
        if token[0] in "\"'":
            return _constant(_ESCAPE.sub(_unescaped, token[1:-1]))
        if token[0].isdigit():
            return _constant(float(token) if "." in token else int(token))
        if token in _CONSTANTS:
            return _constant(_CONSTANTS[token])
        return self._named(token)

    def _named(self, name: str) -> Expression:
        if not name.isidentifier():
            raise CelSyntaxError(f"unexpected {name!r}")
        if self.peek() != "(":
            return lambda variables: _field(variables, name)
        self._take("(")
        arguments = self._arguments(")")
        if name == "has" and len(arguments) == 1:
            return _present(arguments[0])
        if name == "size" and len(arguments) == 1:
            return _applied(len, arguments[0])
        raise CelSyntaxError(f"the function {name}() is not supported")

    def _postfix(self, left: Expression) -> Expression:
        while self.peek() in (".", "["):
            if self._take() == "[":
                index = self.disjunction()
                self._take("]")
                left = _applied(_item, left, index)
                continue
            name = self._take()
            if self.peek() != "(":
                left = _applied(_field, left, _constant(name))
                continue
            self._take("(")
            if name not in _METHODS:
                raise CelSyntaxError(f"the method {name}() is not supported")
            left = _applied(_METHODS[name], left, *self._arguments(")"))
        return left

    def _arguments(self, end: str) -> list[Expression]:
        found: list[Expression] = []
        while self.peek() != end:
            found.append(self.disjunction())
            if self.peek() != end:
                self._take(",")
        self._take(end)
        return found


def _unescaped(found: re.Match[str]) -> str:
    if found.group(1) not in _ESCAPED:
        raise CelSyntaxError(f"the escape {found.group()} is not supported")
    return _ESCAPED[found.group(1)]


def _constant(value: Any) -> Expression:
    return lambda _variables: value


def _applied(function: Callable[..., Any], *operands: Expression) -> Expression:
    def evaluate(variables: Mapping[str, Any]) -> Any:
        values = [operand(variables) for operand in operands]
        try:
            return function(*values)
        except (TypeError, re.error) as failure:
            raise CelError(f"no such overload: {failure}") from failure

    return evaluate


def _joined(left: Expression, right: Expression, *, decided_by: bool) -> Expression:
    """Join operands by `&&` or `||`: the value that decides wins over an error on the other side, in either order."""

    def evaluate(variables: Mapping[str, Any]) -> bool:
        try:
            if bool(left(variables)) is decided_by:
                return decided_by
        except CelError:
            if bool(right(variables)) is decided_by:
                return decided_by
            raise
        return bool(right(variables))

    return evaluate


def _present(field: Expression) -> Expression:
    def evaluate(variables: Mapping[str, Any]) -> bool:
        try:
            return field(variables) is not None
        except CelError:
            return False

    return evaluate


def _field(container: Any, name: str) -> Any:
    if isinstance(container, Mapping) and name in container:
        return container[name]
    raise CelError(f"no such key: {name}")


def _item(container: Any, index: Any) -> Any:
    try:
        return container[index]
    except (KeyError, IndexError, TypeError) as failure:
        raise CelError(f"no such key: {index}") from failure
