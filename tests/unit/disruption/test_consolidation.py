"""Consolidation: rows K8, K9, K10, K11 and X12 of docs/features.md, and Karpenter's price rules."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known
from leeward.disruption.command import CommandDecision, MethodName
from leeward.disruption.plan import plan_disruption
from leeward.disruption.targets import targets
from leeward.policy.document import NodeRequirement
from leeward.scheduling.volumes import VolumeNeeds
from tests.unit.disruption.fleet import NOON, ZONES, a_budget, a_fleet, a_policy, rules


def plan(fleet):
    return plan_disruption(fleet.snapshot(), only=MethodName.CONSOLIDATION)


def reason(fleet, node):
    return plan(fleet).verdicts[node][MethodName.CONSOLIDATION].reason


def going(fleet):
    return [command.nodes for command in plan(fleet).commands]


def test_a_node_whose_pods_fit_elsewhere_is_deleted():
    fleet = a_fleet().node("n1").node("n2").pod("a", "n1", cpu="1").pod("b", "n2", cpu="1500m")
    assert going(fleet) == []
    fleet = a_fleet().node("n1").node("n2").pod("a", "n1", cpu="400m").pod("b", "n2", cpu="1500m")
    (command,) = plan(fleet).commands
    assert (command.decision, command.nodes, command.replacements) == (CommandDecision.DELETE, ("n1",), ())
    assert command.savings == pytest.approx(0.06)
    assert command.placements == {"shop/a": "n2"}


def test_three_nodes_become_one_cheaper_node():
    fleet = a_fleet().group("web", "medium").group("big", "large", fields={"minimum": 0})
    for number in range(3):
        fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu="1100m", memory="1Gi")
    (command,) = plan(fleet).commands
    assert (command.nodes, [one.group for one in command.replacements]) == (("n0", "n1", "n2"), ["big"])
    assert command.savings == pytest.approx(3 * 0.06 - 0.12)


def test_keeping_one_of_several_is_better_than_launching_its_like():
    fleet = a_fleet().group("web", "large")
    for number in range(2):
        fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu="2500m", memory="1Gi")
    assert going(fleet) == []


def test_a_replacement_names_group_zones_and_the_way_of_paying():
    fleet = a_fleet().group("web", "large").group("batch", "small").node("n1").pod("a", "n1")
    (command,) = plan(fleet).commands
    (new,) = command.replacements
    assert (command.decision, new.group, new.types, new.zones) == (CommandDecision.REPLACE, "batch", ("small",), ZONES)
    assert new.capacity == "on-demand"
    assert command.savings == pytest.approx(0.09)


def test_the_pods_have_to_fit_on_every_type_that_the_group_may_launch():
    fleet = a_fleet().group("web", "huge").group("batch", "large", "small").node("n1").pod("a", "n1", cpu="2")
    assert going(fleet) == []
    assert "Insufficient cpu" in reason(fleet, "n1")


def test_the_most_expensive_type_is_the_price():
    fleet = a_fleet().group("web", "medium").group("batch", "small", "large").node("n1").pod("a", "n1")
    assert "can't replace with a cheaper node" in reason(fleet, "n1")


def test_a_group_that_mixes_on_demand_and_spot_is_no_target():
    fleet = a_fleet().group("web", "large").group("batch", "small", mixed=True).node("n1").pod("a", "n1")
    assert going(fleet) == []


def test_an_on_demand_node_may_become_a_spot_node():
    fleet = a_fleet().group("web", "medium").group("batch", "medium", spot=True).node("n1").pod("a", "n1")
    assert [one.group for one in plan(fleet).commands[0].replacements] == ["batch"]


def test_spot_to_spot_is_off_by_default():
    fleet = a_fleet().group("web", "large", spot=True).group("batch", "small", spot=True).node("n1").pod("a", "n1")
    assert reason(fleet, "n1").endswith("spotToSpot is off: can't replace a spot node with a spot node")


@pytest.mark.parametrize(("types", "goes"), [(2, True), (3, False)])
def test_spot_to_spot_needs_a_choice_of_types(types, goes):
    policy = a_policy(disruption=rules(spot_to_spot=True, spot_to_spot_minimum_types=types))
    fleet = a_fleet(policy).group("web", "huge", spot=True).group("batch", "small", "medium", spot=True)
    assert bool(going(fleet.node("n1").pod("a", "n1"))) is goes


@pytest.mark.parametrize(("per_hour", "percent", "goes"), [(0.09, 0, True), (0.091, 0, False), (0, 76, False)])
def test_a_command_that_saves_too_little_is_not_planned(per_hour, percent, goes):
    policy = a_policy(disruption=rules(savings_per_hour=per_hour, savings_percent=percent))
    fleet = a_fleet(policy).group("web", "large").group("batch", "small").node("n1").pod("a", "n1")
    assert bool(going(fleet)) is goes
    assert goes or "minimumSavings asks for" in reason(fleet, "n1")


def test_a_group_at_its_minimum_loses_no_node_but_may_replace_one():
    fleet = a_fleet().group("web", "medium", minimum=2).node("n1").node("n2")
    fleet.pod("a", "n1", cpu="100m").pod("b", "n2", cpu="100m")
    assert going(fleet) == []
    assert "at its MinSize of 2" in reason(fleet, "n1")


def test_a_group_at_its_maximum_is_no_target_for_others():
    fleet = a_fleet().group("web", "large").group("batch", "small", maximum=0).node("n1").pod("a", "n1")
    assert "group batch is at its MaxSize" in reason(fleet, "n1")


def test_free_capacity_counts_on_nodes_that_no_policy_selects():
    fleet = a_fleet(a_policy("web", "web")).group("web").group("other").node("n1").node("n2", group="other")
    fleet.pod("a", "n1")
    assert going(fleet) == [("n1",)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ready": False}, "node(s) were NotReady"),
        ({"cordoned": True}, "node(s) were unschedulable"),
        ({"labels": {"type": "virtual-kubelet"}}, "node(s) were virtual"),
        ({"labels": {"eks.amazonaws.com/compute-type": "fargate"}}, "node(s) were virtual"),
    ],
)
def test_a_node_that_takes_no_pods_is_reported_apart_by_its_own_reason(changes, why):
    fleet = a_fleet(a_policy("web", "web")).group("web").group("other").node("n1").node("n2", group="other", **changes)
    fleet.pod("a", "n1")
    assert going(fleet) == []
    assert f"1 {why}" in reason(fleet, "n1")


@pytest.mark.parametrize("fields", [{"lifecycle": "Terminating:Wait"}, {"state": "shutting-down"}])
def test_a_node_whose_instance_is_ending_is_no_free_capacity(fields):
    fleet = a_fleet().node("n1").node("n2", **fields).pod("a", "n1", cpu="100m")
    assert going(fleet) == []


@pytest.mark.parametrize("field", [{"claims": Known(frozenset({"i-n2"}))}, {"terminating": frozenset({"i-n2"})}])
def test_a_node_that_was_requested_to_terminate_is_no_free_capacity_before_its_taint(field):
    fleet = a_fleet().node("n1").node("n2").pod("a", "n1", cpu="1").pod("b", "n2", cpu="100m")
    assert going(fleet) != []
    assert going(fleet.having(**field)) == []


def test_a_node_that_karpenter_manages_is_free_capacity():
    labels = {"karpenter.sh/nodepool": "default"}
    fleet = a_fleet(a_policy("web", "web")).group("web").group("other").node("n1")
    assert going(fleet.node("n2", group="other", labels=labels).pod("a", "n1")) == [("n1",)]


@pytest.mark.parametrize("taint", ["leeward.dev/disrupted", "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"])
def test_a_node_on_its_way_out_is_no_free_capacity_and_its_pods_come_first(taint):
    fleet = a_fleet().node("n1").node("n2", taints=[{"key": taint, "effect": "NoSchedule"}]).node("n3")
    fleet.pod("a", "n1", cpu="1").pod("b", "n2", cpu="1500m").pod("c", "n3", cpu="400m")
    assert going(fleet) == []


def test_a_node_with_a_taint_that_its_controller_forgot_is_removed_as_any_other():
    since = str(int((NOON - timedelta(hours=3)).timestamp()))
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": since, "effect": "NoSchedule"}
    fleet = a_fleet(a_policy(disruption=rules(budgets=(a_budget(1),)))).node("n1").node("n2", taints=[taint])
    assert going(fleet.pod("a", "n1", cpu="1").pod("b", "n2")) == [("n2",)]


def test_a_pod_without_a_node_takes_its_place_first():
    fleet = a_fleet().node("n1").node("n2").pod("a", "n1", cpu="1200m").pod("b", "n2", cpu="700m")
    assert going(fleet) == [("n1",)]
    assert going(fleet.pod("waiting", cpu="700m")) == []
    assert reason(fleet, "n1") == "pod shop/waiting has no node and will land there"


def test_a_young_pod_keeps_its_node_for_a_while():
    policy = a_policy(disruption=rules(consolidate_after=timedelta(minutes=5)))
    fleet = (
        a_fleet(policy).node("n1").node("n2").pod("a", "n1", started="2026-05-01T11:57:00Z").pod("b", "n2", cpu="1800m")
    )
    assert reason(fleet, "n1") == "the newest pod started or ended 180 s ago: 120 s of consolidateAfter are left"


@pytest.mark.parametrize(
    ("pod", "ago"),
    [
        ({"phase": "Succeeded", "ended": "2026-05-01T11:57:00Z", "owner": "Job"}, 180),
        ({"leaving": True}, 0),
        ({"started": "2026-05-01T12:30:00Z"}, 0),
    ],
    ids=["it has ended", "it is ending", "by a clock that is ahead"],
)
def test_the_end_of_a_pod_keeps_its_node_for_a_while_too(pod, ago):
    fleet = a_fleet(a_policy(disruption=rules(consolidate_after=timedelta(minutes=5))))
    fleet.node("n1").node("n2").pod("a", "n1").pod("b", "n2", cpu="1800m").pod("other", "n1", **pod)
    said = f"the newest pod started or ended {ago} s ago: {300 - ago} s of consolidateAfter are left"
    assert reason(fleet, "n1") == said


def test_budgets_are_kept_and_reported():
    policy = a_policy(disruption=rules(budgets=(a_budget(1),)))
    fleet = a_fleet(policy)
    for number in range(4):
        fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu="300m")
    assert [len(nodes) for nodes in going(fleet)] == [1]
    held = a_policy(disruption=rules(budgets=(a_budget(0),)))
    fleet = a_fleet(held).node("n1").node("n2").pod("a", "n1", cpu="100m").pod("b", "n2", cpu="1")
    assert reason(fleet, "n1") == "the budgets of policy web allow no more Underutilized nodes now"


def test_several_nodes_are_replaced_by_one_cheaper_node():
    fleet = a_fleet().group("web", "medium").group("big", "large")
    for number in range(4):
        fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu="1")
    found = going(fleet)
    assert len(found) == 1
    assert len(found[0]) >= 2


def test_among_equals_fewer_pods_lower_priority_and_old_nodes_come_first():
    fleet = a_fleet(a_policy(disruption=rules(budgets=(a_budget(1),)))).node("n1").node("n2")
    fleet.pod("a", "n1", cpu="300m", priority=1_000_000_000).pod("b", "n2", cpu="300m")
    assert going(fleet) == [("n2",)]


def test_of_nodes_that_can_only_be_removed_alone_the_one_that_disturbs_least_comes_first():
    """Whatever the other would save."""
    fleet = a_fleet(a_policy(disruption=rules(budgets=(a_budget(1),)))).node("keeper", type="huge")
    fleet.pod("rest", "keeper", cpu="1", annotations={"leeward.dev/do-not-disrupt": "true"})
    fleet.node("calm", type="small").pod("a", "calm", cpu="300m")
    fleet.node("expensive", type="huge").pod("b", "expensive", cpu="300m").pod("c", "expensive", cpu="300m")
    assert going(fleet) == [("calm",)]
    assert reason(fleet, "expensive").startswith("it could be removed")


def test_when_time_runs_out_what_was_found_until_then_is_the_plan():
    fleet = a_fleet()
    for number in range(6):
        fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu="300m")
    left = iter([True] * 3)
    found = plan_disruption(fleet.snapshot(), only=MethodName.CONSOLIDATION, more=lambda: next(left, False))
    reasons = [verdicts[MethodName.CONSOLIDATION].reason for verdicts in found.verdicts.values()]
    assert reasons.count("there was no time left to evaluate it") == 3


def test_twice_the_nodes_take_about_twice_the_tries():
    def tries(count):
        asked = []
        fleet = a_fleet().group("web", "medium").group("batch", "small").group("big", "large")
        for number in range(count):
            fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu=f"{300 + 100 * (number % 7)}m")
        plan_disruption(fleet.snapshot(), only=MethodName.CONSOLIDATION, more=lambda: not asked.append(1))
        return len(asked)

    assert tries(60) <= 2.2 * tries(30)


def test_a_not_in_rule_holds_for_every_type_and_not_for_the_label_that_is_missing():
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["small"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    fleet = a_fleet().group("web", "large").group("batch", "small", "medium").node("n1")
    assert going(fleet.pod("a", "n1", affinity=affinity)) == []
    assert "A new node of batch in us-east-1a: node(s) didn't match Pod's node affinity/selector" in reason(fleet, "n1")


def test_pods_that_accept_every_type_of_a_group_get_a_node_of_it():
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["large", "medium", "small"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    fleet = a_fleet().group("web", "large").group("batch", "small", "medium").node("n1")
    assert going(fleet.pod("a", "n1", affinity=affinity)) == [("n1",)]


def test_a_group_does_not_lend_itself_a_node_that_never_comes():
    """A target may get a node and so may lose one more; where nothing has to be launched it may not."""
    fleet = a_fleet().group("web", "huge", "small", minimum=1).group("batch", "huge").node("keeper", group="batch")
    for number in range(3):
        fleet.node(f"n{number}", type="large").pod(f"p{number}", f"n{number}", cpu="50m")
    fleet.pod("rest", "keeper", cpu="1", annotations={"leeward.dev/do-not-disrupt": "true"})
    assert [len(nodes) for nodes in going(fleet)] == [2]


@pytest.mark.parametrize(("types", "goes"), [(["small"], []), (["small", "medium"], [("n1",)])])
def test_a_group_that_leaves_less_choice_than_min_values_asks_for_is_no_target(types, goes):
    """Karpenter's minValues."""
    asked = NodeRequirement(key="node.kubernetes.io/instance-type", operator="Exists", min_values=2)
    fleet = a_fleet(a_policy("web", "web"), a_policy("batch", "batch", requirements=(asked,)))
    fleet.group("web", "large").group("batch", *types).node("n1").pod("a", "n1", cpu="600m")
    assert going(fleet) == goes
    why = targets(fleet.snapshot(), priced=True)[1].get("batch", "")
    assert ("fewer than minValues 2 of requirement node.kubernetes.io/instance-type" in why) is (not goes)


