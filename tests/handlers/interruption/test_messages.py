"""Each message through the real handler: what is tainted, claimed, started, answered and reported."""

import json

import pytest

from leeward.adapters.telemetry import throttled
from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.interruption.effects import EVENT_REASONS
from leeward.interruption.metrics import LOG_KEYS
from leeward.model import well_known
from leeward.model.group import LAUNCHING, HookResult, LifecycleHook
from leeward.model.message import MessageKind
from leeward.model.node import disruption_taint
from leeward.model.subnet import SHORT_FOR, Pool
from leeward.model.termination import CauseKind, Outcome, Status, detach_deadline
from leeward.policy.document import Rebalance
from leeward.sync.controller import sync_once
from tests.events import event
from tests.fakes.builders import DEPLOYMENT, GROUP, ZONE, a_group, a_node, a_policy, an_instance, our_hook, policies

FAR_AHEAD = "Mon, 16 Mar 2026 18:00:00 GMT"
WAIT_FOR_NODE = LifecycleHook(name="wait-for-node", group=GROUP, transition=LAUNCHING)
DRAINING = {
    "spot_interruption": CauseKind.SPOT_INTERRUPTION,
    "capacity_reservation": CauseKind.CAPACITY_RESERVATION,
    "scheduled_change": CauseKind.SCHEDULED_CHANGE,
    "state_change": CauseKind.STATE_CHANGE,
    "asg_terminate": CauseKind.ASG_TERMINATE,
    "asg_terminate_direct": CauseKind.ASG_TERMINATE,
    "asg_terminate_sns": CauseKind.ASG_TERMINATE,
    "rebalance_recommendation": CauseKind.REBALANCE_RECOMMENDATION,
}


def node_of(queue, name="node-i-0abc"):
    return queue.system.kubernetes.by_name[name]


@pytest.mark.parametrize(("name", "kind"), DRAINING.items())
def test_a_message_that_takes_a_node_marks_claims_and_starts(connect, name, kind):
    queue = connect()
    queue.happens(name)
    assert queue.deliver(event(name)) == []
    node = node_of(queue)
    assert node.unschedulable
    assert [(t.key, t.value, t.effect) for t in node.taints] == [(well_known.DISRUPTED_TAINT, DEPLOYMENT, "NoSchedule")]
    record = queue.system.claims.records["i-0abc"]
    assert (record.status, record.attempt) == (Status.OPEN, 1)
    assert [cause.kind for cause in record.causes] == [kind]
    assert (record.subject.node, record.subject.group, record.subject.zone) == ("node-i-0abc", GROUP, "us-east-1a")
    assert queue.system.executions.open == {"i-0abc-1"}
    assert queue.system.groups.answered == []


def test_the_event_on_the_node_says_what_and_why(connect):
    queue = connect()
    queue.deliver(event("spot_interruption"))
    written = queue.system.kubernetes.events[0]
    assert (written.about, written.reason, written.warning) == ("node-i-0abc", "SpotInterruption", True)
    assert "two minutes" in written.message


def test_every_kind_that_takes_nodes_has_its_event_reason():
    of_messages = {kind.value for kind in CauseKind} & {kind.value for kind in MessageKind}
    assert {kind.value for kind in EVENT_REASONS} == of_messages >= {kind.value for kind in DRAINING.values()}


def test_nodes_are_claimed_and_started_before_anything_is_written_to_their_cluster(connect):
    queue = connect()
    order = []
    taint, claim, start = queue.system.kubernetes.taint, queue.system.claims.claim, queue.system.executions.start
    queue.system.executions.start = lambda *a, **k: (order.append("start"), start(*a, **k))[1]
    queue.system.kubernetes.taint = lambda *a, **k: (order.append("taint"), taint(*a, **k))[1]
    queue.system.claims.claim = lambda *a, **k: (order.append("claim"), claim(*a, **k))[1]
    queue.deliver(event("spot_interruption"))
    assert order == ["claim", "start", "taint"]


