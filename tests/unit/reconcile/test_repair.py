"""The reconciler claims unhealthy nodes, once it is sure of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.model.instance_status import Impairment
from leeward.model.node_condition import NodeCondition
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, Status
from leeward.model.well_known import FIRST_SEEN, ZONE_LABEL
from leeward.policy.repair import RepairAction, RepairCondition, RepairPolicy
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, a_subject, an_instance, policies
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem

IDS = tuple(f"i-0a{letter}" for letter in "abcdef")
ILL = IDS[0]


def silent(instance, minutes=40, **rest):
    """NotReady for so long."""
    since = START - timedelta(minutes=minutes)
    return replace(a_node(instance, ready=False), not_ready_since=since, not_ready_why="NodeStatusUnknown", **rest)


def a_system(*ill, policy=None, **settings):
    """Six nodes of one group, some of them NotReady."""
    nodes = {instance: a_node(instance) for instance in IDS} | {node.instance_id: node for node in ill}
    return FakeSystem(
        instances=[an_instance(name) for name in IDS],
        groups=[a_group(GROUP, *IDS)],
        nodes=nodes.values(),
        written=policies(policy or a_policy(), **settings),
    )


def reconcilers(system, times=2):
    found = []
    for _ in range(times):
        found.append(reconcile_once(system.ports))
        system.clock.advance(minutes=1)
    return found


def test_a_silent_node_is_claimed_at_the_second_observation_and_its_termination_started():
    system = a_system(silent(ILL))
    first, second, third = reconcilers(system, 3)
    assert (first.repaired, second.repaired, third.repaired) == ([], [ILL], [])
    record = system.claims.records[ILL]
    assert [cause.kind for cause in record.causes] == [CauseKind.UNHEALTHY]
    assert record.subject.group == GROUP
    assert record.subject.node == f"node-{ILL}"
    assert system.executions.open == {f"{ILL}-1"}


def renewed(system, minutes, *, well=(), reasons=("DCGMHealthCode101",)):
    """Passes in which the agent renews the condition's time each minute; healthy in the minutes `well`."""
    repaired = []
    for minute in range(minutes):
        since, status = system.clock.now() - timedelta(seconds=20), "True" if minute in well else "False"
        condition = NodeCondition(
            type="AcceleratedHardwareReady", status=status, reason=reasons[minute % len(reasons)], since=since
        )
        current = system.kubernetes.by_name[f"node-{ILL}"]
        system.kubernetes.by_name[current.name] = replace(current, monitored=(condition,))
        repaired.append(reconcile_once(system.ports).repaired)
        system.clock.advance(minutes=1)
    return [minute for minute, claimed in enumerate(repaired) if claimed]


@pytest.mark.parametrize("reasons", [("DCGMHealthCode101",), ("DCGMHealthCode101", "DCGMHealthCode4")])
def test_a_condition_whose_time_its_writer_renews_is_repaired_all_the_same(reasons):
    assert renewed(a_system(), 14, reasons=reasons) == [11]  # ten minutes, and a second observation


def test_a_condition_that_was_healthy_in_between_begins_again():
    system = a_system()
    assert renewed(system, 14, well=(6,)) == []
    assert renewed(system, 6) == [4]


