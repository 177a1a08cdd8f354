"""AWS's error codes in named sets, and their mapping to Leeward's tree with the call and its object named.

The sets follow botocore's service models and AWS's lists of common errors. The predicates at the end recognize codes
that are an ordinary answer to one call (no such lifecycle action, a lost conditional write)."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from leeward.errors import (
    AccessDeniedError,
    AwsUnavailableError,
    AwsUnreachableError,
    InvalidInputError,
    LeewardError,
    NotDeployedError,
    ObjectGoneError,
    TerminalError,
    ThrottledError,
)

THROTTLING = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "ExecutionLimitExceeded",
        "IdempotentCallInProgress",
        "KmsThrottled",
        "KmsThrottlingException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "ResourceContention",
        "ScalingActivityInProgress",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
RATE_EXCEEDED = THROTTLING - {
    "IdempotentCallInProgress",
    "PriorRequestNotComplete",
    "ResourceContention",
    "ScalingActivityInProgress",
    "TransactionConflictException",
    "TransactionInProgressException",
}
"""Codes of THROTTLING by which AWS limits a rate of calls; the others are conflicts with another call."""
UNAVAILABLE = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "AuthorizationError",  # SNS
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "KMS.AccessDeniedException",
        "KmsAccessDenied",
        "KmsAccessDeniedException",
        "MissingAuthenticationToken",
        "NotAuthorized",
        "OptInRequired",
        "RegionDisabledException",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
GONE = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "ExecutionDoesNotExist",
        "NotFound",  # SNS
        "ParameterNotFound",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "StateMachineDeleting",
        "StateMachineDoesNotExist",
    }
)
NOT_PERMITTED = frozenset(
    {
        *("AccessDenied", "AccessDeniedException", "AuthorizationError"),
        *("NotAuthorized", "OptInRequired", "UnauthorizedOperation"),
    }
)
"""Of the denials those that a policy decides; the others are about credentials."""
LAUNCH_REFUSED = frozenset(
    {
        "IdempotentParameterMismatch",
        "InvalidAction",  # a Region or endpoint that does not know LaunchInstances
        "UnknownOperationException",
        *NOT_PERMITTED,
        "LimitExceeded",
        "ResourceContention",
        "UnsupportedOperation",
        "ValidationError",
    }
)
NO_CAPACITY = frozenset(
    {
        "InsufficientFreeAddressesInSubnet",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",  # the zone does not have the instance type
    }
)
"""What one place lacks and another may have: Karpenter's unfulfillable capacity without account-wide limits."""
NO_TABLE = "ResourceNotFoundException"  # of DynamoDB, which says so of a table alone
TASK_ENDED = frozenset({"InvalidToken", "TaskDoesNotExist", "TaskTimedOut"})
_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
    SSOError,
)


class OutOfTimeError(HTTPClientError):  # type: ignore[misc]  # botocore has no types
    """Error for a call that was not begun: botocore does not retry it, `aws_call` raises AwsUnavailableError."""


@contextmanager
def aws_call(call: str, on: str) -> Iterator[None]:
    """Turn any botocore error inside into a LeewardError that names `call` (`service:Operation`) and its object."""
    try:
        yield
    except ClientError as error:
        said = message_of(error) or "no message came with it"
        if call.startswith("dynamodb:") and code_of(error) == NO_TABLE:
            table = on.partition("/")[0]
            raise NotDeployedError(f"Leeward is not deployed there: DynamoDB has no table {table}") from error
        raise _of_answer(error, f"{call} on {on}: {code_of(error)}: {said}") from error
    except BotoCoreError as error:
        raise _of_transport(error, f"{call} on {on}: {error}") from error


def code_of(error: ClientError) -> str:
    """Return AWS's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: ClientError) -> str:
    """Return AWS's sentence."""
    return str(error.response.get("Error", {}).get("Message", ""))


def is_lost_condition(error: ClientError) -> bool:
    """Return whether DynamoDB's condition did not hold."""
    return code_of(error) == "ConditionalCheckFailedException"


def is_not_found(error: ClientError) -> bool:
    """Return whether it is Auto Scaling's error for a missing object: a ValidationError that names what it did not
    find.

    "No active Lifecycle Action found …", "No Lifecycle Hook found …", "Instance Id not found …", "AutoScalingGroup name
    not found …".
    """
    words = message_of(error).lower()
    said = ("not found", "no active lifecycle action", "no lifecycle hook", "no managed instance", "does not exist")
    return code_of(error) == "ValidationError" and any(one in words for one in said)


def _of_answer(error: ClientError, message: str) -> LeewardError:
    code = code_of(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in THROTTLING or status == 429:
        return ThrottledError(message)
    if code in DENIED:
        return AccessDeniedError(message)
    if code in GONE:
        return ObjectGoneError(message)
    if code in UNAVAILABLE or status >= 500:
        return AwsUnavailableError(message)
    return TerminalError(message)


def _of_transport(error: BotoCoreError, message: str) -> LeewardError:
    if isinstance(error, _NO_CREDENTIALS):
        return AccessDeniedError(message)
    if isinstance(error, (NoRegionError, ParamValidationError, ProfileNotFound)):
        return InvalidInputError(message)
    if isinstance(error, OutOfTimeError):
        return AwsUnavailableError(message)
    if isinstance(error, (BotoConnectionError, HTTPClientError)):
        return AwsUnreachableError(message)
    return TerminalError(message)
