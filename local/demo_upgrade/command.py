"""The `leeward` command as a person types it, and the snapshot folder that `upgrade plan` reads."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.demo_upgrade import scene
from local.stack import LocalStack, LocalStackError

WIDTH = "140"
KUBECTL = {
    "nodes": ("nodes",),
    "pods": ("pods", "-A"),
    "pdbs": ("pdb", "-A"),
    "daemonsets": ("daemonsets", "-A"),
    "namespaces": ("namespaces",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the command printed, and its exit code."""

    code: int
    text: str

    @property
    def document(self) -> dict[str, Any]:
        """Of `-o json`."""
        found: dict[str, Any] = json.loads(self.text)
        return found


def leeward(stack: LocalStack, *arguments: str) -> Said:
    """Run it in a process of its own. Raises LocalStackError where it finds its input bad."""
    done = subprocess.run(
        [sys.executable, "-m", "leeward.cli.main", *arguments],
        env={**stack.environment(), "COLUMNS": WIDTH},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 1} or (done.returncode and not done.stdout):
        raise LocalStackError(f"leeward {' '.join(arguments)}: {done.stderr.strip()}")
    return Said(code=done.returncode, text=done.stdout)


def start(stack: LocalStack, *more: str) -> Said:
    """Begin the upgrade, or go on with one that was stopped."""
    return leeward(stack, "upgrade", "start", scene.GROUP, "--cluster", stack.cluster, *more, "-o", "json")


def snapshot(stack: LocalStack, directory: Path) -> Path:
    """The raw output of kubectl and aws, one file a command (docs/command-line.md)."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, what in KUBECTL.items():
        (directory / f"{name}.json").write_text(stack.kubectl("get", *what, "-o", "json"))
    for name, document in _aws(stack).items():
        (directory / f"{name}.json").write_text(json.dumps(document, default=str))
    shutil.copy(scene.POLICY, directory / "policy.yaml")
    return directory


def _aws(stack: LocalStack) -> Mapping[str, Any]:
    autoscaling, ec2 = stack.client("autoscaling"), stack.client("ec2")
    return {
        "auto-scaling-groups": autoscaling.describe_auto_scaling_groups(),
        "lifecycle-hooks": autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=scene.GROUP),
        "launch-template-versions": ec2.describe_launch_template_versions(LaunchTemplateName=scene.GROUP),
        "instances": ec2.describe_instances(),
        "instance-types": ec2.describe_instance_types(InstanceTypes=["m5.large"]),
        "subnets": ec2.describe_subnets(),
        "cluster": stack.client("eks").describe_cluster(name=stack.cluster),
    }
