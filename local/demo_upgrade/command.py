"""Start of the upgrade as a person does it, and the snapshot folder that `upgrade plan` reads."""

from pathlib import Path

from local.command import Said, leeward
from local.demo_upgrade import scene
from local.stack import LocalStack, LocalStackError


def start(stack: LocalStack, *more: str) -> Said:
    """Start the upgrade, or resume one that was stopped."""
    return leeward(stack, "upgrade", "start", scene.GROUP, "--cluster", stack.cluster, "--yes", *more, "-o", "json")


def snapshot(stack: LocalStack, directory: Path) -> Path:
    """Write a snapshot of the cluster; files of an earlier one are replaced. Raises LocalStackError where one is
    missing.
    """
    said = leeward(stack, "snapshot", "--to", str(directory), "--cluster", stack.cluster)
    if said.code:
        raise LocalStackError(f"leeward snapshot: {said.text}")
    return directory
