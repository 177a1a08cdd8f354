"""EKS' own updates and CloudWatch's alarms: the requests, and how answers are read."""

from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.monitoring import CloudWatchAlarms
from leeward.adapters.aws.nodegroups import EksManagedUpdates
from leeward.errors import InvalidInputError, ObjectGoneError, TerminalError
from leeward.ports.eks import ManagedState, ManagedUpdate

WEB = {"clusterName": "blue", "nodegroupName": "web"}
LOOK = {"name": "blue", "nodegroupName": "web", "updateId": "u-1"}


@pytest.fixture
def updates(aws):
    return EksManagedUpdates(aws.clients)


class TestManagedUpdates:
    def started(self, aws, **asked):
        parameters = {**WEB, "force": False, "clientRequestToken": "t", **asked}
        aws.expect("eks", "update_nodegroup_version", parameters, {"update": {"id": "u-1", "status": "InProgress"}})

    def test_a_kubernetes_version_is_asked_for_with_the_token(self, aws, updates):
        self.started(aws, version="1.33")
        assert updates.start("blue", "web", token="t", version="1.33") == "u-1"

    def test_a_release_is_asked_for_by_its_own_name(self, aws, updates):
        self.started(aws, version="1.32", releaseVersion="1.32.9-20251023")
        assert updates.start("blue", "web", token="t", version="1.32", release="1.32.9-20251023") == "u-1"

    def test_nothing_but_the_latest_image_is_a_request_too(self, aws, updates):
        self.started(aws, force=True)
        assert updates.start("blue", "web", token="t", force=True) == "u-1"

    @pytest.mark.parametrize(
        ("own", "named"), [({"id": "lt-1", "name": "web"}, {"id": "lt-1"}), ({"name": "web"}, {"name": "web"})]
    )
    def test_a_template_version_is_of_the_groups_own_template(self, aws, updates, own, named):
        aws.expect("eks", "describe_nodegroup", WEB, {"nodegroup": {**WEB, "launchTemplate": own}})
        self.started(aws, launchTemplate={**named, "version": "8"})
        assert updates.start("blue", "web", token="t", template_version="8") == "u-1"

    def test_a_group_without_a_template_takes_no_version_of_one(self, aws, updates):
        aws.expect("eks", "describe_nodegroup", WEB, {"nodegroup": WEB})
        with pytest.raises(InvalidInputError, match="blue/web: found no launch template"):
            updates.start("blue", "web", token="t", template_version="8")

    def test_a_refusal_is_terminal_and_says_why(self, aws, updates):
        aws.refuse("eks", "update_nodegroup_version", "ResourceInUseException", "it is being updated")
        with pytest.raises(TerminalError, match=r"UpdateNodegroupVersion on blue/web: .*it is being updated"):
            updates.start("blue", "web", token="t")

    def test_a_failure_comes_with_its_sentences(self, aws, updates):
        error = {"errorCode": "PodEvictionFailure", "errorMessage": "Reached max retries", "resourceIds": ["node-a"]}
        answer = {"update": {"id": "u-1", "status": "Failed", "errors": [error, {"errorCode": "Unknown"}]}}
        aws.expect("eks", "describe_update", LOOK, answer)
        expected = ("PodEvictionFailure: Reached max retries (node-a)", "Unknown")
        assert updates.look("blue", "web", "u-1") == ManagedUpdate(id="u-1", state=ManagedState.FAILED, errors=expected)

    def test_an_update_that_eks_does_not_know_is_gone(self, aws, updates):
        aws.refuse("eks", "describe_update", "ResourceNotFoundException")
        with pytest.raises(ObjectGoneError, match="eks:DescribeUpdate on blue/web/u-1"):
            updates.look("blue", "web", "u-1")


SINCE = datetime(2026, 5, 4, 12, tzinfo=UTC)
CHANGED = {"StateTransitionedTimestamp": SINCE, "StateUpdatedTimestamp": SINCE + timedelta(minutes=1)}


class TestAlarms:
    def states(self, aws, names, **states):
        asked = {"AlarmNames": names, "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
        raw = [{"AlarmName": name, "StateValue": state, **CHANGED} for name, state in states.items()]
        aws.expect("cloudwatch", "describe_alarms", asked, {"MetricAlarms": raw[:1], "CompositeAlarms": raw[1:]})

    def test_no_names_ask_nothing(self, aws):
        assert CloudWatchAlarms(aws.clients).describe([]) == {}

    def test_metric_and_composite_alarms_ring_since_their_state_has_changed(self, aws):
        self.states(aws, ["a", "b", "c"], a="ALARM", b="ALARM", c="OK")
        found = CloudWatchAlarms(aws.clients).describe(["a", "b", "c", "a"])
        assert [(one.name, one.ringing, one.since) for one in found.values()] == [
            ("a", True, SINCE),
            ("b", True, SINCE),
            ("c", False, SINCE),
        ]

    def test_one_that_does_not_exist_is_absent_and_one_without_data_does_not_ring(self, aws):
        self.states(aws, ["gone", "young"], young="INSUFFICIENT_DATA")
        found = CloudWatchAlarms(aws.clients).describe(["gone", "young"])
        assert [(one.name, one.ringing) for one in found.values()] == [("young", False)]

    def test_names_are_asked_for_in_hundreds(self, aws):
        names = [f"a-{number:03}" for number in range(101)]
        self.states(aws, names[:100], **dict.fromkeys(names[:100], "OK"))
        self.states(aws, names[100:], **{names[100]: "ALARM"})
        found = CloudWatchAlarms(aws.clients).describe(names)
        assert [name for name, one in found.items() if one.ringing] == ["a-100"]
