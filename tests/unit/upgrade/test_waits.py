"""Waits of an upgrade that stand still end with a failure that names the node, what blocks it, and the fix."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model import well_known
from leeward.model.launch import LaunchTemplateRef
from leeward.model.node import Taint
from leeward.model.pod import Owner, Pod, PodDisruptionBudget
from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import (
    Budget,
    Canary,
    DisruptionPolicy,
    DisruptionReason,
    DrainPolicy,
    GroupSelector,
    UpdatePolicy,
)
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, NotedHold, OpenLaunch
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from leeward.upgrade.steps import STEPS
from leeward.upgrade.waits import noted_hold
from tests.fakes.builders import GROUP, ZONE, a_group, a_node, a_policy, a_subject, an_instance, policies
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import begun

OLD, NEW, NAME = "i-0aaa", "i-0bbb", f"{GROUP}-1"
TAINT = Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule")
V1, V2 = (LaunchTemplateRef(id=f"lt-{GROUP}", name=GROUP, version=version) for version in "12")
RUN = UpgradeRun(group=GROUP, execution=NAME, next=UpgradeNext.WAIT)


def a_rolling_group(**update):
    """One old and one new node, the old one with a pod that a PodDisruptionBudget keeps; the upgrade drains."""
    given = replace(a_policy(), update=replace(UpdatePolicy(), **{"canary": Canary(), **update}))
    found = a_group(GROUP, OLD, NEW)
    versions = {OLD: V1, NEW: V2}
    members = tuple(replace(one, template=versions[one.id]) for one in found.instances)
    system = FakeSystem(
        instances=[an_instance(OLD), an_instance(NEW)],
        groups=[replace(found, instances=members)],
        nodes=[a_node(OLD), a_node(NEW)],
        written=policies(given),
    )
    system.kubernetes.put_pod(a_pod("web-1", f"node-{OLD}"))
    selector = {"matchLabels": {"app": "web"}}
    budget = PodDisruptionBudget(namespace="shop", name="web", selector=selector, disruptions_allowed=0)
    system.kubernetes.budget_list.append(budget)
    system.upgrade_executions.open.add(NAME)
    return system


def a_pod(name, node):
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="web")
    return Pod(
        namespace="shop",
        name=name,
        uid=name,
        node=node,
        phase="Running",
        labels={"app": "web"},
        owner=owner,
        ready=True,
    )


def draining(system, **given):
    fields = {"target": UpgradeTarget(template=V2), "desired": 2, "execution": NAME, "attempt": 1, "cordoned": True}
    return begun(system, **{"proven": system.clock.now(), **fields, **given})


def taint(system, instance=OLD, **fields):
    node = system.kubernetes.by_name[f"node-{instance}"]
    system.kubernetes.put_node(replace(node, taints=(TAINT,), unschedulable=True, **fields))


def terminated_for(system, kind, instance=OLD, blocked_by=()):
    system.claims.claim(a_subject(instance), Cause(id="theirs#1", kind=kind, at=system.clock.now()), system.clock.now())
    system.claims.note_attempt(instance, 1, blocked_by=blocked_by)


def after(system, step="drain", minutes=60):
    """What the step says when nothing moves for so long."""
    for _ in range(minutes):
        run = STEPS[step](RUN, {"step": step}, system.ports)
        if run.next is not UpgradeNext.WAIT and run.next is not UpgradeNext.WINDOW and run.next is not UpgradeNext.BAKE:
            return run
        system.clock.advance(seconds=60)
    return run


def test_a_node_that_another_controller_cannot_terminate_ends_the_upgrade_and_is_named():
    system = a_rolling_group()
    draining(system)
    taint(system, deleting=True, finalizers=("acme.example/protect",))
    terminated_for(system, CauseKind.NODE_DELETED, blocked_by=("shop/web-1: pdb shop/web allows no disruption",))
    run = after(system)
    assert run.next is UpgradeNext.EVICTION_FAILURE
    for word in (f"node-{OLD}", "terminated for node", "pdb shop/web", "acme.example/protect", "kubectl get node"):
        assert word in run.why, run.why
    STEPS["note-failure"](run, {}, system.ports)
    assert system.upgrades.records[GROUP].error.startswith("PodEvictionFailure: nodes have not left in 40m")


def test_a_new_node_that_cannot_leave_and_takes_the_only_place_is_named():
    """It is broken and its termination is repeated; maxUnavailable 1 lets no old node start beside it."""
    system = a_rolling_group()
    draining(system, ahead={NEW: OpenLaunch(zone=ZONE)}, launched=1, desired=1)
    system.kubernetes.put_pod(a_pod("web-2", f"node-{NEW}"))
    taint(system, NEW)
    terminated_for(system, CauseKind.UNHEALTHY, NEW, blocked_by=("shop/web-2: pdb shop/web allows no disruption",))
    assert f"unavailable are: {NEW}" in after(system, minutes=1).why
    run = after(system)
    assert run.next is UpgradeNext.EVICTION_FAILURE
    for word in (f"node-{NEW} does not leave", "terminated for unhealthy", "pdb shop/web"):
        assert word in run.why, run.why


def test_a_node_that_a_person_has_tainted_is_named_with_the_object_that_blocks_it():
    system = a_rolling_group()
    draining(system)
    taint(system)
    run = after(system)
    assert run.next is UpgradeNext.EVICTION_FAILURE
    assert "tainted by another controller or a person" in run.why
    assert "pdb shop/web" in run.why


def test_such_a_node_is_waited_for_as_long_as_pods_leave_it():
    system = a_rolling_group()
    for number in range(2, 5):
        system.kubernetes.put_pod(a_pod(f"web-{number}", f"node-{OLD}"))
    draining(system)
    taint(system)
    for number in range(2, 5):
        assert after(system, minutes=35).next is UpgradeNext.WAIT
        system.kubernetes.by_key.pop(f"shop/web-{number}", None)
    assert after(system, minutes=90).next is UpgradeNext.EVICTION_FAILURE


def test_a_node_of_the_upgrade_itself_whose_termination_never_ends_is_named():
    system = a_rolling_group()
    draining(system, under_way={OLD: "t.1"}, started=1)
    cause = Cause(id=f"upgrade#{GROUP}#t.1", kind=CauseKind.UPGRADE, at=system.clock.now())
    system.claims.claim(a_subject(OLD), cause, system.clock.now())
    taint(system)
    run = after(system)
    assert run.next is UpgradeNext.EVICTION_FAILURE
    assert f"node-{OLD} does not leave (terminated by this upgrade)" in run.why


def test_the_limit_is_longer_than_the_longest_drain():
    system = a_rolling_group()
    drain = DrainPolicy(timeout=timedelta(hours=2))
    system.clusters.policies_of["blue"] = policies(
        replace(a_policy(), update=UpdatePolicy(canary=Canary()), drain=drain)
    )
    draining(system)
    taint(system)
    assert after(system, minutes=120).next is UpgradeNext.WAIT
    assert after(system, minutes=30).next is UpgradeNext.EVICTION_FAILURE


def test_a_canary_node_that_never_ends_ends_the_upgrade():
    system = a_rolling_group(canary=Canary(nodes=1))
    draining(system, under_way={OLD: "t.1"}, started=1)
    cause = Cause(id=f"upgrade#{GROUP}#t.1", kind=CauseKind.UPGRADE, at=system.clock.now())
    system.claims.claim(a_subject(OLD), cause, system.clock.now())
    taint(system)
    assert after(system).next is UpgradeNext.EVICTION_FAILURE


def test_a_budget_that_a_node_of_another_group_holds_ends_the_upgrade_and_names_the_node():
    system = a_rolling_group()
    budgets = DisruptionPolicy(budgets=(Budget(nodes=1, percent=False, reasons=(DisruptionReason.UPGRADE,)),))
    shared = replace(
        a_policy(),
        selector=GroupSelector(groups=("web-*", "api-*")),
        update=UpdatePolicy(canary=Canary()),
        disruption=budgets,
    )
    system.clusters.policies_of["blue"] = policies(shared)
    system.groups.by_name["api-a"] = a_group("api-a", "i-0ccc")
    system.kubernetes.put_node(a_node("i-0ccc", ready=False))
    draining(system)
    run = after(system)
    assert run.next is UpgradeNext.EVICTION_FAILURE
    assert "node-i-0ccc" in run.why
    assert "raise the policy's budget" in run.why


def test_a_pause_is_waited_for_without_a_limit():
    system = a_rolling_group()
    draining(system, control=ControlRequest.PAUSE)
    taint(system)
    for _ in range(100):
        assert STEPS["drain"](RUN, {}, system.ports).next is UpgradeNext.PAUSED
        system.clock.advance(seconds=60)


def test_an_abort_names_the_node_that_does_not_finish():
    system = a_rolling_group()
    draining(system, control=ControlRequest.ABORT, under_way={OLD: "t.1"}, started=1)
    cause = Cause(id=f"upgrade#{GROUP}#t.1", kind=CauseKind.UPGRADE, at=system.clock.now())
    system.claims.claim(a_subject(OLD), cause, system.clock.now())
    taint(system)
    run = after(system, "undo")
    assert run.next is UpgradeNext.EVICTION_FAILURE
    assert "pdb shop/web" in run.why


def test_a_raised_desired_size_that_brings_no_instance_ends_the_scale_down():
    system = a_rolling_group()
    draining(system, raised=1, wanted=3, target=UpgradeTarget(template=replace(V2, version="3")))
    run = after(system, "scale-down")
    assert run.next is UpgradeNext.CREATION_FAILURE
    assert f"scaling activities of {GROUP}" in run.why


def test_an_instance_of_the_raised_desired_size_that_comes_after_the_last_drain_is_counted():
    system = a_rolling_group()
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=3)
    draining(system, raised=1, wanted=3)
    STEPS["scale-down"](RUN, {}, system.ports)
    assert system.upgrades.records[GROUP].raised == 0


def test_an_instance_of_the_raised_desired_size_is_counted_once():
    """Its offset was requested, and another node may be chosen for it: the other instances are still to come."""
    system = a_rolling_group()
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=5)
    draining(system, raised=3, wanted=5)
    for _ in range(3):
        assert STEPS["scale-down"](RUN, {}, system.ports).next is UpgradeNext.WAIT
        system.clock.advance(seconds=10)
    record = system.upgrades.records[GROUP]
    assert (record.raised, record.launched) == (2, 1)


def test_what_was_there_before_the_size_was_raised_is_none_of_the_instances_that_it_brings():
    system = a_rolling_group()
    system.upgrades.write(replace(draining(system, surge=1), refusal="denied"))
    STEPS["drain"](RUN, {}, system.ports)
    record = system.upgrades.records[GROUP]
    assert (record.raised, record.counted) == (1, (NEW,))
    STEPS["drain"](RUN, {}, system.ports)
    assert (system.upgrades.records[GROUP].raised, system.upgrades.records[GROUP].launched) == (1, 0)


@pytest.mark.parametrize("kind", [CauseKind.SPOT_INTERRUPTION, CauseKind.ASG_TERMINATE])
def test_a_node_that_others_terminate_in_time_delays_nothing(kind):
    system = a_rolling_group()
    draining(system)
    taint(system)
    terminated_for(system, kind)
    assert after(system, minutes=5).next is UpgradeNext.WAIT
    gone = replace(system.groups.by_name[GROUP], instances=system.groups.by_name[GROUP].instances[1:])
    system.groups.by_name[GROUP] = gone
    assert after(system, minutes=1).next is UpgradeNext.SCALE_DOWN


@pytest.mark.parametrize(("ends", "pause"), [((4,), 4), ((4, 7), 7), ((60,), 10), ((4, None), 10), ((-1,), 10)])
def test_the_next_observation_comes_when_the_last_pod_of_a_node_has_to_be_gone(ends, pause):
    """A place that is free and not used is time lost. A pod that was not asked to end yet names no moment."""
    system = a_rolling_group()
    draining(system)
    taint(system)
    terminated_for(system, CauseKind.MANUAL)
    for number, seconds in enumerate(ends, 1):
        ending = None if seconds is None else system.clock.now() + timedelta(seconds=seconds)
        system.kubernetes.put_pod(replace(a_pod(f"web-{number}", f"node-{OLD}"), deletion=ending))
    assert STEPS["drain"](RUN, {"step": "drain"}, system.ports).pause == pause


@pytest.mark.parametrize(("joined", "pause"), [(True, 2), (False, 5)])
def test_the_gate_looks_more_often_once_a_new_node_has_joined(joined, pause):
    system = a_rolling_group()
    draining(system, cordoned=False, proven=None, ahead={NEW: OpenLaunch(zone=ZONE)}, launched=1, desired=1)
    system.instances.put(replace(an_instance(NEW), launched=system.clock.now()))
    node = system.kubernetes.by_name.pop(f"node-{NEW}")
    if joined:
        system.kubernetes.put_node(replace(node, ready=False))
    run = STEPS["gate"](RUN, {"step": "gate"}, system.ports)
    assert (run.next, run.pause) == (UpgradeNext.WAIT, pause)


def test_a_hold_is_written_once_when_it_begins_and_once_when_it_is_over():
    system = a_rolling_group()
    begun(system, execution=NAME, attempt=1, target=UpgradeTarget(template=V2), prepared=True, checked=True)
    written = []
    hold = NotedHold(kind="canary", since=system.clock.now(), why="the canary is watched")
    held = replace(RUN, next=UpgradeNext.BAKE, hold=hold)
    for run in (held, replace(held, hold=replace(hold, why="later words")), RUN, RUN):
        before = system.upgrades.read(GROUP)
        noted_hold(run, before, system.upgrades)
        written.append(system.upgrades.read(GROUP).version - before.version)
    assert (written, system.upgrades.read(GROUP).hold) == ([1, 0, 1, 0], None)
