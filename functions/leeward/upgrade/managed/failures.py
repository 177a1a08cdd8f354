"""Reasons why EKS' update of a managed node group has failed: its own words, and what the cluster shows beside them.

Decides the message of a failed update, with the fix. Sources: EKS, "Managed node update behavior" (known reasons),
the EKS API's ErrorDetail codes."""

from datetime import datetime

from leeward.ports.eks import ManagedUpdate
from leeward.upgrade.creation_failures import labels_missing, launch_failure, never_joined, not_ready
from leeward.upgrade.gate import Lack, gate_of
from leeward.upgrade.observation import Observation
from leeward.upgrade.status import blocking_drains

EVICTION = "PodEvictionFailure"
CREATION = frozenset(
    {
        "NodeCreationFailure",
        "AsgInstanceLaunchFailures",
        "InstanceLimitExceeded",
        "InsufficientFreeAddresses",
        "Ec2LaunchTemplateInvalidConfiguration",
    }
)
LAUNCH_CODES = {
    "InstanceLimitExceeded": "InstanceLimitExceeded",
    "InsufficientFreeAddresses": "InsufficientFreeAddressesInSubnet",
}  # EKS' code -> EC2's


def is_eviction(update: ManagedUpdate) -> bool:
    """Return whether the update failed because pods did not leave."""
    return EVICTION in _codes(update)


def is_creation(update: ManagedUpdate) -> bool:
    """Return whether the update failed because new nodes did not come."""
    return bool(CREATION & _codes(update))


def why_pods_stay(update: ManagedUpdate, observation: Observation) -> str:
    """Return EKS' errors, which name the nodes, and the pods there with what holds them."""
    held = blocking_drains(observation.preflight)
    named = [one for one in held if any(one.node in error for error in update.errors)] or held
    causes = [f"{one.node}: {one.pod or 'the node'}: {one.object}: {one.fix}" for one in named]
    if not causes:
        causes = ["nothing holds the pods now: start it again"]
    return "; ".join((*update.errors, *causes))


def why_no_nodes(update: ManagedUpdate, observation: Observation, now: datetime) -> str:
    """Return EKS' errors, and each new instance that is not as it should be, or each zone without one."""
    preflight = observation.preflight
    members = {one.name: one for one in preflight.members}
    causes: list[str] = []
    for missing in gate_of(preflight).missing:
        member = members.get(missing.object)
        if member is None:
            code = next((LAUNCH_CODES[one] for one in sorted(_codes(update)) if one in LAUNCH_CODES), "LaunchRefused")
            failure = launch_failure(missing.object, code, "no new node came up there")
        else:
            instance = observation.instances.get(member.instance.id)
            waited = now - (instance.launched if instance is not None else now)
            if missing.lack is Lack.NOT_JOINED:
                state = instance.state if instance is not None else "terminated"
                failure = never_joined(member.instance.id, member.instance.zone, waited, state)
            elif missing.lack is Lack.LABELS:
                failure = labels_missing(member.name, missing.labels)
            else:
                failure = not_ready(member.name, member.node.conditions if member.node else (), waited)
        causes.append(f"{failure.message}: {failure.fix}")
    return "; ".join((*update.errors, *causes))


def _codes(update: ManagedUpdate) -> set[str]:
    return {error.partition(":")[0] for error in update.errors}
