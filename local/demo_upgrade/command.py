"""The upgrade as a person starts it, and the snapshot folder that `upgrade plan` reads."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.command import Said, leeward
from local.demo_upgrade import scene
from local.stack import LocalStack

KUBECTL = {
    "nodes": ("nodes",),
    "pods": ("pods", "-A"),
    "pdbs": ("pdb", "-A"),
    "daemonsets": ("daemonsets", "-A"),
    "namespaces": ("namespaces",),
}


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