def test_a_node_of_two_messages_is_tainted_once(connect):
    queue = connect()
    queue.deliver(event("spot_interruption"), event("rebalance_recommendation", detail={"instance-id": "i-0abc"}))
    assert queue.system.kubernetes.asked["taint"] == 1


class TestJoining:
    def test_a_second_cause_joins_and_wakes_the_pause(self, connect):
        queue = connect()
        queue.deliver(event("rebalance_recommendation"))
        queue.system.claims.hand_over_token("i-0abc", version=1, token="pause-1")
        queue.deliver(event("spot_interruption"))
        record = queue.system.claims.records["i-0abc"]
        assert (record.version, len(record.causes)) == (2, 2)
        assert detach_deadline(record, queue.system.clock.now()) is not None
        assert queue.system.executions.woken == ["pause-1"]
        assert queue.system.executions.open == {"i-0abc-1"}

    def test_a_duplicate_adds_nothing_and_wakes_no_execution(self, connect):
        queue = connect()
        queue.deliver(event("spot_interruption"))
        queue.system.claims.hand_over_token("i-0abc", version=1, token="pause-1")
        before = queue.system.claims.records["i-0abc"]
        assert queue.deliver(event("spot_interruption"), event("spot_interruption")) == []
        assert queue.system.claims.records["i-0abc"] == before
        assert queue.system.executions.woken == []
        assert queue.system.executions.open == {"i-0abc-1"}
        assert len(queue.system.kubernetes.events) == 1

    def test_duplicates_in_one_batch_are_one_effect_and_all_done(self, connect):
        queue = connect()
        queue.happens("asg_terminate")
        assert queue.deliver(*[event("asg_terminate"), event("asg_terminate_direct")] * 5) == []
        assert queue.system.claims.asked["claim"] == 1
        assert queue.system.executions.started == ["i-0abc-1"]
        assert queue.system.kubernetes.asked["taint"] == 1

    def test_a_health_event_of_two_regions_is_one(self, connect):
        queue = connect(instances=[an_instance(), an_instance("i-0def")], nodes=[a_node(), a_node("i-0def")])
        queue.happens("scheduled_change", "i-0abc", "i-0def")
        queue.deliver(event("scheduled_change"))
        queue.deliver(event("scheduled_change", id="from-the-backup-region"))
        assert [len(r.causes) for r in queue.system.claims.records.values()] == [1, 1]

    def test_a_health_event_takes_every_instance_that_it_names(self, connect):
        queue = connect(instances=[an_instance(), an_instance("i-0def")], nodes=[a_node(), a_node("i-0def")])
        queue.happens("scheduled_change", "i-0abc", "i-0def")
        queue.deliver(event("scheduled_change"))
        assert queue.system.executions.open == {"i-0abc-1", "i-0def-1"}
        assert all(node.tainted for node in queue.system.kubernetes.by_name.values())

    def test_a_start_that_was_lost_is_made_up_for_by_the_redelivery(self, connect):
        queue = connect()
        queue.system.executions.fail("start", ThrottledError("slow down"), times=1)
        assert queue.deliver(event("spot_interruption")) == ["m0"]
        assert queue.system.claims.records["i-0abc"].status is Status.OPEN
        assert queue.deliver(event("spot_interruption")) == []
        assert queue.system.executions.open == {"i-0abc-1"}
        assert len(queue.system.claims.records["i-0abc"].causes) == 1

    def test_a_closed_execution_that_holds_the_name_makes_room_for_the_next_attempt(self, connect):
        queue = connect()
        queue.system.executions.end("i-0abc", 1)
        queue.deliver(event("spot_interruption"))
        assert queue.system.executions.open == {"i-0abc-2"}
        assert queue.system.claims.records["i-0abc"].attempt == 2

    def test_a_late_duplicate_of_a_node_that_was_returned_leaves_it_in_service(self, connect):
        queue = connect()
        queue.deliver(event("rebalance_recommendation"))
        queue.system.kubernetes.untaint(node_of(queue), disruption_taint(DEPLOYMENT))
        queue.system.executions.end("i-0abc")
        queue.system.claims.close(
            "i-0abc", version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=queue.system.clock.now()
        )
        assert queue.deliver(event("rebalance_recommendation")) == []
        assert not node_of(queue).tainted
        assert not node_of(queue).unschedulable
        assert queue.system.executions.open == set()


