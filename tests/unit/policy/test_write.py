import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy
from leeward.policy.parse import parse_documents
from leeward.policy.write import canonical, parameters, to_json
from tests.unit.policy.documents import a_policy, parse
from tests.unit.policy.strategies import cluster_settings, node_policies


def read_back(text):
    parsed = parse_documents([("parameter", json.loads(text))], cluster="")
    return parsed.policies[0] if parsed.policies else parsed.settings


@given(node_policies())
def test_a_policy_survives_its_canonical_json(policy):
    assert read_back(canonical(policy)) == policy


@given(node_policies())
def test_a_policy_survives_being_written_whole(policy):
    whole = to_json(policy)
    assert read_back(json.dumps(whole)) == policy
    assert whole == to_json(read_back(json.dumps(whole)))


@given(cluster_settings())
def test_settings_survive_their_canonical_json(settings):
    assert read_back(canonical(settings)) == settings


@given(node_policies())
def test_canonical_json_is_the_same_for_every_spelling_of_a_policy(policy):
    text = canonical(policy)
    assert canonical(read_back(text)) == text
    assert canonical(read_back(json.dumps(to_json(policy), indent=3))) == text
    assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False) == text


def test_canonical_json_is_sorted_compact_and_leaves_defaults_out():
    spec = {"drain": {"timeout": "900s", "settle": "90s"}, "disruption": {"ttlSecondsAfterEmpty": 30}}
    (policy,) = parse(a_policy(**spec)).policies
    assert canonical(policy) == (
        '{"apiVersion":"leeward.dev/v1","kind":"NodePolicy","metadata":{"name":"web"},'
        '"spec":{"disruption":{"consolidateAfter":"30s"},"drain":{"settle":"1m30s"},"selector":{"groups":["web-*"]}}}'
    )


def test_parameters_are_numbered_in_order_with_the_settings_first():
    written = parse(
        a_policy("web"),
        a_policy("api"),
        {**a_policy("x"), "kind": "ClusterSettings", "metadata": {"name": "prod"}, "spec": {"drift": False}},
    )
    names = [name for name, _ in parameters(written)]
    assert names == ["00-prod", "01-web", "02-api"]
    documents = [(name, json.loads(text)) for name, text in parameters(written)]
    assert parse_documents(documents, cluster="prod") == written


def test_settings_that_say_nothing_need_no_parameter():
    assert parameters(ClusterPolicies(settings=ClusterSettings(name="prod"))) == []


def policy_of_size(extra):
    return NodePolicy(name="web", selector=GroupSelector(groups=("g" * extra,)))


def test_a_document_over_8_kb_is_refused_by_name_and_one_of_8_kb_is_not():
    frame = len(canonical(policy_of_size(1))) - 1
    fitting = policy_of_size(8192 - frame)
    settings = ClusterSettings(name="prod")
    assert len(parameters(ClusterPolicies(settings=settings, policies=(fitting,)))[0][1]) == 8192
    with pytest.raises(InvalidPolicyError) as refused:
        parameters(ClusterPolicies(settings=settings, policies=(policy_of_size(8193 - frame),)))
    assert str(refused.value) == "01-web: document: found 8193 bytes as canonical JSON, expected at most 8192"


def test_more_policies_than_two_digits_can_order_are_refused():
    policies = tuple(NodePolicy(name=f"p{n}", selector=GroupSelector(groups=("g",))) for n in range(100))
    with pytest.raises(InvalidPolicyError, match="found 100 documents, expected at most 99"):
        parameters(ClusterPolicies(settings=ClusterSettings(name="prod"), policies=policies))


@given(st.integers(1, 10_000))
def test_an_alias_in_seconds_is_stored_under_the_newer_key(seconds):
    (policy,) = parse(a_policy(disruption={"ttlSecondsUntilExpired": seconds})).policies
    stored = json.loads(canonical(policy))["spec"]["disruption"]
    assert list(stored) == ["expireAfter"]
    assert read_back(canonical(policy)).disruption.expire_after == timedelta(seconds=seconds)
