"""From an event to the function: which events pass, who else may send, and what becomes of what cannot be read."""

import json

import pytest

from infra.rules import OF_THE_ACCOUNT, RULES, execution_rule
from leeward.interruption.parse import PARSERS
from leeward.interruption.redelivery import delay_seconds
from simulation.aws import queue as simulated
from tests.events import event
from tests.infra.conftest import SENDER, TOPIC
from tests.infra.event_pattern import ABSENT, matches

HOUR, SPOT_WARNING = 3600, 120  # seconds
RULE = "AWS::Events::Rule"
QUEUE = "AWS::SQS::Queue"
INTERRUPTION = "leeward-interruption"
STATE_CHANGES = "leeward-state-changes"
DEAD_LETTERS = "leeward-interruption-dead-letters"
QUEUE_ARN = f"arn:aws:sqs:us-east-1:111122223333:{INTERRUPTION}"
STATE_CHANGES_ARN = f"arn:aws:sqs:us-east-1:111122223333:{STATE_CHANGES}"


OF_ACCOUNT = {"leeward-state-change", "leeward-lifecycle-action"}  # of every instance and group, not of ours alone
OF_DISRUPTIONS, OF_UPGRADES = (
    "leeward-disruption-status",
    "leeward-upgrade-status",
)  # call fn disruption-planner, fn upgrade


def event_rules(template):
    rules = template.named(RULE).items()
    return {name: rule for name, rule in rules if "EventPattern" in rule and name not in {OF_DISRUPTIONS, OF_UPGRADES}}


def passing(template, body):
    return {
        name.removeprefix("leeward-")
        for name, rule in event_rules(template).items()
        if matches(rule["EventPattern"], json.loads(body))
    }


def policy_of(template, queue):
    url = f"https://sqs.us-east-1.amazonaws.com/111122223333/{queue}"
    policies = template.resources("AWS::SQS::QueuePolicy").values()
    (found,) = [policy for policy in policies if policy["Queues"] == [url]]
    return found["PolicyDocument"]["Statement"]


def by_sid(template, queue=INTERRUPTION):
    return {statement.get("Sid", "tls"): statement for statement in policy_of(template, queue)}


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        (event("spot_interruption"), {"spot-interruption"}),
        (event("rebalance_recommendation"), {"rebalance-recommendation"}),
        (event("scheduled_change"), {"scheduled-change"}),
        (event("scheduled_change", detail__eventTypeCategory="accountNotification"), set()),
        (event("scheduled_change", detail__service="RDS"), set()),
        (event("state_change", detail__state="stopping"), {"state-change"}),
        (event("state_change", detail__state="stopped"), {"state-change"}),
        (event("state_change", detail__state="shutting-down"), {"state-change"}),
        (event("state_change", detail__state="terminated"), {"state-change"}),
        (event("state_change", detail__state="pending"), set()),
        (event("state_change", detail__state="running"), set()),
        (event("asg_terminate"), {"lifecycle-action"}),
        (event("asg_launch"), {"lifecycle-action"}),
        (event("capacity_reservation"), {"capacity-reservation"}),
        (event("zonal_shift"), {"zonal-shift"}),
        (event("execution_aborted"), {"execution-status"}),
        (event("execution_aborted", detail__status="FAILED"), {"execution-status"}),
        (event("execution_aborted", detail__status="TIMED_OUT"), {"execution-status"}),
        (event("execution_aborted", detail__status="SUCCEEDED"), set()),
        (event("execution_aborted", detail__stateMachineArn="arn:aws:states:us-east-1:1:stateMachine:x"), set()),
        (event("unknown"), set()),
        (event("spot_interruption", source="forged.ec2"), set()),
    ],
)
def test_exactly_the_events_that_concern_us_pass(template, body, rules):
    assert passing(template, body) == rules


def test_no_rule_takes_an_event_of_a_replay(everything):
    """An archive that a team replays sends the spot warnings of last week again, to all rules of the bus."""
    rules = [rule for rule in everything.resources(RULE).values() if "EventPattern" in rule]
    assert len(rules) > 10
    for rule in rules:
        event = sample(rule["EventPattern"])
        assert matches(rule["EventPattern"], event), rule["Name"]
        assert not matches(rule["EventPattern"], {**event, "replay-name": "last-week"}), rule["Name"]


