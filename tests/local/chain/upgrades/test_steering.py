"""Upgrades and disruption runs that are steered on the deployed stack: pause, resume, abort, a stop in the console, the
cluster's switch, an alarm and a shared budget."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from leeward.disruption.record import DisruptionOutcome
from local.demo import ledger
from tests.local.chain.conftest import called
from tests.local.chain.groups.test_disruption import closed_disruption, launch_from_another_image
from tests.local.chain.upgrades.story import facts_of, most_together

pytestmark = [pytest.mark.local, pytest.mark.long]

READ_WITHIN = timedelta(seconds=60)  # how long functions may use what they know of the switch
QUIET = 15  # seconds in which several nodes drain where nothing holds them


@pytest.fixture(scope="module", autouse=True)
def shared(stack, story):
    """Two groups whose upgrades run beside the first tests."""
    stories = [story(3, "shared") for _ in range(2)]
    for one in stories:
        one.apply(one.workload(f"{one.group}-app", 6, grace=20))
    called(stack, "sync")
    return [one.to_another_image() for one in stories]


def stays_at(story, count):
    """Whether no further termination is requested for a while."""
    time.sleep(QUIET)
    return len(story.requested()) == count


def test_paused_between_nodes_resumed_and_aborted(stack, story):
    """Six nodes, one at a time: the first pause lets the node that drains finish, the abort the one after it."""
    story = story(6, "steered")
    story.apply(story.workload("steered", 12, grace=30))
    called(stack, "sync")
    story.to_another_image().until_requested(1)
    story.request("pause")
    status = story.until_phase("paused")
    assert status["cause"] == "paused by the operator"
    finished = frozenset(story.requested())
    story.team.until(lambda: not finished & story.members, "the nodes that drained gone")
    assert stays_at(story, len(finished))
    assert all(ledger.nodes(stack)[one]["spec"].get("unschedulable") for one in story.old - finished)

    story.request("resume")
    story.until_requested(len(finished) + 1)
    story.request("abort")
    outcome = story.succeeded().execution_now()
    assert json.loads(outcome["output"])["next"] == "aborted"
    gone = frozenset(story.requested())
    assert finished < gone < story.old
    assert story.members & story.old == story.old - gone
    assert story.sizes == (0, 6, 12)
    group = story.described
    assert (group["LaunchTemplate"]["Version"], group["SuspendedProcesses"]) == ("1", [])
    nodes = ledger.nodes(stack)
    assert not [
        one for one in story.members if nodes[one]["spec"].get("unschedulable") or nodes[one]["spec"].get("taints")
    ]
    assert {fact.instance for fact in story.facts("node-uncordoned")} >= story.old - gone
    assert len(story.members) == 6


def test_stopped_in_the_console_it_goes_on_where_it_was_and_new_nodes_stay(stack, story):
    story = story(4, "steered")
    story.apply(story.workload("stopped", 8, grace=10))
    called(stack, "sync")
    story.to_another_image().until_requested(1)
    stack.client("stepfunctions").stop_execution(
        executionArn=story.execution_now()["executionArn"], cause="an operator"
    )
    story.until_phase("stopped")
    first, launched = frozenset(story.requested()), story.members - story.old
    assert first < story.old
    story.start().succeeded()
    story.is_as_before(version="2")
    assert len(story.launched()) == 4
    assert launched <= story.members
    assert not [fact for fact in story.all_facts() if fact.disrupts and fact.instance in launched]


def test_two_upgrades_share_the_one_node_of_their_budget(stack, shared):
    """Each may take three nodes at once by its own limit; the budget of their policy allows one in both together."""
    stories = shared
    for one in stories:
        one.succeeded()
        one.is_as_before(version="2")
    old = stories[0].old | stories[1].old
    facts = [fact for fact in facts_of(stack) if fact.instance in old]
    assert most_together(facts) == 1
    assert len({fact.instance for fact in facts if fact.requested}) == 6


def test_one_command_stops_every_upgrade_of_the_cluster_and_one_resumes_them(stack, story, leeward):
    """Two groups are half done when the cluster is paused; a third is refused while it is."""
    stories = [story(6, "steered") for _ in range(2)]
    for one in stories:
        one.apply(one.workload(f"{one.group}-app", 12, grace=40))
    called(stack, "sync")
    for one in stories:
        one.to_another_image()
    for one in stories:
        one.until_requested(1)
    code, out, err = leeward("pause", "--for", "1h", "--why", "release of the shop")
    assert code == 0, (out, err)
    paused = datetime.now(UTC)
    for one in stories:
        cause = one.until_phase("paused")["cause"]
        assert "cluster demo is paused: release of the shop" in cause, cause
    time.sleep(max((paused + READ_WITHIN - datetime.now(UTC)).total_seconds(), 0))
    counts = [len(one.requested()) for one in stories]
    assert all(0 < count < 6 for count in counts), counts
    assert all(stays_at(one, count) for one, count in zip(stories, counts, strict=True))
    assert max(max(one.requested().values()) for one in stories) < paused + READ_WITHIN
    code, out, err = leeward("resume", "--why", "the release is out")
    assert code == 0, (out, err)
    for one in stories:
        one.succeeded()
        one.is_as_before(version="2")
        assert not one.old & one.members


@pytest.fixture
def alarm(stack):
    """The alarm that the policy of `watched-*` names: `alarm("ALARM")`."""
    cloudwatch, name = stack.client("cloudwatch"), "watched-errors"
    metric = {"Namespace": "shop", "MetricName": "errors", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
    cloudwatch.put_metric_alarm(AlarmName=name, Threshold=1.0, ComparisonOperator="GreaterThanThreshold", **metric)
    yield lambda value: cloudwatch.set_alarm_state(AlarmName=name, StateValue=value, StateReason="a test")
    cloudwatch.delete_alarms(AlarmNames=[name])


def test_the_same_command_holds_disruption_and_so_does_an_alarm(stack, crew, leeward, alarm):
    """Two nodes have drifted. The first is replaced once the cluster is resumed; an alarm keeps the second."""
    team = crew(2, name="watched")
    called(stack, "sync")
    code, out, err = leeward("pause", "--for", "1h", "--why", "release of the shop")
    assert code == 0, (out, err)
    team.until(lambda: called(stack, "disruption-planner")["paused"] == [stack.cluster], "the planner paused")
    launch_from_another_image(stack, team.group)
    assert called(stack, "disruption-planner")["disruptions"] == []
    code, out, err = leeward("resume", "--why", "the release is out")
    assert code == 0, (out, err)

    def replaced():
        if not called(stack, "disruption-planner")["disruptions"]:
            return None
        record = closed_disruption(stack, team)
        return record if (record.outcome, record.groups) == (DisruptionOutcome.DONE, (team.group,)) else None

    record = team.until(replaced, "a run that ends well")
    (second,) = set(team.instances) - set(record.nodes.values())
    alarm("ALARM")
    why = f"disruption of its group {team.group} is held: alarm watched-errors is in ALARM since "

    def held():
        assert called(stack, "disruption-planner")["disruptions"] == []
        events = team.reported_about(team.node_name(second))
        return any(one["reason"] == "DisruptionBlocked" and why in one["message"] for one in events)

    team.until(held, "the Event that names the alarm")
    assert not ledger.is_tainted(ledger.nodes(stack)[second])
    stack.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=team.group, MinSize=0, MaxSize=0, DesiredCapacity=0
    )
