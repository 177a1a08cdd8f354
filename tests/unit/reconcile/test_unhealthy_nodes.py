"""Which nodes are replaced because they are unhealthy, and why every other stays."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known, Unavailable
from leeward.model.group import Group
from leeward.model.node import Taint
from leeward.model.node_condition import NodeCondition
from leeward.policy.document import GroupSelector, NodePolicy
from leeward.policy.repair import RepairAction, RepairCondition, RepairPolicy
from leeward.reconcile.unhealthy_nodes import Act, verdicts
from tests.fakes.builders import pausing, shifted
from tests.unit.reconcile.health import NOON, ZONES, a_cluster, a_group, a_node, a_state, impaired, minutes, policies


def of(state, name="a1"):
    return verdicts(state, NOON)[name]


def reported(state, name="a1"):
    found = of(state, name)
    return found.act, found.reason


def acting(state):
    return {name for name, verdict in verdicts(state, NOON).items() if verdict.act is Act.REPLACE}


class TestEvidence:
    def test_a_node_that_is_well_is_left(self):
        assert reported(a_cluster(5)) == (Act.LEFT, "it is Ready and passes EC2's status checks")

    def test_one_that_is_not_ready_for_the_policys_time_is_replaced(self):
        assert reported(a_cluster(5, ill={"a1": 30})) == (Act.REPLACE, "NotReady (NodeStatusUnknown) for 30 min")

    def test_in_a_zone_with_a_zonal_shift_it_is_left(self):
        act, reason = reported(a_cluster(5, ill={"a1": 30}, shifts=Known(shifted(ZONES[0]))))
        assert act is Act.LEFT
        assert reason.startswith("zonal shift away from us-east-1a (autoshift since")

    def test_while_the_zonal_shifts_cannot_be_read_no_node_is_replaced(self):
        state = a_cluster(5, ill={"b2": 30}, shifts=Unavailable("the table does not answer"))
        assert acting(state) == set()

    def test_before_that_it_is_waited_for(self):
        found = of(a_cluster(5, ill={"a1": 29}))
        assert (found.act, found.until) == (Act.WAIT, NOON + minutes(1))
        assert found.reason == "NotReady (NodeStatusUnknown) for 29 min of 30 min"

    def test_a_node_that_has_never_reported_its_condition_counts_from_its_creation(self):
        silent = a_node("a1", ill=0, not_ready_since=None, created=NOON - timedelta(hours=2, minutes=5))
        found = of(a_state([silent, a_node("b2"), a_node("c3")]))
        assert (found.act, found.reason) == (Act.REPLACE, "NotReady (NodeStatusUnknown) for 2 h 5 min")

    def test_a_ready_node_whose_status_check_fails_for_the_policys_time_is_replaced(self):
        found = reported(a_cluster(5, failing=[impaired("a1", 2, "system", "attached EBS")]))
        assert found == (Act.REPLACE, "impaired (EC2's system and attached EBS status check fails) for 2 min")

    def test_one_that_has_just_begun_to_fail_is_waited_for(self):
        found = of(a_cluster(5, failing=[impaired("a1", 1)]))
        assert (found.act, found.until) == (Act.WAIT, NOON + minutes(1))

    def test_a_failure_of_an_unknown_beginning_ends_nothing(self):
        found = of(a_cluster(5, failing=[impaired("a1", None)]))
        assert (found.act, found.until) == (Act.WAIT, None)

    def test_of_two_unhealthy_conditions_the_one_that_is_due_first_counts(self):
        both = a_cluster(5, ill={"a1": 10}, failing=[impaired("a1", 3)])
        assert reported(both) == (Act.REPLACE, "impaired (EC2's system status check fails) for 3 min")

    def test_the_policys_times_are_asked(self):
        quick = policies(repair=RepairPolicy(not_ready_after=minutes(5), impaired_after=minutes(20)))
        assert acting(a_cluster(10, ill={"a1": 6}, failing=[impaired("b2", 19)], policies=quick)) == {"a1"}


class TestMonitoredConditions:
    @pytest.mark.parametrize(
        ("kind", "after"),
        [
            ("KernelReady", 30),
            ("NetworkingReady", 30),
            ("StorageReady", 30),
            ("ContainerRuntimeReady", 30),
            ("AcceleratedHardwareReady", 10),
        ],
    )
    def test_a_condition_of_the_node_monitoring_agent_replaces_a_ready_node_after_eks_own_wait(self, kind, after):
        assert reported(failing(kind, after, "NvidiaXID79Error")) == (
            Act.REPLACE,
            f"{kind} is False (NvidiaXID79Error) for {after} min",
        )
        assert of(failing(kind, after - 1)).act is Act.WAIT

    @pytest.mark.parametrize(("kind", "status"), [("KernelReady", "Unknown"), ("MemoryPressure", "True")])
    def test_a_condition_that_the_policy_does_not_name_ends_nothing(self, kind, status):
        assert of(failing(kind, 600, status=status)).act is Act.LEFT

    def test_the_first_entry_that_matches_counts(self):
        rules = (
            RepairCondition(type="StorageReady", reason="XFSSmallAverageClusterSize", action=RepairAction.NONE),
            RepairCondition(type="StorageReady", after=minutes(5)),
        )
        chosen = policies(repair=RepairPolicy(conditions=rules))
        assert of(failing("StorageReady", 60, "XFSSmallAverageClusterSize", policies=chosen)).act is Act.LEFT
        assert of(failing("StorageReady", 6, "IODelays", policies=chosen)).act is Act.REPLACE

    def test_many_nodes_with_a_condition_hold_the_circuit_breaker_open(self):
        ill = [sick(a_node(f"a{n}"), "AcceleratedHardwareReady", 60) for n in range(3)]
        state = a_state([*ill, *(a_node(f"b{n}") for n in range(7))])
        assert "3 of 10 nodes" in of(state, "a0").reason
        assert acting(state) == set()


def sick(node, kind, since, reason="", status="False"):
    condition = NodeCondition(type=kind, status=status, reason=reason, since=NOON - minutes(since))
    return replace(node, monitored=(condition,))


def failing(kind, since, reason="", status="False", **rest):
    """Ten nodes, the first of which has the condition for `since` minutes."""
    return a_state([sick(a_node("a1"), kind, since, reason, status), *(a_node(f"b{n}") for n in range(9))], **rest)


class TestInstancesThatAreGone:
    def test_nothing_but_the_node_is_left(self):
        found = of(a_cluster(3, ill={"a1": 5}, states={"a1": "terminated"}))
        assert (found.act, found.gone) == (Act.REPLACE, True)
        assert found.reason == "EC2 says its instance is terminated: only its Node is left"

    def test_it_is_the_cloud_controllers_to_remove_first(self):
        found = of(a_cluster(3, ill={"a1": 4}, states={"a1": "terminated"}))
        assert (found.act, found.until) == (Act.WAIT, NOON + minutes(1))
        assert "the cloud controller is about to remove its Node" in found.reason

    def test_a_kubelet_that_still_reports_is_looked_at_again(self):
        found = of(a_cluster(3, states={"a1": "terminated"}))
        assert (found.act, found.until) == (Act.WAIT, None)

    def test_no_storm_holds_back_what_ends_no_instance(self):
        everything = dict.fromkeys(("a1", "b2", "c3"), 6)
        assert acting(a_cluster(3, ill=everything, states=dict.fromkeys(everything, "terminated"))) == {
            "a1",
            "b2",
            "c3",
        }

    def test_one_that_ec2_does_not_know_and_no_group_lists_is_left(self):
        node = a_node("a1", ill=60)
        state = a_state([node], groups={"web": a_group("web")}, instances={})
        assert reported(state) == (Act.LEFT, "no Auto Scaling group of the cluster holds its instance")

    def test_one_that_ec2_does_not_know_yet_but_its_group_lists_is_not_taken_for_gone(self):
        state = a_state([a_node("a1", ill=1), a_node("b2")], instances={})
        assert of(state).act is Act.WAIT


class TestWhoIsLeftAlone:
    @pytest.mark.parametrize(
        ("labels", "why"),
        [
            ({"eks.amazonaws.com/compute-type": "fargate"}, "it is a Fargate node"),
            ({"eks.amazonaws.com/compute-type": "auto"}, "EKS Auto Mode manages it"),
            ({"karpenter.sh/nodepool": "default"}, "Karpenter manages it"),
        ],
    )
    def test_nodes_of_others(self, labels, why):
        state = a_cluster(5, ill={"a1": 60})
        nodes = tuple(replace(n, labels={**n.labels, **labels}) if n.name == "a1" else n for n in state.nodes)
        assert reported(replace(state, node_list=Known(nodes))) == (Act.LEFT, why)

    def test_nodes_of_groups_that_no_policy_selects(self):
        other = NodePolicy(name="batch", selector=GroupSelector(groups=("batch-*",)))
        assert reported(a_cluster(5, ill={"a1": 60}, policies=policies(other))) == (
            Act.LEFT,
            "no policy selects its group web",
        )

    def test_a_paused_cluster(self):
        assert reported(a_cluster(5, ill={"a1": 60}, policies=pausing(policies()))) == (
            Act.LEFT,
            "cluster blue is paused: game day",
        )

    def test_a_paused_group_and_no_other(self):
        paused = a_cluster(5, ill={"a1": 60}, policies=pausing(policies(), group="web"))
        assert reported(paused) == (Act.LEFT, "group web is paused: game day")
        other = a_cluster(5, ill={"a1": 60}, policies=pausing(policies(), group="batch"))
        assert reported(other) == reported(a_cluster(5, ill={"a1": 60}, policies=policies()))

    def test_repair_that_is_switched_off(self):
        off = policies(repair=RepairPolicy(enabled=False))
        assert reported(a_cluster(5, ill={"a1": 60}, policies=off)) == (
            Act.LEFT,
            "policy web says repair.enabled: false",
        )

    @pytest.mark.parametrize(
        "taint", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "leeward.dev/disrupted"]
    )
    def test_nodes_that_another_controller_removes(self, taint):
        mark = Taint(key=taint, effect="NoSchedule")
        nodes = [a_node("a1", ill=60, taints=(mark,)), *(a_node(f"b{n}") for n in range(5))]
        assert reported(a_state(nodes)) == (Act.LEFT, f"it is terminating already (taint {taint})")

    def test_a_node_whose_taint_its_controller_forgot_is_replaced(self):
        since = str(int((NOON - timedelta(hours=3)).timestamp()))
        mark = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule", value=since)
        nodes = [a_node("a1", ill=60, taints=(mark,)), *(a_node(f"b{n}") for n in range(5))]
        assert acting(a_state(nodes)) == {"a1"}

    def test_nodes_that_ask_to_be_left_alone(self):
        node = a_node("a1", ill=60, annotations={"karpenter.sh/do-not-disrupt": "true"})
        found = of(a_state([node, *(a_node(f"b{n}") for n in range(5))]))
        assert (found.act, "karpenter.sh/do-not-disrupt" in found.reason) == (Act.LEFT, True)

    def test_nodes_that_a_termination_of_ours_is_about(self):
        claimed = a_cluster(5, ill={"a1": 60}, claims=Known(frozenset({"i-a1"})))
        assert reported(claimed) == (Act.LEFT, "a termination of it is under way")

    def test_nodes_that_are_being_deleted(self):
        node = a_node("a1", ill=60, deleting=True)
        assert reported(a_state([node, a_node("b2")])) == (Act.LEFT, "its Node object is being deleted")

    @pytest.mark.parametrize("lifecycle", ["Terminating:Wait", "Terminating:Retained", "Pending:Wait", "Standby"])
    def test_instances_that_their_group_does_not_count_on(self, lifecycle):
        state = a_cluster(5, ill={"a1": 60}, lifecycles={"a1": lifecycle})
        assert reported(state) == (Act.LEFT, f"its group web says {lifecycle}")

    def test_instances_that_stop(self):
        state = a_cluster(5, ill={"a1": 60}, states={"a1": "stopping"})
        assert reported(state) == (Act.LEFT, "EC2 says its instance is stopping")


class TestCircuitBreaker:
    @pytest.mark.parametrize(
        ("nodes", "ill", "repaired"), [(2, 1, 1), (6, 1, 1), (6, 2, 0), (9, 2, 0), (10, 2, 2), (10, 3, 0)]
    )
    def test_the_clusters_share_is_rounded_down_and_allows_at_least_one_node(self, nodes, ill, repaired):
        names = ("a1", "b2", "c3")[:ill]
        assert len(acting(a_cluster(nodes, ill=dict.fromkeys(names, 60)))) == repaired

    @pytest.mark.parametrize(
        ("nodes", "ill", "repaired"), [(5, 1, 1), (9, 1, 1), (9, 2, 0), (10, 2, 2), (14, 2, 2), (14, 3, 0)]
    )
    def test_a_zones_share_is_rounded_down_and_allows_at_least_one_node(self, nodes, ill, repaired):
        in_a = [a_node(f"a{n}", ill=60 if n < ill else None) for n in range(nodes)]
        elsewhere = [a_node(f"b{n}", zone="us-east-1b") for n in range(40)]
        assert len(acting(a_state([*in_a, *elsewhere]))) == repaired

    def test_more_than_the_clusters_share_and_none_is(self):
        state = a_cluster(6, ill={"a1": 60, "b2": 60, "c3": 1})
        assert acting(state) == set()
        assert of(state).reason == (
            "NotReady (NodeStatusUnknown) for 1 h, but "
            "3 of 6 nodes of the cluster are unhealthy, more than repair.maxUnhealthy (20%)"
        )

    def test_more_than_a_zones_share_and_none_is_in_that_zone(self):
        state = a_cluster(27, ill={"a1": 60, "a4": 1, "b2": 60})
        assert acting(state) == {"b2"}
        assert of(state).reason == (
            "NotReady (NodeStatusUnknown) for 1 h, but "
            "2 of 9 nodes of zone us-east-1a are unhealthy, more than repair.maxUnhealthy (20%)"
        )

    def test_a_number_is_taken_as_it_is(self):
        one = policies(repair=RepairPolicy(max_unhealthy=1, max_unhealthy_percent=False))
        assert acting(a_cluster(30, ill={"a1": 60}, policies=one)) == {"a1"}
        assert acting(a_cluster(30, ill={"a1": 60, "b2": 60}, policies=one)) == set()

    def test_the_number_zero_allows_no_repair(self):
        none = policies(repair=RepairPolicy(max_unhealthy=0, max_unhealthy_percent=False))
        assert acting(a_cluster(30, ill={"a1": 60}, policies=none)) == set()

    def test_zero_percent_allows_one_node_as_every_percentage_does(self):
        least = policies(repair=RepairPolicy(max_unhealthy=0))
        assert acting(a_cluster(30, ill={"a1": 60}, policies=least)) == {"a1"}
        assert acting(a_cluster(30, ill={"a1": 60, "b2": 60}, policies=least)) == set()

    def test_those_that_are_being_replaced_still_count(self):
        claimed = frozenset({"i-b2", "i-c3"})
        assert acting(a_cluster(6, ill={"a1": 60, "b2": 60, "c3": 60}, claims=Known(claimed))) == set()

    def test_those_whose_instances_are_gone_do_not(self):
        states = {"b2": "terminated", "c3": "shutting-down"}
        assert "a1" in acting(a_cluster(6, ill={"a1": 60, "b2": 60, "c3": 60}, states=states))

    def test_impaired_instances_count_as_well(self):
        failing = [impaired("a1"), impaired("b2"), impaired("c3")]
        assert acting(a_cluster(6, failing=failing)) == set()

    def test_groups_share_the_circuit_breaker_and_each_nodes_policy_sets_its_limit(self):
        web, batch = [a_node(f"a{n}") for n in range(12)], [a_node(f"b{n}") for n in range(3)]
        batch[0], batch[1] = a_node("b0", ill=60), a_node("b1", ill=60)
        groups = {"web": a_group("web", web), "batch": a_group("batch", batch)}
        assert acting(a_state([*web, *batch], groups=groups)) == {"b0", "b1"}
        web[0], web[1] = a_node("a0", ill=60), a_node("a1", ill=60)
        assert acting(a_state([*web, *batch], groups=groups)) == set()
        generous = NodePolicy(
            name="web", selector=GroupSelector(groups=("web",)), repair=RepairPolicy(max_unhealthy=50)
        )
        strict = NodePolicy(name="batch", selector=GroupSelector(groups=("batch",)))
        either = policies(generous, strict)
        assert acting(a_state([*web, *batch], groups=groups, policies=either)) == {"a0", "a1"}

    def test_a_node_whose_zone_nothing_shows_counts_in_the_cluster_alone(self):
        lost = [a_node(f"a{n}", ill=60, labels={}) for n in range(2)]
        healthy = [a_node(f"b{n}", zone="us-east-1b") for n in range(8)]
        known = a_state(healthy, groups={"web": a_group("web", [*lost, *healthy])})
        assert acting(replace(known, node_list=Known((*lost, *healthy)))) == {"a0", "a1"}

    def test_a_zone_that_is_dark_ends_nothing_in_it(self):
        generous = policies(repair=RepairPolicy(max_unhealthy=50))
        dark = a_cluster(6, ill={"a1": 60, "a4": 40, "b2": 60}, policies=generous)
        assert acting(dark) == {"b2"}
        assert "every node of zone us-east-1a is unhealthy" in of(dark).reason

    def test_the_only_node_of_a_zone_is_no_zone(self):
        assert acting(a_cluster(3, ill={"a1": 60})) == {"a1"}

    def test_a_zone_is_dark_over_all_groups_whether_selected_or_not(self):
        ours = [a_node("a1", ill=60), *(a_node(f"b{n}", zone="us-east-1b") for n in range(9))]
        others = a_node("k1", ill=60, labels={**ours[0].labels, "karpenter.sh/nodepool": "x"})
        assert acting(a_state([*ours, others], groups={"web": a_group("web", ours)})) == set()
        assert acting(a_state([*ours, replace(others, ready=True)], groups={"web": a_group("web", ours)})) == {"a1"}

    def test_a_cluster_that_is_dark_ends_nothing(self):
        all_of_them = policies(repair=RepairPolicy(max_unhealthy=100))
        dark = a_cluster(3, ill={"a1": 60, "b2": 60, "c3": 60}, policies=all_of_them)
        assert acting(dark) == set()
        assert "every node of the cluster is NotReady" in of(dark).reason

    def test_the_only_node_of_a_cluster_is_replaced_on_ec2s_word_alone(self):
        alone = a_node("a1", ill=60)
        assert acting(a_state([alone])) == set()
        assert acting(a_state([alone], failing=[impaired("a1")])) == {"a1"}


def test_every_node_has_a_verdict_with_a_sentence():
    state = a_cluster(9, ill={"a1": 60, "b2": 3}, failing=[impaired("c3")])
    found = verdicts(state, NOON)
    assert set(found) == {node.name for node in state.nodes}
    assert all(verdict.reason for verdict in found.values())


def test_a_group_of_another_cluster_is_none_of_ours():
    state = a_cluster(
        5, ill={"a1": 60}, groups={"other": Group(name="other", tags={}, minimum=0, maximum=1, desired=0)}
    )
    assert reported(state) == (Act.LEFT, "no Auto Scaling group of the cluster holds its instance")
