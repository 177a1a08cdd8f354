"""Each cluster: known, entered, answered by, with the rights of this version, and seen by fn sync."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.doctor import expected
from leeward.doctor.facts import Binding, ClusterRole, EksCluster, Function
from leeward.doctor.finding import Check, State
from leeward.errors import AccessDeniedError, ClusterUnreachableError
from leeward.model.facts import FactKind
from leeward.model.node import Taint, disruption_taint
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import CLUSTER, a_policy, policies
from tests.fakes.clock import START
from tests.fakes.deployment import role_of
from tests.unit.doctor.patient import Patient

ROLE = role_of(CLUSTER)
TAINTS = role_of(CLUSTER, "taint")
SURGES = "manifests/replica-surge-role.yaml"


def test_a_cluster_that_eks_does_not_know(patient):
    patient.deployment.known.clear()
    assert patient.trouble(Check.CLUSTER).state is State.FAILED


@pytest.mark.parametrize(("status", "fine"), [("UPDATING", True), ("FAILED", False), ("CREATING", False)])
def test_what_eks_says_of_it(patient, status, fine):
    patient.deployment.known[CLUSTER] = EksCluster(status=status)
    assert bool(patient.troubles()) is not fine


def test_without_an_access_entry_a_role_does_not_get_in(patient):
    patient.deployment.entries.clear()
    assert [found.fix for found in patient.troubles()] == [
        f"aws eks create-access-entry --cluster-name {CLUSTER} --principal-arn {arn} --kubernetes-groups {group}"
        for arn, group in ((TAINTS, "leeward:taint"), (ROLE, "leeward:act"))
    ]


def test_a_weaker_role_in_the_group_of_the_stronger_one_is_a_warning(patient):
    patient.deployment.entries[CLUSTER, TAINTS] = ("leeward:taint", "leeward:act")
    found = patient.trouble(Check.ACCESS_ENTRY)
    assert (found.object, found.state) == ("leeward-taint in cluster blue", State.WARNING)
    assert found.fix.endswith("--kubernetes-groups leeward:taint")


def test_an_access_entry_of_another_group(patient):
    patient.deployment.entries[CLUSTER, ROLE] = ("leeward:read",)
    found = patient.trouble(Check.ACCESS_ENTRY)
    assert "leeward:read, expected leeward:act" in found.found
    assert found.fix.startswith("aws eks update-access-entry")


MAPPED = "".join(
    f"- rolearn: {arn}\n  username: {name}\n  groups: ['{group}']\n"
    for arn, name, group in ((ROLE, "leeward-act", "leeward:act"), (TAINTS, "leeward-taint", "leeward:taint"))
)


@pytest.mark.parametrize(
    ("mode", "mapped", "fine"),
    [
        ("CONFIG_MAP", MAPPED, True),
        ("API_AND_CONFIG_MAP", MAPPED, True),
        ("API", MAPPED, False),  # the cluster does not heed the ConfigMap
        ("CONFIG_MAP", "", False),
        ("CONFIG_MAP", None, False),
    ],
)
def test_the_config_map_stands_in_for_an_access_entry(patient, mode, mapped, fine):
    patient.deployment.entries.clear()
    patient.deployment.known[CLUSTER] = EksCluster(status="ACTIVE", authentication=mode)
    patient.rbac.map_roles = mapped
    assert bool(patient.troubles()) is not fine


def test_a_public_api_server_that_does_not_answer(patient):
    """It is asked once, not once for each thing that it would report."""
    patient.rbac.fail("version", ClusterUnreachableError("blue: get version (/version): timed out"))
    states = {found.check: found.state for found in patient.troubles()}
    assert states == {
        Check.API_SERVER: State.FAILED,
        Check.CLUSTER_ROLE: State.UNKNOWN,
        Check.BINDING: State.UNKNOWN,
        Check.REPLICA_SURGE: State.UNKNOWN,
    }
    assert (patient.rbac.asked["version"], patient.rbac.asked["cluster_role"]) == (1, 0)


def test_a_private_api_server_that_does_not_answer_says_nothing_of_the_functions(patient):
    patient.deployment.known[CLUSTER] = EksCluster(status="ACTIVE", public=False)
    patient.rbac.fail("version", ClusterUnreachableError("blue: get version (/version): timed out"))
    assert {found.state for found in patient.troubles()} == {State.UNKNOWN}


def test_a_caller_without_access_is_asked_to_get_it(patient):
    patient.rbac.fail("version", AccessDeniedError("blue: the token is not accepted"))
    troubles = patient.troubles()
    assert {found.state for found in troubles} == {State.UNKNOWN}
    assert all("access entry of your own" in found.fix for found in troubles)


def test_a_role_of_an_older_version_lacks_what_is_named(patient):
    rules = patient.rbac.roles["leeward-act"].rules - {
        ("storage.k8s.io", "volumeattachments", "list"),
        ("", "nodes", "patch"),
    }
    patient.rbac.roles["leeward-act"] = ClusterRole(rules=rules)
    found = patient.trouble(Check.CLUSTER_ROLE)
    assert (found.object, found.state) == ("leeward-act in cluster blue", State.FAILED)
    assert found.found == "it does not allow: patch nodes, list volumeattachments.storage.k8s.io"
    assert found.fix == "kubectl apply -f manifests/cluster-role.yaml"


def test_the_same_resource_of_another_api_group_is_another_one(patient):
    rules = patient.rbac.roles["leeward-act"].rules - {("", "nodes", "patch")} | {("metrics.k8s.io", "nodes", "patch")}
    patient.rbac.roles["leeward-act"] = ClusterRole(rules=rules)
    assert patient.trouble(Check.CLUSTER_ROLE).found == "it does not allow: patch nodes"


def test_a_role_that_allows_more_is_a_warning(patient):
    rules = patient.rbac.roles["leeward-act"].rules | {("", "secrets", "list")}
    patient.rbac.roles["leeward-act"] = ClusterRole(rules=rules)
    found = patient.trouble(Check.CLUSTER_ROLE)
    assert (found.state, "list secrets" in found.found) == (State.WARNING, True)


def test_wildcards_allow_what_is_needed(patient):
    patient.rbac.roles["leeward-act"] = ClusterRole(rules=frozenset({("*", "*", "*")}))
    assert patient.trouble(Check.CLUSTER_ROLE).state is State.WARNING


def asking_for_surge():
    found = Patient(written=policies(replace(a_policy(), drain=DrainPolicy(surge_single_replicas=True))))
    for name, rules in expected.FOR_SURGE.items():
        found.rbac.roles[name] = ClusterRole(rules=rules)
        found.rbac.bound[name] = Binding(role=name, groups=expected.KUBERNETES_GROUPS[name])
    return found


def test_the_roles_of_second_replicas_are_in_order_where_a_policy_asks_for_them():
    assert asking_for_surge().troubles() == []


def test_the_roles_of_second_replicas_are_missed_where_a_policy_asks_for_them():
    patient = asking_for_surge()
    del patient.rbac.roles["leeward-surge"], patient.rbac.bound["leeward-surge"]
    found = patient.trouble(Check.REPLICA_SURGE)
    assert (found.object, found.state) == ("leeward-surge in cluster blue", State.FAILED)
    assert found.fix == f"kubectl apply -f {SURGES}"


@pytest.mark.parametrize(
    ("groups", "state", "words"),
    [
        ((), State.FAILED, "no group, expected leeward:act"),
        (("leeward:act", "leeward:taint"), State.WARNING, "it binds leeward:taint as well, expected leeward:act"),
    ],
)
def test_the_right_to_scale_is_bound_to_the_draining_role_alone(groups, state, words):
    patient = asking_for_surge()
    patient.rbac.bound["leeward-surge"] = Binding(role="leeward-surge", groups=groups)
    found = patient.trouble(Check.REPLICA_SURGE)
    assert (found.state, words in found.found) == (state, True)


def test_the_right_to_scale_is_a_warning_where_no_policy_asks_for_it(patient):
    patient.rbac.bound["leeward-surge"] = Binding(role="leeward-surge", groups=("leeward:act",))
    found = patient.trouble(Check.REPLICA_SURGE)
    assert (found.state, found.fix) == (State.WARNING, f"kubectl delete -f {SURGES}")


def test_the_role_that_no_function_wears_is_a_warning(patient):
    del patient.rbac.roles["leeward-read"]
    assert patient.trouble(Check.CLUSTER_ROLE).state is State.WARNING


@pytest.mark.parametrize(
    ("binding", "words"),
    [
        (None, "not there"),
        (Binding(role="leeward-act", groups=("leeward:read",)), "leeward:read, expected leeward:act"),
        (Binding(role="view", groups=("leeward:act",)), "binds view, expected leeward-act"),
    ],
)
def test_a_binding(patient, binding, words):
    patient.rbac.bound = (
        {**patient.rbac.bound, "leeward-act": binding}
        if binding
        else {name: bound for name, bound in patient.rbac.bound.items() if name != "leeward-act"}
    )
    found = patient.trouble(Check.BINDING)
    assert (found.state, words in found.found) == (State.FAILED, True)


def test_when_fn_sync_ran_last_is_seen_from_what_it_writes(patient):
    later = START + timedelta(minutes=16)
    found = patient.trouble(Check.SYNC, now=later)
    assert found.found == "fn sync ran last at 2026-03-02T10:00:00Z: hooks are not kept in place"


def test_a_sync_that_runs_and_does_not_get_into_the_cluster(patient):
    later = START + timedelta(minutes=16)
    patient.synced(*set(FactKind) - {FactKind.NODES, FactKind.CNI}, at=later)
    found = patient.trouble(Check.REACH, now=later)
    assert (found.state, "443" in found.fix) == (State.FAILED, True)


def test_facts_that_fn_sync_could_not_read_again(patient):
    later = START + timedelta(minutes=80)
    patient.synced(*set(FactKind) - {FactKind.PRICES}, at=later)
    found = patient.trouble(Check.SYNC, now=later)
    assert (found.state, found.found) == (
        State.WARNING,
        "facts that it could not read again are old: prices of 2026-03-02T10:00:00Z",
    )


@pytest.mark.parametrize(("minutes", "state"), [(3, State.WARNING), (30, State.FAILED)])
def test_a_deployment_of_this_minute_has_not_synced_yet(patient, minutes, state):
    functions = patient.deployment.functions
    functions["leeward-sync"] = replace(functions["leeward-sync"], modified=START - timedelta(minutes=minutes))
    patient.system.catalog.__init__()
    assert patient.trouble(Check.SYNC).state is state


def test_a_cluster_is_looked_into_also_where_the_settings_could_not_be_read(patient):
    patient.deployment.functions = {name: Function() for name in patient.deployment.functions}
    checks = {found.check: found.state for found in patient.findings(requested_cluster=CLUSTER)}
    assert checks[Check.ACCESS_ENTRY] is State.UNKNOWN
    assert checks[Check.HOOK] is State.OK


def test_a_node_that_another_deployment_terminates_is_named_with_its_owner(patient):
    node = patient.system.kubernetes.by_name["node-i-0abc"]
    patient.system.kubernetes.taint(node, disruption_taint("444455556666-eu-west-1"))
    found = patient.trouble(Check.OTHER_DEPLOYMENT)
    assert found.state is State.WARNING
    assert "node-i-0abc" in found.object
    assert "444455556666-eu-west-1" in found.found


def test_a_taint_that_another_controller_has_forgotten_is_named_with_its_age(patient):
    node = patient.system.kubernetes.by_name["node-i-0abc"]
    since = str(int((START - timedelta(hours=5)).timestamp()))
    taint = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule", value=since)
    patient.system.kubernetes.by_name[node.name] = replace(node, taints=(taint,))
    found = patient.trouble(Check.FOREIGN_TAINT)
    assert (found.state, found.object) == (State.WARNING, "node node-i-0abc in cluster blue")
    assert "cluster-autoscaler tainted it at 2026-03-02T05:00:00Z" in found.found
    assert patient.troubles(now=START - timedelta(hours=4)) == []


def test_the_taint_of_this_deployment_is_no_finding(patient):
    node = patient.system.kubernetes.by_name["node-i-0abc"]
    patient.system.kubernetes.taint(node, disruption_taint(patient.system.ports.deployment))
    assert patient.troubles() == []
