"""fn notifications: a batch of the table's stream in, events on the bus out."""

import json
from dataclasses import replace

import boto3
import pytest
from botocore.stub import ANY, Stubber

from leeward.adapters.aws.event_bus import EventBridgeBus
from leeward.adapters.aws.pauses import pause_item
from leeward.adapters.aws.record_items import new_record
from leeward.adapters.aws.table import to_wire
from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model.codec import encode
from leeward.model.pause import PauseRecord
from leeward.notifications import handler
from leeward.policy.document import WebhookFormat
from tests.emitted import series_of
from tests.fakes.builders import CLUSTER, GROUP, a_pause, a_subject
from tests.unit.notifications.test_events import HOOK, NOW, SPOT
from tests.unit.notifications.workflows import a_run, an_upgrade


class OneClient:
    """`AwsClients` with one stubbed client."""

    def __init__(self, client):
        self.client = client

    def get(self, service):
        assert service == "events"
        return self.client


@pytest.fixture
def bus(monkeypatch):
    client = boto3.client("events", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        monkeypatch.setattr(handler, "bus", lambda: EventBridgeBus(OneClient(client), webhooks="leeward-notifications"))
        yield stub
        stub.assert_no_pending_responses()


def written(item, before=None, key="termination#i-0abc"):
    change = {"Keys": {"pk": {"S": key}}, "ApproximateCreationDateTime": NOW.timestamp()}
    if item is not None:
        change["NewImage"] = {name: to_wire(value) for name, value in item.items()}
    if before is not None:
        change["OldImage"] = {name: to_wire(value) for name, value in before.items()}
    return {"eventName": "MODIFY" if before else "INSERT", "dynamodb": change}


def joined():
    item = new_record(a_subject(), SPOT, NOW, deployment="")
    return {**item, "causes": {**item["causes"], **new_record(a_subject(), HOOK, NOW, deployment="")["causes"]}}


WEB = {"cluster": CLUSTER, "group": GROUP}


def a_new_claim():
    return written(new_record(a_subject(), SPOT, NOW, deployment=""))


def a_broken_change():
    return written({"pk": "termination#i-0bad", "status": "open"}, key="termination#i-0bad")


TAKEN = {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}


def test_a_new_claim_is_an_event_of_ours_on_the_default_bus(bus):
    bus.add_response("put_events", TAKEN, {"Entries": [entry("Node Termination Detected")]})
    assert handler.handle({"Records": [a_new_claim()]}, None) == {"events": 1}


def entry(kind):
    return {"Source": "leeward", "DetailType": kind, "Time": ANY, "Detail": ANY, "Resources": ["i-0abc"]}


def test_a_cause_that_joins_is_reported_alone(bus):
    bus.add_response("put_events", TAKEN, {"Entries": [entry("Node Termination Detected")]})
    change = written(joined(), before=new_record(a_subject(), SPOT, NOW, deployment=""))
    assert handler.handle({"Records": [change]}, None) == {"events": 1}


def test_what_is_no_termination_and_what_time_to_live_deleted_sends_nothing(bus):
    gone = written(None, before=new_record(a_subject(), SPOT, NOW, deployment=""))
    other = written({"pk": "facts#blue", "body": "x"}, key="facts#blue")
    assert handler.handle({"Records": [gone, other]}, None) == {"events": 0}


def test_a_record_that_cannot_be_read_does_not_hold_up_the_others(bus):
    bus.add_response("put_events", TAKEN, {"Entries": [entry("Node Termination Detected")]})
    reported = handler.handle({"Records": [a_broken_change(), a_new_claim()]}, None)
    assert reported == {"events": 1}


@pytest.mark.parametrize(
    ("code", "error"), [("InternalFailure", AwsUnavailableError), ("AccessDeniedException", AccessDeniedError)]
)
def test_what_the_bus_does_not_take_fails_the_batch_so_that_it_comes_again(bus, code, error):
    bus.add_response("put_events", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code}]}, {"Entries": ANY})
    with pytest.raises(error, match=code):
        handler.handle({"Records": [a_new_claim()]}, None)


def test_more_than_ten_events_go_in_tens(bus):
    for size in (10, 2):
        answer = {"FailedEntryCount": 0, "Entries": [{"EventId": str(n)} for n in range(size)]}
        bus.add_response("put_events", answer, {"Entries": [ANY] * size})
    records = [
        written(new_record(a_subject(f"i-{n:04}"), SPOT, NOW, deployment=""), key=f"termination#i-{n:04}")
        for n in range(12)
    ]
    assert handler.handle({"Records": records}, None) == {"events": 12}


def test_a_pause_is_an_event_as_well(bus):
    record = PauseRecord(cluster="blue", version=1).paused(a_pause())
    item = {**pause_item(record), "writer": "x"}
    bus.add_response("put_events", TAKEN, {"Entries": [{**entry("Pause Announced"), "Resources": ["blue"]}]})
    assert handler.handle({"Records": [written(item, key="pause#blue")]}, None) == {"events": 1}


class Kept:
    """Equal to any text, which it keeps."""

    def __eq__(self, text):
        self.text = text
        return True

    __hash__ = None


@pytest.fixture
def webhook(monkeypatch):
    """Name the format of the cluster's webhook."""

    def of(form):
        monkeypatch.setattr(handler, "webhooks", lambda: {CLUSTER: WebhookFormat(form)})

    return of


