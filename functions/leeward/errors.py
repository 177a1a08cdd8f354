"""Errors of Leeward, one tree; ASL names them in Retry and Catch by class.

LeewardError
├── RetryableError            the same call may succeed later
│   ├── ClusterUnreachableError   the Kubernetes API did not answer, or answered 5xx
│   ├── ThrottledError            AWS or the Kubernetes API asked to slow down
│   ├── AwsUnavailableError       an AWS call failed on AWS's side or on the way
│   │   └── AwsUnreachableError   no connection to the API's endpoint, or no answer in time
│   ├── GroupBusyError            another change of the group, which ends within minutes
│   ├── NewerRecordError          a record holds what only another version of Leeward knows
│   ├── FacetUnavailableError     a part of the cluster's state that is needed could not be read
│   └── UnexpectedError           a defect: an exception that is none of these, caught where one item is isolated
└── TerminalError             the same call will fail again
    ├── AccessDeniedError         a permission is missing, the message names the call
    ├── ObjectGoneError           the object named is not there (any more)
    │   ├── NotDeployedError          the table of the deployment does not exist
    │   └── ClusterGoneError          EKS knows no cluster of that name (any more)
    ├── RecordChangedError        a conditional write lost: another writer changed the record first
    ├── NotInSnapshotError        a snapshot folder cannot answer or do what was asked
    ├── InvalidPolicyError        a policy document is wrong: file, path, found, expected
    └── InvalidInputError         settings, an argument or a file is wrong, in one sentence
"""


class LeewardError(Exception):
    """Root of the tree: any error that Leeward raises on purpose."""


class RetryableError(LeewardError):
    """Error after which the same call may succeed later."""


class ClusterUnreachableError(RetryableError):
    """Error of a Kubernetes API that did not answer or answered 5xx. It never leads to a termination."""


class ThrottledError(RetryableError):
    """Request of AWS or the Kubernetes API to slow down; `retry_after` in seconds, if it was sent."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AwsUnavailableError(RetryableError):
    """Failure of an AWS call on AWS's side or on the way."""


class AwsUnreachableError(AwsUnavailableError):
    """Failed connection to the endpoint of an AWS API, or no answer in time: in a VPC mostly a missing endpoint."""


class GroupBusyError(RetryableError):
    """Conflict with another change of the group that ends within minutes: a disruption run, or MaxSize put back."""


class NewerRecordError(RetryableError):
    """Record with a word that another version of Leeward has written: an update or its rollback is under way."""


class FacetUnavailableError(RetryableError):
    """Missing part of a cluster's state, in code that needs it; the message names the part and the reason."""


class UnexpectedError(RetryableError):
    """Defect met while one item was handled; `__cause__` is the exception that was raised. It is retried, because its
    cause may change, and its message names the line.
    """


class TerminalError(LeewardError):
    """Error after which the same call will fail again."""


class AccessDeniedError(TerminalError):
    """Missing permission; the message names the call."""


class ObjectGoneError(TerminalError):
    """Error for a named object that does not exist, or not any more."""


class NotDeployedError(ObjectGoneError):
    """Error for a deployment of Leeward that is not in this account and Region: its table does not exist."""


class ClusterGoneError(ObjectGoneError):
    """Error for a cluster that EKS does not know, or not any more: none of its objects can be read."""


class RecordChangedError(TerminalError):
    """Lost conditional write: another writer changed the record first. The caller reads again."""


class NotInSnapshotError(TerminalError):
    """Request that a snapshot folder cannot answer, or a change of one; a live cluster could."""


class InvalidInputError(TerminalError):
    """Wrong settings, argument or file; the message is one sentence with what was found and expected."""


class InvalidPolicyError(InvalidInputError):
    """Wrong policy document: the message names file, path, what was found and what was expected."""