def sample(pattern):
    """An event that the pattern lets pass."""
    return {
        key: sample(wanted) if isinstance(wanted, dict) else wanted[0]
        for key, wanted in pattern.items()
        if wanted != ABSENT
    }


def test_the_code_understands_every_event_that_a_rule_lets_pass_and_every_one_it_understands_may_pass():
    let_through = {
        (source, detail_type)
        for rule in (*RULES, *OF_THE_ACCOUNT, execution_rule("execution-status", "node-termination", "arn"))
        for source in rule.pattern["source"]
        for detail_type in rule.pattern["detail-type"]
    }
    assert let_through == set(PARSERS)


def test_every_rule_fills_its_queue_and_loses_nothing(template):
    """A spot warning does not wait behind the state changes of the account."""
    for name, rule in event_rules(template).items():
        (target,) = rule["Targets"]
        assert target["Arn"] == (STATE_CHANGES_ARN if name in OF_ACCOUNT else QUEUE_ARN)
        assert target["DeadLetterConfig"]["Arn"] == f"arn:aws:sqs:us-east-1:111122223333:{DEAD_LETTERS}"
        assert rule["State"] == "ENABLED"


def test_a_message_that_fails_for_an_hour_goes_to_the_dead_letters_and_stays_two_weeks(template):
    for queue in (INTERRUPTION, STATE_CHANGES):
        settings = template.named(QUEUE)[queue]
        redrive = settings["RedrivePolicy"]
        assert redrive["deadLetterTargetArn"].endswith(f":{DEAD_LETTERS}")
        assert redrive["maxReceiveCount"] * settings["VisibilityTimeout"] >= HOUR, "where every invocation dies"
        assert sum(map(delay_seconds, range(1, redrive["maxReceiveCount"]))) >= 2 * HOUR, "where every one fails"
    assert template.named(QUEUE)[DEAD_LETTERS]["MessageRetentionPeriod"] == 14 * 24 * 3600


@pytest.mark.parametrize("queue", [INTERRUPTION, STATE_CHANGES])
def test_a_batch_whose_invocation_dies_comes_back_while_a_spot_warning_leaves_time(template, queue):
    """Lambda demands the function's own timeout at least; with twice that, no message of a slow batch is repeated."""
    timeout = template.named("AWS::Lambda::Function")["leeward-interruption"]["Timeout"]
    assert 2 * timeout <= template.named(QUEUE)[queue]["VisibilityTimeout"] <= SPOT_WARNING / 2


@pytest.mark.parametrize("queue", [INTERRUPTION, STATE_CHANGES])
def test_the_simulated_queue_has_the_settings_of_the_template(template, queue):
    settings, function = template.named(QUEUE)[queue], template.named("AWS::Lambda::Function")["leeward-interruption"]
    found = (settings["VisibilityTimeout"], settings["RedrivePolicy"]["maxReceiveCount"], function["Timeout"])
    assert found == (simulated.VISIBILITY, simulated.RECEIVES, simulated.FUNCTION_TIMEOUT)


@pytest.mark.parametrize(
    ("source", "at_once"),
    [(QUEUE_ARN, simulated.AT_ONCE), (STATE_CHANGES_ARN, simulated.STATE_CHANGES_AT_ONCE)],
)
def test_batches_are_large_reported_record_by_record_and_bounded(template, source, at_once):
    mappings = template.resources("AWS::Lambda::EventSourceMapping").values()
    (mapping,) = (found for found in mappings if found["EventSourceArn"] == source)
    assert mapping["FunctionName"] == "leeward-interruption"
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (simulated.BATCH, simulated.WINDOW)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": at_once}


def test_both_queues_together_read_no_more_batches_than_the_function_has_reserved(template):
    mappings = template.resources("AWS::Lambda::EventSourceMapping").values()
    at_once = sum(found["ScalingConfig"]["MaximumConcurrency"] for found in mappings if "ScalingConfig" in found)
    function = template.named("AWS::Lambda::Function")["leeward-interruption"]
    assert at_once == function["ReservedConcurrentExecutions"]


