"""What is read out of describe-instance-status."""

from datetime import UTC, datetime

from leeward.model.instance_status import Impairment

SINCE = "2026-05-01T11:50:00+00:00"


def status(word, since=None):
    detail = {"Name": "reachability", "Status": "failed"} | ({"ImpairedSince": since} if since else {})
    return {"Status": word, "Details": [detail]}


def read(**checks):
    return Impairment.from_json({"InstanceId": "i-0abc", **checks})


def test_checks_that_pass_or_return_nothing_are_no_impairment():
    assert read(InstanceStatus=status("ok"), SystemStatus=status("initializing")) is None
    assert read(InstanceStatus=status("insufficient-data"), AttachedEbsStatus=status("not-applicable")) is None
    assert read() is None


def test_the_checks_that_fail_are_named_with_the_earliest_beginning():
    found = read(
        SystemStatus=status("impaired", "2026-05-01T11:55:00.000Z"),
        InstanceStatus=status("ok"),
        AttachedEbsStatus=status("impaired", SINCE),
    )
    assert found == Impairment(
        instance="i-0abc", checks=("system", "attached EBS"), since=datetime(2026, 5, 1, 11, 50, tzinfo=UTC)
    )


def test_boto3s_datetimes_are_understood():
    at = datetime(2026, 5, 1, 11, 50, tzinfo=UTC)
    assert read(InstanceStatus=status("impaired", at)).since == at


def test_a_beginning_that_is_not_reported_stays_open():
    assert read(InstanceStatus=status("impaired")).since is None
