"""Events of our own: on the bus for every rule, and at the webhook that the cluster's settings name."""

import json
from dataclasses import replace

import pytest

from leeward.adapters.aws.table import to_wire
from leeward.model.codec import encode
from leeward.notifications.workflow_events import RunEventType, UpgradeEventType
from local import fleet
from local.demo import scenario
from tests.unit.notifications.workflows import run_events, upgrade_events

pytestmark = pytest.mark.local

DETECTED, STARTED = "Node Termination Detected", "Node Termination Started"
BLOCKED, FINISHED = "Node Termination Blocked", "Node Termination Finished"


@pytest.fixture
def bus(stack):
    """A listener's queue on the default bus."""
    sqs, events = stack.client("sqs"), stack.client("events")
    url = sqs.create_queue(QueueName="listener")["QueueUrl"]
    arn = f"arn:aws:sqs:{stack.region}:{stack.account}:listener"
    events.put_rule(Name="listener", EventPattern=json.dumps({"source": ["leeward"]}))
    events.put_targets(Rule="listener", Targets=[{"Id": "queue", "Arn": arn}])

    def read():
        found = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                found.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    yield read
    events.remove_targets(Rule="listener", Ids=["queue"])
    events.delete_rule(Name="listener")
    sqs.delete_queue(QueueUrl=url)


def test_a_termination_is_reported_from_its_warning_to_its_end(stack, crew, webhook, bus):
    team = crew(1, spot=True, hook=True)
    victim = team.instances[0]
    node = team.node_name(victim)
    team.run_pods(fleet.deployment("reported", 1, grace=1), fleet.budget("reported", maxUnavailable=0), instance=victim)
    webhook.refuse_once(BLOCKED)
    stack.emit(scenario.spot_warning(stack, victim))
    team.until(lambda: any(t["event"] == BLOCKED for t in webhook.about(victim)), "the block reported")
    stack.kubectl("delete", "pdb", "reported")
    record = team.closed(victim)
    team.until(lambda: any(t["event"] == FINISHED for t in webhook.about(victim)), "the end reported")
    reported = {event["event"]: event for event in reversed(webhook.about(victim))}
    assert {DETECTED, STARTED, BLOCKED, FINISHED} <= set(reported)
    for event in reported.values():
        assert (event["cluster"], event["group"]) == (stack.cluster, team.group)
        assert event["execution"] == f"{victim}-1"
    first, blocked, last = reported[DETECTED], reported[BLOCKED], reported[FINISHED]
    assert [cause["kind"] for cause in first["causes"]] == ["spot_interruption"]
    assert first["deadline"] == blocked["deadline"] is not None
    (blocker,) = blocked["blockers"]
    assert blocker["pod"].startswith("default/reported-")
    assert "reported" in blocker["why"]
    assert first["at"] < blocker["until"] <= blocked["deadline"]
    assert (last["outcome"], last["node"], last["replacements"]) == ("terminated", node, list(record.launched))
    assert [event["id"] for event in webhook.refused] == [blocked["id"]]
    heard = []

    def all_heard():
        heard.extend(event for event in bus() if event["detail"].get("instance") == victim)
        return {event["detail"]["id"] for event in heard} >= {event["id"] for event in webhook.about(victim)}

    team.until(all_heard, "the same on the bus")
    assert {event["detail"]["id"] for event in heard} == {event["id"] for event in webhook.about(victim)}
    assert {event["source"] for event in heard} == {"leeward"}
    assert all(event["detail-type"] == event["detail"]["event"] for event in heard)


