"""The minute reconciler and a zone that an operator evacuates."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AwsUnavailableError
from leeward.model.group import AZ_REBALANCE
from leeward.model.termination import Cause, CauseKind, Outcome
from leeward.model.well_known import ZONE_LABEL
from leeward.model.zonal_shift import ShiftKind
from leeward.reconcile.evacuations import EVENT
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import CLUSTER, GROUP, an_instance, pausing
from tests.fakes.clock import START
from tests.fakes.disruptions import a_disruption
from tests.state_machines.walker import Walker
from tests.unit.reconcile.zones import (
    IN_A,
    NODES,
    ZONES,
    A,
    B,
    a_group_in,
    a_pod,
    a_system,
    evacuate,
    node_in,
    open_again,
)
from tests.unit.upgrade.test_capacity_ledger import RECORD as OPEN_UPGRADE


def minutes_later(system, minutes=1):
    system.clock.advance(minutes=minutes)
    return reconcile_once(system.ports)


def sizes(system):
    group = system.groups.by_name[GROUP]
    return group.minimum, group.desired, group.maximum


def joins_at_once(system):
    """Each launch of the group becomes a Ready node in its subnet's zone."""

    def joined(_, subnet, instance):
        zone = f"us-east-1{subnet[-1]}"
        system.instances.known[instance] = replace(an_instance(instance), zone=zone, subnet=subnet)
        system.kubernetes.put_node(node_in(instance, zone))

    system.groups.on_launch = joined


def finish_terminations(system):
    """Walk every open execution to its end, and remove nodes whose instances have ended."""
    for name in sorted(system.executions.open):
        instance, _, attempt = name.rpartition("-")
        Walker(system).run(instance, int(attempt))
        system.executions.open.discard(name)
        if system.claims.records[instance].outcome is Outcome.TERMINATED:
            system.kubernetes.by_name.pop(f"node-{instance}", None)


def test_as_many_nodes_of_the_zone_are_claimed_as_the_budgets_allow_and_no_other():
    system = a_system(at_once=2)
    evacuate(system)
    first, second = reconcile_once(system.ports), minutes_later(system)
    assert (first.evacuated, second.evacuated) == (list(IN_A[:2]), [])
    assert system.executions.open == {f"{name}-1" for name in IN_A[:2]}
    record = system.claims.records[IN_A[0]]
    assert [cause.kind for cause in record.causes] == [CauseKind.EVACUATION]
    assert {event.reason for event in system.kubernetes.events} == {EVENT}


def test_the_replacement_is_launched_elsewhere_first_and_the_group_has_its_sizes_at_the_end():
    system = a_system(*(a_pod(f"web-{name}", name) for name in IN_A))
    joins_at_once(system)
    before = sizes(system)
    evacuate(system)
    for _ in IN_A:
        minutes_later(system)
        finish_terminations(system)
    assert {subnet for _, subnet, _ in system.groups.launches} <= {"subnet-b", "subnet-c"}
    assert len(system.groups.launches) == len(IN_A)
    assert system.groups.terminated == [(name, True) for name in IN_A]
    assert sizes(system) == before
    assert A not in {node.labels[ZONE_LABEL] for node in system.kubernetes.by_name.values()}


def test_the_drain_begins_only_once_the_replacement_is_ready():
    system = a_system(a_pod("web-1"), at_once=1)
    evacuate(system)
    reconcile_once(system.ports)
    waited = []

    def join_later(state, data):
        waited.append(state)
        if waited.count("WaitForPods") == 3 and state == "WaitForPods":
            (launched,) = system.claims.records[IN_A[0]].replacement.launched
            assert system.kubernetes.done == []
            system.kubernetes.put_node(node_in(launched, B))

    Walker(system, before=join_later).run(IN_A[0])
    assert system.kubernetes.done[0] == "evict shop/web-1"


