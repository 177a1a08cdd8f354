"""A KMS key of the customer's (setting `kmsKey`), and what the roles of functions and state machines need on it.

The key and its policy are the customer's (docs/deploy.md has the statements). It encrypts logs, table, queues and the
functions' environment; EventBridge, CloudWatch Logs and the functions' own roles use it.
"""

from collections.abc import Iterable, Iterator

from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.permission import Permission, Scope

_READ = {"kms:Decrypt": "Lambda decrypts the function's environment, and each service what the function reads from it"}
_SEND = {"kms:GenerateDataKey": "SQS encrypts what the function, or Lambda on its behalf, sends to a queue"}
_TABLE = dict.fromkeys(
    ("kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"),
    "DynamoDB keeps the table's key encrypted and uses it with the caller's rights",
)
_ITEMS = {f"dynamodb:{action}" for action in ("BatchGetItem", "GetItem", "PutItem", "Query", "UpdateItem")}


def imported_key(scope: Construct, arn: str | None) -> kms.IKey | None:
    """Return the key; None without the setting. It adds no resource to the template."""
    return kms.Key.from_key_arn(scope, "CustomerKey", arn) if arn else None


def key_permissions(permissions: Iterable[Permission], *, environment: bool = True) -> tuple[Permission, ...]:
    """Return what a role needs on the key besides its `permissions`, by what they read and write. `environment`: of a
    function, whose environment is encrypted too.
    """
    actions = {permission.action for permission in permissions}
    return tuple(
        Permission(action=action, on=Scope.CUSTOMER_KEY, reason=reason, indirect=True)
        for action, reason in sorted(dict(_needed(actions, environment)).items())
    )


def _needed(actions: set[str], environment: bool) -> Iterator[tuple[str, str]]:
    if environment or actions & _ITEMS:
        yield from _READ.items()
    if "sqs:SendMessage" in actions:
        yield from _SEND.items()
    if actions & _ITEMS:
        yield from _TABLE.items()
