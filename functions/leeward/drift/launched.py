"""Drift of an instance's properties in EC2 against its group's current launch template, as Auto Scaling launches it:
the group's propagated tags over the template's, the security groups of the primary interface.

Tags and security groups that other owners add to an instance are no drift. Whether a launch fixes a difference is
judged by `evidence`."""

from collections.abc import Iterator, Mapping

from leeward.drift.evidence import propagated_over
from leeward.drift.reasons import Field, Reason
from leeward.drift.template_hash import fields_of, read
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node
from leeward.policy.document import NodePolicy

HIDDEN = (Field.STARTUP_TAINTS, Field.USER_DATA, Field.KUBELET, Field.BLOCK_DEVICES)
_WORDS = {True: "on", False: "off"}


def of_instance(
    instance: Instance, group: Group, launch: LaunchSettings | None, then: LaunchSettings | None = None
) -> Iterator[Reason]:
    """Yield the differences that the instance itself shows, one for each tag and metadata option. Fields that the
    template leaves open, or that EC2 does not report, are no drift. `then`: the version that launched the instance.
    """
    if group.subnets and instance.subnet and instance.subnet not in group.subnets:
        yield Reason(field=Field.SUBNETS, have=instance.subnet, want=", ".join(sorted(group.subnets)))
    if launch is None:
        return
    if launch.image.startswith("ami-") and instance.image and instance.image != launch.image:
        yield Reason(field=Field.AMI, have=instance.image, want=launch.image)
    have, want = instance.look, launch.look
    if have.security_groups is not None and want.security_groups is not None:
        declared = (then.look.security_groups if then is not None else None) or ()
        added = set(have.security_groups) - {*want.security_groups, *declared}  # by another owner
        if set(have.security_groups) - added != set(want.security_groups):
            yield _reason(Field.SECURITY_GROUPS, ", ".join(have.security_groups), ", ".join(want.security_groups))
    if want.profile is not None and have.profile != want.profile:
        yield _reason(Field.INSTANCE_PROFILE, have.profile or "none", want.profile)
    yield from _parts(Field.TAGS, have.tags, {**(want.tags or {}), **propagated_over(group, want.tags or {})})
    yield from _parts(Field.METADATA_OPTIONS, have.metadata, want.metadata)
    if have.monitoring is not None and want.monitoring is not None and have.monitoring != want.monitoring:
        yield _reason(Field.DETAILED_MONITORING, _WORDS[have.monitoring], _WORDS[want.monitoring])


def of_hidden(
    node: Node, policy: NodePolicy, now: LaunchSettings | None, then: LaunchSettings | None, *, registers: bool
) -> Iterator[Reason]:
    """Yield the differences that no instance shows: each field as it was recorded on the node, else as in the launch
    template version of the node. Where neither is known nothing has drifted. `registers`: nodes launched now come with
    the startup taints.
    """
    wanted = fields_of(now, policy)
    remembered = {**(fields_of(then, policy) if then is not None else {}), **(read(node.annotations) or {})}
    for field in HIDDEN:
        have, want = remembered.get(field), wanted.get(field)
        if have is not None and want is not None and have != want:
            fixable = registers if field is Field.STARTUP_TAINTS else True
            yield Reason(field=field, have=f"hash {have}", want=f"hash {want}", fixable=fixable)


def _parts(field: Field, have: Mapping[str, str] | None, want: Mapping[str, str] | None) -> Iterator[Reason]:
    """Yield the differences in the keys that the template names: other owners add tags of their own to instances."""
    if have is None or want is None:
        return
    for key, value in sorted(want.items()):
        if have.get(key) != value and not key.startswith("aws:"):
            yield _reason(field, f"{key}={have[key]}" if key in have else "none", f"{key}={value}")


def _reason(field: Field, have: str, want: str) -> Reason:
    return Reason(field=field, have=have, want=want)
