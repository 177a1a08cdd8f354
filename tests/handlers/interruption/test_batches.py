"""Batches: malformed messages are removed at once, a failing message fails alone, and lookups do not grow with
messages."""

import subprocess
import sys

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError, ClusterUnreachableError, ThrottledError
from leeward.interruption import handler
from leeward.model.termination import Status
from leeward.policy.document import ClusterPolicies
from leeward.termination.prompt_eviction import taken_together
from tests.events import event
from tests.fakes.builders import GROUP, a_group, a_node, an_instance, our_hook


def spot(instance="i-0abc", number=0):
    return event("spot_interruption", id=f"event-{instance}-{number}", detail={"instance-id": instance})


def instances_fail(system, error, times=None):
    """EC2 does not answer, and neither does Auto Scaling, which lists the instances that EC2 takes."""
    system.instances.fail("describe", error, times)
    system.groups.fail("of_clusters", error, times)


class TestPoison:
    @pytest.mark.parametrize(
        "body", ["nonsense", "[]", event("spot_interruption", detail={}), event("asg_launch", detail=1)]
    )
    def test_a_malformed_body_goes_to_the_dead_letters_at_once_with_its_reason(self, connect, body):
        queue = connect()
        assert queue.deliver(spot(), body) == []
        letter = queue.system.dead_letters.sent[0]
        assert (letter.body, letter.message_id) == (body, "m1")
        assert "expected" in letter.reason
        assert queue.metric("InterruptionMessagesDeadLettered") == 1
        assert queue.log[1]["outcome"] == "malformed"
        assert queue.system.executions.open == {"i-0abc-1"}

    def test_one_that_cannot_be_buried_comes_back(self, connect):
        queue = connect()
        queue.system.dead_letters.fail("send", AwsUnavailableError("503"), times=1)
        assert queue.deliver("nonsense") == ["m0"]
        assert queue.deliver("nonsense") == []
        assert len(queue.system.dead_letters.sent) == 1


class TestFailures:
    def test_a_failed_claim_fails_its_record_alone(self, connect):
        queue = connect(instances=[an_instance("i-0a"), an_instance("i-0b")], nodes=[a_node("i-0a"), a_node("i-0b")])
        claim = queue.system.claims.claim

        def failing(subject, cause, now, *rest, **more):
            if subject.instance == "i-0a":
                raise ThrottledError("slow down")
            return claim(subject, cause, now, *rest, **more)

        queue.system.claims.claim = failing
        assert queue.deliver(spot("i-0a"), spot("i-0b")) == ["m0"]
        assert queue.system.claims.records.keys() == {"i-0b"}
        assert queue.metric("InterruptionMessagesRetried") == 1

    def test_an_execution_without_a_claim_evicts_the_pods_of_an_instance_that_ec2_takes(self, connect):
        queue = connect(instances=[an_instance("i-0a")], nodes=[a_node("i-0a")])
        queue.system.claims.fail("claim", ThrottledError("slow down"))
        for _ in range(2):
            assert queue.deliver(spot("i-0a")) == ["m0"]
        started = queue.system.executions.unclaimed["i-0a-1"]
        assert started.keys() == {"cluster", "group", "node", "policy", "taken"}
        assert (started["node"], started["policy"]) == ("node-i-0a", "web")
        assert queue.system.claims.records == {}

    @pytest.mark.parametrize(
        ("name", "error"),
        [("rebalance_recommendation", ThrottledError("slow down")), ("spot_interruption", AccessDeniedError("no"))],
    )
    def test_no_other_refused_claim_starts_anything(self, connect, name, error):
        queue = connect()
        queue.system.claims.fail("claim", error)
        queue.deliver(event(name))
        assert queue.system.executions.started == []

    @pytest.mark.parametrize("error", [ThrottledError("slow down"), AccessDeniedError("ec2:DescribeInstances")])
    def test_a_failed_lookup_fails_those_who_need_it_and_no_other(self, connect, error):
        queue = connect()
        instances_fail(queue.system, error)
        assert queue.deliver(spot(), event("unknown"), event("test_notification"), "nonsense") == ["m0"]
        queue.system.instances.heal()
        assert queue.deliver(spot()) == []

    def test_groups_that_cannot_be_described(self, connect):
        queue = connect(instances=[an_instance(), an_instance("i-0alone", group=None)])
        queue.system.groups.fail("describe", AwsUnavailableError("503"))
        rebalance = event("rebalance_recommendation", detail={"instance-id": "i-0abc"})
        assert queue.deliver(rebalance, spot("i-0alone")) == ["m0"]

    def test_hooks_that_cannot_be_listed_fail_the_lifecycle_action_only(self, connect):
        queue = connect()
        queue.system.groups.fail("hooks", AwsUnavailableError("503"))
        assert queue.deliver(event("asg_terminate"), spot()) == ["m0"]

    def test_a_policy_that_cannot_be_read_fails_its_cluster(self, connect):
        queue = connect()
        del queue.system.clusters.policies_of["blue"]
        assert queue.deliver(spot(), event("unknown")) == ["m0"]
        assert "InvalidPolicyError" in queue.log[0]["message"]

    def test_the_same_error_any_number_of_times_only_comes_back(self, connect):
        """The peer's defect: the same error three times in a row was a crash."""
        queue = connect()
        queue.system.claims.fail("claim", AwsUnavailableError("503"))
        for _ in range(10):
            assert queue.deliver(spot()) == ["m0"]
        queue.system.claims.heal()
        assert queue.deliver(spot()) == []