def test_each_type_of_upgrades_and_runs_reaches_the_webhook_and_the_bus_once(stack, crew, webhook, bus):
    """Records are written as the steps write them, under keys that no function reads."""
    group = "notified"
    names = {"group": group, "cluster": stack.cluster}
    upgrade = upgrade_events(**names)
    run = run_events(groups=(group,), cluster=stack.cluster)
    table = stack.client("dynamodb")

    def write(key, item):
        wire = {name: to_wire(value) for name, value in {"pk": key, **item}.items()}
        table.put_item(TableName="leeward", Item=wire)

    keys = []
    try:
        for number, record in enumerate(of_upgrades(upgrade)):
            keys.append(f"upgrade#nowhere/{group}")
            write(keys[-1], {**encode(record), "version": number})
        for kind in (RunEventType.FINISHED, RunEventType.DROPPED):
            keys.append(f"disruption#nowhere-{kind.name.lower()}")
            started = replace(run[RunEventType.STARTED].record, number=len(keys))
            write(keys[-1], encode(started))
            write(keys[-1], encode(replace(run[kind].record, number=len(keys))))
        wanted = {kind.value for kinds in (UpgradeEventType, RunEventType) for kind in kinds}
        crew(0).until(lambda: wanted <= set(webhook.types_in(group)), "every type at the webhook")
    finally:
        for key in set(keys):
            table.delete_item(TableName="leeward", Key={"pk": {"S": key}})
    mine = [body for body in webhook.received if body.get("group") == group]
    assert {body["cluster"] for body in mine} == {stack.cluster}
    assert all("leeward " in body["next"] for body in mine)
    heard = []

    def all_heard():
        heard.extend(event for event in bus() if event["detail"].get("group") == group)
        return {event["detail"]["id"] for event in heard} >= {body["id"] for body in mine}

    crew(0).until(all_heard, "the same on the bus")
    assert {event["detail-type"] for event in heard} == wanted


def of_upgrades(made):
    """Records of one upgrade in the order of its writes, whose changes are one event of each type at least."""
    runs = made[UpgradeEventType.STARTED].record
    held, rolling = made[UpgradeEventType.HELD].record, made[UpgradeEventType.ROLLING_BACK].record
    back = replace(runs, rolling_back=True)
    again, last = replace(runs, attempt=2, execution="web-2"), replace(runs, attempt=3, execution="web-3")
    failed = replace(made[UpgradeEventType.FAILED].record, attempt=2, execution="web-2")
    done = replace(made[UpgradeEventType.FINISHED].record, attempt=3, execution="web-3")
    return [runs, held, runs, rolling, back, made[UpgradeEventType.ROLLED_BACK].record, again, failed, last, done]


def test_an_event_that_another_principal_puts_on_the_default_bus_is_not_posted(stack, crew, webhook):
    forged = {"cluster": stack.cluster, "event": "Node Termination Failed", "instance": "i-0forged"}
    entry = {"Source": "leeward", "DetailType": "Node Termination Failed", "Detail": json.dumps(forged)}
    genuine = json.dumps({**forged, "instance": "i-0genuine"})
    own = {**entry, "Detail": genuine, "EventBusName": "leeward-notifications"}
    stack.client("events").put_events(Entries=[entry, own])
    crew(0).until(lambda: webhook.about("i-0genuine"), "the event on the webhooks' bus")
    assert webhook.about("i-0forged") == []


def test_a_webhook_that_never_answers_well_leaves_its_events_in_the_queue_of_the_undelivered(stack, crew, webhook):
    """EventBridge tries for a day; the local one for some seconds."""
    sqs, events = stack.client("sqs"), stack.client("events")
    url = sqs.get_queue_url(QueueName="leeward-notifications-undelivered")["QueueUrl"]
    sqs.purge_queue(QueueUrl=url)
    nowhere = {"cluster": stack.cluster, "event": "Node Termination Failed", "instance": "i-0nowhere"}
    take, webhook.take = webhook.take, lambda _headers, _body: 500
    try:
        entry = {"Source": "leeward", "DetailType": "Node Termination Failed", "Detail": json.dumps(nowhere)}
        events.put_events(Entries=[{**entry, "EventBusName": "leeward-notifications"}])
        answer = crew(0).until(lambda: sqs.receive_message(QueueUrl=url).get("Messages"), "the event given up")
        (left,) = answer
    finally:
        webhook.take = take
    assert json.loads(left["Body"]) == nowhere
    sqs.purge_queue(QueueUrl=url)