class TestPacing:
    def test_a_change_far_ahead_is_claimed_but_neither_tainted_nor_started(self, connect):
        queue = connect(nodes=[a_node()])
        queue.happens("scheduled_change")
        queue.deliver(event("scheduled_change", detail__startTime=FAR_AHEAD))
        assert not node_of(queue).tainted
        record = queue.system.claims.records["i-0abc"]
        assert detach_deadline(record, queue.system.clock.now()) is not None
        assert queue.system.executions.started == []

    def test_another_cause_starts_it_at_once(self, connect):
        queue = connect()
        queue.happens("scheduled_change")
        queue.deliver(event("scheduled_change", detail__startTime=FAR_AHEAD))
        queue.happens("state_change")
        queue.deliver(event("state_change"))
        assert queue.system.executions.open == {"i-0abc-1"}
        assert node_of(queue).tainted


class TestRebalance:
    def test_cordon_is_what_kubectl_cordon_does_and_claims_nothing(self, connect):
        queue = connect(written=policies(a_policy(rebalance=Rebalance.CORDON)))
        assert queue.deliver(event("rebalance_recommendation")) == []
        assert node_of(queue).unschedulable
        assert not node_of(queue).tainted
        assert queue.system.claims.records == {}
        assert queue.system.kubernetes.events[0].message.startswith("Leeward has cordoned")

    def test_a_cordon_that_fails_is_tried_again(self, connect):
        queue = connect(written=policies(a_policy(rebalance=Rebalance.CORDON)))
        queue.system.kubernetes.fail("taint", ClusterUnreachableError("503"), times=1)
        assert queue.deliver(event("rebalance_recommendation")) == ["m0"]
        assert queue.deliver(event("rebalance_recommendation")) == []
        queue.system.kubernetes.down = True
        assert queue.deliver(event("rebalance_recommendation", id="another")) == ["m0"]

    def test_a_warning_beside_the_cordon_marks_the_node_as_leaving(self, connect):
        queue = connect(written=policies(a_policy(rebalance=Rebalance.CORDON)))
        queue.deliver(event("rebalance_recommendation"), event("spot_interruption"))
        assert node_of(queue).tainted

    def test_ignore_and_capacity_rebalance_touch_nothing(self, connect):
        ignoring = connect(written=policies(a_policy(rebalance=Rebalance.IGNORE)))
        ignoring.deliver(event("rebalance_recommendation"))
        itself = connect(groups=[a_group(GROUP, "i-0abc", capacity_rebalance=True)])
        itself.deliver(event("rebalance_recommendation"))
        for queue in (ignoring, itself):
            assert not node_of(queue).unschedulable
            assert queue.system.claims.records == {}


