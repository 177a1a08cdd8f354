"""Names in the SDK of what an IAM action allows."""

SERVICES = {  # where IAM's prefix is not the SDK's name of the service
    "elasticloadbalancing": ("elb", "elbv2"),
    "servicequotas": ("service-quotas",),
    "states": ("stepfunctions",),
}
BATCHES = {"sqs:ChangeMessageVisibility": "ChangeMessageVisibilityBatch"}  # of which no single one is called


def services_of(action: str) -> tuple[str, ...]:
    """Return the services that know the action's operation: one of them does."""
    prefix = action.partition(":")[0]
    return SERVICES.get(prefix, (prefix,))


def operation_of(action: str) -> str:
    """Return the operation that is called with the action's permission."""
    return BATCHES.get(action, action.split(":")[1])
