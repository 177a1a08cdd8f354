"""Access to the clusters: two roles for each cluster, the groups that the cluster maps them to, and the functions that
may assume each.

What the groups `leeward:taint` and `leeward:act` may do is `manifests/cluster-role.yaml`, applied once per cluster. No
function only reads: the group `leeward:read` is for people.
"""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.function import KubernetesAccess, LeewardFunction
from infra.settings import Cluster, Settings

GROUPS = {KubernetesAccess.TAINT: "leeward:taint", KubernetesAccess.ACT: "leeward:act"}


class ClusterAccess(Construct):
    """Roles without any AWS permission: their only purpose is to be known to a cluster."""

    def __init__(self, scope: Construct, *, settings: Settings, functions: Sequence[LeewardFunction]) -> None:
        super().__init__(scope, "Access")
        for access, group in GROUPS.items():
            trusted = [function.role for function in functions if function.shape.access is access]
            for cluster in settings.at_home:
                self._role(cluster, (access, group), trusted, settings)

    def _role(
        self, cluster: Cluster, known: tuple[KubernetesAccess, str], trusted: Sequence[iam.Role], settings: Settings
    ) -> None:
        access, group = known
        id_ = f"{cluster.name}-{access.value}"
        role = iam.Role(
            self,
            id_,
            role_name=settings.names.cluster_role(Stack.of(self).region, cluster.name, access.value),
            description=f"Leeward in cluster {cluster.name}: {group}",
            assumed_by=iam.CompositePrincipal(*(iam.ArnPrincipal(wearer.role_arn) for wearer in trusted)),
        )
        if settings.access_entries:
            eks.CfnAccessEntry(
                self,
                f"{id_}-entry",
                cluster_name=cluster.name,
                principal_arn=role.role_arn,
                kubernetes_groups=[group],
                type="STANDARD",
            )