class TestHooks:
    def test_a_launch_hook_is_answered_once_the_node_is_ready(self, connect):
        queue = connect(hooks=[WAIT_FOR_NODE], groups=[a_group(GROUP)], nodes=[])
        groups = queue.system.groups
        groups.begin_launching(GROUP, "i-0abc")
        assert queue.deliver(event("asg_launch")) == []
        assert groups.waiting
        assert groups.lifecycle_of("i-0abc") == (GROUP, "Pending:Wait")
        queue.system.kubernetes.put_node(a_node())
        queue.deliver(event("asg_launch"))
        assert groups.answered == [(GROUP, "wait-for-node", "i-0abc", HookResult.CONTINUE)]
        assert groups.lifecycle_of("i-0abc") == (GROUP, "InService")

    def test_the_launch_of_an_instance_that_is_gone_is_abandoned(self, connect):
        queue = connect(hooks=[WAIT_FOR_NODE], instances=[], groups=[a_group(GROUP)], nodes=[])
        queue.system.groups.waiting.add((GROUP, "wait-for-node", "i-0abc"))
        queue.deliver(event("asg_launch"))
        assert [answer[3] for answer in queue.system.groups.answered] == [HookResult.ABANDON]

    def test_our_terminate_hook_of_an_unknown_instance_is_answered_at_once(self, connect):
        queue = connect(instances=[], groups=[a_group(GROUP)], nodes=[])
        queue.system.groups.waiting.add((GROUP, "leeward-terminate", "i-0abc"))
        assert queue.deliver(event("asg_terminate")) == []
        assert queue.system.groups.answered == [(GROUP, "leeward-terminate", "i-0abc", HookResult.CONTINUE)]
        assert queue.system.claims.records == {}

    def test_a_foreign_hook_is_never_touched_though_the_node_is_drained(self, connect):
        theirs = LifecycleHook(name="their-backup", group=GROUP, transition=our_hook().transition)
        queue = connect(hooks=[theirs], written=policies(a_policy()))
        queue.system.groups.begin_terminating(GROUP, "i-0abc")
        body = event("asg_terminate", detail__LifecycleHookName="their-backup", detail__NotificationMetadata="")
        assert queue.deliver(body) == []
        assert queue.system.groups.asked["complete"] == queue.system.groups.asked["heartbeat"] == 0
        assert queue.system.executions.open == {"i-0abc-1"}

    @pytest.mark.parametrize("destination", ["AutoScalingGroup", "WarmPool"])
    @pytest.mark.parametrize("hours", [1, 49])
    def test_a_launch_hook_that_a_removed_policy_named_is_answered_for_two_days(self, connect, destination, hours):
        """Its default ABANDON would end each new instance; a group does not list those of its warm pool."""
        queue = connect(hooks=[WAIT_FOR_NODE], groups=[a_group(GROUP)], nodes=[])
        sync_once(queue.system.ports)
        queue.system.clusters.policies_of["blue"] = policies(a_policy("other", "batch-*"))
        queue.system.clock.advance(hours=hours)
        sync_once(queue.system.ports)
        queue.system.groups.waiting.add((GROUP, "wait-for-node", "i-0abc"))
        assert queue.deliver(event("asg_launch", detail__Destination=destination)) == []
        answer = (GROUP, "wait-for-node", "i-0abc", HookResult.CONTINUE)
        assert queue.system.groups.answered == ([answer] if hours == 1 else [])

    def test_a_launch_waits_while_the_names_of_a_removed_policy_cannot_be_read(self, connect):
        queue = connect(hooks=[WAIT_FOR_NODE], groups=[a_group(GROUP)], written=policies(a_policy("other", "batch-*")))
        queue.system.catalog.fail("named_hooks", ThrottledError("the table is away"))
        assert queue.deliver(event("asg_launch"), event("asg_terminate", detail__EC2InstanceId="i-0def")) == ["m0"]

    def test_a_group_without_policy_keeps_its_hook(self, connect):
        queue = connect(written=policies(a_policy("other", "batch-*")))
        assert queue.deliver(event("asg_terminate")) == []
        assert queue.system.groups.asked["complete"] == 0
        assert queue.system.groups.asked["hooks"] == 0
        assert queue.system.kubernetes.asked["nodes"] == 0

    def test_an_answer_without_a_waiting_hook_is_done_with_a_word_in_the_log(self, connect):
        queue = connect(instances=[], groups=[a_group(GROUP)], nodes=[])
        assert queue.deliver(event("asg_terminate")) == []
        assert "was not waiting any more" in queue.log[0]["warnings"][0]

    def test_an_answer_that_fails_is_given_again(self, connect):
        """The peer's defect: a completion that failed was only logged, and its redelivery ignored as a duplicate."""
        queue = connect(instances=[], groups=[a_group(GROUP)], nodes=[])
        queue.system.groups.waiting.add((GROUP, "leeward-terminate", "i-0abc"))
        queue.system.groups.fail("complete", ThrottledError("Rate exceeded"), times=1)
        assert queue.deliver(event("asg_terminate")) == ["m0"]
        assert queue.deliver(event("asg_terminate")) == []
        assert len(queue.system.groups.answered) == 1


