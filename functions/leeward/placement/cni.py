"""Settings of the VPC CNI, and the number of addresses it takes for a node with a given number of pods.

Decides the final state of ipamd (the CNI's address daemon on each node); not whether a subnet can provide it. Sources:
amazon-vpc-cni-k8s, docs/eni-and-ip-target.md (its tables are tests) and pkg/ipamd/ipamd.go for details that the page
omits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from leeward.errors import InvalidInputError
from leeward.model.counts import count_of
from leeward.model.instance_type import InstanceType

DAEMON_SET = "kube-system/aws-node"
CONTAINER = "aws-node"
HOST_PODS = 2  # aws-node and kube-proxy use the host's network: EKS adds them to the pods that the interfaces allow
_SWITCHES = ("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "ENABLE_POD_ENI", "ENABLE_PREFIX_DELEGATION", "ENABLE_IPv6")
_DISCOVERY = "ENABLE_SUBNET_DISCOVERY"
_TARGETS = {"WARM_ENI_TARGET": 1, "WARM_IP_TARGET": 0, "MINIMUM_IP_TARGET": 0, "MAX_ENI": 0}  # with their defaults
VARIABLES = frozenset({*_TARGETS, *_SWITCHES, _DISCOVERY})  # that are read
_TRUE, _FALSE = {"1", "t", "T", "TRUE", "true", "True"}, {"0", "f", "F", "FALSE", "false", "False"}  # Go's words


@dataclass(frozen=True, slots=True, kw_only=True)
class CniSettings:
    """Settings that ipamd reads at its start. `warm_enis`, `warm_ips`, `minimum_ips`: its targets, 0 for the last two
    is unset; `max_enis` 0: no cap. `off_by`: settings under which addresses cannot be counted. `discovery`: it may use
    other subnets.
    """

    warm_enis: int = 1
    warm_ips: int = 0
    minimum_ips: int = 0
    max_enis: int = 0
    off_by: tuple[str, ...] = ()
    discovery: bool = True

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Self:
        """Parse environment variables. An unreadable or negative value counts as the default, as in ipamd."""
        targets = {name: _count(variables, name, default) for name, default in _TARGETS.items()}
        return cls(
            warm_enis=targets["WARM_ENI_TARGET"],
            warm_ips=targets["WARM_IP_TARGET"],
            minimum_ips=targets["MINIMUM_IP_TARGET"],
            max_enis=targets["MAX_ENI"],
            off_by=tuple(name for name in _SWITCHES if _switch(variables, name, default=False)),
            discovery=_switch(variables, _DISCOVERY, default=True),
        )

    @property
    def by_address(self) -> bool:
        """True if addresses are kept one by one: either target set is enough, and WARM_ENI_TARGET is then ignored."""
        return self.warm_ips > 0 or self.minimum_ips > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIps:
    """Addresses of one node. `ips_per_eni`: pod addresses on each attached interface, in the order of attachment.

    `unservable`: pods that never get an address, or beyond `max_pods`.
    """

    pods: int
    max_enis: int
    ips_per_eni: tuple[int, ...]
    max_pods: int
    unservable: int

    @property
    def enis(self) -> int:
        """Number of attached interfaces."""
        return len(self.ips_per_eni)

    @property
    def secondary_ips(self) -> int:
        """Number of addresses for pods, used or not."""
        return sum(self.ips_per_eni)

    @property
    def unused_ips(self) -> int:
        """Number of addresses for pods that no pod has."""
        return max(self.secondary_ips - self.pods, 0)

    @property
    def subnet_ips(self) -> int:
        """Number of addresses taken from the subnet: each interface takes one address for itself."""
        return self.enis + self.secondary_ips


def variables_of(daemon_set: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of the aws-node container, from the DaemonSet's JSON; the last of equal names wins.

    Values that come from elsewhere (`valueFrom`) are unknown here and left out.
    """
    template = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    return {
        variable["name"]: variable["value"]
        for container in template.get("containers") or ()
        if container.get("name") == CONTAINER
        for variable in container.get("env") or ()
        if "value" in variable
    }


def node_ips(settings: CniSettings, limits: InstanceType, pods: int, host_network_pods: int = 0) -> NodeIps:
    """Return the addresses of a node of the type once ipamd is idle with `pods` pods that need an address.

    With the largest number of pods the node ever has, it is also the most that ipamd takes on the way: it only adds
    while it is below its target, and fills interfaces before it attaches another. `host_network_pods` need no address,
    and count against max pods. Raises InvalidInputError when the type's limits are not known.
    """
    if limits.max_enis < 1 or limits.ips_per_eni < 2:
        found = f"{count_of(limits.max_enis, 'interface')} with {count_of(limits.ips_per_eni, 'address', 'addresses')}"
        raise InvalidInputError(f"{limits.name}: found {found}, expected at least 1 with 2")
    each = limits.ips_per_eni - 1
    most = min(settings.max_enis or limits.max_enis, limits.max_enis)
    room = most * each
    max_pods = limits.max_enis * each + HOST_PODS
    held = _addresses(settings, pods, room) if settings.by_address else _whole_enis(settings, pods, each, most)
    waiting = max(pods - held, pods + host_network_pods - max_pods, 0)
    return NodeIps(
        pods=pods,
        max_enis=most,
        ips_per_eni=_spread(held, each),
        max_pods=max_pods,
        unservable=waiting,
    )


def _addresses(settings: CniSettings, pods: int, room: int) -> int:
    """Return the addresses held one by one. Without WARM_IP_TARGET only the minimum is requested: ipamd is never short
    then, further pods wait.
    """
    wanted = max(pods + settings.warm_ips, settings.minimum_ips) if settings.warm_ips else settings.minimum_ips
    return min(wanted, room)


def _whole_enis(settings: CniSettings, pods: int, each: int, most: int) -> int:
    """Return the addresses of whole interfaces, until those of WARM_ENI_TARGET are free; with 0, until one address is.

    With 0 and every address in use ipamd attaches a free interface, finds it to be too much, detaches it, and repeats:
    the node is counted with it.
    """
    used = -(-pods // each)
    enis = used + settings.warm_enis if settings.warm_enis else pods // each + 1
    return min(enis, most) * each


def _spread(held: int, each: int) -> tuple[int, ...]:
    """Return the addresses by interface: one is filled before the next is attached; the first always exists."""
    full, rest = divmod(held, each)
    return (each,) * full + ((rest,) if rest or not full else ())


def _count(variables: Mapping[str, str], name: str, default: int) -> int:
    """Parse a count as Go's strconv.Atoi: an optional sign and digits, nothing around them, at most 64 bits."""
    text = variables.get(name, "")
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return default
    value = int(text) if len(text) < 21 else -1
    return value if 0 <= value < 2**63 else default


def _switch(variables: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Parse a switch as Go's strconv.ParseBool."""
    text = variables.get(name, "")
    return True if text in _TRUE else False if text in _FALSE else default