def test_the_function_may_read_both_queues_and_ask_both_for_a_redelivery(template):
    role = template.named("AWS::Lambda::Function")["leeward-interruption"]["Role"]
    (statement,) = [s for s in template.statements(role) if "sqs:ReceiveMessage" in s.actions]
    assert "sqs:ChangeMessageVisibility" in statement.actions
    assert statement.resources == (QUEUE_ARN, STATE_CHANGES_ARN)


@pytest.mark.parametrize("queue", [INTERRUPTION, STATE_CHANGES, DEAD_LETTERS])
def test_a_queue_is_encrypted_and_speaks_tls_only(template, queue):
    assert template.named(QUEUE)[queue]["SqsManagedSseEnabled"] is True
    tls = by_sid(template, queue)["tls"]
    assert (tls["Effect"], tls["Action"], tls["Principal"]) == ("Deny", "sqs:*", {"AWS": "*"})
    assert tls["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize("queue", [INTERRUPTION, STATE_CHANGES, DEAD_LETTERS])
def test_only_our_own_rules_may_send(template, queue):
    rules = {INTERRUPTION: set(event_rules(template)) - OF_ACCOUNT, STATE_CHANGES: OF_ACCOUNT}
    ours = {f"arn:aws:events:us-east-1:111122223333:rule/{name}" for name in rules.get(queue, event_rules(template))}
    statement = by_sid(template, queue)["OurRules"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert set(statement["Condition"]["ArnEquals"]["aws:SourceArn"]) == ours
    allowed = {sid for sid, s in by_sid(template, queue).items() if s["Effect"] == "Allow"}
    assert allowed == {"OurRules"}


def test_named_topics_and_roles_may_send_too(everything):
    statements = by_sid(everything)
    assert statements["OurTopics"]["Principal"] == {"Service": "sns.amazonaws.com"}
    assert statements["OurTopics"]["Condition"] == {"ArnEquals": {"aws:SourceArn": [TOPIC]}}
    assert statements["OurRoles"]["Principal"] == {"AWS": SENDER}
    assert statements["OurRoles"]["Action"] == "sqs:SendMessage"


def refused(statement, sender):
    """A Deny applies when all its conditions hold; a negated one holds for a key that is absent."""
    return all(sender.get(key) not in values for key, values in statement["Condition"]["ArnNotEquals"].items())


def test_any_other_sender_is_refused_even_with_rights_of_their_own(template, everything):
    rule = "arn:aws:events:us-east-1:111122223333:rule/leeward-spot-interruption"
    for stack, senders in ((template, {}), (everything, {"aws:SourceArn": TOPIC})):
        statement = by_sid(stack)["RefuseOthers"]
        assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
        assert statement["Action"] == "sqs:SendMessage"
        assert not refused(statement, {"aws:SourceArn": rule})
        assert refused(statement, {"aws:PrincipalArn": "arn:aws:iam::111122223333:role/admin"})
        assert refused(statement, {"aws:SourceArn": "arn:aws:events:us-east-1:111122223333:rule/another"})
        if senders:
            assert not refused(statement, senders)
            assert not refused(statement, {"aws:PrincipalArn": SENDER})


def test_nothing_but_its_rule_may_send_state_changes(everything):
    """Named topics and roles announce hooks, which belong to the interruption queue."""
    statement = by_sid(everything, STATE_CHANGES)["RefuseOthers"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
    assert not refused(statement, {"aws:SourceArn": "arn:aws:events:us-east-1:111122223333:rule/leeward-state-change"})
    assert refused(statement, {"aws:SourceArn": TOPIC})
    assert refused(statement, {"aws:PrincipalArn": SENDER})


def test_a_dead_letter_is_put_there_by_the_function_that_could_not_read_it(template):
    role = template.named("AWS::Lambda::Function")["leeward-interruption"]["Role"]
    (statement,) = [s for s in template.statements(role) if "sqs:SendMessage" in s.actions]
    assert statement.resources == (f"arn:aws:sqs:us-east-1:111122223333:{DEAD_LETTERS}",)
