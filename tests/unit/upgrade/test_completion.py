"""How an upgrade ends: sizes, zone balancing and cordons are restored, and the record says how it went."""

from dataclasses import replace

import pytest

from leeward.errors import AwsUnavailableError, LeewardError
from leeward.model import well_known
from leeward.model.capacity import RaisedMaximum
from leeward.model.launch import LaunchSource
from leeward.model.termination import CauseKind
from leeward.reconcile.reconciler import reconcile_once
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.reconciler import reconcile_upgrades
from leeward.upgrade.record import ControlRequest, OpenLaunch
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from tests.fakes.builders import GROUP, a_policy, policies
from tests.unit.upgrade.test_waits import NAME, NEW, OLD, RUN, V1, V2, a_rolling_group, draining

FAILURES = {
    UpgradeNext.BLOCKED: "PreflightBlocked",
    UpgradeNext.CREATION_FAILURE: "NodeCreationFailure",
    UpgradeNext.EVICTION_FAILURE: "PodEvictionFailure",
    UpgradeNext.UPDATE_FAILURE: "NodegroupUpdateFailure",
}


def rolling(*, raised=True, **given):
    """The group while its upgrade runs: MaxSize 12 instead of 10, AZRebalance suspended, the old node cordoned."""
    system = a_rolling_group()
    assert system.templates.version_for(V1, "ami-00000000000000002", token="two").version == V2.version
    change(system, maximum=12, suspended=("AZRebalance", "ReplaceUnhealthy"), launch=LaunchSource(template=V2))
    system.kubernetes.cordon(system.kubernetes.by_name[f"node-{OLD}"], GROUP, exclude=False)
    fields = {
        "maximum": 10,
        "suspended": True,
        "previous": UpgradeTarget(template=V1),
    }
    if raised:
        system.maxima.write(RaisedMaximum(group=GROUP, before=10, raised=(12,)))
    draining(system, **{**fields, **given})
    return system


def change(system, **fields):
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], **fields)


def group(system):
    return system.groups.by_name[GROUP]


def record(system):
    return system.upgrades.records[GROUP]


def owed(system):
    return system.maxima.read(GROUP).active


def step(system, name, run=RUN, **call):
    return STEPS[name](run, {"step": name, **call}, system.ports)


def returned(system):
    """MaxSize as before, AZRebalance resumed and what others have suspended left alone."""
    there = group(system)
    return (there.maximum, there.suspended) == (10, ("ReplaceUnhealthy",))


def test_azrebalance_stays_suspended_while_a_zonal_shift_lasts_and_the_reconciler_resumes_it_afterwards():
    system = rolling(finished=1)
    system.shift("us-east-1b")
    assert step(system, "restore").next is UpgradeNext.UPGRADED
    assert (record(system).suspended, owed(system)) == (True, False)
    assert "AZRebalance" in group(system).suspended
    assert reconcile_upgrades([group(system)], system.ports) == []
    system.shift()
    assert reconcile_upgrades([group(system)], system.ports) == [GROUP]
    assert returned(system)
    assert not record(system).suspended


def test_a_completed_upgrade_puts_maxsize_back_resumes_azrebalance_and_uncordons():
    system = rolling(finished=1)
    assert step(system, "restore").next is UpgradeNext.UPGRADED
    assert returned(system)
    assert not system.kubernetes.by_name[f"node-{OLD}"].unschedulable
    done = record(system)
    assert (done.ended, done.error, done.resumable) == (system.clock.now(), "", False)
    assert (done.suspended, owed(system)) == (False, False)


@pytest.mark.parametrize("how", FAILURES)
def test_a_failed_upgrade_puts_maxsize_back_and_keeps_a_record_that_can_be_resumed(how):
    system = rolling()
    failed = replace(RUN, next=how, why="the node says so")
    assert step(system, "note-failure", failed).next is how
    assert returned(system)
    kept = record(system)
    assert kept.resumable
    assert kept.error == f"{FAILURES[how]}: the node says so"


def test_a_step_that_raised_ends_the_upgrade_with_its_error_and_cause():
    system = rolling()
    failed = step(system, "note-failure", error="ClusterUnreachableError", cause="list nodes: timed out")
    assert failed.next is UpgradeNext.FAILED
    assert record(system).error.endswith("ClusterUnreachableError: list nodes: timed out")
    assert returned(system)


def test_the_reconciler_restores_maxsize_in_a_group_that_no_policy_selects():
    """Its upgrade was started with that finding overridden, or the policy has changed since."""
    system = rolling(suspended=False)
    system.upgrade_executions.open.clear()
    system.clusters.policies_of["blue"] = policies(a_policy("other", "batch-*"))
    assert GROUP in reconcile_once(system.ports).restored
    assert group(system).maximum == 10


def test_where_records_cannot_be_read_together_each_is_read():
    system = rolling()
    system.upgrade_executions.open.clear()
    system.upgrades.fail("read_all", AwsUnavailableError("503"))
    assert reconcile_upgrades([group(system)], system.ports) == [GROUP]
    assert returned(system)


def test_a_maxsize_that_was_never_raised_is_not_written():
    system = rolling(raised=False)
    step(system, "restore")
    assert group(system).maximum == 12
    assert "put_back_maximum" not in system.group_changes.asked


