"""Zonal shifts that a test begins are what the real adapter reads."""

from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

import pytest

from leeward.adapters.aws.recovery import ArcRecoveryController
from leeward.adapters.settings import ServedCluster
from leeward.model.zonal_shift import ShiftKind

CLUSTER = "shifting"


def controller(aws, cluster):
    class Clients:
        region = aws.region

        def get(self, service, region=None):
            return aws.client(service)

    home = f"arn:aws:states:{aws.region}:{aws.account}:stateMachine:leeward-node-termination"
    return ArcRecoveryController(Clients(), [ServedCluster(name=cluster)], home)


@pytest.fixture
def recovery(aws):
    yield controller(aws, CLUSTER)
    aws.control("DELETE", f"zonal-shifts/{CLUSTER}", {"silent": True})


def begin(aws, **body):
    aws.control("PUT", f"zonal-shifts/{CLUSTER}", {"awayFrom": "use1-az2", "silent": True, **body})


def test_a_cluster_without_zonal_shift_is_no_managed_resource(aws):
    assert controller(aws, "unmanaged").shifts("unmanaged", datetime.now(UTC)) == ()


def test_a_shift_is_in_effect_until_it_is_ended(aws, recovery):
    now = datetime.now(UTC)
    begin(aws, shiftType="PRACTICE_RUN")
    (shift,) = recovery.shifts(CLUSTER, now)
    assert (shift.zone_id, shift.kind) == ("use1-az2", ShiftKind.PRACTICE_RUN)
    assert abs(shift.since - now) < timedelta(minutes=1)
    aws.control("DELETE", f"zonal-shifts/{CLUSTER}", {"silent": True})
    assert recovery.shifts(CLUSTER, now) == ()


def test_a_shift_that_has_expired_is_over(aws, recovery):
    begin(aws, seconds=0.001)
    assert recovery.shifts(CLUSTER, datetime.now(UTC)) == ()


def test_a_shift_of_another_type_is_refused_by_name(aws):
    with pytest.raises(HTTPError) as refused:
        begin(aws, shiftType="OTHER")
    assert "found OTHER" in refused.value.read().decode()


def test_a_shift_of_an_experiment_is_renewed_by_the_minute(aws, recovery):
    begin(aws, shiftType="FIS_EXPERIMENT")
    (shift,) = recovery.shifts(CLUSTER, datetime.now(UTC))
    assert (shift.kind, shift.until) == (ShiftKind.FIS, None)