def test_without_a_replacement_elsewhere_the_node_stays_in_service_and_is_asked_again_after_ten_minutes():
    system = a_system(a_pod("web-1"))
    system.groups.refuse_launch = "UnsupportedOperation: mixed instances"
    evacuate(system)
    reconcile_once(system.ports)
    finish_terminations(system)
    record = system.claims.records[IN_A[0]]
    assert record.outcome is Outcome.RETURNED_TO_SERVICE
    assert record.failure.startswith("no replacement in another zone: UnsupportedOperation")
    assert (system.groups.terminated, system.kubernetes.done) == ([], [])
    assert not system.kubernetes.by_name[f"node-{IN_A[0]}"].unschedulable
    assert minutes_later(system, 9).evacuated == [IN_A[1]]
    finish_terminations(system)
    assert IN_A[0] in minutes_later(system, 2).evacuated


def test_az_rebalance_is_suspended_while_the_zone_is_closed_and_resumed_when_its_terminations_have_ended():
    system = a_system()
    joins_at_once(system)
    evacuate(system)
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == (AZ_REBALANCE,)
    open_again(system)
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == (AZ_REBALANCE,)
    finish_terminations(system)
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == ()
    assert system.catalog.zone_record(CLUSTER).evacuations == ()


def test_balancing_that_the_owner_has_suspended_stays_suspended():
    system = a_system(groups=[replace(a_group_in((A, B)), suspended=(AZ_REBALANCE,))])
    evacuate(system)
    minutes_later(system)
    open_again(system)
    minutes_later(system)
    assert system.group_changes.asked["resume"] == 0
    assert system.groups.by_name[GROUP].suspended == (AZ_REBALANCE,)


def test_balancing_stays_suspended_while_another_zone_is_shifted():
    system = a_system()
    evacuate(system, A)
    minutes_later(system)
    open_again(system, A)
    for name in sorted(system.claims.records):
        system.claims.records[name] = replace(system.claims.records[name], causes=())
    system.recovery.arc.start(CLUSTER, "use1-az2", ShiftKind.MANUAL, system.clock.now())
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == (AZ_REBALANCE,)


def test_a_zone_that_is_open_again_loses_no_further_node():
    system = a_system()
    evacuate(system)
    open_again(system)
    assert minutes_later(system).evacuated == []
    assert system.claims.records == {}


def test_the_sizes_before_the_evacuation_are_kept_in_the_record():
    system = a_system()
    evacuate(system)
    minutes_later(system)
    kept = system.catalog.zone_record(CLUSTER).evacuation_of(A).sizes[GROUP]
    assert (kept.minimum, kept.desired, kept.maximum) == sizes(system)


def test_the_sizes_before_the_evacuation_stay_in_the_record_when_the_group_is_resized():
    system = a_system()
    before = sizes(system)
    evacuate(system)
    minutes_later(system)
    group = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(group, desired=group.desired + 2, maximum=group.maximum + 5)
    minutes_later(system)
    kept = system.catalog.zone_record(CLUSTER).evacuation_of(A).sizes[GROUP]
    assert (kept.minimum, kept.desired, kept.maximum) == before


def test_balancing_of_a_group_that_comes_later_is_suspended_and_resumed_with_that_of_the_first():
    system = a_system()
    evacuate(system)
    minutes_later(system)
    later = a_group_in(ZONES, name="web-b", members={"i-0b9": B})
    system.groups.by_name["web-b"] = later
    minutes_later(system)
    assert {name: group.suspended for name, group in system.groups.by_name.items()} == {
        GROUP: (AZ_REBALANCE,),
        "web-b": (AZ_REBALANCE,),
    }
    open_again(system)
    system.claims.records.clear()
    minutes_later(system)
    assert {name: group.suspended for name, group in system.groups.by_name.items()} == {GROUP: (), "web-b": ()}


@pytest.mark.parametrize(
    ("groups", "ended", "kept"),
    [((GROUP,), None, (AZ_REBALANCE,)), (("web-b",), None, ()), ((GROUP,), START, ())],
    ids=["open", "of another group", "ended"],
)
def test_balancing_stays_suspended_for_an_open_disruption_run_of_the_group(groups, ended, kept):
    system = a_system()
    evacuate(system)
    minutes_later(system)
    system.disruptions.records[CLUSTER] = a_disruption(cluster=CLUSTER, groups=groups, ended=ended)
    open_again(system)
    system.claims.records.clear()
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == kept


