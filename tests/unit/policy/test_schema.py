"""docs/schema/node-policy.json and docs/policy.md say what the parser says."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given

from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterSettings, GroupSelector, NodePolicy
from leeward.policy.durations import parse_duration
from leeward.policy.parse import parse_documents
from leeward.policy.write import canonical, to_json
from tests.unit.policy.documents import a_policy, some_settings
from tests.unit.policy.strategies import cluster_settings, node_policies
from tests.unit.policy.test_parse import REFUSALS

SCHEMA = json.loads(Path("docs/schema/node-policy.json").read_text())
REFERENCE = Path("docs/policy.md").read_text()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
BEYOND_A_SCHEMA = re.compile(
    r"heartbeat|expireAfter$|budgets\[0\]\.(schedule|duration|timeZone)$|minValues|requirements\[0\]\.values"
    r"|taints\[1\]|minimumSavings\.perHour$|labels$|timeout$"
)  # ranges of durations, cron lines, time zones, what one key asks of another, NaN, keys that are no text
ALIASES = {"ttlSecondsAfterEmpty", "ttlSecondsUntilExpired", "maxUnavailablePercentage"}


def properties(schema, path=()):
    """Every (path, property) of a schema, through its references and lists."""
    schema = {**schema, **(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else {})}
    if "items" in schema:
        yield from properties(schema["items"], path)
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name), inner
        yield from properties(inner, (*path, name))


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@given(node_policies())
def test_every_policy_fits_the_schema(policy):
    VALIDATOR.validate(to_json(policy))
    VALIDATOR.validate(json.loads(canonical(policy)))


@given(cluster_settings())
def test_all_settings_fit_the_schema(settings):
    VALIDATOR.validate(to_json(settings))
    VALIDATOR.validate(json.loads(canonical(settings)))


@pytest.mark.parametrize(
    "spec",
    [
        case[0] for case in REFUSALS if not BEYOND_A_SCHEMA.search(case[1]) and case[2] != "1.0"
    ],  # 1.0 is an integer there
    ids=str,
)
def test_the_schema_refuses_what_the_parser_refuses(spec):
    assert not VALIDATOR.is_valid(a_policy(**spec))


@pytest.mark.parametrize(
    "document",
    [some_settings(speed=1), some_settings(drift=1), some_settings(paused=True), {**a_policy(), "kind": "Pod"}],
)
def test_the_schema_refuses_wrong_documents(document):
    assert not VALIDATOR.is_valid(document)


def test_the_schema_has_exactly_the_keys_that_the_parser_knows():
    for kind, document in (
        ("NodePolicy", NodePolicy(name="x", selector=GroupSelector(groups=("x",)))),
        ("ClusterSettings", ClusterSettings(name="x")),
    ):
        spec = SCHEMA["$defs"][kind]["properties"]["spec"]
        for path, _ in properties(spec):
            if "[" not in str(path):
                assert accepts(kind, path), path
        whole = to_json(document)["spec"]
        assert set(whole) == set(spec["properties"])


def accepts(kind, path):
    """Whether the parser knows the key at this path, whatever it thinks of the value."""
    value = "nonsense"
    for name in reversed(path):
        value = (
            {name: value}
            if name not in {"budgets", "windows", "requirements", "taints", "startupTaints", "freeze", "conditions"}
            else {name: [value]}
        )
    document = {"apiVersion": "leeward.dev/v1", "kind": kind, "metadata": {"name": "x"}, "spec": value}
    try:
        parse_documents([("x", document)], cluster="x")
    except InvalidPolicyError as refused:
        return "an unknown key" not in str(refused)
    return True


@pytest.mark.parametrize(
    "document",
    [NodePolicy(name="x", selector=GroupSelector()), ClusterSettings(name="x")],
    ids=["NodePolicy", "ClusterSettings"],
)
def test_the_schemas_defaults_are_the_parsers(document):
    written = to_json(document)
    wrong = [
        path
        for path, inner in properties(SCHEMA["$defs"][written["kind"]]["properties"]["spec"])
        if "default" in inner
        and path[-1] not in {"value", "timeZone", "values"}  # of list elements
        and not same(found(written["spec"], path), inner["default"])
    ]
    assert wrong == []


def found(document, path):
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def same(left, right):
    try:
        return parse_duration(left) == parse_duration(right)
    except ValueError:
        return left == right


def test_the_reference_mentions_every_key_and_every_word():
    keys = {path[-1] for name in ("NodePolicy", "ClusterSettings") for path, _ in properties(SCHEMA["$defs"][name])}
    words = {word for inner in walk(SCHEMA) for word in inner.get("enum", ())}
    assert {key for key in keys | words | ALIASES if not re.search(rf"\b{re.escape(key)}\b", REFERENCE)} == set()


def walk(value):
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def test_the_references_defaults_are_the_parsers():
    rows = re.findall(r"^\| `([\w.]+)` \| `([^`]+)` \|", REFERENCE, re.MULTILINE)
    spec = to_json(NodePolicy(name="x", selector=GroupSelector()))["spec"]
    settings = to_json(ClusterSettings(name="x"))["spec"]
    checked = 0
    for key, default in rows:
        candidates = [
            value
            for part in (*[section for section in spec.values() if isinstance(section, dict)], settings)
            if (value := found(part, key.split("."))) is not None
        ]
        if candidates:
            written = [default, default.strip('"')]
            spelled = {json.dumps(value).strip('"') if not isinstance(value, str) else value for value in candidates}
            assert any(same(word, value) for word in written for value in spelled) or "nodes" in default, key
            checked += 1
    assert checked > 40
