"""Launch of one EC2 instance for a group, from its launch template version or launch configuration. It decides
nothing.
"""

from __future__ import annotations

from typing import Any

from moto.autoscaling.models import ASG_NAME_TAG, InstanceState

from local.aws.autoscaling.shape import Offering, template_version
from local.aws.launch_templates import image_behind


def launch(group: Any, offering: Offering) -> Any:
    """Run one instance and put it into the group as Pending; return moto's ``InstanceState``."""
    version = template_version(group)
    reservation = group.ec2_backend.run_instances(
        image_behind(str(group.image_id), group.region),
        1,
        group.user_data,
        list(group.security_groups or []),
        **_arguments(group, offering, version),
    )
    instance = reservation.instances[0]
    instance.autoscaling_group = group
    if version is not None:
        instance.launched_from = {
            "LaunchTemplateId": group.ec2_launch_template.id,
            "LaunchTemplateName": group.ec2_launch_template.name,
            "Version": str(version.number),
        }
    state = InstanceState(
        instance, lifecycle_state="Pending", protected_from_scale_in=group.new_instances_protected_from_scale_in
    )
    group.instance_states.append(state)
    return state


def _arguments(group: Any, offering: Offering, version: Any | None) -> dict[str, Any]:
    tags = {**group.instance_tags, **group.get_propagated_tags(), ASG_NAME_TAG: group.name}
    arguments: dict[str, Any] = {
        "instance_type": offering.instance_type,
        "is_instance_type_default": False,
        "tags": {"instance": tags},
        "placement": offering.zone,
        "subnet_id": offering.subnet_id,
        "region_name": group.region,
        "launch_config": group.launch_config,
        "associate_public_ip": group.launch_config.associate_public_ip_address if group.launch_config else None,
        "client_token": "",
    }
    if offering.market == "spot":
        arguments["instance_market_options"] = "spot"
    if version is not None:
        arguments.update(_from_template(group, version))
    return arguments


def _from_template(group: Any, version: Any) -> dict[str, Any]:
    data = version.data
    found: dict[str, Any] = {
        "launch_template": {"LaunchTemplateId": group.ec2_launch_template.id, "Version": str(version.number)},
        "metadata_options": data.get("MetadataOptions") or {},
        "monitoring_state": "enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled",
        "ebs_optimized": bool(data.get("EbsOptimized")),
    }
    interfaces = data.get("NetworkInterfaces") or []
    primary = next((one for one in interfaces if not one.get("DeviceIndex")), None)
    groups = primary.get("Groups") if primary else None
    if groups:
        found["security_group_ids"] = list(groups)
    profile = data.get("IamInstanceProfile") or {}
    if profile:
        arn = profile.get("Arn") or f"arn:aws:iam::{group.account_id}:instance-profile/{profile.get('Name')}"
        found["iam_instance_profile"] = {"Arn": arn, "Id": "AIPALOCAL"}
    return found
