"""Physical names, fixed so that operators, the console, other tools and the packages themselves know them in advance.

They also break cycles: a role may refer to the state machine, and the state machine to functions, because the ARN
follows from the name. A deployment with a name of its own (setting `deployment`) has other names throughout, so it can
exist beside the default one in the same account and Region.
"""

from dataclasses import dataclass
from hashlib import sha256

from leeward.model.well_known import MACHINES as OF_THE_MODEL
from leeward.model.well_known import STATE_CHANGES, prefix

MACHINES = TERMINATION, UPGRADE, MANAGED_UPGRADE, DISRUPTION = OF_THE_MODEL
UPGRADES = UPGRADE, MANAGED_UPGRADE
OPEN_INDEX = "open"
METRICS = "Leeward"  # the CloudWatch namespace of the usual deployment

_LONGEST = 64  # IAM's and EventBridge's limit; a cluster's name may be longer than that alone
_LONGEST_REGION = 16  # reserved in names that carry the Region, which synth may not know yet


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one deployment; `deployment` is empty for the default one."""

    deployment: str = ""

    @property
    def prefix(self) -> str:
        """Prefix of all names. That of a named deployment does not begin with `leeward-`: roles and checks of the
        default one match names that do."""
        return prefix(self.deployment)

    @property
    def stack(self) -> str:
        """The CloudFormation stack."""
        return f"{self.deployment}-Leeward" if self.deployment else "Leeward"

    @property
    def table(self) -> str:
        """The DynamoDB table."""
        return self.prefix

    @property
    def queue(self) -> str:
        """The interruption queue."""
        return f"{self.prefix}-interruption"

    @property
    def state_changes(self) -> str:
        """The queue of EC2 state changes."""
        return f"{self.prefix}-{STATE_CHANGES}"

    @property
    def dead_letters(self) -> str:
        """The dead-letter queue of both."""
        return f"{self.prefix}-interruption-dead-letters"

    @property
    def undelivered(self) -> str:
        """The queue of events that reached neither bus nor webhook."""
        return f"{self.prefix}-notifications-undelivered"

    @property
    def metrics(self) -> str:
        """The CloudWatch namespace: alarms and dashboard of a deployment show its own metrics alone."""
        return f"{METRICS}/{self.deployment}" if self.deployment else METRICS

    @property
    def connection(self) -> str:
        """The connection that all webhooks without a secret share."""
        return f"{self.prefix}-webhook"

    @property
    def members_bus(self) -> str:
        """The event bus to which other accounts and Regions forward their events."""
        return f"{self.prefix}-members"

    @property
    def webhook_bus(self) -> str:
        """The event bus that the webhooks' rules read."""
        return f"{self.prefix}-notifications"

    def member_stack(self, account: str, region: str) -> str:
        """Return the name of the CloudFormation stack of another account or Region."""
        return f"{self.stack}-member-{account}-{region}"

    def member_rule(self, name: str) -> str:
        """Return the name of a rule that forwards events from there."""
        return f"{self.prefix}-member-{name}"

    @property
    def member_dead_letters(self) -> str:
        """The queue there of events that could not be forwarded."""
        return f"{self.prefix}-member-dead-letters"

    def forwarding_role(self, region: str) -> str:
        """Return the name of the role with which the rules of a Region forward."""
        return f"{self.prefix}-member-{region}"

    def function_role(self, region: str, function: str) -> str:
        """Return the name of a function's role, which the roles of other accounts trust. Roles are global to an
        account, so it carries the Region.
        """
        return f"{self.prefix}-{region}-{function}"

    @property
    def policies(self) -> str:
        """Prefix of the names of all policies' SSM parameters."""
        return f"/{self.prefix}"

    def machine(self, name: str) -> str:
        """Return the Step Functions name of one of MACHINES."""
        return f"{self.prefix}-{name}"

    def function(self, name: str) -> str:
        """Return `leeward-drain` and so on; also the application id in the user agent, so that calls can be
        distinguished.
        """
        return f"{self.prefix}-{name}"

    def rule(self, name: str) -> str:
        """Return the name of an EventBridge rule."""
        return f"{self.prefix}-{name}"

    def alarm(self, name: str) -> str:
        """Return the name of a CloudWatch alarm."""
        return f"{self.prefix}-{name}"

    def dashboard(self, region: str) -> str:
        """Name of the dashboard. Dashboards are global to an account, so it carries the Region."""
        return f"{self.prefix}-{region}"

    def cluster_role(self, region: str, cluster: str, access: str) -> str:
        """Return the name of the role of one cluster and access (`taint` or `act`). Roles are global to an account, so
        it carries the Region: clusters of one name in two Regions are usual. `region` may be a token that
        CloudFormation fills in.
        """
        before = len(f"{self.prefix}-") + _LONGEST_REGION + 1
        return f"{self.prefix}-{region}-{_cut(cluster, access, before)}"

    def webhook(self, cluster: str) -> str:
        """Return the name of the API destination of a cluster's webhook."""
        return self._of_cluster(cluster, "webhook")

    def webhook_rule(self, cluster: str) -> str:
        """Return the name of the rule that calls the webhook."""
        return self._of_cluster(cluster, "notifications")

    def parameter(self, cluster: str, document: str) -> str:
        """Return the name of the SSM parameter of one policy document; `document` is NN-NAME."""
        return f"{self.policies}/{cluster}/policies/{document}"

    def _of_cluster(self, cluster: str, what: str) -> str:
        """Return a name that IAM and EventBridge accept: a name that is too long is cut and gets a digest."""
        return f"{self.prefix}-{_cut(cluster, what, len(f'{self.prefix}-'))}"


def _cut(cluster: str, what: str, before: int) -> str:
    """Return `CLUSTER-WHAT` within the characters that `before` leaves of the longest name; a cluster's name that is
    cut gets a digest.
    """
    name = f"{cluster}-{what}"
    if before + len(name) <= _LONGEST:
        return name
    digest = sha256(cluster.encode()).hexdigest()[:8]
    kept = _LONGEST - before - len(f"-{digest}-{what}")
    return f"{cluster[:kept]}-{digest}-{what}"
