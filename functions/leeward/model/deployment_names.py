"""Names by which two deployments on one cluster separate their objects: the owner of taints and records, the mark of
hooks.

A deployment is usually the only one of its account and Region and has no name. A named one (setting `deployment`) runs
beside it."""

from leeward.model import well_known

TERMINATION = "node-termination"  # our state machines
UPGRADE = "node-group-upgrade"
MANAGED_UPGRADE = "managed-node-group-upgrade"
DISRUPTION = "disruption"
MACHINES = (TERMINATION, UPGRADE, MANAGED_UPGRADE, DISRUPTION)
STATE_CHANGES = "state-changes"  # our queue of EC2 state changes and lifecycle actions, after the prefix
PREFIX = "leeward"  # of every physical name of the usual deployment, and the source of its events


def prefix(deployment: str = "") -> str:
    """Return the prefix of the physical names of a deployment."""
    return f"{deployment}-{PREFIX}" if deployment else PREFIX


def deployment_id(account: str, region: str, deployment: str = "") -> str:
    """Return the owner of taints and records."""
    return "-".join(part for part in (account, region, deployment) if part)


def hook_mark(deployment: str = "") -> str:
    """Return the NotificationMetadata of the hooks that its fn sync puts on groups, and removes again."""
    return f"{well_known.HOOK_MARK}/{deployment}" if deployment else well_known.HOOK_MARK


def is_hook_mark(metadata: str | None) -> bool:
    """Return whether any deployment of Leeward put the hook there."""
    return metadata == well_known.HOOK_MARK or (metadata or "").startswith(f"{well_known.HOOK_MARK}/")
