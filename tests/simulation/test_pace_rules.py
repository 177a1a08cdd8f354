"""The rules about nodes that nothing urgent has asked for find what breaks them."""

from dataclasses import replace

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.record import DisruptionRecord
from leeward.model import well_known
from leeward.policy.document import Budget, UpdatePolicy
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from local.cluster.nodes import NodeSpec
from simulation.asked import Kind
from simulation.aws.recovery import Shifted
from simulation.invariants import Checker, Rule
from simulation.pace_rules import UNSEEN
from tests.fakes.builders import GROUP, ZONE, a_group
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, NODE, TAINT, World

OTHER = "i-b"
RECORD = {"group": GROUP, "cluster": "blue", "target": UpgradeTarget(), "desired": 2, "maximum": 4, "began": START}
RECORD |= {"strategy": Strategy.DEFAULT}
RUN = {"cluster": "blue", "number": 1, "method": MethodName.CONSOLIDATION, "began": START}
RUN |= {"commands": (), "members": {}, "groups": (GROUP,)}


def a_world(most=1, since=60, **policy):
    """Two nodes with a pod each, of one group. `since`: seconds for which the pods have been bound."""
    world = World(groups={GROUP: a_group(GROUP, INSTANCE, OTHER)})
    update = UpdatePolicy(max_unavailable=most)
    chain = tuple(replace(one, update=update, **policy) for one in world.policies.policies)
    world.policies = replace(world.policies, policies=chain)
    world.rewritten = -1e9
    world.cluster.add_node(NodeSpec(name="node-b", instance_id=OTHER))
    for node in (NODE, "node-b"):
        spec = {"nodeName": node, "containers": [{"name": "app", "image": "app"}]}
        world.cluster.create("pods", {"metadata": {"name": f"pod-of-{node}"}, "spec": spec}, "default")
    world.clock.advance(seconds=since)
    world.rolled = {GROUP}
    return world


def broken(world):
    checker = Checker()
    checker.after_event(world)
    for node in (NODE, "node-b"):
        world.api.taint(world.api.node(node), TAINT)
    return [one.rule for one in checker.after_event(world) if one.rule is not Rule.STALE_TAINT]


def found(world, *, tainted=(NODE, "node-b"), rule=Rule.PACE):
    checker = Checker()
    checker.after_event(world)
    for node in tainted:
        world.api.taint(world.api.node(node), TAINT)
    return [violation.text for violation in checker.after_event(world) if violation.rule is rule]


def test_more_nodes_at_once_than_max_unavailable_are_found_whatever_record_they_have():
    assert found(a_world(most=2)) == []
    assert found(a_world(), tainted=(NODE,)) == []
    assert broken(a_world()) == [Rule.PACE]
    (text,) = found(a_world())
    assert text == f"{GROUP}: i-a, i-b at once, maxUnavailable is 1"


def test_pods_that_are_bound_after_the_decision_do_not_count():
    assert found(a_world(since=UNSEEN - 5)) == []
    assert found(a_world(since=UNSEEN + 5))


def test_surplus_without_an_upgrade_counts_too():
    world = a_world()
    world.rolled = set()
    assert found(world)


def test_more_nodes_than_a_budget_for_upgrades_are_found():
    def limited(*reasons, nodes=1, zone=None):
        budget = Budget(nodes=nodes, percent=False, reasons=reasons, zone=zone)
        world = a_world(most=2)
        chain = world.policies.policies
        rules = tuple(replace(one, disruption=replace(one.disruption, budgets=(budget,))) for one in chain)
        world.policies = replace(world.policies, policies=rules)
        return found(world)

    assert limited("Upgrade")
    assert limited("Upgrade", nodes=2) == limited("Drifted") == limited("Upgrade", zone="elsewhere") == []


@pytest.mark.parametrize("kind", [Kind.SPOT, Kind.MANUAL, Kind.MAINTENANCE])
def test_a_node_that_something_urgent_asks_for_does_not_count(kind):
    world = a_world()
    world.ask(kind)
    assert found(world) == []


def test_neither_does_a_broken_node_nor_one_without_pods_nor_one_in_a_closed_zone_nor_one_of_a_run():
    broken = a_world()
    broken.cluster.set_node_ready(NODE, "Unknown")
    empty = a_world()
    empty.cluster.delete("pods", f"pod-of-{NODE}", "default")
    empty.clock.advance(seconds=60)
    empty.cluster.step(empty.now)
    closed = a_world()
    label = {"metadata": {"labels": {"topology.kubernetes.io/zone": ZONE}}}
    closed.cluster.patch("nodes", NODE, label)
    closed.shifted = [Shifted(zone=ZONE, began=closed.now)]
    run = a_world()
    run.rolled, run.disrupting = set(), {"blue-1-1"}
    assert [found(world) for world in (broken, empty, closed, run)] == [[], [], [], []]


@pytest.mark.parametrize(("ended", "counts"), [(None, 0), (START, 1)])
def test_a_run_whose_execution_was_stopped_is_still_one(ended, counts):
    world = a_world()
    world.rolled, world.disrupting = set(), set()
    nodes = {NODE: INSTANCE, "node-b": OTHER}
    world.disruptions = {"blue": DisruptionRecord(**RUN, nodes=nodes, ended=ended)}
    assert len(found(world)) == counts


