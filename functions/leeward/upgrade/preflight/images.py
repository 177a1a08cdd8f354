"""Images from which new nodes of an upgrade would be launched, with their owners."""

from collections.abc import Iterator
from dataclasses import replace

from leeward.errors import LeewardError
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.launch import LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.ports import Ports
from leeward.ports.compute import LaunchSources, Templates
from leeward.upgrade.record import UpgradeRecord


def images(
    record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None, ports: Ports, unread: list[str]
) -> tuple[tuple[Image, ...], tuple[str, ...]]:
    """Return the image that is asked for, else that of the version, and those of templates of single types; and beside
    them the ids of those that EC2 does not return. Images that EKS chooses, and those behind AWS's own parameters, are
    AWS's and left out.

    `group`: as if it launched the version that is asked for; `unread` takes inputs that may not be read.
    """
    try:
        ids = dict.fromkeys(_ids(record, group, nodegroup, ports.launches, ports.templates))
        found = ports.service_limits.images(ids) if ids else {}
    except LeewardError as error:
        unread.append(str(error))
        return (), ()
    return tuple(found[one] for one in ids if one in found), tuple(one for one in ids if one not in found)


def _ids(
    record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None, launches: LaunchSources, templates: Templates
) -> Iterator[str]:
    asked = record.request.image
    if asked.startswith("ami-"):
        yield asked
    elif asked.startswith("/") and not asked.startswith("/aws/service/"):
        yield templates.image_behind(asked)
    yield from (one.image for one in group.launch.overrides if one.image.startswith("ami-"))
    references = [one.template for one in group.launch.overrides if one.template is not None]
    if not (asked or record.request.kubernetes):
        references += _launched(record, group, nodegroup)
    for reference in references:
        settings = launches.settings(replace(group, launch=replace(group.launch, template=reference)))
        if settings is not None and settings.image.startswith("ami-"):
            yield settings.image


def _launched(record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None) -> list[LaunchTemplateRef]:
    """Return the template's version: the group's, for a managed node group the one of its own template, if any."""
    if group.nodegroup is None:
        return [group.launch.template] if group.launch.template is not None else []
    if nodegroup is None or nodegroup.template is None:
        return []
    template, version = nodegroup.template
    return [LaunchTemplateRef(id=template, version=record.request.template_version or version or "$Default")]
