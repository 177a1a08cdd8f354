"""Launches of a group that cannot be read: its launch template version is gone, or the parameter of its image.

Decides what is said instead of a comparison: nothing is known to be in order or drifted then. A denied call of EC2 ends
the whole gathering with its own error; a denied or missing parameter leaves the name `resolve:ssm:…` as the image."""

from collections.abc import Mapping
from dataclasses import dataclass

from leeward.model.group import Group
from leeward.model.launch import LaunchSettings
from leeward.node_template.choices import as_launched
from leeward.snapshot.launchable import Launchable

ALIAS = "resolve:ssm:"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadLaunch:
    """Input of a launch that cannot be read. `fix`: the command that shows it, or the permission it takes."""

    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.why}: {self.fix}"


def unread_launch(group: Group, launchable: Launchable, instance_type: str = "") -> UnreadLaunch | None:
    """Return what cannot be read of the group's launches of the type, without a type of any; None where all is known.
    A type that the group does not launch (any more) is compared with its first one.
    """
    launches: Mapping[str, LaunchSettings | None] = launchable.launches
    if instance_type:
        first = next(iter(launches), "")
        launches = {name: launches[name] for name in (instance_type if instance_type in launches else first,) if name}
    found = (_unread(as_launched(group, launchable.own.get(name)), launch) for name, launch in launches.items())
    return next((one for one in found if one is not None), None)


def _unread(group: Group, launch: LaunchSettings | None) -> UnreadLaunch | None:
    if launch is None:
        return _gone(group)
    if not launch.image.startswith(ALIAS):
        return None
    name = launch.image.removeprefix(ALIAS)
    return UnreadLaunch(
        why=f"the image behind the SSM parameter {name} cannot be read",
        fix=f"aws ssm get-parameter --name {name} shows whether it exists; reading it takes ssm:GetParameters (setting "
        "imageParameters), of a snapshot folder --resolve-alias of describe-launch-template-versions",
    )


def _gone(group: Group) -> UnreadLaunch:
    template, configuration = group.launch.template, group.launch.configuration
    if template is None and configuration:
        fix = f"aws autoscaling describe-launch-configurations --launch-configuration-names {configuration} shows it"
        return UnreadLaunch(why=f"launch configuration {configuration} cannot be read, it may be deleted", fix=fix)
    if template is None:
        fix = f"aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names {group.name} shows it"
        return UnreadLaunch(why="its launch template is not known", fix=fix)
    which = f"--launch-template-id {template.id}" if template.id else f"--launch-template-name {template.name}"
    return UnreadLaunch(
        why=f"launch template {template.label} cannot be read, it may be deleted",
        fix=f"aws ec2 describe-launch-template-versions {which} shows its versions; point the group at another",
    )