def test_a_new_node_takes_no_more_volumes_than_it_can_attach():
    def planned(most):
        fleet = a_fleet().group("web", "huge").group("small", "medium").node("n1").node("keeper")
        fleet.pod("rest", "keeper", cpu="7900m", annotations={"leeward.dev/do-not-disrupt": "true"})
        snapshot = fleet.pod("a", "n1", cpu="100m").pod("b", "n1", cpu="100m").snapshot()
        volumes = VolumeNeeds(attached=(("ebs.csi.aws.com", 1),))
        specs = tuple(replace(pod, needs=replace(pod.needs, volumes=volumes)) for pod in snapshot.pod_specs)
        full = tuple(replace(one, attach_limits={"ebs.csi.aws.com": 1}) for one in snapshot.node_specs)
        small = snapshot.launchables["small"]
        node = replace(small.template.node, attach_limits={"ebs.csi.aws.com": most})
        limited = replace(small, template=replace(small.template, node=node))
        launchables = {**snapshot.launchables, "small": limited}
        return plan_disruption(replace(snapshot, pod_specs=specs, node_specs=full, launchables=launchables))

    assert [command.nodes for command in planned(2).commands] == [("n1",)]
    assert planned(1).commands == ()
    assert "max volume count" in planned(1).verdicts["n1"][MethodName.CONSOLIDATION].reason
