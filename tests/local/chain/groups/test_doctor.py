"""`leeward doctor` on the deployed stack: nothing is wrong, then two things are broken and named with their fix.

What the local AWS does not have is unknown there, and never failed."""

import json
from pathlib import Path

import jsonschema
import pytest

from leeward.model import well_known
from tests.local.chain.conftest import called, forget_what_is_cached

pytestmark = pytest.mark.local

SCHEMA = json.loads(Path("docs/schema/doctor.json").read_text())
SPOT = "leeward-spot-interruption"
SCHEDULED = ("sync", "disruption-planner", "reconciler")
RBAC = "rbac.authorization.k8s.io"
READER = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "doctor"},
    "rules": [{"apiGroups": [RBAC], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["get"]}],
}
READS = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "doctor"},
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "doctor"},
    "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "leeward:read"}],
}


@pytest.fixture
def as_deployed(stack):
    """The schedules that the other tests keep off are on, and the caller may read the cluster's roles."""
    events = stack.client("events")
    for name in SCHEDULED:
        events.enable_rule(Name=f"leeward-{name}-schedule")
    for document in (READER, READS):
        stack.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    forget_what_is_cached(stack, "leeward-sync")  # it looks at a group's hooks anew after a minute
    yield
    for name in SCHEDULED:
        events.disable_rule(Name=f"leeward-{name}-schedule")
    stack.kubectl("delete", "clusterrole,clusterrolebinding", "doctor")


@pytest.fixture
def doctor(leeward):
    """Findings by (check, object), and the exit code."""

    def look():
        code, out, err = leeward("doctor")
        assert err == ""
        document = json.loads(out)
        jsonschema.validate(document, SCHEMA)
        return code, {(found["check"], found["object"]): found for found in document["findings"]}

    return look


def failed(findings):
    return {key: found for key, found in findings.items() if found["state"] == "failed"}


def test_a_healthy_deployment_has_nothing_to_mend_and_what_is_broken_is_named_with_its_fix(
    stack, crew, as_deployed, doctor
):
    team = crew(1, hook=True)
    called(stack, "sync")
    code, healthy = doctor()
    assert (code, failed(healthy)) == (0, {})
    rule, hook = ("rule", f"rule {SPOT}"), ("hook", f"group {team.group}")
    for expected in (rule, hook, ("cluster-role", f"leeward-act in cluster {stack.cluster}")):
        assert healthy[expected]["state"] == "ok", healthy[expected]
    assert not [found for found in healthy.values() if found["state"] == "unknown"]

    stack.client("events").disable_rule(Name=SPOT)
    stack.client("events").disable_rule(Name="leeward-sync-schedule")  # or it would put the hook back meanwhile
    stack.client("autoscaling").delete_lifecycle_hook(
        AutoScalingGroupName=team.group, LifecycleHookName=well_known.TERMINATE_HOOK
    )
    try:
        code, broken = doctor()
    finally:
        stack.client("events").enable_rule(Name=SPOT)
        stack.client("events").enable_rule(Name="leeward-sync-schedule")
    schedule = ("schedule", "schedule leeward-sync-schedule")
    assert (code, set(failed(broken))) == (1, {rule, hook, schedule})
    assert broken[rule]["fix"] == f"aws events enable-rule --name {SPOT}"
    assert "leeward-sync" in broken[hook]["fix"]

    forget_what_is_cached(stack, "leeward-sync")
    called(stack, "sync")
    code, fixed = doctor()
    assert (code, failed(fixed)) == (0, {})


def test_a_cluster_role_that_lacks_a_rule_names_it(stack, crew, as_deployed, doctor):
    """As after an update of Leeward without the manifest applied again."""
    crew(1, hook=True)
    called(stack, "sync")
    patch = json.dumps([{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "patch"]}])
    stack.kubectl("patch", "clusterrole", "leeward-act", "--type=json", "-p", patch)
    try:
        code, findings = doctor()
    finally:
        stack.kubectl("apply", "-f", "manifests/cluster-role.yaml")
    role = ("cluster-role", f"leeward-act in cluster {stack.cluster}")
    assert (code, set(failed(findings))) == (1, {role})
    assert findings[role]["found"] == "it does not allow: delete nodes"
    assert findings[role]["fix"] == "kubectl apply -f manifests/cluster-role.yaml"
