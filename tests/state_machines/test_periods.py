"""A termination record that is opened again days later: nothing of an earlier period rules the present one."""

from dataclasses import replace
from datetime import timedelta

from leeward.model.pod import Owner
from leeward.model.termination import Cause, CauseKind, DrainOptions, Outcome, Status
from leeward.policy.document import SETTLES, DrainPolicy
from leeward.termination import deadlines
from leeward.termination.replacing import ask_for_replacement
from leeward.termination.run import Next, Run
from tests.fakes.builders import GROUP, a_subject, our_hook
from tests.fakes.clock import START
from tests.fakes.ledger import by, settled
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system
from tests.state_machines.walker import Walker

DAYS = 86_400


def join(system, kind, *, at=None, deadline=None, id_=None, **more):
    now = system.clock.now()
    at = at or now
    cause = Cause(id=id_ or f"{kind}#{at}", kind=kind, at=at, deadline=deadline, **more)
    record = system.claims.claim(a_subject(I), cause, now)
    if record.token:
        system.executions.wake(record.token)
    return record


def scale_in(system):
    now = system.clock.now()
    system.groups.begin_terminating(GROUP, I)
    hook = {"hook": "leeward-terminate", "hook_ours": True}
    return join(system, CauseKind.ASG_TERMINATE, deadline=now + timedelta(seconds=300), **hook)


def opened_after(system, minutes):
    """The budget allows an eviction from then on."""
    opens = system.clock.now() + timedelta(minutes=minutes)

    def world(_state, _data):
        if system.clock.now() >= opens:
            system.kubernetes.set_allowed("shop/web", 1)

    return world


def failed(system, days=3):
    """The present drain fails on its budget, the node is returned to service, and days pass."""
    record = system.claims.records[I]
    assert Walker(system).run(I, record.attempt).ended == "PodEvictionFailure"
    assert system.claims.records[I].status is Status.CLOSED
    system.clock.advance(seconds=days * DAYS)


def test_a_hook_is_heartbeaten_for_its_own_48_hours_although_a_drain_failed_days_ago():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL)
    failed(system)
    record = scale_in(system)
    Walker(system, before=opened_after(system, 10)).run(I, record.attempt)
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert len(system.groups.heartbeats) >= 3


def test_a_hook_is_heartbeaten_although_maintenance_was_announced_days_ago():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    earlier, later = START - timedelta(days=3), START + timedelta(days=5)
    join(system, CauseKind.SCHEDULED_CHANGE, at=earlier, deadline=later)
    scale_in(system)
    Walker(system, before=opened_after(system, 10)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert len(system.groups.heartbeats) >= 3


def test_flags_of_a_failed_manual_drain_delete_no_pod_of_a_later_termination():
    bare = replace(a_pod("bare", labels={"app": "bare"}), owner=None)
    system = a_system(pods=[bare], budgets=[a_budget(0)], drain=DrainPolicy(evict_unmanaged=False))
    join(system, CauseKind.MANUAL, options=DrainOptions(disable_eviction=True, grace_seconds=1))
    failed(system)
    system.kubernetes.by_key.clear()
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="web")  # its budget is what protects it
    system.kubernetes.put_pod(replace(a_pod(grace=30), owner=owner))
    record = join(system, CauseKind.EXPIRED)
    Walker(system).run(I, record.attempt)
    assert system.kubernetes.done == []


def test_force_of_an_upgrade_does_not_force_a_later_termination():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.UPGRADE, force=True)
    system.claims.close(I, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=START)
    system.clock.advance(seconds=3 * DAYS)
    record = join(system, CauseKind.EXPIRED)
    assert not record.forced
    Walker(system).run(I, record.attempt)
    assert system.kubernetes.done == []


def test_maintenance_that_has_passed_hurries_no_later_drain():
    """Load balancers (5 min) and volumes (6 min) are waited for as in any other."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(minutes=10))
    failed(system, days=1)
    now, policy = system.clock.now(), DrainPolicy()
    record = join(system, CauseKind.EXPIRED)
    assert deadlines.deregistered_by(record, policy, now, now, ours_hold=False) == now + timedelta(minutes=5)
    held = deadlines.held_by(record, policy, policy.volume_detach_timeout, now, now, ours_hold=False)
    assert held == now + timedelta(minutes=6)


def test_maintenance_that_has_passed_hurries_no_drain_of_its_own_period_either():
    system = a_system()
    record = join(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(minutes=10))
    later = START + timedelta(minutes=11)
    assert deadlines.node_deadline(record, DrainPolicy(), START, START, ours_hold=False) is not None
    assert deadlines.node_deadline(record, DrainPolicy(), later, later, ours_hold=False) is None
    assert deadlines.settle_seconds(record, SETTLES, later) == 60


def test_maintenance_that_moves_to_a_later_date_is_not_forgotten_after_the_first():
    """Its second announcement is a new cause of the same Health event."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    arn = "arn:aws:health:us-east-1::event/EC2/AWS_EC2_MAINTENANCE/1"
    join(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(minutes=30), id_=f"{arn}#a#{I}")
    system.clock.advance(seconds=1)
    join(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=3), id_=f"{arn}#b#{I}")
    for _ in range(2):
        record = system.claims.records[I]
        assert Walker(system).run(I, record.attempt).ended == "PodEvictionFailure"
        assert system.claims.records[I].status is Status.OPEN
        system.clock.advance(minutes=20)
        system.claims.begin_attempt(I, record.attempt)
    system.clock.advance(seconds=3 * DAYS)
    assert Walker(system).run(I, 3).ended == "PodEvictionFailure"
    assert system.claims.records[I].status is Status.CLOSED


def test_the_later_of_two_maintenance_events_keeps_the_record_open_too():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(minutes=10), id_=f"arn:one#{I}")
    join(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=3), id_=f"arn:two#{I}")
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert system.claims.records[I].status is Status.OPEN


def test_a_spot_warning_after_a_failed_rebalance_launches_a_replacement_of_its_own():
    """The first launch was accounted for when the node returned to service; a name of its own keeps the client token
    from answering with it, and the ledger from taking the second for paid.
    """
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.REBALANCE_RECOMMENDATION)
    failed(system, days=1)
    before = system.claims.records[I]
    assert (len(system.groups.launches), list(before.offsets)) == (1, [before.surge])
    record = join(system, CauseKind.SPOT_INTERRUPTION, deadline=system.clock.now() + timedelta(minutes=2))
    Walker(system).run(I, record.attempt)
    after = system.claims.records[I]
    assert len(system.groups.launches) == 2
    assert len({token for _, _, token in system.groups.launches}) == 2
    assert after.offsets == {**before.offsets, after.surge: by(I)}


def test_a_launch_of_an_earlier_period_that_nothing_offset_is_offset_exactly_once():
    """A record closed with its books open, which no step of ours does: the launch still decides, and nothing more is
    launched.
    """
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)])
    join(system, CauseKind.REBALANCE_RECOMMENDATION)
    ask_for_replacement(Run(instance=I, attempt=1, version=1, next=Next.REPLACE), {}, system.ports)
    system.claims.close(I, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=system.clock.now())
    record = join(system, CauseKind.EXPIRED)
    Walker(system).run(I, record.attempt)
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]
    assert settled(system.claims.records[I]) == [I]


def test_a_redelivered_message_of_an_earlier_period_reopens_nothing():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.REBALANCE_RECOMMENDATION, id_="rebalance#1")
    failed(system)
    join(system, CauseKind.MANUAL, id_="manual#1")
    failed(system)
    assert join(system, CauseKind.REBALANCE_RECOMMENDATION, id_="rebalance#1").status is Status.CLOSED
