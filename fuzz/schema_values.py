"""Values that fit the schema of a snapshot's files, with every odd value that it allows: they pass the check."""

import json
from functools import cache
from random import Random
from typing import Any

from fuzz.mutations import ODD_NUMBERS, ODD_TEXTS
from leeward.adapters.folder.files import FILES
from leeward.adapters.folder.schema import SCHEMA

NAMES = ("node-1", "node-2", "web", "mixed", "eks-managed", "managed", "shop", "us-east-1a", "us-east-1b", "m5.large")
INSTANTS = ("2024-05-01T12:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2024-04-01T00:00:00+23:59")
QUANTITIES = ("0", "1", "500m", "1.5Gi", "-1", "1e18", "9Ei", "0.1n", "1e-30", "100", "99999999999999999999")
_BOUND = 2**53


@cache
def _definitions() -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return definitions


class Values:
    """Values that follow from one chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def placed(self, name: str, document: Any) -> Any:
        """Return the file's document with one to three of its elements' fields replaced by ones that fit the schema."""
        keys = FILES[name].keys if name in FILES else ()
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            document = self._below(document, keys, name)
        return document

    def _below(self, value: Any, keys: tuple[str, ...], name: str) -> Any:
        if keys and isinstance(value, dict) and isinstance(value.get(keys[0]), list) and value[keys[0]]:
            items = list(value[keys[0]])
            at = self._chance.randrange(len(items))
            items[at] = self._below(items[at], keys[1:], name)
            return {**value, keys[0]: items}
        if not keys and isinstance(value, list) and value:
            return [self._below(value[0], (), name), *value[1:]]
        return self._replaced(value, _definitions()[name])

    def _replaced(self, value: Any, schema: dict[str, Any]) -> Any:
        """Return the value with one part, somewhere inside, that the schema has chosen."""
        schema = self._resolved(schema)
        properties = schema.get("properties")
        if isinstance(value, dict) and properties and self._chance.random() < 0.9:
            key = self._chance.choice(sorted(properties))
            if key not in value:
                return {**value, key: self.of(properties[key])}
            return {**value, key: self._replaced(value[key], properties[key])}
        if isinstance(value, list) and value and "items" in schema and self._chance.random() < 0.8:
            at = self._chance.randrange(len(value))
            return [*value[:at], self._replaced(value[at], schema["items"]), *value[at + 1 :]]
        return self.of(schema)

    def of(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """Return a value of this schema."""
        schema = self._resolved(schema)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        kind = schema.get("type", "any")
        kind = self._chance.choice(kind) if isinstance(kind, list) else kind
        match kind:
            case "object":
                return self._mapping(schema, depth)
            case "array":
                count = self._chance.choice((0, 1, 1, 2)) if depth < 9 else 0
                return [self.of(schema["items"], depth + 1) for _ in range(count)]
            case "boolean":
                return self._chance.random() < 0.5
            case "integer" | "number":
                return self._number(schema, kind)
            case "string":
                return self._text(schema)
        return self._chance.choice((None, True, 5, "x", [], {}))

    def _mapping(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        chosen = {key for key in properties if depth < 9 and self._chance.random() < 0.35}
        found = {key: self.of(properties[key], depth + 1) for key in sorted(chosen | set(schema.get("required", ())))}
        if "additionalProperties" in schema:
            for key in self._chance.sample((*NAMES, *ODD_TEXTS), k=self._chance.choice((0, 1, 2))):
                found[key] = self.of(schema["additionalProperties"], depth + 1)
        return found

    def _number(self, schema: dict[str, Any], kind: str) -> int | float:
        low, high = schema.get("minimum", -_BOUND), schema.get("maximum", _BOUND)
        number = self._chance.choice((low, high, low + 1, high - 1, 0, 1, -1, *ODD_NUMBERS))
        number = max(low, min(high, number))
        return int(number) if kind == "integer" else number

    def _text(self, schema: dict[str, Any]) -> str:
        if schema.get("format") == "instant":
            return self._chance.choice(INSTANTS)
        if schema.get("format") == "quantity":
            return self._chance.choice(QUANTITIES)
        if "pattern" in schema:
            return self._chance.choice(("0%", "25%", "100%", "999999999%"))
        text = self._chance.choice((*NAMES, *ODD_TEXTS)).replace("\ud800", "")
        return text or ("x" if schema.get("minLength") else "")

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema or "anyOf" in schema:
            named = schema.get("$ref", "").removeprefix("#/$defs/")
            schema = _definitions()[named] if named else self._chance.choice(schema["anyOf"])
        return schema