class TestAnUnreachableCluster:
    def test_the_claim_and_the_start_are_not_lost(self, connect):
        queue = connect()
        queue.system.kubernetes.down = True
        assert queue.deliver(spot()) == []
        assert queue.system.claims.records["i-0abc"].status is Status.OPEN
        assert queue.system.claims.records["i-0abc"].subject.node is None
        assert queue.system.executions.open == {"i-0abc-1"}
        assert "shows no nodes" in queue.log[0]["warnings"][0]

    def test_a_taint_that_fails_is_logged_and_left_to_the_drain(self, connect):
        queue = connect()
        queue.system.kubernetes.fail("taint", ClusterUnreachableError("timed out"))
        assert queue.deliver(spot()) == []
        assert queue.system.executions.open == {"i-0abc-1"}
        assert "is not tainted yet" in queue.log[0]["warnings"][0]

    def test_an_event_that_cannot_be_written_fails_nothing(self, connect):
        queue = connect()
        queue.system.kubernetes.fail("event", ClusterUnreachableError("timed out"))
        assert queue.deliver(spot()) == []
        assert queue.system.kubernetes.events == []
        assert queue.system.executions.open == {"i-0abc-1"}

    def test_a_node_that_vanished_meanwhile_is_no_failure(self, connect):
        queue = connect()
        listed = queue.system.kubernetes.nodes()
        queue.system.kubernetes.nodes = lambda: listed
        del queue.system.kubernetes.by_name["node-i-0abc"]
        assert queue.deliver(spot()) == []
        assert queue.system.executions.open == {"i-0abc-1"}


class TestAHundredRecords:
    def test_lookups_are_bounded_by_groups_and_clusters_not_by_messages(self, connect):
        ids = [f"i-0{number:x}" for number in range(100)]
        queue = connect(
            instances=[an_instance(name) for name in ids],
            groups=[a_group(GROUP, *ids, maximum=200)],
            hooks=[our_hook()],
            nodes=[a_node(name) for name in ids],
        )
        bodies = [spot(name) for name in ids[:60]]
        bodies += [event("asg_terminate", detail__EC2InstanceId=n, detail__LifecycleActionToken=n) for n in ids[60:]]
        queue.happens("asg_terminate", *ids[60:])
        assert queue.deliver(*bodies) == []
        system = queue.system
        assert system.instances.asked["describe"] == 1
        assert system.groups.asked == {"describe": 1, "hooks": 1}
        assert system.clusters.asked["policies"] <= 2  # kept for a minute
        assert system.kubernetes.asked["nodes"] == 1
        assert system.kubernetes.asked["taint"] == 100
        assert len(system.executions.open) == 100
        assert queue.metric("NodesTainted") == 100

    def test_a_storm_of_duplicates_costs_one_claim(self, connect):
        queue = connect()
        assert queue.deliver(*[spot()] * 100) == []
        assert queue.system.claims.asked["claim"] == 1
        assert queue.system.kubernetes.asked["taint"] == 1
        assert queue.metric("InterruptionMessages") == 100

    def test_a_group_of_no_policy_costs_no_kubernetes_call(self, connect):
        written = ClusterPolicies(settings=connect().system.clusters.policies_of["blue"].settings)
        queue = connect(written=written)
        assert queue.deliver(spot()) == []
        assert queue.system.kubernetes.asked == {}


class TestTheEntryPoint:
    def test_importing_it_loads_no_aws_client_and_needs_no_settings(self):
        code = "import sys, leeward.interruption.handler; sys.exit('boto3' in sys.modules)"
        environment = {"PYTHONPATH": "functions"}
        assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0

    def test_its_ports_are_those_of_the_interruption_function_built_once(self, monkeypatch):
        built = []
        monkeypatch.setattr("leeward.adapters.wiring.lambda_ports", lambda: built)
        assert handler.ports(None) is handler.ports(None) is built

    def test_a_record_without_the_time_it_was_sent_was_received_now(self, connect):
        queue = connect()
        body = event("spot_interruption", time=...)
        record = {"messageId": "m0", "body": body, "attributes": {}}
        assert handler.handle({"Records": [record]}, None) == {"batchItemFailures": []}
        assert queue.system.claims.records["i-0abc"].causes[0].at == queue.system.clock.now()


