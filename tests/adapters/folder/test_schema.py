"""The check of a snapshot's files decides as jsonschema does, and a refusal is one sentence with path and expected."""

import json
from functools import cache

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.adapters.folder.files import FILES
from leeward.adapters.folder.schema import FORMATS, SCHEMA, SchemaError, check_of
from leeward.disruption.command import CommandDecision, MethodName
from leeward.model.instance import CapacityType

DOCUMENT = json.loads(SCHEMA.read_text())
DEFINITIONS = DOCUMENT["$defs"]
CHECKER = jsonschema.FormatChecker(formats=())
for _name, _check in FORMATS.items():
    CHECKER.checks(_name)(lambda value, check=_check: not isinstance(value, str) or check(value))


@cache
def oracle(name):
    schema = {"$defs": DEFINITIONS, "$ref": f"#/$defs/{name}"}
    return jsonschema.Draft202012Validator(schema, format_checker=CHECKER)


def parts(schema):
    """The schema and all schemas in it."""
    yield schema
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from parts(schema[key])
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        yield from parts(inner)


ALL = [part for schema in DEFINITIONS.values() for part in parts(schema)]


def test_the_schema_is_one_and_defines_every_file():
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    assert FILES.keys() <= DEFINITIONS.keys()


def test_every_value_says_what_is_expected():
    scalars = [part for part in ALL if part.get("type", "object") not in ("object", "array") or "anyOf" in part]
    assert [part for part in scalars if "description" not in part] == []


def test_an_earlier_plan_has_the_words_of_the_code():
    plan = DEFINITIONS["plan"]["properties"]
    command = plan["commands"]["items"]["properties"]
    capacity = command["replacements"]["items"]["properties"]["capacityType"]["enum"]
    reported = (plan["method"]["enum"], command["decision"]["enum"], capacity)
    assert [sorted(words) for words in reported] == [sorted(one) for one in (MethodName, CommandDecision, CapacityType)]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),  # no JSON; jsonschema takes NaN for a number
    st.sampled_from(["", "x", "25%", "25%\n", "500m", "1Gi", "2024-05-01T12:00:00Z", "In", "Node", "CONTINUE"]),
)


@st.composite
def near(draw, schema, depth=0):
    """A value that mostly fits the schema."""
    if depth > 7 or draw(st.integers(0, 11)) == 0:
        return draw(LEAVES)
    while "$ref" in schema or "anyOf" in schema:
        named = schema.get("$ref", "").removeprefix("#/$defs/")
        schema = DEFINITIONS[named] if named else draw(st.sampled_from(schema["anyOf"]))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema.get("type") == "array":
        return draw(st.lists(near(schema["items"], depth + 1), max_size=2))
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        kept = [key for key in properties if key in schema.get("required", ()) or draw(st.integers(0, 3)) == 0]
        found = {key: draw(near(properties[key], depth + 1)) for key in kept}
        if "additionalProperties" in schema:
            found["k8s.io/x"] = draw(near(schema["additionalProperties"], depth + 1))
        return found
    return draw(LEAVES)


@given(st.data(), st.sampled_from(sorted(DEFINITIONS)))
def test_it_accepts_what_jsonschema_accepts(data, name):
    value = data.draw(near(DEFINITIONS[name]))
    try:
        check_of(name)(value, "")
    except SchemaError:
        assert not oracle(name).is_valid(value)
    else:
        assert oracle(name).is_valid(value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("nodes", {"metadata": {"name": "n", "labels": {"a/b": 1}}}, 'metadata.labels["a/b"]: found 1, expected text'),
        ("nodes", {"metadata": {}}, "metadata.name: found nothing, expected a value"),
        ("pdbs", {"metadata": {"name": "n"}, "spec": {"maxUnavailable": "x%"}}, "expected a whole number or a percent"),
        ("plan", {"commands": [{"decision": "keep", "nodes": ["n"]}]}, 'found "keep", expected one of delete, replace'),
        ("plan", {"commands": [{"decision": "delete", "nodes": []}]}, "found an empty list, expected at least one"),
        ("prices", [], "document: found a list, expected a mapping"),
        ("prices", {"on-demand": []}, "on-demand: found a list, expected a mapping"),
        ("prices", {"on-demand": {"m5.large": float("nan")}}, 'on-demand["m5.large"]: found NaN, expected a number'),
        (
            "prices",
            {"on-demand": {"m5.large": -0.9}},
            'on-demand["m5.large"]: found -0.9, expected a number, 0 or more',
        ),
        ("subnets", {"Tags": {}}, "SubnetId: found nothing, expected a value"),
        ("nodes", {"metadata": {"name": "n", "finalizers": "x"}}, 'metadata.finalizers: found "x", expected a list'),
        (
            "nodes",
            {"metadata": {"name": "n", "labels": {"\ud800": "x"}}},
            "found half of a surrogate pair, expected text",
        ),
    ],
)
def test_the_first_wrong_value_is_named_with_its_path(name, value, said):
    with pytest.raises(SchemaError) as error:
        check_of(name)(value, "")
    assert said in str(error.value)


@pytest.mark.parametrize("key", ["1", "01", "+1", "18446744073709551615", "9" * 40, "a/b", "~0", "1 "])
def test_a_key_of_digits_is_named_as_it_is_written(key):
    with pytest.raises(SchemaError) as refused:
        check_of("nodes")({"metadata": {"name": "n", "labels": {key: 5}}}, "items[0]")
    assert str(refused.value) == f'items[0].metadata.labels["{key}"]: found 5, expected text'


@pytest.mark.parametrize("prices", [{"": {"1a": "x"}}, {"": {"": "x"}}, {"": "x"}, {"m5": {"": "x"}}])
def test_an_empty_key_is_refused_too(prices):
    with pytest.raises(SchemaError, match="spot"):
        check_of("prices")({"spot": prices}, "")


def test_a_value_that_is_nested_too_deep_is_refused():
    nested = []
    for _ in range(400):
        nested = [nested]
    with pytest.raises(SchemaError, match=r"items\[3\]: found nesting out of all proportion, expected what the tool"):
        check_of("pods")({"metadata": {"name": "p"}, "spec": {"affinity": nested}}, "items[3]")