def for_webhooks(detail):
    return {**entry("Node Termination Detected"), "Detail": detail, "EventBusName": "leeward-notifications"}


def test_the_webhook_of_a_cluster_with_a_format_gets_its_message_and_listeners_the_detail(bus, webhook, capsys):
    webhook("slack")
    public, sent = Kept(), Kept()
    bus.add_response("put_events", TAKEN, {"Entries": [{**entry("Node Termination Detected"), "Detail": public}]})
    bus.add_response("put_events", TAKEN, {"Entries": [for_webhooks(sent)]})
    assert handler.handle({"Records": [a_new_claim()]}, None) == {"events": 1}
    detail = json.loads(sent.text)
    assert (detail["format"], detail["message"]["blocks"][0]["type"]) == ("slack", "header")
    assert json.loads(public.text) == {key: detail[key] for key in detail if key not in {"format", "message"}}
    assert series_of(capsys.readouterr().out, "NodesInterrupted")


def test_a_webhook_without_a_format_gets_the_detail_by_the_same_bus(bus, webhook):
    webhook("json")
    public, sent = Kept(), Kept()
    bus.add_response("put_events", TAKEN, {"Entries": [{**entry("Node Termination Detected"), "Detail": public}]})
    bus.add_response("put_events", TAKEN, {"Entries": [for_webhooks(sent)]})
    handler.handle({"Records": [a_new_claim()]}, None)
    assert json.loads(public.text) == json.loads(sent.text)


def test_a_webhooks_bus_that_refuses_repeats_nothing_on_the_default_bus(bus, webhook, capsys):
    webhook("json")
    refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "AccessDeniedException"}]}
    bus.add_response("put_events", TAKEN, {"Entries": [ANY]})
    bus.add_response("put_events", refused, {"Entries": [ANY]})
    assert handler.handle({"Records": [a_new_claim()]}, None) == {"events": 1}
    assert "webhooks get no events" in capsys.readouterr().out


def test_what_a_receiver_has_no_use_for_is_on_the_default_bus_alone(bus, webhook):
    webhook("pagerduty")
    bus.add_response("put_events", TAKEN, {"Entries": [entry("Node Termination Detected")]})
    handler.handle({"Records": [a_new_claim()]}, None)


def test_webhooks_and_their_bus_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("WEBHOOKS", json.dumps({"blue": "teams"}))
    assert handler.webhooks.__wrapped__() == {"blue": WebhookFormat.TEAMS}


def test_an_interruption_is_counted_for_its_cluster_its_group_and_its_cause(bus, capsys):
    bus.add_response("put_events", TAKEN, {"Entries": ANY})
    handler.handle({"Records": [a_new_claim()]}, None)
    out = capsys.readouterr().out
    series = [{"service": "notifications"} | more for more in ({}, {"cluster": CLUSTER}, WEB)]
    by_cause = {"service": "notifications", "cluster": CLUSTER, "cause": "spot_interruption"}
    assert series_of(out, "NodesInterrupted") == series
    assert series_of(out, "TerminationsRequested") == [*series, by_cause]


def test_a_lifecycle_action_that_joins_a_spot_warning_is_no_second_interruption(bus, capsys):
    bus.add_response("put_events", TAKEN, {"Entries": ANY})
    handler.handle({"Records": [written(joined(), before=new_record(a_subject(), SPOT, NOW, deployment=""))]}, None)
    out = capsys.readouterr().out
    assert "EventsPublished" in out
    assert series_of(out, "TerminationsRequested") == series_of(out, "NodesInterrupted") == []


def test_a_termination_that_the_group_begins_is_no_interruption(bus, capsys):
    bus.add_response("put_events", TAKEN, {"Entries": ANY})
    handler.handle({"Records": [written(new_record(a_subject(), HOOK, NOW, deployment=""))]}, None)
    out = capsys.readouterr().out
    assert {"service": "notifications", "cluster": CLUSTER, "cause": "asg_terminate"} in series_of(
        out, "TerminationsRequested"
    )
    assert series_of(out, "NodesInterrupted") == []


def test_upgrades_and_runs_are_events_of_ours_too(bus):
    upgrade, run = an_upgrade(), a_run()
    made = [{**entry("Upgrade Started"), "Resources": ["web"]}]
    made.append({**entry("Disruption Run Started"), "Resources": ["blue", "web"]})
    bus.add_response("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}] * 2}, {"Entries": made})
    changes = [
        written(encode(upgrade), key="upgrade#web"),
        written(encode(run), key="disruption#blue"),
        written(encode(replace(upgrade, finished=1)), before=encode(upgrade), key="upgrade#web"),
    ]
    assert handler.handle({"Records": changes}, None) == {"events": 2}


def test_a_group_elsewhere_is_named_as_it_is_and_a_record_of_another_version_holds_up_no_other(bus):
    bus.add_response("put_events", TAKEN, {"Entries": [{**entry("Upgrade Started"), "Resources": ["web"]}]})
    newer = written({**encode(an_upgrade()), "strategy": "NEWER"}, key="upgrade#web")
    there = written(encode(an_upgrade()), key="upgrade#111122223333/eu-west-1/web")
    assert handler.handle({"Records": [newer, there]}, None) == {"events": 1}
