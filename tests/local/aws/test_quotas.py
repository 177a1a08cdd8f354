"""A service quota that a test has set, less the use in CloudWatch, is what the real adapter reads."""

from datetime import UTC, datetime

import pytest

from leeward.adapters.aws.monitoring import QUOTAS, AwsServiceLimits

STANDARD = {"Service": "EC2", "Resource": "vCPU", "Type": "Resource", "Class": "Standard/OnDemand"}


@pytest.fixture
def limits(aws):
    class Clients:
        def get(self, service, region=None):
            return aws.client(service)

    yield AwsServiceLimits(Clients())
    aws.control("PUT", "quotas", {})


def test_vcpus_are_left_as_the_quota_and_their_use_say(aws, limits):
    aws.control("PUT", "quotas", {QUOTAS[False][0]: 64})
    dimensions = [{"Name": name, "Value": value} for name, value in STANDARD.items()]
    used = {"MetricName": "ResourceCount", "Value": 60, "Timestamp": datetime.now(UTC), "Dimensions": dimensions}
    aws.client("cloudwatch").put_metric_data(Namespace="AWS/Usage", MetricData=[used])
    assert limits.vcpus_left(["m5.large"], datetime.now(UTC), spot=False) == 4
