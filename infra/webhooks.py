"""API destinations of the clusters' webhooks, the connections that EventBridge authorizes itself with, and the bus from
which they get their events.

The bus takes events from fn notifications alone. On the default bus any principal with `events:PutEvents` could send an
event of source `leeward` and so any body to the receiver, with the secret that vouches for it.

A secret enters the template as a dynamic reference: CloudFormation reads its value from Secrets Manager when it makes
the connection, and EventBridge keeps it in a secret of its own. The value is in no template, parameter, log or code.
"""

from collections.abc import Mapping

from aws_cdk import aws_events as events
from constructs import Construct

from infra.names import Names
from leeward.policy.document import Webhook, WebhookFormat

CALLS_PER_SECOND = 20  # the highest rate of calls to one webhook; EventBridge queues the rest
CALLER = "Leeward-Event"  # header of every call, which names the caller and is no secret


def webhook_destinations(
    scope: Construct, webhooks: Mapping[str, Webhook], names: Names
) -> dict[str, events.CfnApiDestination]:
    """Create one API destination for each cluster. Webhooks without a secret share a connection: it must authorize
    somehow, and does so with the header that names the caller.
    """
    shared = None
    if any(webhook.secret_arn is None for webhook in webhooks.values()):
        shared = _connection(scope, "Connection", names.connection, (CALLER, "1"))
    destinations = {}
    for cluster, webhook in webhooks.items():
        connection = shared if shared and webhook.secret_arn is None else _own(scope, cluster, webhook, names)
        destinations[cluster] = _destination(scope, cluster, webhook, names, connection)
    return destinations


def webhook_bus(scope: Construct, names: Names, sender: str) -> events.CfnEventBus:
    """Create the bus that the webhooks' rules read. `sender`: ARN of the only role that may put events on it. An
    explicit Deny also holds against principals of the account whose own policies allow everything.
    """
    bus = events.CfnEventBus(
        scope, "Bus", name=names.webhook_bus, description="Events for the webhooks; only fn notifications may send"
    )
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "events:PutEvents",
        "Resource": bus.attr_arn,
        "Condition": {"ArnNotEquals": {"aws:PrincipalArn": sender}},
    }
    events.CfnEventBusPolicy(
        scope, "RefuseOthers", event_bus_name=bus.ref, statement_id="RefuseOthers", statement=statement
    )
    return bus


def secret_reference(webhook: Webhook) -> str:
    """Return CloudFormation's dynamic reference to the secret's text: ARN, SecretString, no JSON key, no stage, the
    version if one is named.
    """
    return f"{{{{resolve:secretsmanager:{webhook.secret_arn}:SecretString:::{webhook.secret_version or ''}}}}}"


def _own(scope: Construct, cluster: str, webhook: Webhook, names: Names) -> events.CfnConnection:
    """Add the connection of a webhook with a secret, which also sends the header that names the caller.

    The secret is a header; for Teams the parameter `sig` of the URL, for PagerDuty the `routing_key` of the body, which
    EventBridge adds to the message.
    """
    caller = events.CfnConnection.ParameterProperty(key=CALLER, value="1", is_value_secret=False)
    parameters = events.CfnConnection.ConnectionHttpParametersProperty
    key, more = (CALLER, "1"), parameters()
    match webhook.format:
        case WebhookFormat.TEAMS:
            more = parameters(query_string_parameters=[_secret("sig", webhook)])
        case WebhookFormat.PAGERDUTY:
            more = parameters(body_parameters=[_secret("routing_key", webhook)])
        case WebhookFormat.JSON | WebhookFormat.SLACK:
            key, more = (webhook.header, secret_reference(webhook)), parameters(header_parameters=[caller])
    return _connection(scope, f"Connection{cluster}", names.webhook(cluster), key, more)


def _secret(key: str, webhook: Webhook) -> events.CfnConnection.ParameterProperty:
    return events.CfnConnection.ParameterProperty(key=key, value=secret_reference(webhook), is_value_secret=True)


def _connection(
    scope: Construct,
    construct_id: str,
    name: str,
    key: tuple[str, str],
    more: events.CfnConnection.ConnectionHttpParametersProperty | None = None,
) -> events.CfnConnection:
    """Add a connection that sends `key`, the name and the value of a header."""
    header, value = key
    return events.CfnConnection(
        scope,
        construct_id,
        name=name,
        description="What Leeward's webhooks are called with",
        authorization_type="API_KEY",
        auth_parameters=events.CfnConnection.AuthParametersProperty(
            api_key_auth_parameters=events.CfnConnection.ApiKeyAuthParametersProperty(
                api_key_name=header, api_key_value=value
            ),
            invocation_http_parameters=more,
        ),
    )


def _destination(
    scope: Construct, cluster: str, webhook: Webhook, names: Names, connection: events.CfnConnection
) -> events.CfnApiDestination:
    return events.CfnApiDestination(
        scope,
        f"Webhook{cluster}",
        name=names.webhook(cluster),
        description=f"Receiver of the terminations in cluster {cluster}",
        connection_arn=connection.attr_arn,
        invocation_endpoint=webhook.url,
        http_method="POST",
        invocation_rate_limit_per_second=CALLS_PER_SECOND,
    )
