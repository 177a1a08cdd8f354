"""Settings of a call of `leeward`: the deployment's parts by their fixed names, and where the cluster is.

No function imports this module: their settings are in their environment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.adapters.settings import KubernetesAccess, ServedCluster, Settings
from leeward.model.well_known import TERMINATION, deployment_id, hook_mark, prefix

CLUSTER_PROFILE = "--cluster-profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Account and Region of a cluster that the caller enters with credentials of their own. `profile` None: those of
    the deployment. `member_role`: the role of the cluster's settings, empty for one in the deployment's account and
    Region; the command line does not assume it.
    """

    account: str
    region: str
    profile: str | None = None
    member_role: str = ""

    def clients(self, own: str | None) -> AwsClients:
        """Return the clients that act there. `own`: the profile of the deployment's credentials."""
        if self.profile is None:
            return AwsClients(self.region, own)
        return AwsClients(self.region, self.profile, profile_option=CLUSTER_PROFILE)


def caller_settings(
    cluster: str, account: str | None, clients: AwsClients, deployment: str = "", elsewhere: Elsewhere | None = None
) -> Settings:
    """Return settings by their fixed names, in the given account or else the caller's. `elsewhere`: where the cluster
    is, None: in the same account and Region.
    """
    owner, partition, caller = account, "aws", ""
    if owner is None:
        with aws_call("sts:GetCallerIdentity", "the caller's credentials"):
            identity = clients.get("sts").get_caller_identity()
        owner, caller = identity["Account"], identity["Arn"]
        partition = caller.split(":")[1]
    else:
        partition = clients.partition
    there = elsewhere or Elsewhere(account=owner, region=clients.region)
    served = ServedCluster(name=cluster, region=there.region, account=there.account, member_role=there.member_role)
    named = _by_name(served, region=clients.region, account=owner, partition=partition, deployment=deployment)
    return replace(named, caller=caller)


def _by_name(cluster: ServedCluster, *, region: str, account: str, partition: str, deployment: str = "") -> Settings:
    """Build the settings from the names of `infra/names.py`."""
    named = prefix(deployment)
    machine = f"{named}-{TERMINATION}"
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return Settings(
        clusters=(cluster,),
        deployment=deployment_id(account, region, deployment),
        table_name=named,
        state_machine_arn=f"arn:{partition}:states:{region}:{account}:stateMachine:{machine}",
        queue_arn=f"arn:{partition}:sqs:{region}:{account}:{named}-interruption",
        dead_letter_queue_url=f"https://sqs.{region}.{suffix}/{account}/{named}-interruption-dead-letters",
        policy_prefix=f"/{named}",
        hook_mark=hook_mark(deployment),
        kubernetes_access=KubernetesAccess.NONE,
    )
