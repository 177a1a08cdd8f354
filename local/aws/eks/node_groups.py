"""Managed node groups whose Auto Scaling group exists, named and tagged as EKS does it.

EKS's own lifecycle hooks are not emulated here; its version updates are in ``updates``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import ec2_backends
from moto.eks.models import EKSBackend

from local.aws.pins import expect_parameters, replace
from local.cluster.instances import NODE_LABEL, NODE_TAINT, SOURCE_TEMPLATE

EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}


def install() -> None:
    """Patch creating, resizing and deleting node groups."""
    expect_parameters("moto", EKSBackend.delete_nodegroup, "self", "cluster_name", "nodegroup_name")
    expect_parameters("moto", EKSBackend.describe_nodegroup, "self", "cluster_name", "nodegroup_name")
    replace(
        EKSBackend,
        create_nodegroup=_creating(EKSBackend.create_nodegroup),
        update_nodegroup_config=_resizing(EKSBackend.update_nodegroup_config),
        delete_nodegroup=_deleting(EKSBackend.delete_nodegroup),
    )


def _creating(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create(backend: Any, *args: Any, **kwargs: Any) -> Any:
        node_group = original(backend, *args, **kwargs)
        name = f"eks-{node_group.nodegroup_name}-{uuid4()}"
        node_group.resources = {"autoScalingGroups": [{"name": name}], "remoteAccessSecurityGroup": None}
        scaling = node_group.scaling_config
        autoscaling_backends[backend.account_id][backend.region_name].create_auto_scaling_group(
            name=name,
            availability_zones=[],
            desired_capacity=scaling.get("desiredSize"),
            max_size=scaling.get("maxSize"),
            min_size=scaling.get("minSize"),
            launch_config_name="",
            launch_template={},
            mixed_instances_policy=_policy(backend, node_group, name),
            vpc_zone_identifier=",".join(node_group.subnets),
            default_cooldown=300,
            health_check_period=15,
            health_check_type="EC2",
            load_balancers=[],
            target_group_arns=[],
            placement_group=None,
            termination_policies=["AllocationStrategy", "OldestLaunchTemplate", "OldestInstance"],
            tags=_tags(node_group),
            capacity_rebalance=node_group.capacity_type == "SPOT",
        )
        return node_group

    return create


def _policy(backend: Any, node_group: Any, name: str) -> dict[str, Any]:
    version = _template(backend, node_group, name)
    types = node_group.instance_types or [version.instance_type]
    spot = node_group.capacity_type == "SPOT"
    return {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {
                "LaunchTemplateId": version.template.id,
                "Version": str(version.number),
            },
            "Overrides": [{"InstanceType": item} for item in types if item],
        },
        "InstancesDistribution": {
            "OnDemandAllocationStrategy": "prioritized",
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0 if spot else 100,
            "SpotAllocationStrategy": "price-capacity-optimized",
        },
    }


def _template(backend: Any, node_group: Any, name: str) -> Any:
    """Return EKS's own copy of the user's launch template version, or one that it makes itself."""
    ec2 = ec2_backends[backend.account_id][backend.region_name]
    given = node_group.launch_template or {}
    data: dict[str, Any] = {}
    if given:
        found = ec2.get_launch_template(given["id"])
        data = dict(found.get_version(given.get("version") or "$Default").data)
        if data.get("InstanceType"):
            node_group.instance_types = [data["InstanceType"]]
    data.setdefault("ImageId", next(iter(ec2.describe_images())).id)
    data.setdefault("InstanceType", (node_group.instance_types or ["t3.medium"])[0])
    return ec2.create_launch_template(f"{name}-template", "", data, {}).versions[0]


def _tags(node_group: Any) -> list[dict[str, Any]]:
    cluster = node_group.cluster_name
    pairs = {
        "eks:cluster-name": cluster,
        "eks:nodegroup-name": node_group.nodegroup_name,
        "k8s.io/cluster-autoscaler/enabled": "true",
        f"k8s.io/cluster-autoscaler/{cluster}": "owned",
        f"kubernetes.io/cluster/{cluster}": "owned",
    }
    pairs |= {f"{NODE_LABEL}{key}": str(value) for key, value in (node_group.labels or {}).items()}
    for taint in node_group.taints or ():
        pairs[f"{NODE_TAINT}{taint['key']}"] = f"{taint.get('value') or ''}:{EFFECTS[taint['effect']]}"
    if node_group.launch_template:
        pairs[SOURCE_TEMPLATE] = source_of(node_group.launch_template)
    return [{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in pairs.items()]


def source_of(template: Mapping[str, Any]) -> str:
    """Return the tag's value."""
    return f"{template['id']}:{template.get('version') or '$Default'}"


def _group(backend: Any, node_group: Any) -> Any | None:
    name = node_group.resources["autoScalingGroups"][0]["name"]
    return autoscaling_backends[backend.account_id][backend.region_name].autoscaling_groups.get(name)


def _resizing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(backend: Any, cluster_name: str, nodegroup_name: str, *args: Any, **kwargs: Any) -> Any:
        result = original(backend, cluster_name, nodegroup_name, *args, **kwargs)
        node_group = backend.describe_nodegroup(cluster_name, nodegroup_name)
        group, scaling = _group(backend, node_group), node_group.scaling_config
        if group is not None and kwargs.get("scaling_config"):
            group.min_size, group.max_size = scaling.get("minSize"), scaling.get("maxSize")
            group.set_desired_capacity(scaling.get("desiredSize"))
        return result

    return update


def _deleting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def delete(backend: Any, cluster_name: str, nodegroup_name: str) -> Any:
        node_group = original(backend, cluster_name, nodegroup_name)
        group = _group(backend, node_group)
        if group is not None:
            _end(backend, group)
        return node_group

    return delete


def _end(backend: Any, group: Any) -> None:
    """Delete the group, its instances, even those that a hook holds, and EKS's own launch template."""
    ec2 = ec2_backends[backend.account_id][backend.region_name]
    members = [state.instance.id for state in group.instance_states]
    autoscaling_backends[backend.account_id][backend.region_name].autoscaling_groups.pop(group.name, None)
    if members:
        ec2.terminate_instances(members)
    template = f"{group.name}-template"
    if template in ec2.launch_template_name_to_ids:
        ec2.delete_launch_template(template, None)
