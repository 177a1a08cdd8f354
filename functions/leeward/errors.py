"""The errors of Leeward, one tree; ASL names them in Retry and Catch by class.

LeewardError
├── RetryableError            the same call may go through later
│   ├── ClusterUnreachableError   the Kubernetes API did not answer, or answered 5xx
│   ├── ThrottledError            AWS or the Kubernetes API asked to slow down
│   ├── AwsUnavailableError       an AWS call failed on AWS's side or on the way
│   │   └── AwsUnreachableError   no connection to the API's endpoint, or no answer in time
│   ├── GroupBusyError            a disruption round holds the group for some minutes
│   └── UnexpectedError           a defect: an exception that is none of these, caught where one item is isolated
└── TerminalError             the same call will fail again
    ├── AccessDeniedError         a permission is missing, the message names the call
    ├── ObjectGoneError           the object named is not there (any more)
    ├── RecordChangedError        a conditional write lost: somebody changed the record first
    ├── InvalidPolicyError        a policy document is wrong: file, path, found, expected
    └── InvalidInputError         settings, an argument or a file is wrong, in one sentence
"""


class LeewardError(Exception):
    """The root: whatever Leeward raises on purpose."""


class RetryableError(LeewardError):
    """The same call may go through later."""


class ClusterUnreachableError(RetryableError):
    """The Kubernetes API did not answer or answered 5xx. It never leads to a termination."""


class ThrottledError(RetryableError):
    """AWS or the Kubernetes API asked to slow down; `retry_after` in seconds where it said."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AwsUnavailableError(RetryableError):
    """An AWS call failed on AWS's side or on the way."""


class AwsUnreachableError(AwsUnavailableError):
    """The endpoint of an AWS API was not reached, or did not answer in time: in a VPC mostly a missing endpoint."""


class GroupBusyError(RetryableError):
    """A disruption round holds the group; it ends within minutes."""


class UnexpectedError(RetryableError):
    """A defect met while one item was handled; `__cause__` is what was raised. It is retried, for what it met may
    change, and its message names the line.
    """


class TerminalError(LeewardError):
    """The same call will fail again."""


class AccessDeniedError(TerminalError):
    """A permission is missing; the message names the call."""


class ObjectGoneError(TerminalError):
    """The object named is not there, or not any more."""


class RecordChangedError(TerminalError):
    """A conditional write lost: somebody changed the record first. The caller reads again."""


class InvalidInputError(TerminalError):
    """Settings, an argument or a file is wrong; the message is one sentence with what was found and expected."""


class InvalidPolicyError(InvalidInputError):
    """A policy document is wrong: the message names file, path, what was found and what was expected."""