class TestStorms:
    def test_every_instance_that_ec2_takes_is_counted_with_those_of_its_batch(self, connect):
        names = [f"i-{number:03}" for number in range(3)]
        queue = self.of(names, connect)
        assert queue.deliver(*map(spot, names), spot(names[0]), event("scheduled_change")) == []
        records = queue.system.claims.records
        assert {name: records[name].causes[0].together for name in names} == dict.fromkeys(names, 3)
        assert {record.subject.policy for record in records.values()} == {"web"}

    def test_those_of_other_batches_within_a_minute_count_and_a_message_that_comes_back_does_not(self, connect):
        names = [f"i-{number:03}" for number in range(4)]
        queue = self.of(names, connect)
        assert queue.deliver(*map(spot, names[:2])) == []
        queue.receives = 2
        assert queue.deliver(spot(names[2])) == []
        queue.receives = 1
        assert queue.deliver(spot(names[3])) == []
        records = queue.system.claims.records
        assert [records[name].causes[0].together for name in names] == [2, 2, 2, 3]

    def test_without_an_answer_of_the_table_those_of_the_batch_count(self, connect):
        queue = self.of(["i-000"], connect)
        queue.system.claims.fail("count", ThrottledError("ThrottlingException"))
        assert queue.deliver(spot("i-000")) == []
        assert queue.system.claims.records["i-000"].causes[0].together == 1

    def test_a_warning_that_joins_an_open_record_brings_the_count(self, connect):
        queue = connect()
        queue.happens("scheduled_change")
        assert queue.deliver(event("scheduled_change")) == []
        assert queue.deliver(spot()) == []
        record = queue.system.claims.records["i-0abc"]
        assert ([cause.together for cause in record.causes], taken_together(record)) == ([0, 1], 1)

    def of(self, names, connect):
        return connect(
            instances=[an_instance(name) for name in names],
            groups=[a_group(GROUP, *names)],
            nodes=[a_node(name) for name in names],
        )

    def test_what_is_not_taken_within_minutes_is_not_counted(self, connect):
        queue = connect()
        queue.happens("state_change")
        assert queue.deliver(event("state_change", detail__state="stopping")) == []
        assert queue.system.claims.records["i-0abc"].causes[0].together == 0


class TestRedelivery:
    def test_a_record_that_failed_comes_back_soon_and_then_less_and_less_often(self, connect):
        queue = connect()
        instances_fail(queue.system, ThrottledError("RequestLimitExceeded"))
        waits = []
        for queue.receives in (1, 2, 3, 9, 12, 99):
            assert queue.deliver(spot()) == ["m0"]
            waits.append(queue.system.redelivery.delays["r0"])
        assert waits == [1, 2, 4, 15, 30, 160]

    def test_each_queue_is_asked_for_its_own_messages(self, connect):
        queue = connect()
        instances_fail(queue.system, ThrottledError("RequestLimitExceeded"))
        arn = "arn:aws:sqs:us-east-1:111122223333:leeward-state-changes"
        record = {"messageId": "m0", "receiptHandle": "r0", "body": spot(), "eventSourceARN": arn}
        assert handler.handle({"Records": [record]}, None)["batchItemFailures"]
        assert queue.system.redelivery.queues == {arn}

    def test_what_is_done_is_not_asked_for_again(self, connect):
        queue = connect()
        queue.deliver(spot(), "nonsense")
        assert queue.system.redelivery.asked["after"] == 0

    def test_that_it_cannot_be_asked_for_fails_nothing_else(self, connect):
        queue = connect()
        instances_fail(queue.system, ThrottledError("RequestLimitExceeded"), times=1)
        queue.system.redelivery.fail("after", AccessDeniedError("sqs:ChangeMessageVisibility"))
        assert queue.deliver(spot()) == ["m0"]
        assert any("visibility time-out" in line.get("message", "") for line in queue.lines)

    @pytest.mark.parametrize(("throttled", "asked"), [(2, {"r0": 1}), (3, {})])
    def test_throttled_it_is_asked_for_three_times_because_a_spot_instance_has_two_minutes(
        self, connect, throttled, asked
    ):
        queue = connect()
        instances_fail(queue.system, ThrottledError("RequestLimitExceeded"), times=1)
        queue.system.redelivery.fail("after", ThrottledError("RequestThrottled"), times=throttled)
        assert queue.deliver(spot()) == ["m0"]
        assert queue.system.redelivery.delays == asked
        reported = [line for line in queue.lines if "visibility time-out" in line.get("message", "")]
        assert bool(reported) is not bool(asked)
