"""Images from which new nodes of an upgrade would be launched, with their owners."""

from collections.abc import Iterator
from dataclasses import replace

from leeward.errors import InvalidInputError, LeewardError
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.launch import LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.ports import Ports
from leeward.ports.compute import LaunchSources
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.templates import image_asked

AWS = "/aws/service/"  # SSM parameters that AWS publishes


def images(
    record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None, ports: Ports, unread: list[str]
) -> tuple[tuple[Image, ...], tuple[str, ...]]:
    """Return the image that is asked for, else that of the version, and those of templates of single types; and beside
    them the ids of those that EC2 does not return. Images that EKS chooses, and those behind AWS's own parameters, are
    AWS's and left out.

    `group`: as if it launched the version that is asked for; `unread` takes inputs that may not be read. Raises
    InvalidInputError for an SSM parameter that does not exist.
    """
    asked = _asked(record, group, ports, unread)
    try:
        ids = dict.fromkeys([*asked, *_ids(record, group, nodegroup, ports.launches)])
        found = ports.service_limits.images(ids) if ids else {}
    except LeewardError as error:
        unread.append(str(error))
        return (), ()
    return tuple(found[one] for one in ids if one in found), tuple(one for one in ids if one not in found)


def _asked(record: UpgradeRecord, group: Group, ports: Ports, unread: list[str]) -> list[str]:
    """Return the id of the image that is asked for; none where it is AWS's, of which the existence alone is read, and
    where EKS chooses it.
    """
    request = record.request
    if group.nodegroup is not None and not request.image:
        return []
    try:
        image = image_asked(record, ports)
    except InvalidInputError:
        raise
    except LeewardError as error:
        unread.append(str(error))
        return []
    own = request.image.startswith("ami-") or (request.image.startswith("/") and not request.image.startswith(AWS))
    return [image] if own else []


def _ids(record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None, launches: LaunchSources) -> Iterator[str]:
    yield from (one.image for one in group.launch.overrides if one.image.startswith("ami-"))
    references = [one.template for one in group.launch.overrides if one.template is not None]
    if not (record.request.image or record.request.kubernetes):
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
