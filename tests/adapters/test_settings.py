"""A function's environment: everything that is wrong is said at once."""

import json

import pytest

from leeward.adapters.settings import KubernetesAccess, Settings
from leeward.errors import InvalidInputError

BLUE = {
    "name": "blue",
    "region": "eu-west-1",
    "account": "111122223333",
    "taintRole": "arn:aws:iam::111122223333:role/leeward-blue-taint",
    "actRole": "arn:aws:iam::111122223333:role/leeward-blue-act",
}
GOOD = {
    "CLUSTERS": json.dumps([BLUE, {**BLUE, "name": "green"}]),
    "DEPLOYMENT_ID": "111122223333-eu-west-1",
    "TABLE_NAME": "leeward",
    "STATE_MACHINE_ARN": "arn:aws:states:eu-west-1:111122223333:stateMachine:leeward-node-termination",
    "QUEUE_ARN": "arn:aws:sqs:eu-west-1:111122223333:leeward-interruption",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/111122223333/leeward-interruption-dead-letters",
    "POLICY_PREFIX": "/leeward/",
    "KUBERNETES_ACCESS": "act",
    "HOOK_TOPICS": '["arn:aws:sns:eu-west-1:111122223333:hooks"]',
}


def problems(**changes):
    with pytest.raises(InvalidInputError) as raised:
        Settings.from_env({name: value for name, value in {**GOOD, **changes}.items() if value is not None})
    return str(raised.value).splitlines()


def test_a_complete_environment_becomes_settings():
    settings = Settings.from_env(GOOD)
    assert [cluster.name for cluster in settings.clusters] == ["blue", "green"]
    assert settings.clusters[0].act_role.endswith("leeward-blue-act")
    assert (settings.policy_prefix, settings.kubernetes_access) == ("/leeward", KubernetesAccess.ACT)
    assert settings.queue_arns == {GOOD["QUEUE_ARN"], "arn:aws:sns:eu-west-1:111122223333:hooks"}


def test_hook_topics_may_be_left_out():
    assert Settings.from_env({**GOOD, "HOOK_TOPICS": ""}).queue_arns == {GOOD["QUEUE_ARN"]}


def test_everything_that_is_missing_is_said_at_once():
    with pytest.raises(InvalidInputError) as raised:
        Settings.from_env({})
    named = [line.split(":")[0] for line in str(raised.value).splitlines()]
    assert sorted(named) == sorted(set(GOOD) - {"HOOK_TOPICS"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KUBERNETES_ACCESS", "admin"),
        ("CLUSTERS", "blue"),
        ("CLUSTERS", "{}"),
        ("CLUSTERS", '["blue"]'),
        ("CLUSTERS", '[{"region": "eu-west-1"}]'),
        ("CLUSTERS", '[{"name": "blue", "region": 1}]'),
        ("CLUSTERS", json.dumps([BLUE, BLUE])),
        ("STATE_MACHINE_ARN", "leeward-node-termination"),
        ("QUEUE_ARN", "https://sqs"),
        ("HOOK_TOPICS", '"arn:aws:sns"'),
        ("HOOK_TOPICS", "[1]"),
        ("POLICY_PREFIX", "leeward"),
        ("DEPLOYMENT_ID", "an id that no taint can have"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(name, value):
    (line,) = problems(**{name: value})
    assert line.startswith(f"{name}: found {value!r}, expected ")


def test_a_role_is_needed_only_for_the_access_that_the_function_has():
    bare = json.dumps([{"name": "blue", "taintRole": BLUE["taintRole"]}])
    (line,) = problems(CLUSTERS=bare)
    assert line == "CLUSTERS: found no actRole of blue, expected one"
    for access in ("taint", "none"):
        assert Settings.from_env({**GOOD, "CLUSTERS": bare, "KUBERNETES_ACCESS": access}).clusters
