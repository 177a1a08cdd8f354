"""What pre-flight finds, and what it does not (X2): each check by the case that it is for and the one next to it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model import well_known
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSource
from leeward.model.nodegroup import Nodegroup
from leeward.model.pod import Owner
from leeward.model.subnet import Subnet
from leeward.policy.document import (
    Budget,
    Canary,
    ClusterSettings,
    DisruptionPolicy,
    DrainPolicy,
    UpdatePolicy,
    Window,
)
from leeward.upgrade.preflight.capacity_checks import check_addresses, check_capacity
from leeward.upgrade.preflight.findings import Code, Severity, blocking
from leeward.upgrade.preflight.group_checks import (
    check_group,
    check_images,
    check_managed,
    check_schedule,
    check_versions,
)
from leeward.upgrade.preflight.model import PreflightInputs, held_lone_pods
from leeward.upgrade.preflight.plan import findings
from leeward.upgrade.preflight.pod_checks import check_budgets, check_workloads
from leeward.upgrade.surge.sizes import Strategy
from tests.unit.upgrade.builders import (
    EVERYTHING,
    HOOK,
    a_node,
    a_pdb,
    a_pod,
    a_policy,
    an_upgrade,
)

NODES = (a_node("n1"), a_node("n2"))
BLOCKER, WARNING = Severity.BLOCKER, Severity.WARNING


def codes_of(check, *nodes, **fields):
    return [(one.code, one.severity) for one in check(an_upgrade(*(nodes or NODES), **fields))]


def first_finding(check, *nodes, **fields):
    return next(iter(check(an_upgrade(*(nodes or NODES), **fields))))


# --- budgets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        {"max_unavailable": 0},
        {"max_unavailable": "0%"},
        {"min_available": 3, "expected_pods": 3},
        {"min_available": 5, "expected_pods": 3},
        {"min_available": "100%", "expected_pods": 7},
        {"min_available": "90%", "expected_pods": 3},  # rounded up: 3 of 3
    ],
)
def test_a_budget_that_can_never_allow_a_disruption_is_a_blocker(written):
    pdb = a_pdb(allowed=0, current_healthy=3, desired_healthy=3, **written)
    assert codes_of(check_budgets, pods=(a_pod("p"),), budgets=(pdb,)) == [(Code.PDB_NEVER_ALLOWS, BLOCKER)]


@pytest.mark.parametrize(
    "written",
    [
        {"max_unavailable": 1},
        {"max_unavailable": "1%"},
        {"min_available": 2, "expected_pods": 3},
        {"min_available": "50%", "expected_pods": 3},
    ],
)
def test_a_budget_that_allows_none_now_is_a_warning_when_it_can_allow_some(written):
    pdb = a_pdb(allowed=0, current_healthy=2, desired_healthy=2, **written)
    assert codes_of(check_budgets, pods=(a_pod("p"),), budgets=(pdb,)) == [(Code.PDB_ALLOWS_NONE_NOW, WARNING)]
    assert codes_of(check_budgets, pods=(a_pod("p"),), budgets=(a_pdb(allowed=1, **written),)) == []


def test_without_a_status_the_pods_that_it_selects_are_counted():
    pods = (a_pod("p"), a_pod("q", node="elsewhere"), a_pod("done", phase="Succeeded"))
    pdb = a_pdb(allowed=0, min_available=2)
    assert codes_of(check_budgets, pods=pods, budgets=(pdb,)) == [(Code.PDB_NEVER_ALLOWS, BLOCKER)]


def test_budgets_of_pods_on_other_nodes_are_not_reported():
    never = a_pdb(allowed=0, max_unavailable=0)
    assert codes_of(check_budgets, pods=(a_pod("p", node="elsewhere"),), budgets=(never,)) == []
    assert codes_of(check_budgets, *NODES, new=("n1", "n2"), pods=(a_pod("p"),), budgets=(never,)) == []


def test_a_pod_that_several_budgets_select_is_a_blocker_that_names_them():
    one = first_finding(check_budgets, pods=(a_pod("p"),), budgets=(a_pdb("b"), a_pdb("a")))
    assert (one.code, one.severity, one.object) == (Code.SEVERAL_PDBS, BLOCKER, "pod shop/p")
    assert "shop/a, shop/b" in one.message


def test_a_failing_pod_under_if_healthy_budget_is_a_blocker_unless_unhealthy_pods_may_be_evicted():
    failing = (a_pod("p", ready=False),)
    pdb = {"allowed": 0, "max_unavailable": 1, "current_healthy": 1, "desired_healthy": 2}
    assert codes_of(check_budgets, pods=failing, budgets=(a_pdb(**pdb),)) == [(Code.PDB_ON_FAILING_PODS, BLOCKER)]
    lenient = a_pdb(**pdb, always_allow_unhealthy=True)
    assert codes_of(check_budgets, pods=failing, budgets=(lenient,)) == [(Code.PDB_ALLOWS_NONE_NOW, WARNING)]


@pytest.mark.parametrize(
    "forced",
    [
        {"inputs": PreflightInputs(force=True)},
        {"policy": a_policy(drain=DrainPolicy(force=True))},
        {"policy": a_policy(drain=DrainPolicy(termination_grace_period=timedelta(minutes=30)))},
    ],
)
def test_what_a_forced_drain_gets_over_is_only_a_warning(forced):
    pods = (a_pod("p", tolerations=EVERYTHING),)
    never = (a_pdb(allowed=0, max_unavailable=0),)
    assert codes_of(check_budgets, pods=pods, budgets=never, **forced) == [(Code.PDB_NEVER_ALLOWS, WARNING)]
    assert codes_of(check_workloads, pods=pods, **forced) == [(Code.TOLERATES_EVERYTHING, WARNING)]


# --- workloads ---------------------------------------------------------------------------------------------------


def test_a_workload_that_tolerates_every_taint_never_lets_its_node_empty():
    one = first_finding(check_workloads, pods=(a_pod("p", tolerations=EVERYTHING),))
    assert (one.code, one.object) == (Code.TOLERATES_EVERYTHING, "workload shop/ReplicaSet/web")


def test_a_pod_without_a_controller_that_tolerates_everything_does_not_return():
    assert codes_of(check_workloads, pods=(a_pod("p", owner=None, tolerations=EVERYTHING),)) == []


def test_what_the_policy_refuses_to_evict_is_a_blocker():
    policy = a_policy(drain=DrainPolicy(evict_unmanaged=False, delete_local_data=False))
    pods = (a_pod("alone", owner=None), a_pod("data", app="db", empty_dir=True), a_pod("fine"))
    assert codes_of(check_workloads, pods=pods, policy=policy) == [(Code.POLICY_REFUSES_PODS, BLOCKER)] * 2


def test_all_replicas_on_one_node_are_a_warning():
    together, apart = (a_pod("p"), a_pod("q")), (a_pod("p"), a_pod("q", node="n2"))
    assert codes_of(check_workloads, pods=together) == [(Code.REPLICAS_ON_ONE_NODE, WARNING)]
    assert codes_of(check_workloads, pods=apart) == []
    assert codes_of(check_workloads, pods=together[:1]) == []


# --- the group ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("process", "severity"), [("Launch", BLOCKER), ("Terminate", BLOCKER), ("HealthCheck", WARNING)]
)
def test_suspended_processes_that_an_upgrade_needs_are_reported_with_the_command_to_resume(process, severity):
    one = first_finding(check_group, group={"suspended": (process, "AZRebalance", "ScheduledActions")})
    assert (one.code, one.severity) == (Code.SUSPENDED_PROCESSES, severity)
    assert one.fix.endswith(f"resume-processes --auto-scaling-group-name web --scaling-processes {process}")


def test_processes_that_an_upgrade_does_not_need_may_stay_suspended():
    assert codes_of(check_group, group={"suspended": ("AZRebalance", "ScheduledActions", "AlarmNotification")}) == []


def test_a_maximum_that_the_surge_would_exceed_is_reported_and_raised():
    assert codes_of(check_group, group={"maximum": 3}) == [(Code.MAX_SIZE_RAISED, WARNING)]
    assert codes_of(check_group, group={"maximum": 4}) == []


def test_a_group_whose_sizes_are_no_instance_counts_is_refused_whatever_is_overridden():
    units = {"capacity_units": "its sizes count vcpu (DesiredCapacityType)", "maximum": 3}
    found = tuple(check_group(an_upgrade(*NODES, group=units)))
    assert [(one.code, one.severity) for one in found] == [(Code.CAPACITY_UNITS, BLOCKER)]
    assert blocking(found, frozenset(Code)) == found


def test_without_a_terminate_hook_it_warns_that_terminate_first_drains_first():
    assert codes_of(check_group, hooks=()) == [(Code.HOOK_MISSING, WARNING)]
    first = a_policy(UpdatePolicy(terminate="first"))
    assert codes_of(check_group, hooks=(), policy=first) == [(Code.HOOK_MISSING, WARNING)]
    assert codes_of(check_group, hooks=(HOOK,), policy=first) == []


def test_a_running_instance_refresh_blocks_and_a_maximum_lifetime_and_scheduled_actions_warn():
    assert codes_of(check_group, inputs=PreflightInputs(refreshes=("r-1",))) == [
        (Code.INSTANCE_REFRESH_RUNNING, BLOCKER)
    ]
    assert codes_of(check_group, group={"max_lifetime": 86400}) == [(Code.MAX_INSTANCE_LIFETIME, WARNING)]
    assert codes_of(check_group, inputs=PreflightInputs(scheduled=("night",))) == [(Code.SCHEDULED_ACTIONS, WARNING)]


def test_a_launch_configuration_has_no_versions():
    source = {"launch": LaunchSource(configuration="lc-1")}
    assert codes_of(check_group, group=source) == [(Code.NO_LAUNCH_TEMPLATE, BLOCKER)]


def test_a_group_that_no_policy_selects_is_a_blocker_and_without_any_policy_a_warning():
    assert codes_of(check_group, inputs=PreflightInputs(selected=False)) == [(Code.NOT_SELECTED, BLOCKER)]
    assert codes_of(check_group, inputs=PreflightInputs(selected=False, no_policies="there is no policy.yaml")) == [
        (Code.NOT_SELECTED, WARNING)
    ]


def test_a_group_on_its_target_has_nothing_to_upgrade():
    assert codes_of(check_group, *NODES, new=("n1", "n2")) == [(Code.NOTHING_TO_UPGRADE, WARNING)]


def test_old_instances_without_a_node_are_reported():
    assert codes_of(check_group, unjoined=(("lost", "a"),)) == [(Code.NODES_NOT_JOINED, WARNING)]


def test_a_managed_group_needs_zone_balancing():
    suspended = {"group": MANAGED["group"] | {"suspended": ("AZRebalance",)}}
    assert codes_of(check_group, **MANAGED | suspended) == [(Code.SUSPENDED_PROCESSES, WARNING)]
    assert codes_of(check_group, group={"suspended": ("AZRebalance",)}) == []


# --- managed node groups -----------------------------------------------------------------------------------------


MANAGED = {"group": {"tags": {well_known.NODEGROUP_TAG: "ng"}}}


def of_eks(nodegroup=None, *, update=None, **inputs):
    """What is found about node group `ng`, two old nodes of it."""
    given = PreflightInputs(nodegroup=replace(Nodegroup(name="ng", cluster="blue"), **(nodegroup or {})), **inputs)
    return codes_of(check_managed, inputs=given, policy=a_policy(update=update), **MANAGED)


def test_any_other_group_is_not_asked_about_eks():
    canary = UpdatePolicy(canary=Canary(nodes=1))
    assert (
        codes_of(check_managed, inputs=PreflightInputs(image="ami-1", image_by_eks=True), policy=a_policy(canary)) == []
    )


def test_an_image_of_a_group_without_a_template_is_eks_choice():
    assert of_eks(image="ami-1", image_by_eks=True) == [(Code.MANAGED_IMAGE, BLOCKER)]
    assert of_eks(image="ami-1") == []


def test_a_group_whose_template_names_the_image_takes_no_kubernetes_version():
    assert of_eks({"ami_type": "CUSTOM"}, version="1.33", version_requested=True) == [(Code.MANAGED_IMAGE, BLOCKER)]
    assert of_eks({"ami_type": "CUSTOM"}, version="1.33") == []
    assert of_eks({"ami_type": "AL2023_x86_64_STANDARD"}, version="1.33", version_requested=True) == []


@pytest.mark.parametrize("status", ["UPDATING", "CREATING", "DELETING", "CREATE_FAILED"])
def test_eks_starts_no_update_of_a_group_that_is_not_active(status):
    assert of_eks({"status": status}) == [(Code.NODEGROUP_NOT_ACTIVE, BLOCKER)]


def test_a_degraded_group_is_updated_and_its_issues_are_reported():
    degraded = {"status": "DEGRADED", "issues": ("AsgInstanceLaunchFailures: no capacity",)}
    assert of_eks(degraded) == [(Code.NODEGROUP_DEGRADED, WARNING)]


@pytest.mark.parametrize(
    ("eks", "policy", "expected"),
    [
        ({}, 1, []),
        ({"max_unavailable": 2}, 2, []),
        ({"max_unavailable": 2}, 1, [(Code.MANAGED_PARALLELISM, BLOCKER)]),
        ({"max_unavailable_percentage": 100}, 1, [(Code.MANAGED_PARALLELISM, BLOCKER)]),
        ({"max_unavailable": 1}, 2, [(Code.MANAGED_PARALLELISM, WARNING)]),
    ],
)
def test_eks_takes_no_more_nodes_at_once_than_the_policy_allows(eks, policy, expected):
    assert of_eks(eks, update=UpdatePolicy(max_unavailable=policy)) == expected


def test_a_budget_for_upgrades_counts_for_eks_too():
    budget = Budget(nodes=1, percent=False, reasons=("Upgrade",))
    policy = a_policy(UpdatePolicy(max_unavailable=2), disruption=DisruptionPolicy(budgets=(budget,)))
    inputs = PreflightInputs(nodegroup=Nodegroup(name="ng", cluster="blue", max_unavailable=2))
    (one,) = check_managed(an_upgrade(*NODES, inputs=inputs, policy=policy, **MANAGED))
    assert (one.code, one.severity) == (Code.MANAGED_PARALLELISM, BLOCKER)
    assert "--update-config maxUnavailable=1" in one.fix


def test_eks_keeps_no_canary():
    assert of_eks(update=UpdatePolicy(canary=Canary(nodes=1))) == [(Code.MANAGED_CANARY, BLOCKER)]


def test_eks_own_configuration_decides_how_a_managed_group_is_rolled():
    nodegroup = Nodegroup(name="ng", cluster="blue", max_unavailable=2, strategy="MINIMAL")
    upgrade = an_upgrade(*NODES, inputs=PreflightInputs(nodegroup=nodegroup), **MANAGED)
    assert (upgrade.parallel, upgrade.surge, upgrade.strategy) == (2, 0, Strategy.MINIMAL)


def test_an_input_that_could_not_be_read_is_reported_and_not_checked():
    all_found = findings(an_upgrade(*NODES, inputs=PreflightInputs(unread=("ec2: denied",))))
    (one,) = [one for one in all_found if "denied" in one.message]
    assert (one.code, one.severity) == (Code.NOT_JUDGED, WARNING)


# --- versions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "plane", "codes"),
    [
        ("1.31", "1.31", []),
        ("1.28", "1.31", []),
        ("1.27", "1.30", [(Code.KUBELET_TOO_OLD, BLOCKER)]),  # before 1.28 two minors
        ("1.27", "1.31", [(Code.KUBELET_TOO_OLD, BLOCKER)]),
        ("1.25", "1.27", []),
        ("1.24", "1.27", [(Code.KUBELET_TOO_OLD, BLOCKER)]),
        ("1.32", "1.31", [(Code.KUBELET_NEWER, BLOCKER)]),
        ("1.32", "", [(Code.CONTROL_PLANE_UNKNOWN, WARNING)]),
        ("", "1.31", []),
    ],
)
def test_kubelets_are_never_newer_than_the_control_plane_and_at_most_three_minors_older(wanted, plane, codes):
    assert codes_of(check_versions, inputs=PreflightInputs(version=wanted, control_plane=plane)) == codes


def test_a_version_that_some_kubelet_runs_already_needs_no_word_of_the_control_plane():
    node = a_node("n1", kubelet="v1.32.0-eks-0a1b2c3")
    assert codes_of(check_versions, node, inputs=PreflightInputs(version="1.32")) == []


# --- when --------------------------------------------------------------------------------------------------------

NIGHT = Window(schedule="0 22 * * *", duration=timedelta(hours=6))


def test_a_closed_window_and_a_freeze_are_warnings_that_say_when_it_continues():
    one = first_finding(check_schedule, policy=a_policy(UpdatePolicy(windows=(NIGHT,))))
    assert (one.code, one.severity) == (Code.WINDOW_CLOSED, WARNING)
    assert "2024-05-06T22:00:00Z" in one.message
    frozen = ClusterSettings(name="blue", freeze=(Window(schedule="0 0 * * *", duration=timedelta(hours=13)),))
    one = first_finding(check_schedule, settings=frozen)
    assert (one.code, one.severity) == (Code.FROZEN, WARNING)
    assert "2024-05-06T13:00:00Z" in one.message


def test_a_paused_cluster_is_a_blocker():
    assert codes_of(check_schedule, paused="") == [(Code.CLUSTER_PAUSED, BLOCKER)]
    assert codes_of(check_schedule, paused="web") == [(Code.CLUSTER_PAUSED, BLOCKER)]
    assert codes_of(check_schedule, paused="batch") == []


def with_budget(**fields):
    return a_policy(disruption=DisruptionPolicy(budgets=(Budget(nodes=0, percent=False, **fields),)))


def test_a_budget_of_zero_for_upgrades_blocks_for_ever_or_until_its_window_ends():
    assert codes_of(check_schedule, policy=with_budget(reasons=("Upgrade",))) == [(Code.BUDGET_ALLOWS_NONE, BLOCKER)]
    noon = Window(schedule="0 11 * * *", duration=timedelta(hours=2))
    assert codes_of(check_schedule, policy=with_budget(reasons=("Upgrade",), window=noon)) == [
        (Code.BUDGET_ALLOWS_NONE, WARNING)
    ]
    assert codes_of(check_schedule, policy=with_budget(reasons=("Upgrade",), window=NIGHT)) == []


def test_a_budget_that_does_not_name_upgrades_holds_none():
    assert codes_of(check_schedule, policy=with_budget()) == []


def test_budgets_for_upgrades_hold_the_waves_too():
    one = Budget(nodes=1, percent=False, reasons=("Upgrade",))
    policy = a_policy(UpdatePolicy(max_unavailable=5), disruption=DisruptionPolicy(budgets=(one,)))
    assert [len(wave) for wave in an_upgrade(*NODES, policy=policy).waves()] == [1, 1]


# --- addresses ---------------------------------------------------------------------------------------------------

KIND = InstanceType(name="m5.large", vcpus=2, memory_mib=8192, max_enis=3, ips_per_eni=10)


def subnets(free):
    return {"subnet-a": Subnet(id="subnet-a", zone="a", free_ips=free)}


@pytest.mark.parametrize(
    ("free", "codes"),
    [
        (19, [(Code.ZONE_WITHOUT_ADDRESSES, BLOCKER)]),
        (39, [(Code.ZONE_SHORT_OF_ADDRESSES, WARNING)]),
        (40, []),
    ],
)
def test_a_zone_needs_the_addresses_of_the_new_nodes_that_come_first(free, codes):
    """An m5.large with a pod takes two interfaces of ten addresses; two nodes come first."""
    fields = {"group": {"subnets": ("subnet-a",)}, "subnets": subnets(free), "types": {"m5.large": KIND}}
    assert codes_of(check_addresses, pods=(a_pod("p"),), **fields) == codes


MANY = tuple(
    a_node(f"n{number}") for number in range(9)
)  # in one zone: a surge of two, and with those on their way eight


def test_warnings_count_all_the_new_nodes_that_may_come_at_a_time():
    two = a_policy(UpdatePolicy(max_unavailable=2))
    fields = {"group": {"subnets": ("subnet-a",)}, "types": {"m5.large": KIND}, "policy": two}
    short = first_finding(check_addresses, *MANY, pods=(a_pod("p"),), subnets=subnets(159), **fields)
    assert "addresses for 7 of up to 8 new nodes at a time" in short.message
    assert codes_of(check_addresses, *MANY, pods=(a_pod("p"),), subnets=subnets(160), **fields) == []
    assert (
        "9 nodes and up to 8 new ones are above the maximum size 16"
        in first_finding(check_group, *MANY, policy=two, group={"desired": 9, "maximum": 16}).message
    )
    assert codes_of(check_group, *MANY, policy=two, group={"desired": 9, "maximum": 17}) == []


def test_with_minimal_and_without_known_subnets_no_addresses_are_judged():
    minimal = a_policy(UpdatePolicy(strategy="MINIMAL"))
    assert codes_of(check_addresses, group={"subnets": ("subnet-a",)}, subnets=subnets(0), policy=minimal) == []
    assert codes_of(check_addresses) == []


# --- all together ------------------------------------------------------------------------------------------------


def test_without_knowing_what_the_group_launches_no_pod_is_judged():
    assert codes_of(check_capacity, pods=(a_pod("p"),)) == []


def test_blockers_come_first_and_stop_it_unless_their_code_is_overridden():
    upgrade = an_upgrade(*NODES, pods=(a_pod("p"),), budgets=(a_pdb(allowed=0, max_unavailable=0),), hooks=())
    all_of_them = findings(upgrade)
    assert [one.code for one in all_of_them] == [Code.PDB_NEVER_ALLOWS, Code.HOOK_MISSING]
    assert blocking(all_of_them, frozenset()) == all_of_them[:1]
    assert blocking(all_of_them, frozenset({Code.PDB_NEVER_ALLOWS})) == ()


def test_an_upgrade_in_order_has_no_findings():
    upgrade = an_upgrade(*NODES, pods=(a_pod("p"), a_pod("q", node="n2")), budgets=(a_pdb(max_unavailable=1),))
    assert findings(upgrade) == ()


def test_nodes_that_are_new_already_are_in_no_wave():
    assert an_upgrade(*NODES, new=("n1",)).waves() == (("n2",),)


# --- single replicas ----------------------------------------------------------------------------------------------


def test_a_budget_of_a_single_replica_that_surges_is_no_blocker():
    alone = a_pdb(allowed=0, current_healthy=1, desired_healthy=1, min_available=1, expected_pods=1)
    fields = {"pods": (a_pod("p"),), "budgets": (alone,)}
    assert codes_of(check_budgets, **fields) == [(Code.PDB_NEVER_ALLOWS, BLOCKER)]
    assert codes_of(check_budgets, **fields, inputs=PreflightInputs(surged=frozenset({"shop/p"}))) == []
    never = replace(alone, min_available=None, max_unavailable=0)
    still = codes_of(
        check_budgets, pods=(a_pod("p"),), budgets=(never,), inputs=PreflightInputs(surged=frozenset({"shop/p"}))
    )
    assert still == [(Code.PDB_NEVER_ALLOWS, BLOCKER)]


def test_the_single_replicas_that_surge_are_those_that_a_budget_holds_on_nodes_that_leeward_drains():
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
    pod = replace(a_pod("p"), owner=owner, labels={"app": "web", "pod-template-hash": "5d4"})
    alone = a_pdb(allowed=0, current_healthy=1, desired_healthy=1, min_available=1, expected_pods=1)
    surging = a_policy(drain=DrainPolicy(surge_single_replicas=True))

    def held(policy, tags=(), **world):
        preflight = an_upgrade(*NODES, policy=policy, group={"tags": dict(tags)}, **world)
        return held_lone_pods(preflight.snapshot, preflight.group, preflight.policy)

    assert held(surging, pods=(pod,), budgets=(alone,)) == (pod,)
    assert held(surging, pods=(pod,)) == ()
    assert held(a_policy(), pods=(pod,), budgets=(alone,)) == ()
    assert held(surging, {well_known.NODEGROUP_TAG: "web"}, pods=(pod,), budgets=(alone,)) == ()


# --- images --------------------------------------------------------------------------------------------------------

OWN, STRANGER, PARTNER = "111122223333", "999988887777", "099720109477"


@pytest.mark.parametrize(
    ("owner", "alias", "trusted", "blocked"),
    [
        (STRANGER, "", (), True),
        (STRANGER, "", (PARTNER,), True),
        (STRANGER, "self", (), True),
        (PARTNER, "", (PARTNER,), False),
        (OWN, "", (), False),
        ("602401143452", "amazon", (), False),
        ("679593333241", "aws-marketplace", (), False),
    ],
)
def test_an_image_of_an_owner_that_nothing_vouches_for_is_a_blocker(owner, alias, trusted, blocked):
    inputs = PreflightInputs(accounts=frozenset({OWN}), images=(Image(id="ami-1", owner=owner, alias=alias),))
    policy = replace(a_policy(), update=UpdatePolicy(image_owners=trusted))
    found = codes_of(check_images, inputs=inputs, policy=policy)
    assert found == ([(Code.FOREIGN_IMAGE, BLOCKER)] if blocked else [])


def test_the_finding_names_image_owner_and_policy_and_can_be_overridden():
    inputs = PreflightInputs(accounts=frozenset({OWN}), images=(Image(id="ami-1", owner=STRANGER),))
    (found,) = check_images(an_upgrade(*NODES, inputs=inputs))
    assert (found.object, STRANGER in found.message) == ("image ami-1", True)
    assert "update.imageOwners" in found.fix
    assert blocking((found,), frozenset({Code.FOREIGN_IMAGE})) == ()


def test_an_image_that_ec2_does_not_return_is_a_blocker_also_without_the_account():
    (found,) = check_images(an_upgrade(*NODES, inputs=PreflightInputs(absent_images=("ami-1",))))
    assert (found.code, found.severity, found.object) == (Code.IMAGE_NOT_FOUND, BLOCKER, "image ami-1")
    assert blocking((found,), frozenset({Code.IMAGE_NOT_FOUND})) == ()


def test_an_image_whose_owner_is_not_known_is_named():
    inputs = PreflightInputs(accounts=frozenset({OWN}), images=(Image(id="ami-1"),))
    assert codes_of(check_images, inputs=inputs) == [(Code.NOT_JUDGED, WARNING)]


def test_without_the_account_no_image_is_foreign():
    inputs = PreflightInputs(images=(Image(id="ami-1", owner=STRANGER),))
    assert codes_of(check_images, inputs=inputs) == []