def test_an_upgrade_is_not_complete_while_the_desired_size_is_larger_than_before():
    system = rolling()
    change(system, desired=3)
    assert step(system, "scale-down").next is UpgradeNext.WAIT
    system.clock.advance(seconds=16 * 60)
    done = step(system, "scale-down")
    assert done.next is UpgradeNext.RESTORE
    assert "the desired size is 3, it was 2" in record(system).warnings


def test_only_as_many_launches_are_offset_as_the_group_is_larger_and_those_that_leave_are_not():
    """Cluster Autoscaler has terminated one of two: the upgrade shrinks the group by the other one alone."""
    system = rolling(ahead={"i-0gone": OpenLaunch(zone="us-east-1b"), NEW: OpenLaunch(zone="us-east-1a")})
    change(system, desired=3)
    step(system, "scale-down")
    assert list(system.claims.records) == [NEW]
    assert record(system).ahead == {}
    assert record(system).warnings[0].startswith("i-0gone: launched ahead, and the desired size is no larger")


def test_a_surplus_launch_is_paid_for_by_itself_and_by_no_node_in_service():
    """The launched node is the emptiest new one; its termination takes the surplus off the desired size."""
    system = rolling(ahead={NEW: OpenLaunch(zone="us-east-1a")})
    change(system, desired=3)
    step(system, "scale-down")
    assert list(system.claims.records) == [NEW]
    assert {cause.kind for cause in system.claims.records[NEW].causes} == {CauseKind.SURPLUS}
    assert record(system).ahead == {}


def test_an_abort_points_the_group_back_uncordons_old_nodes_and_restores():
    system = rolling(control=ControlRequest.ABORT)
    assert step(system, "undo").next is UpgradeNext.RESTORE
    assert group(system).launch.template == V1
    assert not system.kubernetes.by_name[f"node-{OLD}"].unschedulable
    assert step(system, "restore").next is UpgradeNext.ABORTED
    assert returned(system)


def test_a_rollback_exchanges_the_targets_once():
    system = rolling(control=ControlRequest.ROLLBACK, failed=(OLD,), reasons={OLD: "pods"})
    step(system, "start-rollback")
    turned = record(system)
    assert (turned.target.template, turned.previous.template) == (V1, V2)
    assert (turned.rolling_back, turned.control, turned.failed, turned.reasons) == (True, ControlRequest.RUN, (), {})
    step(system, "start-rollback")
    assert record(system) == turned
    assert step(system, "restore").next is UpgradeNext.ROLLED_BACK


def test_a_rollback_gives_its_new_nodes_the_time_of_a_start():
    """The time of the upgrade is over by then: the gate would end the rollback before it has launched."""
    system = rolling(control=ControlRequest.ROLLBACK, ahead={NEW: OpenLaunch(zone="us-east-1a")})
    system.clock.advance(seconds=3600)
    step(system, "start-rollback")
    assert record(system).phase_since == system.clock.now()


@pytest.mark.parametrize("name", sorted(STEPS.keys() - {"take-lease"}))
@pytest.mark.parametrize("control", [ControlRequest.RUN, ControlRequest.ROLLBACK, ControlRequest.ABORT])
def test_each_step_about_a_group_that_was_deleted_ends_with_a_result_or_names_the_group(name, control):
    system = rolling(control=control, refusal="mixed instances")
    del system.groups.by_name[GROUP]
    said = [GROUP]
    try:
        step(system, name)
    except LeewardError as error:  # any other error is a defect
        said = [str(error)]
    assert all(GROUP in words for words in said)


def test_an_upgrade_that_ends_well_starts_the_group_that_follows_and_a_failed_one_keeps_it():
    system = rolling(then=("batch", "api"))
    step(system, "note-failure", replace(RUN, next=UpgradeNext.EVICTION_FAILURE, why="pods"))
    assert record(system).then == ("batch", "api")
    assert not system.upgrade_executions.started
    step(system, "restore")
    ((name, given),) = system.upgrade_executions.started
    assert name.startswith("batch-")
    assert (given["group"], given["then"]) == ("batch", ["api"])


def test_an_execution_that_has_lost_the_lease_ends_without_touching_the_group():
    system = rolling(execution=f"{GROUP}-2")
    for name in ("restore", "note-failure", "undo", "scale-down", "drain", "gate"):
        assert step(system, name).next is UpgradeNext.HAND_OVER
    assert group(system).maximum == 12
    assert well_known.CORDONED_FOR in system.kubernetes.by_name[f"node-{OLD}"].annotations


def test_the_next_execution_is_named_by_the_attempt_so_that_asking_twice_starts_one():
    system = rolling()
    first = step(system, "continue")
    assert first.next is UpgradeNext.CONTINUED
    ((name, given),) = system.upgrade_executions.started
    assert (name, given["after"]) == (f"{GROUP}-2", NAME)


def test_an_abort_of_a_rollback_warns_that_the_group_launches_the_version_that_was_rolled_back_from():
    system = rolling(
        control=ControlRequest.ABORT,
        rolling_back=True,
        target=UpgradeTarget(template=V2),
        previous=UpgradeTarget(template=V1),
    )
    step(system, "undo")
    (warning,) = record(system).warnings
    assert f"launches {V1.label}, the version that was rolled back from" in warning
    assert "--launch-template-version 2" in warning
    step(system, "undo")
    assert record(system).warnings == (warning,)