class TestExecutionsThatEndedBadly:
    def _open(self, queue, attempts=1):
        queue.deliver(event("spot_interruption"))
        for attempt in range(1, attempts + 1):
            queue.system.executions.end("i-0abc", attempt)
            if attempt < attempts:
                queue.system.claims.begin_attempt("i-0abc", attempt)

    def test_the_next_attempt_of_an_open_record_starts(self, connect):
        queue = connect()
        self._open(queue)
        assert queue.deliver(event("execution_aborted")) == []
        assert queue.system.executions.open == {"i-0abc-2"}

    def test_reported_twice_it_starts_once(self, connect):
        queue = connect()
        self._open(queue)
        queue.deliver(event("execution_aborted"), event("execution_aborted"))
        queue.deliver(event("execution_aborted"))
        assert queue.system.executions.open == {"i-0abc-2"}

    def test_one_that_rests_until_later_is_left_to_the_reconciler(self, connect):
        queue = connect()
        self._open(queue)
        queue.system.claims.note("i-0abc", times={"retry": queue.system.clock.now().replace(hour=11)})
        queue.deliver(event("execution_aborted"))
        assert queue.system.executions.open == set()

    def test_one_that_dies_again_and_again_is_left_to_the_reconciler(self, connect):
        queue = connect()
        self._open(queue, attempts=3)
        queue.deliver(event("execution_aborted", detail__name="i-0abc-3"))
        assert queue.system.executions.open == set()
        assert queue.system.claims.records["i-0abc"].times["retry"] > queue.system.clock.now()

    def test_while_a_hook_waits_one_that_is_left_to_the_reconciler_is_heartbeaten_before_it_is_due(self, connect):
        queue = connect(groups=[a_group(GROUP, "i-0abc")])
        queue.deliver(event("asg_terminate"))
        queue.system.groups.set_lifecycle(GROUP, "i-0abc", "Terminating:Wait")
        queue.system.groups.waiting.add((GROUP, well_known.TERMINATE_HOOK, "i-0abc"))
        self._open(queue, attempts=3)
        queue.system.clock.advance(seconds=60)  # of the 150 after which one is due
        queue.deliver(event("execution_aborted", detail__name="i-0abc-3"))
        assert queue.system.groups.heartbeats == [(GROUP, well_known.TERMINATE_HOOK, "i-0abc")]

    def test_a_record_that_is_closed_or_absent_starts_no_execution(self, connect):
        queue = connect()
        assert queue.deliver(event("execution_aborted")) == []
        self._open(queue)
        now = queue.system.clock.now()
        queue.system.claims.close("i-0abc", version=1, outcome=Outcome.TERMINATED, now=now)
        queue.deliver(event("execution_aborted"))
        assert queue.system.executions.open == set()


@pytest.mark.parametrize("name", ["unknown", "test_notification"])
def test_an_irrelevant_message_is_done_without_looking_anything_up(connect, name):
    queue = connect()
    assert queue.deliver(event(name)) == []
    system = queue.system
    asked = [system.instances.asked, system.groups.asked, system.clusters.asked, system.claims.asked]
    assert not any(asked)


def test_an_event_of_another_account_is_done_without_looking_anything_up(connect):
    queue = connect(origins=frozenset({("999900001111", "us-east-1")}))
    assert queue.deliver(event("spot_interruption")) == []
    assert queue.system.instances.asked["describe"] == 0
    assert "none of our clusters is there" in queue.log[0]["message"]


