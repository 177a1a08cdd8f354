"""EKS' own updates and CloudWatch's alarms: the requests, and how answers are read."""

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


class TestAlarms:
    def states(self, aws, names, **states):
        asked = {"AlarmNames": names, "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
        raw = [{"AlarmName": name, "StateValue": state} for name, state in states.items()]
        aws.expect("cloudwatch", "describe_alarms", asked, {"MetricAlarms": raw[:1], "CompositeAlarms": raw[1:]})

    def test_no_names_ask_nothing(self, aws):
        assert CloudWatchAlarms(aws.clients).ringing([]) == ()

    def test_metric_and_composite_alarms_ring(self, aws):
        self.states(aws, ["a", "b", "c"], a="ALARM", b="ALARM", c="OK")
        assert CloudWatchAlarms(aws.clients).ringing(["a", "b", "c", "a"]) == ("a", "b")

    def test_one_that_does_not_exist_rings_and_one_without_data_does_not(self, aws):
        self.states(aws, ["gone", "young"], young="INSUFFICIENT_DATA")
        assert CloudWatchAlarms(aws.clients).ringing(["gone", "young"]) == ("gone",)

    def test_names_are_asked_for_in_hundreds(self, aws):
        names = [f"a-{number:03}" for number in range(101)]
        self.states(aws, names[:100], **dict.fromkeys(names[:100], "OK"))
        self.states(aws, names[100:], **{names[100]: "ALARM"})
        assert CloudWatchAlarms(aws.clients).ringing(names) == ("a-100",)