def test_a_paused_cluster_evacuates_nothing():
    system = a_system()
    evacuate(system)
    system.clusters.policies_of[CLUSTER] = pausing(system.clusters.policies_of[CLUSTER])
    assert reconcile_once(system.ports).evacuated == []


def test_a_write_that_another_writer_overtakes_is_made_by_the_next_pass():
    system = a_system()
    evacuate(system)
    real, lost = system.catalog.write_zone_record, []

    def overtaken(record, now):
        if not lost:
            lost.append(record)
            return None
        return real(record, now)

    system.catalog.write_zone_record = overtaken
    first = reconcile_once(system.ports)
    assert (first.evacuated, len(first.errors)) == ([], 1)
    assert minutes_later(system).evacuated == [IN_A[0]]


def test_while_the_shifts_cannot_be_read_no_node_is_claimed_and_no_balancing_resumed():
    system = a_system()
    evacuate(system)
    minutes_later(system)
    open_again(system)
    system.claims.records.clear()
    system.catalog.fail("zonal_shifts", AwsUnavailableError("no answer"))
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == (AZ_REBALANCE,)
    system.catalog.heal()
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == ()


@pytest.mark.parametrize(("runs", "kept"), [(True, (AZ_REBALANCE,)), (False, ())])
def test_balancing_stays_suspended_for_an_upgrade_that_runs_and_not_for_one_that_has_died(runs, kept):
    system = a_system()
    evacuate(system)
    minutes_later(system)
    system.upgrades.write(replace(OPEN_UPGRADE, group=GROUP, execution=f"{GROUP}-1", version=0))
    system.upgrade_executions.open |= {f"{GROUP}-1"} if runs else set()
    open_again(system)
    system.claims.records.clear()
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == kept


def test_balancing_is_resumed_in_each_group_that_no_upgrade_works_on():
    members = {"i-0b1": "us-east-1b"}
    system = a_system(groups=[a_group_in(ZONES), a_group_in(ZONES, name="web-b", members=members)])
    evacuate(system)
    minutes_later(system)
    assert system.groups.by_name["web-b"].suspended == (AZ_REBALANCE,)
    system.upgrades.write(replace(OPEN_UPGRADE, group=GROUP, execution=f"{GROUP}-1", version=0))
    system.upgrade_executions.open.add(f"{GROUP}-1")
    open_again(system)
    system.claims.records.clear()
    minutes_later(system)
    assert {name: group.suspended for name, group in system.groups.by_name.items()} == {
        GROUP: (AZ_REBALANCE,),
        "web-b": (),
    }
    system.upgrade_executions.open.clear()
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == ()
    assert system.catalog.zone_record(CLUSTER).evacuations == ()


def test_a_group_whose_balancing_cannot_be_suspended_keeps_its_nodes_and_holds_no_other_group():
    members = {"i-0a1": A, "i-0b1": "us-east-1b"}
    others = {name: zone for name, zone in NODES.items() if name not in members}
    system = a_system(groups=[a_group_in(ZONES, members=others), a_group_in(ZONES, name="web-b", members=members)])
    evacuate(system)
    real = system.group_changes.suspend

    def denied(group, process):
        if group == "web-b":
            raise AwsUnavailableError("no answer")
        real(group, process)

    system.group_changes.suspend = denied
    result = reconcile_once(system.ports)
    assert result.evacuated == ["i-0a2"]
    assert any(error.startswith("web-b: ") for error in result.errors)


def test_balancing_does_not_wait_for_a_node_that_a_distant_maintenance_requires_as_well():
    system = a_system()
    evacuate(system)
    minutes_later(system)
    record = system.claims.records[IN_A[0]]
    date = system.clock.now() + timedelta(days=3)
    ahead = Cause(id="event-1", kind=CauseKind.SCHEDULED_CHANGE, at=system.clock.now(), deadline=date)
    system.claims.claim(record.subject, ahead, system.clock.now())
    open_again(system)
    minutes_later(system)
    assert system.groups.by_name[GROUP].suspended == ()