def test_a_node_that_alternates_between_not_ready_and_unknown_is_repaired():
    """Each change of Ready's status renews its time, although the kubelet is never there."""
    system = a_system()
    repaired = []
    for minute in range(34):
        why = "NodeStatusUnknown" if minute // 2 % 2 else "KubeletNotReady"
        node = silent(ILL, annotations=system.kubernetes.by_name[f"node-{ILL}"].annotations)
        since = START + timedelta(minutes=minute // 2 * 2)
        system.kubernetes.by_name[node.name] = replace(node, not_ready_since=since, not_ready_why=why)
        repaired += [minute for _ in reconcile_once(system.ports).repaired]
        system.clock.advance(minutes=1)
    assert repaired == [31]


@pytest.mark.parametrize(
    "rest", [{"created": START - timedelta(minutes=2)}, {"deleting": True}, {"annotations": {}, "ready": True}]
)
def test_a_node_that_joins_leaves_or_is_well_gets_no_note_of_a_first_sight(rest):
    system = a_system(replace(silent(ILL, 1), **rest))
    reconcilers(system)
    assert FIRST_SEEN not in system.kubernetes.by_name[f"node-{ILL}"].annotations


def test_a_schedule_that_fires_twice_is_no_second_observation():
    system = a_system(silent(ILL))
    for _ in range(3):
        assert reconcile_once(system.ports).repaired == []
        system.clock.advance(seconds=5)
    system.clock.advance(seconds=45)
    assert reconcile_once(system.ports).repaired == [ILL]


def test_the_events_of_the_node_say_why():
    system = a_system(silent(ILL))
    reconcilers(system)
    (event,) = system.kubernetes.events
    assert (event.about, event.reason, event.warning) == (f"node-{ILL}", "UnhealthyNode", True)
    assert "NotReady (NodeStatusUnknown) for 41 min" in event.message


def test_a_failing_status_check_is_enough():
    system = a_system()
    system.instances.failing[ILL] = Impairment(instance=ILL, checks=("system",), since=START - timedelta(minutes=5))
    assert [found.repaired for found in reconcilers(system)] == [[], [ILL]]


def broken(instance, minutes=40, kind="KernelReady"):
    """Ready, with a condition of the node monitoring agent for so long."""
    condition = NodeCondition(type=kind, status="False", reason="", since=START - timedelta(minutes=minutes))
    return replace(a_node(instance), monitored=(condition,))


def test_a_condition_of_the_node_monitoring_agent_is_enough():
    system = a_system(broken(ILL))
    assert [found.repaired for found in reconcilers(system)] == [[], [ILL]]
    (event,) = system.kubernetes.events
    assert event.message == "Leeward will replace this node: KernelReady is False for 41 min"


def test_a_condition_that_a_fresh_read_does_not_show_ends_nothing():
    system = a_system(broken(ILL))
    listed = tuple(system.kubernetes.nodes())
    system.kubernetes.put_node(a_node(ILL))
    system.kubernetes.nodes = lambda: listed
    assert [found.repaired for found in reconcilers(system)] == [[], []]


REBOOTS = replace(
    a_policy(), repair=RepairPolicy(conditions=(RepairCondition(type="KernelReady", action=RepairAction.REBOOT),))
)


def test_a_condition_whose_action_is_a_reboot_asks_for_one():
    system = a_system(broken(ILL), policy=REBOOTS)
    assert [found.repaired for found in reconcilers(system)] == [[], [ILL]]
    record = system.claims.records[ILL]
    assert record.reboot == Reboot(by=RebootBy.LEEWARD, condition="KernelReady", status="False")
    (event,) = system.kubernetes.events
    assert event.message == "Leeward will reboot this node: KernelReady is False for 41 min"


def test_a_node_that_was_rebooted_twice_within_a_day_is_replaced():
    system = a_system(broken(ILL), policy=REBOOTS)
    system.claims.claim(a_subject(ILL), Cause(id="one", kind=CauseKind.UNHEALTHY, at=START), START)
    for number in range(2):
        system.claims.note_reboot(ILL, f"boot-{number}", START - timedelta(hours=20 + number))
    system.claims.close(ILL, version=1, outcome=Outcome.REBOOTED, now=START - timedelta(hours=2))
    assert [found.repaired for found in reconcilers(system)] == [[], [ILL]]
    record = system.claims.records[ILL]
    assert record.reboot is None
    assert record.causes[-1].reason == "KernelReady is False for 41 min, and it was rebooted 2 times within a day"


def test_a_rebooted_node_is_left_alone_for_an_hour():
    system = a_system(broken(ILL), policy=REBOOTS)
    system.claims.claim(a_subject(ILL), Cause(id="one", kind=CauseKind.UNHEALTHY, at=START), START)
    system.claims.close(ILL, version=1, outcome=Outcome.REBOOTED, now=START - timedelta(minutes=50))
    assert [found.repaired for found in reconcilers(system)] == [[], []]


def test_a_silent_node_is_not_rebooted_but_replaced_in_its_time():
    """Its kubelet would have to confirm the end of its pods."""
    silent_too = replace(broken(ILL), ready=False, not_ready_since=START - timedelta(minutes=10))
    system = a_system(silent_too, policy=REBOOTS)
    assert [found.repaired for found in reconcilers(system)] == [[], []]
    system.clock.advance(minutes=20)
    assert [found.repaired for found in reconcilers(system)] == [[], [ILL]]
    assert system.claims.records[ILL].reboot is None


@pytest.mark.parametrize("stale_is_last", [True, False])
def test_an_instance_that_registered_again_is_not_replaced_for_its_older_node(stale_is_last):
    """Whichever of the two the API server lists last."""
    system = a_system()
    stale = silent(ILL, name="stale", uid="stale")
    newer = replace(a_node(ILL), created=START - timedelta(minutes=40))
    del system.kubernetes.by_name[newer.name]
    for node in (newer, stale) if stale_is_last else (stale, newer):
        system.kubernetes.put_node(node)
    assert [found.repaired for found in reconcilers(system)] == [[], []]


def test_nodes_without_a_provider_id_count_one_by_one():
    """One node in five may be unhealthy: two of eleven are, if the five without a provider id count as five."""
    other_zone = {**a_node(ILL).labels, ZONE_LABEL: "us-east-1b"}
    system = a_system(silent(ILL), silent(IDS[1], labels=other_zone))
    for instance in IDS[2:]:
        system.kubernetes.put_node(
            replace(a_node(instance), labels=other_zone if instance in IDS[4:] else a_node(ILL).labels)
        )
    for number in range(5):
        stranger = replace(a_node(f"h-{number}"), provider_id="", labels={})
        system.kubernetes.put_node(stranger)
    assert [found.repaired for found in reconcilers(system)] == [[], [ILL, IDS[1]]]


def test_a_node_that_comes_back_is_let_be():
    system = a_system(silent(ILL))
    reconcilers(system, 1)
    system.kubernetes.put_node(a_node(ILL))
    assert reconcilers(system, 1)[0].repaired == []
    assert ILL not in system.claims.records


def test_a_stale_list_ends_nothing():
    """The list comes from a cache that has not heard of it; the node itself is Ready again."""
    system = a_system(silent(ILL))
    listed = tuple(system.kubernetes.nodes())
    system.kubernetes.put_node(a_node(ILL))
    system.kubernetes.nodes = lambda: listed
    assert [found.repaired for found in reconcilers(system, 3)] == [[], [], []]


def test_a_node_of_the_same_name_is_another_node():
    system = a_system(silent(ILL))
    listed = tuple(system.kubernetes.nodes())
    system.kubernetes.put_node(silent(ILL, uid="its-successor"))
    system.kubernetes.nodes = lambda: listed
    assert [found.repaired for found in reconcilers(system, 3)] == [[], [], []]


def test_an_api_server_that_does_not_answer_ends_nothing():
    system = a_system(silent(ILL))
    reconcilers(system, 1)
    system.kubernetes.down = True
    found = reconcilers(system, 15)
    assert [one.repaired for one in found] == [[]] * 15
    assert all(len(one.errors) == 1 for one in found)


def test_after_an_outage_its_word_is_first_checked_again():
    """While it was away no kubelet reported: what it says first may be older than its trouble."""
    system = a_system()
    system.kubernetes.down = True
    reconcilers(system, 40)
    system.kubernetes.down = False
    system.kubernetes.put_node(silent(ILL, minutes=1))
    assert reconcilers(system, 1)[0].repaired == []
    system.kubernetes.put_node(a_node(ILL))
    assert reconcilers(system, 1)[0].repaired == []


def test_an_api_server_that_fails_at_the_second_look_ends_nothing():
    system = a_system(silent(ILL))
    reconcilers(system, 1)
    system.kubernetes.fail("node", ClusterUnreachableError("no answer"), times=1)
    broken, fine = reconcilers(system)
    assert (broken.repaired, len(broken.errors)) == ([], 1)
    assert fine.repaired == [ILL]


def test_status_checks_that_cannot_be_read_hold_up_nothing_else():
    system = a_system(silent(ILL))
    system.instances.fail("impaired", ThrottledError("rate exceeded"))
    found = reconcilers(system, 1)[0]
    assert found.repaired == []
    assert found.errors == ["blue: repair: ThrottledError: rate exceeded"]


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (a_policy(), {"paused": "voluntary"}),
        (replace(a_policy(), repair=RepairPolicy(enabled=False)), {}),
        (a_policy("other", "batch-*"), {}),
    ],
    ids=["paused", "switched off", "not selected"],
)
def test_nothing_is_even_asked_where_nothing_may_be_replaced(policy, settings):
    system = a_system(silent(ILL), policy=policy, **settings)
    assert [found.repaired for found in reconcilers(system, 3)] == [[], [], []]
    assert system.instances.asked["impaired"] == 0


