"""Every kind of failure of an AWS call has its class in Leeward's tree, and says which call failed on what."""

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    ReadTimeoutError,
    UnknownServiceError,
)

from leeward.adapters.aws import errors
from leeward.adapters.aws.errors import aws_call
from leeward.errors import (
    AccessDeniedError,
    AwsUnavailableError,
    AwsUnreachableError,
    InvalidInputError,
    ObjectGoneError,
    TerminalError,
    ThrottledError,
)


def client_error(code, message="said AWS", status=400):
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "Operation")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("Throttling", 400, ThrottledError),
        ("RequestLimitExceeded", 503, ThrottledError),
        ("ResourceContention", 500, ThrottledError),
        ("ScalingActivityInProgress", 400, ThrottledError),
        ("SomethingNew", 429, ThrottledError),
        ("ServiceUnavailable", 503, AwsUnavailableError),
        ("InternalFailure", 500, AwsUnavailableError),
        ("SomethingNew", 502, AwsUnavailableError),
        ("UnauthorizedOperation", 403, AccessDeniedError),
        ("AccessDenied", 403, AccessDeniedError),
        ("ExpiredToken", 400, AccessDeniedError),
        ("ResourceNotFoundException", 400, ObjectGoneError),
        ("StateMachineDoesNotExist", 400, ObjectGoneError),
        ("ValidationError", 400, TerminalError),
    ],
)
def test_a_code_becomes_its_class_with_call_and_object(code, status, expected):
    with pytest.raises(expected) as raised, aws_call("ec2:DescribeInstances", "i-0abc"):
        raise client_error(code, status=status)
    assert type(raised.value) is expected
    assert str(raised.value) == f"ec2:DescribeInstances on i-0abc: {code}: said AWS"
    assert isinstance(raised.value.__cause__, ClientError)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EndpointConnectionError(endpoint_url="https://ec2"), AwsUnreachableError),
        (ConnectTimeoutError(endpoint_url="https://ec2"), AwsUnreachableError),
        (ReadTimeoutError(endpoint_url="https://ec2"), AwsUnreachableError),
        (NoCredentialsError(), AccessDeniedError),
        (NoRegionError(), InvalidInputError),
        (ParamValidationError(report="x"), InvalidInputError),
        (UnknownServiceError(service_name="x", known_service_names="y"), TerminalError),
    ],
)
def test_a_failure_on_the_way_becomes_its_class(error, expected):
    where = "ec2:DescribeInstances on i-0abc"
    with pytest.raises(expected, match=where) as raised, aws_call("ec2:DescribeInstances", "i-0abc"):
        raise error
    assert type(raised.value) is expected


def test_no_code_is_in_two_sets():
    sets = (errors.THROTTLING, errors.UNAVAILABLE, errors.DENIED, errors.GONE)
    assert sum(map(len, sets)) == len(frozenset().union(*sets))


def test_our_own_errors_pass_unchanged():
    inner = ThrottledError("ours")
    with pytest.raises(ThrottledError) as raised, aws_call("a:B", "c"):
        raise inner
    assert raised.value is inner
