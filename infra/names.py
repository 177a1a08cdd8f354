"""Physical names, fixed so that operators, the console, other tools and the rooms themselves know them beforehand.

They also break cycles: a role may speak about the state machine, and the state machine about functions, because the
ARN follows from the name.
"""

from hashlib import sha256

TABLE = "leeward"
OPEN_INDEX = "open"
QUEUE = "leeward-interruption"
DEAD_LETTERS = "leeward-interruption-dead-letters"
UNDELIVERED = "leeward-telling-undelivered"
WEBHOOK = "leeward-webhook"  # the connection that all webhooks share
STATE_MACHINE = "leeward-node-termination"
UPGRADE_MACHINE = "leeward-node-group-upgrade"
ROUND_MACHINE = "leeward-disruption-round"
DASHBOARD = "leeward"
POLICY_PREFIX = "/leeward"
METRICS = "Leeward"  # the CloudWatch namespace

_LONGEST = 64  # IAM's and EventBridge's limit; a cluster's name may be longer than that alone


def function(name: str) -> str:
    """`leeward-drain` and so on; also the application id in the user agent, so that calls can be told apart."""
    return f"leeward-{name}"


def rule(name: str) -> str:
    """Of an EventBridge rule."""
    return f"leeward-{name}"


def alarm(name: str) -> str:
    """Of a CloudWatch alarm."""
    return f"leeward-{name}"


def cluster_role(cluster: str, access: str) -> str:
    """The role of one cluster and access (`read` or `act`)."""
    return _of_cluster(cluster, access)


def webhook(cluster: str) -> str:
    """The API destination of a cluster's webhook."""
    return _of_cluster(cluster, "webhook")


def webhook_rule(cluster: str) -> str:
    """The rule that calls it."""
    return _of_cluster(cluster, "told")


def _of_cluster(cluster: str, what: str) -> str:
    """A name that IAM and EventBridge take: one that is too long is cut and gets a digest."""
    name = f"leeward-{cluster}-{what}"
    if len(name) <= _LONGEST:
        return name
    digest = sha256(cluster.encode()).hexdigest()[:8]
    kept = _LONGEST - len(f"leeward--{digest}-{what}")
    return f"leeward-{cluster[:kept]}-{digest}-{what}"


def parameter(cluster: str, document: str) -> str:
    """The SSM parameter of one policy document; `document` is NN-NAME."""
    return f"{POLICY_PREFIX}/{cluster}/policies/{document}"
