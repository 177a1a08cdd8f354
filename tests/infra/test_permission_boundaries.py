"""docs/permissions: what a person with one of these policies cannot do to another cluster, or to others' access."""

import pytest

from tests.infra.iam_evaluator import Request, allows
from tests.infra.permission_files import FILES, statements

TABLE = "arn:aws:dynamodb:us-east-1:111122223333:table/leeward"


def writes(name, *keys):
    context = {"dynamodb:LeadingKeys": list(keys)} if keys else {}
    return allows(statements(name), Request(action="dynamodb:PutItem", resource=TABLE, context=context))


@pytest.mark.parametrize("key", ["pause#{}", "disruption#{}", "facts#{}#zone-record", "policies#{}"])
def test_no_file_writes_what_belongs_to_another_cluster(key):
    """Keys of terminations and upgrades name an instance or a group, and no cluster."""
    files = [name for name in FILES if writes(name, key.format("prod"))]
    assert files == ["policies" if key.startswith("policies") else "operate"]
    for other in ("red", "prod-2", "*", ""):
        assert not writes(files[0], key.format(other))
    assert not writes(files[0], key.format("prod"), key.format("red"))
    assert not writes(files[0])


def test_policies_are_a_right_of_their_own():
    assert {action for one in statements("policies") for action in one.actions} == {"dynamodb:PutItem"}
    assert not writes("policies", "pause#prod")


ROLE = "arn:aws:iam::111122223333:role/{}"
ENTRY = "arn:aws:eks:us-east-1:111122223333:access-entry/{}/role/111122223333/{}/0a1b2c3d"
OURS = {
    "eks:principalArn": ROLE.format("leeward-us-east-1-prod-act"),
    "eks:kubernetesGroups": ["leeward:act"],
    "eks:accessEntryType": "STANDARD",
}


def makes_entry(cluster="prod", **changes):
    resource = f"arn:aws:eks:us-east-1:111122223333:cluster/{cluster}"
    context = {**OURS, **{f"eks:{key}": value for key, value in changes.items()}}
    return allows(
        statements("access-entries"), Request(action="eks:CreateAccessEntry", resource=resource, context=context)
    )


def test_who_deploys_makes_access_entries_of_our_roles_with_our_groups_alone(template):
    for entry in template.resources("AWS::EKS::AccessEntry").values():
        role, groups = entry["PrincipalArn"], entry["KubernetesGroups"]
        assert makes_entry(principalArn=role, kubernetesGroups=groups, accessEntryType=entry["Type"])
    assert not makes_entry(cluster="red")
    assert not makes_entry(principalArn=ROLE.format("mallory"))
    assert not makes_entry(principalArn="arn:aws:iam::444455556666:role/leeward-us-east-1-prod-act")
    assert not makes_entry(kubernetesGroups=["leeward:act", "ci-admins"])
    assert not makes_entry(accessEntryType="EC2_LINUX")


@pytest.mark.parametrize("action", ["DeleteAccessEntry", "UpdateAccessEntry"])
def test_who_deploys_changes_no_access_entry_of_others(action):
    def may(cluster, role):
        request = Request(action=f"eks:{action}", resource=ENTRY.format(cluster, role))
        return allows(statements("access-entries"), request)

    assert may("prod", "leeward-us-east-1-prod-act")
    for role in ("prod-nodes", "platform-admin", "leeward-eu-west-1-prod-act"):
        assert not may("prod", role)
    assert not may("red", "leeward-us-east-1-prod-act")