class TestSpotCapacity:
    def test_a_warning_is_remembered_as_a_shortage_of_its_type_in_its_zone(self, connect):
        queue = connect()
        assert queue.deliver(event("spot_interruption"), event("spot_interruption", id="another")) == []
        now = queue.system.clock.now()
        assert queue.system.catalog.reservations("blue").short_at(now) == {Pool(instance_type="m5.large", zone=ZONE)}
        assert queue.system.catalog.asked["mark_unavailable"] == 1
        assert not queue.system.catalog.reservations("blue").short_at(now + SHORT_FOR)

    def test_a_recommendation_is_one_as_well(self, connect):
        queue = connect()
        queue.deliver(event("rebalance_recommendation"))
        now = queue.system.clock.now()
        assert queue.system.catalog.reservations("blue").short_at(now) == {Pool(instance_type="m5.large", zone=ZONE)}

    def test_nothing_else_is_a_shortage(self, connect):
        queue = connect()
        queue.deliver(event("scheduled_change"))
        assert queue.system.catalog.reservations("blue").short == {}

    def test_a_shortage_that_cannot_be_written_costs_nothing_but_a_word(self, connect):
        queue = connect()
        queue.system.catalog.fail("mark_unavailable", ThrottledError("too fast"))
        assert queue.deliver(event("spot_interruption")) == []
        assert "m5.large is short in us-east-1a" in queue.log[0]["warnings"][0]


def test_one_log_line_a_record_says_what_became_of_it(connect):
    queue = connect()
    queue.happens("asg_terminate")
    queue.deliver(event("asg_terminate"), event("unknown"), "nonsense")
    assert [line["outcome"] for line in queue.log] == ["done", "done", "malformed"]
    assert [line.get("kind") for line in queue.log] == ["asg_terminate", "noop", None]
    assert set(LOG_KEYS) <= set(queue.log[0])
    assert queue.log[0]["hook"] == {"name": "leeward-terminate", "result": "CONTINUE", "atOnce": False}
    assert json.loads(json.dumps(queue.log[0]["instances"])) == ["i-0abc"]


def test_the_line_of_a_record_about_one_instance_names_its_node_group_and_cluster(connect):
    queue = connect()
    queue.deliver(event("spot_interruption"))
    (line,) = queue.log
    assert (line["instance"], line["group"], line["cluster"]) == ("i-0abc", GROUP, "blue")


def test_a_call_that_aws_throttles_is_logged_with_the_message_for_which_it_was_made(connect):
    """In whatever thread: the records of a batch are handled side by side."""
    queue = connect(instances=[an_instance(), an_instance("i-0def")])
    claim = queue.system.claims.claim

    def throttled_claim(*given):
        throttled("dynamodb:UpdateItem")
        return claim(*given)

    queue.system.claims.claim = throttled_claim
    queue.deliver(event("spot_interruption"), event("spot_interruption", id="another", detail__instance_x_id="i-0def"))
    lines = [line for line in queue.log if line["service"] == "aws"]
    assert sorted(line["messageId"] for line in lines) == ["m0", "m1"]
    assert {line["eventId"] for line in lines} == {line["eventId"] for line in queue.log if "outcome" in line}


def test_a_warning_starts_in_one_delivery_though_sixty_names_are_taken(connect):
    """Step Functions keeps a closed name for 90 days, the table a closed record for seven."""
    queue = connect()
    for attempt in range(1, 61):
        queue.system.executions.end("i-0abc", attempt)
    assert queue.deliver(event("spot_interruption")) == []
    record = queue.system.claims.records["i-0abc"]
    assert queue.system.executions.open == {f"i-0abc-{record.attempt}"}
    assert record.attempt > 60
    assert record.tries <= 2
    assert len(queue.system.executions.started) <= 8
