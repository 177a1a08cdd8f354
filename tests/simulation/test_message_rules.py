"""Messages: each rule is broken once, and kept in the next test."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import TERMINATING, LifecycleHook
from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import InterruptionPolicy, Rebalance
from simulation.asked import Asked, Kind
from simulation.aws import events, notices
from simulation.aws.queue import DeadLetter
from simulation.invariants import Rule
from simulation.message_rules import REDRIVEN
from tests.fakes.builders import GROUP, a_group, a_policy, policies
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, a_record, rules


def of_hook(name):
    hook = LifecycleHook(name=name, group=GROUP, transition=TERMINATING)
    return events.lifecycle_action("e-1", hook, INSTANCE, "token-1", START)


def maintenance():
    return events.maintenance("e-1", INSTANCE, START, START + timedelta(days=3))


ASKING = (
    (events.spot_warning("e-1", INSTANCE, START), CauseKind.SPOT_INTERRUPTION, "e-1"),
    (events.rebalance("e-1", INSTANCE, START), CauseKind.REBALANCE_RECOMMENDATION, "e-1"),
    (maintenance(), CauseKind.SCHEDULED_CHANGE, maintenance()["detail"]["eventArn"]),
    (of_hook("leeward-terminate"), CauseKind.ASG_TERMINATE, "token-1"),
)


def acknowledge(world, message):
    body = message if isinstance(message, str) else json.dumps(message)
    world.acknowledged.append((f"m-{len(world.acknowledged)}", body))


@pytest.mark.parametrize(("message", "kind", "cause"), ASKING, ids=[kind.value for _, kind, _ in ASKING])
def test_a_message_that_asks_for_a_record_needs_it_when_it_is_acknowledged(world, checker, message, kind, cause):
    world.waiting.add((GROUP, "leeward-terminate", INSTANCE))
    acknowledge(world, message)
    assert rules(checker.after_event(world)) == [Rule.CAUSE]
    joined = Cause(id=f"{cause}#{INSTANCE}", kind=kind, at=START)
    world.records[INSTANCE] = replace(a_record(), causes=(*a_record().causes, joined), times={"retry": START})
    acknowledge(world, message)
    assert checker.after_event(world) == []


def test_a_hook_that_no_longer_waits_asks_for_nothing(world, checker):
    """As of an instance that has come back from its warm pool: the message was delivered late."""
    acknowledge(world, of_hook("leeward-terminate"))
    assert checker.after_event(world) == []


def test_maintenance_that_is_canceled_before_its_message_is_handled_asks_for_nothing(world, checker):
    arn = maintenance()["detail"]["eventArn"]
    off = Asked(at=START.timestamp(), instance=INSTANCE, kind=Kind.MAINTENANCE, key=arn, called_off=True)
    world.asked.append(off)
    acknowledge(world, maintenance())
    assert checker.after_event(world) == []


def test_a_record_of_another_cause_is_not_enough(world, checker):
    world.records[INSTANCE] = a_record()
    acknowledge(world, events.spot_warning("e-2", INSTANCE, START))
    assert rules(checker.after_event(world)) == [Rule.CAUSE]


@pytest.mark.parametrize(
    "message",
    [
        events.spot_warning("e-1", "i-unknown", START),
        of_hook("theirs"),
        events.state_change("e-1", INSTANCE, "stopping", START),
        events.execution_status("e-1", f"{INSTANCE}-1", "FAILED", START),
        {"source": "acme", "detail-type": "Hello", "detail": {}},
    ],
    ids=["no group", "foreign hook", "state", "execution", "unknown"],
)
def test_other_messages_are_ignored_for_a_reason(world, checker, message):
    acknowledge(world, message)
    assert checker.after_event(world) == []


def test_an_instance_that_has_ended_asks_for_nothing(world, checker):
    world.ended.add(INSTANCE)
    acknowledge(world, events.spot_warning("e-1", INSTANCE, START))
    assert checker.after_event(world) == []


@pytest.mark.parametrize("setting", [Rebalance.IGNORE, Rebalance.CORDON])
def test_a_rebalance_recommendation_asks_only_where_the_policy_replaces(world, checker, setting):
    world.policies = policies(replace(a_policy(), interruption=InterruptionPolicy(rebalance=setting)))
    acknowledge(world, events.rebalance("e-1", INSTANCE, START))
    assert checker.after_event(world) == []


@pytest.mark.parametrize("waits", [False, True])
def test_a_reboot_of_ec2_asks_only_where_the_policy_does_not_wait_for_it(world, checker, waits):
    world.policies = policies(replace(a_policy(), interruption=InterruptionPolicy(waits_for_reboot=waits)))
    reboot = events.maintenance("e-1", INSTANCE, START, START + timedelta(hours=1), notices.SYSTEM_REBOOT)
    acknowledge(world, reboot)
    assert rules(checker.after_event(world)) == ([] if waits else [Rule.CAUSE])


@pytest.mark.parametrize(("minutes", "asks"), [(10, False), (40, True)])
def test_a_rebalance_recommendation_asks_nothing_for_a_node_that_was_just_launched(world, checker, minutes, asks):
    world.launched_at[INSTANCE] = START.timestamp() - 60 * minutes
    acknowledge(world, events.rebalance("e-1", INSTANCE, START))
    assert rules(checker.after_event(world)) == ([Rule.CAUSE] if asks else [])


def test_a_group_with_capacity_rebalance_replaces_by_itself(world, checker):
    world.groups[GROUP] = a_group(GROUP, INSTANCE, capacity_rebalance=True)
    acknowledge(world, events.rebalance("e-1", INSTANCE, START))
    assert checker.after_event(world) == []


@pytest.mark.parametrize("body", ["no JSON", "[1]", '{"source": "aws.ec2"}', '{"detail-type": "x"}', '{"source": 1}'])
def test_a_malformed_message_is_put_aside_before_it_is_acknowledged(world, checker, body):
    acknowledge(world, body)
    assert rules(checker.after_event(world)) == [Rule.MALFORMED]
    world.dead_letters.append(DeadLetter(body=body, reason="found no event", message_id="m-1"))
    acknowledge(world, body)
    assert checker.after_event(world) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [("no JSON", REDRIVEN), ("no JSON", ""), (json.dumps(events.spot_warning("e-1", INSTANCE, START)), "found no id")],
    ids=["worn out", "no reason", "well-formed"],
)
def test_dead_letters_are_malformed_and_have_a_reason(world, checker, body, reason):
    world.dead_letters.append(DeadLetter(body=body, reason=reason, message_id="m-1"))
    assert rules(checker.after_event(world)) == [Rule.MALFORMED]
