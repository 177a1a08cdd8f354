"""Physical names, fixed so that operators, the console, other tools and the rooms themselves know them beforehand.

They also break cycles: a role may speak about the state machine, and the state machine about functions, because the
ARN follows from the name.
"""

from hashlib import sha256

TABLE = "leeward"
OPEN_INDEX = "open"
QUEUE = "leeward-interruption"
STATE_CHANGES = "leeward-state-changes"
DEAD_LETTERS = "leeward-interruption-dead-letters"
UNDELIVERED = "leeward-telling-undelivered"
WEBHOOK = "leeward-webhook"  # the connection that all webhooks share
STATE_MACHINE = "leeward-node-termination"
UPGRADE_MACHINE = "leeward-node-group-upgrade"
ROUND_MACHINE = "leeward-disruption-round"
POLICY_PREFIX = "/leeward"
METRICS = "Leeward"  # the CloudWatch namespace

_LONGEST = 64  # IAM's and EventBridge's limit; a cluster's name may be longer than that alone
_LONGEST_REGION = 16  # kept free in names that carry the Region, which synth may not know yet


def function(name: str) -> str:
    """`leeward-drain` and so on; also the application id in the user agent, so that calls can be told apart."""
    return f"leeward-{name}"


def rule(name: str) -> str:
    """Of an EventBridge rule."""
    return f"leeward-{name}"


def alarm(name: str) -> str:
    """Of a CloudWatch alarm."""
    return f"leeward-{name}"


def dashboard(region: str) -> str:
    """The dashboard's name. Dashboards are global to an account, so it carries the Region."""
    return f"leeward-{region}"


def cluster_role(region: str, cluster: str, access: str) -> str:
    """The role of one cluster and access (`read` or `act`). Roles are global to an account, so it carries the Region:
    clusters of one name in two Regions are usual. `region` may be a token that CloudFormation fills in.
    """
    return f"leeward-{region}-{_cut(cluster, access, len('leeward-') + _LONGEST_REGION + 1)}"


def webhook(cluster: str) -> str:
    """The API destination of a cluster's webhook."""
    return _of_cluster(cluster, "webhook")


def webhook_rule(cluster: str) -> str:
    """The rule that calls it."""
    return _of_cluster(cluster, "told")


def _of_cluster(cluster: str, what: str) -> str:
    """A name that IAM and EventBridge take: one that is too long is cut and gets a digest."""
    return f"leeward-{_cut(cluster, what, len('leeward-'))}"


def _cut(cluster: str, what: str, before: int) -> str:
    """`CLUSTER-WHAT` in what `before` characters leave of the longest name; a cluster's name that is cut gets a
    digest.
    """
    name = f"{cluster}-{what}"
    if before + len(name) <= _LONGEST:
        return name
    digest = sha256(cluster.encode()).hexdigest()[:8]
    kept = _LONGEST - before - len(f"-{digest}-{what}")
    return f"{cluster[:kept]}-{digest}-{what}"


def parameter(cluster: str, document: str) -> str:
    """The SSM parameter of one policy document; `document` is NN-NAME."""
    return f"{POLICY_PREFIX}/{cluster}/policies/{document}"
