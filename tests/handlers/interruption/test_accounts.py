"""Messages of several accounts in one batch: each acts in its own account, and one account's trouble is its own."""

import json
import threading
from dataclasses import replace

import pytest

from leeward.errors import AccessDeniedError, AwsUnreachableError, ThrottledError
from leeward.interruption.batch import Record
from leeward.interruption.decision import NodeAction, RecordOutcome
from leeward.interruption.origins import process_by_origin
from leeward.model import well_known
from leeward.model.termination import Cause, CauseKind
from leeward.termination.situation import Freshness, read, survey
from tests.events import event
from tests.fakes.accounts import EAST, HUB, INSTANCES, REGIONS, WEST, FakeAccounts
from tests.fakes.builders import a_group, a_subject, an_instance
from tests.fakes.clock import START


@pytest.fixture
def accounts():
    return FakeAccounts()


def message(account, instance, *, name="spot_interruption", region=None, **changes):
    detail = {"instance-id": instance, **changes}
    return event(name, account=account, region=region or REGIONS[account], detail=detail, id=f"{account}-{instance}")


def handled(accounts, *bodies):
    records = [Record(id=f"m{number}", body=body, received=START) for number, body in enumerate(map(str, bodies))]
    return process_by_origin(records, accounts.ports)


def test_a_spot_warning_of_each_account_drains_the_node_there(accounts):
    result = handled(accounts, *(message(account, one) for account, one in INSTANCES.items()))
    assert [one.decision.action for one in result.results] == [NodeAction.DRAIN] * 3
    assert [one.record.id for one in result.results] == ["m0", "m1", "m2"]
    assert result.tainted == tuple(sorted(INSTANCES.values()))
    assert {name: one.subject.cluster for name, one in accounts.hub.claims.records.items()} == {
        INSTANCES[HUB]: "blue",
        INSTANCES[EAST]: "east",
        INSTANCES[WEST]: "west",
    }


def untouched(accounts):
    tainted = [node for system in accounts.of.values() for node in system.kubernetes.nodes() if node.taints]
    return not tainted and not accounts.hub.executions.open


@pytest.mark.parametrize("account", [HUB, EAST])
def test_a_warning_about_another_account_s_instance_acts_on_nothing(accounts, account):
    result = handled(accounts, message(account, INSTANCES[WEST]))
    assert result.results[0].decision.action is NodeAction.NONE
    assert accounts.hub.claims.records == {}
    assert untouched(accounts)


def test_an_instance_with_the_tag_of_another_account_s_cluster_acts_on_nothing(accounts):
    east = accounts.of[EAST]
    east.instances.put(an_instance("i-0bad", cluster="west", group="web-x"))
    east.groups.by_name["web-x"] = a_group("web-x", "i-0bad", cluster="west")
    result = handled(accounts, message(EAST, "i-0bad"))
    assert result.results[0].decision.action is NodeAction.NONE
    assert accounts.hub.claims.records == {}


@pytest.mark.parametrize("name", ["state_change", "asg_terminate"])
def test_an_open_termination_answers_no_message_of_another_account(accounts, name):
    """The record answers instead of AWS where its group was looked at: to its own account only."""
    west, claims = INSTANCES[WEST], accounts.hub.claims
    handled(accounts, message(WEST, west))
    survey(read(west, claims), accounts.ports.of_cluster("west"), Freshness.WORK)
    before = claims.records[west]
    assert before.seen.group is not None
    detail = {"EC2InstanceId": west} if name == "asg_terminate" else {"instance-id": west, "state": "terminated"}
    body = event(name, account=EAST, region=REGIONS[EAST], id="forged")
    forged = json.loads(body)
    forged["detail"] |= detail
    result = handled(accounts, json.dumps(forged))
    assert result.results[0].decision.action is NodeAction.NONE
    assert claims.records[west] == before


def test_an_account_without_a_cluster_is_not_asked(accounts):
    result = handled(accounts, message("999900001111", INSTANCES[EAST], region="us-east-1"))
    assert "none of our clusters is there" in result.results[0].decision.reason
    assert all(system.instances.asked["describe"] == 0 for system in accounts.of.values())


def test_the_right_account_in_a_region_without_a_cluster_acts_on_nothing(accounts):
    result = handled(accounts, message(WEST, INSTANCES[WEST], region="us-east-1"))
    assert result.results[0].decision.action is NodeAction.NONE
    assert untouched(accounts)


@pytest.mark.parametrize(
    "error",
    [AccessDeniedError("sts:AssumeRole"), ThrottledError("sts:AssumeRole"), AwsUnreachableError("sts:AssumeRole")],
    ids=["denied", "throttled", "hanging"],
)
def test_a_role_that_cannot_be_assumed_fails_the_messages_of_its_account_alone(accounts, error):
    accounts.refuse(WEST, error)
    result = handled(accounts, *(message(account, one) for account, one in INSTANCES.items()))
    outcomes = [one.decision.outcome for one in result.results]
    assert outcomes == [RecordOutcome.DONE, RecordOutcome.DONE, RecordOutcome.RETRY]
    assert result.failures == ("m2",)
    assert set(accounts.hub.claims.records) == {INSTANCES[HUB], INSTANCES[EAST]}


def test_an_account_that_does_not_answer_delays_no_claim_of_another(accounts):
    """The first message's account answers only when the second's instance is claimed."""
    claimed = threading.Event()
    describe, claim = accounts.of[EAST].instances.describe, accounts.hub.claims.claim

    def waits(ids):
        assert claimed.wait(10), "the other account's claim"
        return describe(ids)

    def notes(subject, cause, now, known):
        record = claim(subject, cause, now, known)
        if subject.cluster == "west":
            claimed.set()
        return record

    accounts.of[EAST].instances.describe, accounts.hub.claims.claim = waits, notes
    result = handled(accounts, message(EAST, INSTANCES[EAST]), message(WEST, INSTANCES[WEST]))
    assert [one.decision.action for one in result.results] == [NodeAction.DRAIN] * 2


def test_malformed_messages_and_ended_executions_need_no_account(accounts):
    result = handled(accounts, "no JSON", event("execution_aborted"))
    assert [one.decision.outcome for one in result.results] == [RecordOutcome.MALFORMED, RecordOutcome.DONE]


def test_a_hook_that_waits_for_an_ended_execution_is_heartbeaten_in_its_account(accounts):
    west, claims, groups = INSTANCES[WEST], accounts.hub.claims, accounts.of[WEST].groups
    cause = Cause(id="c", kind=CauseKind.ASG_TERMINATE, at=START)
    record = claims.claim(replace(a_subject(west), cluster="west"), cause, START)
    for _ in range(3):
        record = claims.begin_attempt(west, record.attempt)
    groups.set_lifecycle("web-a", west, "Terminating:Wait")
    groups.waiting.add(("web-a", well_known.TERMINATE_HOOK, west))
    accounts.hub.clock.advance(seconds=60)
    handled(accounts, event("execution_aborted", detail__name=f"{west}-{record.attempt}"))
    assert groups.heartbeats == [("web-a", well_known.TERMINATE_HOOK, west)]