def test_a_storm_ends_nothing():
    system = a_system(*(silent(name) for name in IDS[:3]))
    assert [found.repaired for found in reconcilers(system, 3)] == [[], [], []]
    assert not system.claims.records


def test_those_that_are_being_replaced_count_for_the_guard():
    third = replace(a_policy(), repair=RepairPolicy(max_unhealthy=40))
    system = a_system(*(silent(name) for name in IDS[:2]), policy=third)
    assert sorted(reconcilers(system)[1].repaired) == sorted(IDS[:2])
    system.kubernetes.put_node(silent(IDS[2]))
    assert [found.repaired for found in reconcilers(system, 3)] == [[], [], []]


def test_a_node_that_was_returned_rests_for_an_hour_and_is_then_claimed_anew():
    system = a_system(silent(ILL))
    reconcilers(system)
    system.executions.end(ILL, 1)
    system.claims.close(ILL, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=system.clock.now())
    assert [found.repaired for found in reconcilers(system, 59)] == [[]] * 59
    assert [found.repaired for found in reconcilers(system, 3)].count([ILL]) == 1
    record = system.claims.records[ILL]
    assert (record.status, record.attempt) == (Status.OPEN, 2)


def test_a_node_that_something_else_ends_already_is_not_claimed_again():
    system = a_system(silent(ILL))
    cause = Cause(id="event", kind=CauseKind.SPOT_INTERRUPTION, at=START)
    system.claims.claim(a_subject(ILL, node=f"node-{ILL}"), cause, START)
    reconcilers(system, 3)
    assert [cause.kind for cause in system.claims.records[ILL].causes] == [CauseKind.SPOT_INTERRUPTION]


def test_the_node_of_an_instance_that_is_gone_is_claimed_at_the_first_observation():
    """Its event was lost, and the cloud controller has not removed it either: nothing is left but to do that."""
    system = a_system(silent(ILL, minutes=6))
    system.instances.set_state(ILL, "terminated")
    assert reconcilers(system, 1)[0].repaired == [ILL]
    assert "remove this node" in system.kubernetes.events[0].message


def test_a_node_that_ec2_does_not_know_is_left_to_the_cloud_controller():
    system = a_system(silent(ILL))
    system.instances.forget(ILL)
    system.groups.by_name[GROUP] = a_group(GROUP, *IDS[1:])
    assert [found.repaired for found in reconcilers(system, 3)] == [[], [], []]


def test_while_every_node_is_well_a_recent_answer_about_status_checks_is_enough_and_with_one_that_is_not_never():
    system = a_system()
    reconcilers(system, 1)
    assert system.instances.recent_enough == [True]
    system.kubernetes.by_name[f"node-{ILL}"] = silent(ILL, minutes=1)
    reconcilers(system, 1)
    assert system.instances.recent_enough == [True, False]
