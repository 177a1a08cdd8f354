"""Launches of ours and who pays for them, through node-termination's own definition, with others at work meanwhile."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import InvalidInputError
from leeward.model.capacity import NoOffset
from leeward.model.group import ScalingActivity
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from tests.fakes.builders import GROUP, a_node, a_subject, an_instance
from tests.fakes.clock import START
from tests.fakes.ledger import settled
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ec2_says, ended, spot
from tests.state_machines.walker import Walker

SHRUNK = "a user request changing the desired capacity from 3 to 2.  An instance was taken out of service."


def a_fleet(**more):
    """A system in which what is launched becomes an instance and a node."""
    system = a_system(**more)

    def born(group, subnet, instance):
        young = replace(an_instance(instance), launched=system.clock.now())
        system.instances.put(young)
        system.kubernetes.by_name[f"node-{instance}"] = a_node(instance)

    system.groups.on_launch = born
    return system


def ends_the_instance(system, *, at="Drain", cause="taken out of service in response to an EC2 health check"):
    """Before the state `at`, the group ends the instance by itself and fills up again, once."""
    done = []

    def meanwhile(state, _):
        if state == at and not done:
            done.append(state)
            system.groups.begin_terminating(GROUP, I, cause)
            system.groups.refill(GROUP)

    return meanwhile


def drain_the_others(system):
    """A person drains every member that stays: their records are open."""
    cause = Cause(id="manual", kind=CauseKind.MANUAL, at=system.clock.now())
    for member in system.groups.by_name[GROUP].instances:
        if member.id != I:
            system.claims.claim(a_subject(member.id), cause, system.clock.now())


def size(system):
    group = system.groups.by_name[GROUP]
    return group.desired, sum(not member.lifecycle.startswith("Terminating") for member in group.instances)


def run_the_next_member(system, **options):
    (member,) = settled(system.claims.records[I])
    assert system.executions.running(member, 1)
    return member, Walker(system, **options).run(member)


def test_where_the_group_replaced_the_instance_its_youngest_member_offsets_the_launch():
    system = a_fleet(pods=[a_pod()])
    before = size(system)
    spot(system)
    assert Walker(system, before=ends_the_instance(system)).run(I).ended == "Terminated"
    assert size(system) == (before[0] + 1, before[1] + 1)
    member, walk = run_the_next_member(system)
    assert walk.ended == "Terminated"
    assert system.groups.terminated == [(member, True)]
    assert size(system) == before
    assert settled(system.claims.records[member]) == [member]


def test_where_every_other_member_is_ended_already_the_one_that_the_group_still_launches_offsets_it():
    system = a_fleet(pods=[a_pod()])
    before = size(system)
    spot(system)
    looks = []

    def meanwhile(state, _):
        if state == "Drain" and not looks:
            system.groups.begin_terminating(GROUP, I, "taken out of service in response to an EC2 health check")
            drain_the_others(system)
        if state == "Finish":
            looks.append(settled(system.claims.records[I]))
            if len(looks) == 3:
                system.groups.refill(GROUP)

    assert Walker(system, before=meanwhile).run(I).ended == "Terminated"
    assert looks[:3] == [[], [], []]
    member, walk = run_the_next_member(system)
    assert walk.ended == "Terminated"
    assert system.groups.terminated == [(member, True)]
    assert size(system) == before


def test_a_group_that_does_not_launch_in_time_keeps_no_record_open():
    system = a_fleet(pods=[a_pod()])
    spot(system)

    def meanwhile(state, _):
        if state == "Drain" and system.groups.by_name[GROUP].lifecycle_of(I) == "InService":
            system.groups.begin_terminating(GROUP, I, "taken out of service in response to an EC2 health check")
            drain_the_others(system)

    assert Walker(system, before=meanwhile).run(I).ended == "Terminated"
    assert timedelta(minutes=15) < system.clock.now() - START < timedelta(minutes=25)
    assert settled(system.claims.records[I]) == [NoOffset.WRITTEN_OFF]


def test_a_decrement_whose_answer_was_lost_is_recognised_and_paid_once():
    system = a_fleet(pods=[a_pod()])
    spot(system)
    walk = Walker(system, killed=["terminate"]).run(I)
    assert walk.ended == "Terminated"
    assert system.groups.terminated == [(I, True)]
    assert settled(system.claims.records[I]) == [I]


def test_an_owner_that_shrank_the_group_in_between_is_not_charged_twice():
    system = a_fleet(pods=[a_pod()])
    spot(system)

    def meanwhile(state, _):
        if state == "Drain" and not system.groups.history:
            control = ScalingActivity(at=system.clock.now(), cause=SHRUNK, leaves="i-0other")
            system.groups.history.append((GROUP, control))
            group = system.groups.by_name[GROUP]
            system.groups.by_name[GROUP] = replace(group, desired=group.desired - 1)
            system.groups.begin_terminating(GROUP, I)

    assert Walker(system, before=meanwhile).run(I).ended == "Terminated"
    assert settled(system.claims.records[I]) == [NoOffset.WRITTEN_OFF]
    assert list(system.claims.records) == [I]


def test_an_owner_who_ends_the_very_instance_with_decrement_has_paid():
    system = a_fleet(pods=[a_pod()])
    spot(system)
    cause = "taken out of service in response to a user request, shrinking the capacity from 3 to 2"
    assert Walker(system, before=ends_the_instance(system, cause=cause)).run(I).ended == "Terminated"
    assert settled(system.claims.records[I]) == [I]
    assert list(system.claims.records) == [I]


def test_a_surplus_member_is_spared_when_the_group_has_been_made_smaller_before_its_turn():
    system = a_fleet(pods=[a_pod()])
    spot(system)
    Walker(system, before=ends_the_instance(system)).run(I)

    def meanwhile(state, _):
        if state == "Terminate":
            control = ScalingActivity(at=system.clock.now(), cause=SHRUNK, leaves="i-0other")
            system.groups.history.append((GROUP, control))

    member, walk = run_the_next_member(system, before=meanwhile)
    assert walk.ended == "Cancelled"
    assert system.groups.terminated == []
    assert not system.kubernetes.by_name[f"node-{member}"].tainted
    assert ended_of(system, member) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)


def ended_of(system, instance):
    record = system.claims.records[instance]
    return record.status, record.outcome


def test_an_instance_that_its_group_replaces_as_well_passes_the_offset_on():
    system = a_fleet(pods=[a_pod()])
    before = size(system)
    spot(system)
    Walker(system, before=ends_the_instance(system)).run(I)
    (member,) = settled(system.claims.records[I])

    def meanwhile(state, _):
        if state == "Drain" and system.groups.by_name[GROUP].lifecycle_of(member):
            system.groups.begin_terminating(GROUP, member)
            system.groups.refill(GROUP)

    assert Walker(system, before=meanwhile).run(member).ended == "Terminated"
    (next_member,) = settled(system.claims.records[member])
    assert next_member not in {I, member}
    assert Walker(system).run(next_member).ended == "Terminated"
    assert size(system) == before


def test_where_a_budget_holds_its_pods_the_next_member_offsets_it_and_nothing_is_disturbed():
    system = a_fleet(pods=[a_pod()])
    spot(system)
    Walker(system, before=ends_the_instance(system)).run(I)
    (member,) = settled(system.claims.records[I])
    system.kubernetes.put_pod(a_pod("stuck", node=f"node-{member}"))
    system.kubernetes.put_pod(a_pod("free", node=f"node-{member}", labels={"app": "other"}))
    system.kubernetes.budget_list = [a_budget(0)]
    before = list(system.kubernetes.done)
    assert Walker(system).run(member).ended == "PodEvictionFailure"
    assert system.kubernetes.done == before
    assert ended_of(system, member) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    (next_member,) = settled(system.claims.records[member])
    assert Walker(system).run(next_member).ended == "Terminated"
    assert system.groups.terminated == [(next_member, True)]


def test_the_books_wait_for_the_groups_word_and_nothing_is_ended_without_it():
    """EC2 has ended it, and the group has not noticed yet."""
    system = a_fleet(pods=[a_pod()])
    spot(system)
    noticed = []

    def meanwhile(state, _):
        if state == "Drain":
            ec2_says(system, "terminated")
        if state == "Finish":
            noticed.append(list(system.claims.records))
            if len(noticed) == 3:
                ends_the_instance(system, at="Finish")(state, _)

    assert Walker(system, before=meanwhile).run(I).ended == "Terminated"
    assert noticed[:3] == [[I], [I], [I]]
    assert len(system.claims.records) == 2


def test_a_group_that_never_says_how_it_ended_the_instance_is_let_be():
    system = a_fleet(pods=[])
    spot(system)

    def meanwhile(state, _):
        if state == "Drain":
            ec2_says(system, "terminated")

    assert Walker(system, before=meanwhile).run(I).ended == "Terminated"
    assert system.clock.now() - START > timedelta(minutes=15)
    assert settled(system.claims.records[I]) == [NoOffset.WRITTEN_OFF]


def test_a_group_at_its_minimum_owes_nothing():
    system = a_fleet(pods=[a_pod()])
    spot(system)

    def meanwhile(state, data):
        if state == "Drain":
            group = system.groups.by_name[GROUP]
            system.groups.by_name[GROUP] = replace(group, minimum=group.desired)
        ends_the_instance(system)(state, data) if system.groups.by_name[GROUP].lifecycle_of(I) else None

    assert Walker(system, before=meanwhile).run(I).ended == "Terminated"
    assert settled(system.claims.records[I]) == [NoOffset.WRITTEN_OFF]


def test_asked_twice_to_pass_an_offset_on_the_same_instance_is_chosen():
    system = a_fleet(pods=[a_pod()])
    spot(system)
    walk = Walker(system, before=ends_the_instance(system), killed=["finish"]).run(I)
    assert walk.ended == "Terminated"
    assert len(system.claims.records) == 2
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)


def test_a_rebalanced_node_that_cannot_be_drained_is_returned_and_the_newcomer_goes_again():
    system = a_fleet(pods=[a_pod()], budgets=[a_budget(0)])
    before = size(system)
    claim(system, CauseKind.REBALANCE_RECOMMENDATION)
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert ended(system) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    member, walk = run_the_next_member(system)
    assert walk.ended == "Terminated"
    assert system.groups.terminated == [(member, True)]
    assert size(system) == before


def test_a_group_at_its_min_size_forgives_the_launch_and_replaces_the_instance():
    system = a_fleet(pods=[a_pod()])
    spot(system)
    refused = InvalidInputError("ValidationError: Currently, desiredSize equals minSize (4)")
    system.groups.fail("terminate", refused, times=1)

    def raise_minimum(state, _):
        group = system.groups.by_name[GROUP]
        system.groups.by_name[GROUP] = replace(group, minimum=group.desired)

    assert Walker(system, before=raise_minimum).run(I).ended == "Terminated"
    assert system.groups.terminated == [(I, False)]
    assert settled(system.claims.records[I]) == [NoOffset.WRITTEN_OFF]


def test_any_other_refusal_of_a_decrement_keeps_the_launch_unpaid():
    """A group above its MinSize that refuses once would stay one instance too large for good."""
    system = a_fleet(pods=[a_pod()])
    spot(system)
    system.groups.fail("terminate", InvalidInputError("ValidationError: Instance Id is in another state"), times=1)
    assert Walker(system).run(I).ended != "Terminated"
    assert system.groups.terminated == []
    assert not settled(system.claims.records[I])
