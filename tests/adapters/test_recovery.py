"""The zonal shifts of a cluster as ARC's API answers them."""

from datetime import UTC, datetime

import pytest

from leeward.adapters.aws.recovery import ArcRecoveryController
from leeward.adapters.settings import ServedCluster
from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model.zonal_shift import ShiftKind

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
HOME = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-termination"
ARN = "arn:aws:eks:us-east-1:111122223333:cluster/blue"
ASKED = {"resourceIdentifier": ARN}
SHIFT = {
    "appliedStatus": "APPLIED",
    "zonalShiftId": "c8fa2de1-3dd2-4d1b-9cfa-4a1e0b0f2b0c",
    "resourceIdentifier": ARN,
    "awayFrom": "use1-az2",
    "expiryTime": NOW,
    "startTime": NOW,
    "comment": "practice",
    "shiftType": "PRACTICE_RUN",
}


def controller(aws, **cluster):
    return ArcRecoveryController(aws.clients, [ServedCluster(name="blue", **cluster)], HOME)


def test_the_cluster_is_asked_for_by_its_arn_and_its_shifts_are_those_in_effect(aws):
    answer = {"appliedWeights": {"use1-az1": 1.0, "use1-az2": 0.0}, "zonalShifts": [SHIFT]}
    aws.expect("arc-zonal-shift", "get_managed_resource", ASKED, answer)
    (shift,) = controller(aws).shifts("blue", NOW)
    assert (shift.zone_id, shift.kind) == ("use1-az2", ShiftKind.PRACTICE_RUN)


def test_a_cluster_without_zonal_shift_has_no_shifts(aws):
    aws.refuse("arc-zonal-shift", "get_managed_resource", "ResourceNotFoundException", status=404)
    assert controller(aws).shifts("blue", NOW) == ()


def test_a_cluster_of_another_account_is_named_by_that_account(aws):
    arn = "arn:aws:eks:us-east-1:444455556666:cluster/blue"
    answer = {"appliedWeights": {}, "zonalShifts": []}
    aws.expect("arc-zonal-shift", "get_managed_resource", {"resourceIdentifier": arn}, answer)
    assert controller(aws, account="444455556666").shifts("blue", NOW) == ()


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("AccessDeniedException", 403, AccessDeniedError), ("InternalServerException", 500, AwsUnavailableError)],
)
def test_an_answer_that_arc_refuses_is_an_error_and_no_end_of_a_shift(aws, code, status, error):
    aws.refuse("arc-zonal-shift", "get_managed_resource", code, status=status)
    with pytest.raises(error):
        controller(aws).shifts("blue", NOW)
