"""Drift of an instance's properties in EC2 against its group's current launch template.

A node that the group launches now has all of this from the same template, so it is in order in each of these fields."""

from collections.abc import Iterator, Mapping

from leeward.drift.reasons import Field, Reason
from leeward.drift.template_hash import fields_of, read
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node
from leeward.policy.document import NodePolicy

HIDDEN = (Field.STARTUP_TAINTS, Field.USER_DATA, Field.KUBELET, Field.BLOCK_DEVICES)
_WORDS = {True: "on", False: "off"}


def of_instance(instance: Instance, group: Group, launch: LaunchSettings | None) -> Iterator[Reason]:
    """Yield the differences that the instance itself shows. Fields that the template leaves open, or that EC2 does not
    report, are no drift.
    """
    if group.subnets and instance.subnet and instance.subnet not in group.subnets:
        yield Reason(field=Field.SUBNETS, have=instance.subnet, want=", ".join(sorted(group.subnets)))
    if launch is None:
        return
    if launch.image.startswith("ami-") and instance.image and instance.image != launch.image:
        yield Reason(field=Field.AMI, have=instance.image, want=launch.image)
    have, want = instance.look, launch.look
    if None not in (have.security_groups, want.security_groups) and have.security_groups != want.security_groups:
        yield _reason(
            Field.SECURITY_GROUPS, ", ".join(have.security_groups or ()), ", ".join(want.security_groups or ())
        )
    if want.profile is not None and have.profile != want.profile:
        yield _reason(Field.INSTANCE_PROFILE, have.profile or "none", want.profile)
    yield from _parts(Field.TAGS, have.tags, want.tags)
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
    """Yield the difference in the keys that the template names: other owners add tags of their own to instances."""
    if have is None or want is None:
        return
    wrong = {key: value for key, value in want.items() if have.get(key) != value and not key.startswith("aws:")}
    if wrong:
        found = {key: have[key] for key in wrong if key in have}
        yield _reason(field, _pairs(found) or "none", _pairs(wrong))


def _pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={pairs[key]}" for key in sorted(pairs))


def _reason(field: Field, have: str, want: str) -> Reason:
    return Reason(field=field, have=have, want=want)
