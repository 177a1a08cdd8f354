"""Names by which two deployments on one cluster tell what is theirs: the owner of taints and
records, the mark of hooks.

A deployment is usually the only one of its account and Region and has no name. One with a name (setting `deployment`)
stands beside it."""

from leeward.model import well_known

TERMINATION = "node-termination"  # our state machines
UPGRADE = "node-group-upgrade"
ROUND = "disruption-round"
MACHINES = (TERMINATION, UPGRADE, ROUND)
PREFIX = "leeward"  # of every physical name of the usual deployment, and the source of its events


def prefix(deployment: str = "") -> str:
    """What the physical names of a deployment begin with."""
    return f"{deployment}-{PREFIX}" if deployment else PREFIX


def deployment_id(account: str, region: str, deployment: str = "") -> str:
    """The owner of taints and records."""
    return "-".join(part for part in (account, region, deployment) if part)


def hook_mark(deployment: str = "") -> str:
    """The NotificationMetadata of the hooks that its fn sync puts on groups, and takes off again."""
    return f"{well_known.HOOK_MARK}/{deployment}" if deployment else well_known.HOOK_MARK


def is_hook_mark(metadata: str | None) -> bool:
    """Whether some deployment of Leeward put the hook there."""
    return metadata == well_known.HOOK_MARK or (metadata or "").startswith(f"{well_known.HOOK_MARK}/")