def test_nodes_that_a_run_taints_while_an_upgrade_waits_for_it_do_not_count_and_those_that_the_upgrade_adds_do():
    def waiting(*claimed, under_way=(), ended=None):
        world = a_world()
        nodes = {name: instance for name, instance in ((NODE, INSTANCE), ("node-b", OTHER)) if instance in claimed}
        world.disruptions = {"blue": DisruptionRecord(**RUN, nodes=nodes, ended=ended)}
        world.disrupting = {"blue-1-1"}
        world.upgrades[GROUP] = UpgradeRecord(**RECORD, under_way=dict.fromkeys(under_way, "tag"))
        return found(world)

    assert waiting(INSTANCE, OTHER) == []
    assert waiting(INSTANCE) == waiting(INSTANCE, OTHER, under_way=[OTHER]) == waiting(INSTANCE, OTHER, ended=START)
    assert waiting(INSTANCE) == [f"{GROUP}: i-a, i-b at once, maxUnavailable is 1"]


def test_a_pod_that_opts_out_is_not_evicted_for_a_run():
    def evicted(annotations, **given):
        world = a_world(most=2)
        world.rolled, world.disrupting = set(), {"blue-1-1"}
        world.cluster.patch("pods", f"pod-of-{NODE}", {"metadata": {"annotations": annotations}}, "default")
        for name, value in given.items():
            setattr(world, name, value)
        checker = Checker()
        checker.after_event(world)
        world.taint()
        (pod,) = world.api.pods_on(NODE)
        world.api.evict(pod)
        return [one.rule for one in checker.after_event(world)]

    said = {well_known.DO_NOT_DISRUPT: "true"}
    assert evicted(said) == evicted({well_known.SAFE_TO_EVICT: "false"}) == [Rule.OPT_OUT]
    assert evicted({well_known.DO_NOT_DISRUPT: "20m"}) == [Rule.OPT_OUT]
    assert evicted({well_known.DO_NOT_DISRUPT: "0s"}) == evicted({well_known.DO_NOT_DISRUPT: "soon"}) == []
    assert evicted({}) == evicted(said, rolled={GROUP}) == evicted(said, started_manually={INSTANCE}) == []
    assert evicted(said, known_causes=lambda _: ("surplus#1",)) == []
    assert evicted(said, known_causes=lambda _: ("surplus#1", "drift#1")) == [Rule.OPT_OUT]


def test_a_node_whose_pods_may_leave_and_do_not_is_found_once():
    world = a_world()
    world.work()
    checker = Checker()
    checker.after_event(world)
    world.taint()
    found = []
    for _ in range(60):
        world.clock.advance(seconds=61)
        found += checker.after_event(world)
    assert [one.rule for one in found] == [Rule.IDLE]
    assert found[0].text.startswith(f"{NODE} ({INSTANCE}) keeps default/pod-of-{NODE} for 24")


def test_a_node_whose_pods_a_budget_holds_is_not_idle():
    world = a_world()
    world.cluster.patch("pods", f"pod-of-{NODE}", {"metadata": {"labels": {"app": "web"}}}, "default")
    spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}
    world.cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, "default")
    world.work()
    checker = Checker()
    checker.after_event(world)
    world.taint()
    for _ in range(60):
        world.clock.advance(seconds=61)
        assert Rule.IDLE not in {one.rule for one in checker.after_event(world)}


def an_hour_idle(world, checker):
    """Let an hour pass under the taint; return the violations of the rule about idle nodes."""
    found = []
    for _ in range(60):
        world.clock.advance(seconds=61)
        world.cluster.step(world.now)
        found += [violation for violation in checker.after_event(world) if violation.rule is Rule.IDLE]
    return found


def test_a_critical_pod_waits_for_a_pod_that_its_budget_holds_and_for_nothing_else():
    def idle(*, blocked):
        world = a_world()
        critical = {
            "nodeName": NODE,
            "priorityClassName": "system-cluster-critical",
            "containers": [{"name": "a", "image": "a"}],
        }
        world.cluster.create("pods", {"metadata": {"name": "dns"}, "spec": critical}, "kube-system")
        if blocked:
            world.cluster.patch("pods", f"pod-of-{NODE}", {"metadata": {"labels": {"app": "web"}}}, "default")
            spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}
            world.cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, "default")
        else:
            world.cluster.delete("pods", f"pod-of-{NODE}", "default")
        world.work()
        checker = Checker()
        checker.after_event(world)
        world.taint()
        return [violation.rule for violation in an_hour_idle(world, checker)]

    assert (idle(blocked=True), idle(blocked=False)) == ([], [Rule.IDLE])


def test_an_empty_node_that_stays_under_our_taint_is_found_unless_a_hook_holds_it():
    def idle(*waiting):
        world = a_world()
        world.waiting = list(waiting)
        world.cluster.delete("pods", f"pod-of-{NODE}", "default")
        world.work()
        checker = Checker()
        checker.after_event(world)
        world.taint()
        return [violation.text for violation in an_hour_idle(world, checker)]

    (text,) = idle()
    assert text.startswith(f"{NODE} ({INSTANCE}) is empty and keeps our taint for 24")
    assert idle((GROUP, "their-hook", INSTANCE)) == []
