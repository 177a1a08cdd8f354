"""Address accounting: whether a subnet's free addresses can be compared with a node's demand, and that demand.

Decides on or off, with the setting that switches it off; a chooser then reads only `demand.ips`. Source: Cast AI,
"Subnet usage calculation", its table of CNI settings that disable it, and the CNI's subnet discovery
(amazon-vpc-cni-k8s README, ENABLE_SUBNET_DISCOVERY)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from leeward.model.instance_type import InstanceType
from leeward.model.subnet import Subnet
from leeward.placement.cni import CniSettings, node_ips

CNI_ROLE_TAG = "kubernetes.io/role/cni"
_CUSTOM_NETWORK = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"  # ENIConfigs name the subnets then, and no tag does
CNI_CLUSTER_TAG = "cni.networking.k8s.aws/cluster/"  # then a cluster's name: the subnet is for the clusters named so


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """State of the accounting. `why` names the setting that switches it off, or the settings that are counted.
    `shut`: ids of subnets in which the CNI puts no pod.
    """

    on: bool
    why: str
    shut: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Demand of one new node. `ips` of its subnet, `millicores` (thousandths of a core), `pods` that need an
    address.
    """

    accounting: Accounting
    ips: int
    pods: int = 0
    millicores: int = 0
    types: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """Description of the node: `a node with 8 pods`, `a node (m5.large) with 1 pod`."""
        kind = "" if not self.types else f" ({self.types[0] if len(self.types) == 1 else f'{len(self.types)} types'})"
        return f"a node{kind} with {self.pods} {'pod' if self.pods == 1 else 'pods'}"


def accounting_of(
    settings: CniSettings, cluster: str = "", subnets: Iterable[Subnet] = (), candidates: Iterable[Subnet] = ()
) -> Accounting:
    """Return the accounting: on, unless a setting forbids it or subnet discovery would put a candidate's interfaces
    into another of the `subnets`. `cluster`: its name, for subnets that are tagged for others alone.
    """
    known = tuple(subnets)
    shut = frozenset() if _CUSTOM_NETWORK in settings.off_by else _shut(settings, cluster, known)
    if settings.off_by:
        names = " and ".join(settings.off_by)
        return Accounting(on=False, why=f"{names} {'is' if len(settings.off_by) == 1 else 'are'} on", shut=shut)
    other = _discovered(cluster, known, candidates) if settings.discovery else None
    if other is not None:
        why = f"ENABLE_SUBNET_DISCOVERY is on and {other.id} in {other.zone} carries {CNI_ROLE_TAG}: pods may use it"
        return Accounting(on=False, why=why, shut=shut)
    return Accounting(on=True, why=_counted(settings), shut=shut)


def _counted(settings: CniSettings) -> str:
    cap = f", MAX_ENI {settings.max_enis}" if settings.max_enis else ""
    if not settings.by_address:
        return f"WARM_ENI_TARGET {settings.warm_enis}{cap}"
    targets = [
        f"{name} {value}"
        for name, value in (("WARM_IP_TARGET", settings.warm_ips), ("MINIMUM_IP_TARGET", settings.minimum_ips))
        if value
    ]
    return f"{', '.join(targets)}{cap} (WARM_ENI_TARGET is ignored)"


def _shut(settings: CniSettings, cluster: str, subnets: Sequence[Subnet]) -> frozenset[str]:
    """Return the subnets that exclude themselves by their tag, where discovery has no other in the VPC and zone."""
    if not settings.discovery:
        return frozenset()
    served = {(subnet.vpc, subnet.zone) for subnet in subnets if _takes_pods(subnet, cluster)}
    shut = [subnet for subnet in subnets if subnet.tags.get(CNI_ROLE_TAG) == "0"]
    return frozenset(subnet.id for subnet in shut if (subnet.vpc, subnet.zone) not in served)


def _takes_pods(subnet: Subnet, cluster: str) -> bool:
    """Return whether discovery may use the subnet for the cluster's pods: tagged for the role, and not for other
    clusters alone (amazon-vpc-cni-k8s, `cni.networking.k8s.aws/cluster/NAME`).
    """
    named = {tag for tag in subnet.tags if tag.startswith(CNI_CLUSTER_TAG)}
    return subnet.tags.get(CNI_ROLE_TAG, "0") != "0" and (not named or f"{CNI_CLUSTER_TAG}{cluster}" in named)


def _discovered(cluster: str, subnets: Iterable[Subnet], candidates: Iterable[Subnet]) -> Subnet | None:
    """Return the first subnet, by id, that the CNI would use besides the node's own: a tagged one of the interface's
    VPC and zone.
    """
    tagged = sorted((subnet for subnet in subnets if _takes_pods(subnet, cluster)), key=lambda subnet: subnet.id)
    own: dict[tuple[str, str], set[str]] = {}
    for candidate in candidates:
        own.setdefault((candidate.vpc, candidate.zone), set()).add(candidate.id)
    return next((other for other in tagged if own.get((other.vpc, other.zone), {other.id}) - {other.id}), None)


def demand_of(accounting: Accounting, settings: CniSettings, types: Sequence[InstanceType], pods: int) -> Demand:
    """Return the demand of a node whose type may be any of `types`: the most that one of them takes, for at most its
    max pods.

    Without accounting a node is still an instance: one address. Types whose network limits are unknown switch it off
    too.
    """
    names = tuple(sorted({kind.name for kind in types}))
    cores = max((kind.vcpus * 1000 for kind in types), default=0)
    unknown = sorted({kind.name for kind in types if kind.max_enis < 1 or kind.ips_per_eni < 2})
    if accounting.on and (unknown or not types):
        of = ", ".join(unknown) or "the node's instance type"
        accounting = replace(accounting, on=False, why=f"the network limits of {of} are not known")
    if not accounting.on:
        return Demand(accounting=accounting, ips=1, pods=pods, millicores=cores, types=names)
    ips = max(node_ips(settings, kind, min(pods, node_ips(settings, kind, 0).max_pods)).subnet_ips for kind in types)
    return Demand(accounting=accounting, ips=ips, pods=pods, millicores=cores, types=names)
