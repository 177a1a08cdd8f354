"""What CloudFormation makes of a template with parameters before it fills in resources: conditions, lists, rules."""

import re
from collections.abc import Mapping
from typing import Any

_REMOVED = object()


class Refused(ValueError):
    """A parameter that CloudFormation would refuse, or a rule that fails."""


def resolved(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The template as it is for these parameters; references to resources and pseudo parameters stay."""
    values = parameters(template, given)
    made = _Resolver(values, template.get("Conditions", {}))
    for name, rule in template.get("Rules", {}).items():
        for assertion in rule["Assertions"]:
            if not made.true(assertion["Assert"]):
                raise Refused(f"{name}: {assertion['AssertDescription']}")
    resources = {
        name: made.value({key: value for key, value in resource.items() if key != "Condition"})
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or made.condition(resource["Condition"])
    }
    return {"Resources": resources, "Outputs": made.value(template["Outputs"])}


def parameters(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str | list[str]]:
    """Each parameter's value. Raises Refused."""
    if unknown := set(given) - set(template["Parameters"]):
        raise Refused(f"no parameter: {unknown}")
    values: dict[str, str | list[str]] = {}
    for name, definition in template["Parameters"].items():
        value = given.get(name, definition.get("Default"))
        if value is None:
            raise Refused(f"{name} needs a value")
        many = definition["Type"] == "CommaDelimitedList"
        for item in value.split(",") if many else [value]:
            if "AllowedPattern" in definition and not re.fullmatch(definition["AllowedPattern"], item):
                raise Refused(f"{name}: {item!r} does not match {definition['AllowedPattern']}")
            if "AllowedValues" in definition and item not in definition["AllowedValues"]:
                raise Refused(f"{name}: {item!r} is none of {definition['AllowedValues']}")
        values[name] = value.split(",") if many else value
    return values


class _Resolver:
    def __init__(self, values: Mapping[str, str | list[str]], conditions: Mapping[str, Any]) -> None:
        self._values = values
        self._conditions = conditions

    def condition(self, name: str) -> bool:
        return self.true(self._conditions[name])

    def true(self, expression: Any) -> bool:
        match expression:
            case {"Fn::Not": [inner]}:
                return not self.true(inner)
            case {"Fn::And": [*inner]}:
                assert 2 <= len(inner) <= 10
                return all(map(self.true, inner))
            case {"Fn::Or": [*inner]}:
                assert 2 <= len(inner) <= 10
                return any(map(self.true, inner))
            case {"Fn::Equals": [left, right]}:
                return bool(self.value(left) == self.value(right))
            case {"Condition": str(name)}:
                return self.condition(name)
        raise AssertionError(f"no condition: {expression}")

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [item for item in map(self.value, value) if item is not _REMOVED]
        if not isinstance(value, Mapping):
            return value
        if self._known(value):
            return self._called(value)
        items = {key: self.value(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _REMOVED}

    def _known(self, value: Mapping[str, Any]) -> bool:
        """A function that parameters alone decide, or a text with what they say in it."""
        name = next(iter(value), "")
        referred = name == "Ref" and (value["Ref"] == "AWS::NoValue" or value["Ref"] in self._values)
        return len(value) == 1 and (referred or name in {"Fn::If", "Fn::Join", "Fn::Split"})

    def _called(self, value: Mapping[str, Any]) -> Any:
        match value:
            case {"Fn::If": [str(condition), yes, no]}:
                return self.value(yes if self.condition(condition) else no)
            case {"Fn::Join": [str(delimiter), items]}:
                return _join(delimiter, self.value(items))
            case {"Fn::Split": [str(delimiter), text]}:
                return _split(delimiter, self.value(text))
        return self._values.get(value["Ref"], _REMOVED)


def _join(delimiter: str, items: list[Any]) -> Any:
    """A text, or a join of what is known only with the resources."""
    assert all(isinstance(item, str | Mapping) for item in items), items
    if all(isinstance(item, str) for item in items):
        return delimiter.join(items)
    return {"Fn::Join": [delimiter, items]}


def _split(delimiter: str, text: Any) -> list[Any]:
    """The items; those that a join by the same delimiter has put together are taken apart again."""
    if isinstance(text, str):
        return text.split(delimiter)
    by, items = text["Fn::Join"]
    assert by == delimiter
    return [part for item in items for part in (item.split(delimiter) if isinstance(item, str) else [item])]
