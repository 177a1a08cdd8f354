"""Changes by others, while an upgrade runs, of what its group launches: `$Latest` has moved, or an owner's tool points
the group at another version of its launch template, back at the old one most often.

Every node that the upgrade replaced would then come back from that version, old to the upgrade's target, and would be
replaced again, without end. So nothing new starts. The upgrade ends if the group is not pointed back soon; it does not
point the group back by itself, because the two would take turns. An abort takes back only what the upgrade has set."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from leeward.errors import ObjectGoneError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.ports.clock import Clock
from leeward.ports.compute import Templates
from leeward.ports.records import Upgrades
from leeward.upgrade.lease import written
from leeward.upgrade.members import Target, is_template
from leeward.upgrade.observation import Observation
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Next, Run
from leeward.upgrade.waits import LONGEST, again, track_wait

POINTED_BACK_WITHIN = timedelta(minutes=2)  # a description may be a moment old, and a mistake be undone


def launched_instead(record: UpgradeRecord, group: Group, templates: Templates, *, resolve: bool = True) -> str:
    """Return what the group launches instead of the target at which the upgrade has pointed it, in a sentence; empty
    where it launches the target. `resolve`: whether `$Latest` and `$Default` are resolved, which is a call to EC2.
    """
    for wanted, launched in _launches(record, group) if record.pointed else ():
        if launched.version.isdecimal() or resolve:
            now = _numbered(launched, templates)
            if now is not None and not _is_same(now, wanted):
                return f"{record.group} launches {now.label} and not {wanted.label}, the launch template of the upgrade"
    return ""


def launched_since(record: UpgradeRecord, observation: Observation) -> bool:
    """Return whether an old member was launched since the sizes were measured: what the group launches may be old."""
    old = (observation.instances.get(one.instance.id) for one in observation.preflight.old)
    return any(one is not None and one.launched > record.measured for one in old)


def wait_or_fail(run: Run, record: UpgradeRecord, instead: str, clock: Clock, upgrades: Upgrades) -> Run:
    """Wait until the group is pointed back, or end. The next start without a target rolls to what the group launches
    then.
    """
    record, stalled = track_wait(record, instead, (), POINTED_BACK_WITHIN, clock, upgrades)
    if not stalled:
        return again(run, Next.WAIT, LONGEST, instead)
    version = record.target.template.version if record.target.template is not None else ""
    written(as_launched(record), upgrades)
    fix = (
        "others have changed it since the upgrade began: start it again to roll to what the group launches, or with "
        f"--launch-template-version {version}"
    )
    return replace(run, next=Next.CREATION_FAILURE, why=f"{instead}: {fix}")


def as_launched(record: UpgradeRecord) -> UpgradeRecord:
    """Return the record with what the group launches as its target, which the next steps determine."""
    request = replace(record.request, image="", template_version="", kubernetes="", automatic="")
    return replace(record, request=request, prepared=False, pointed=False, checked=False, rolling_back=False)


def noted(record: UpgradeRecord, group: Group, templates: Templates) -> UpgradeRecord:
    """Return the record with the target among the versions at which the upgrade has pointed the group, and with the
    version that its owner had it launch. An automatic upgrade leaves that out: its parameter has the new image already.
    """
    target, template = record.target.template, group.launch.template
    if record.pointed or target is None or template is None:
        return record
    now = _numbered(template, templates)
    if now is not None and not _is_ours(now, record) and not record.request.automatic:
        record = replace(record, own=now)
    listed = any(_is_same(version, target) for version in record.pointed_at)
    return record if listed else replace(record, pointed_at=(*record.pointed_at, target))


def before_it(record: UpgradeRecord) -> Target | None:
    """Return what the group launches after an abort: what its owner had it launch, else the version before. An abort of
    a rollback returns to the version that was rolled back from.
    """
    if record.own is None or record.rolling_back:
        return record.previous
    return replace(record.previous or record.target, template=record.own)


def set_by_others(record: UpgradeRecord, group: Group, templates: Templates) -> LaunchTemplateRef | None:
    """Return the version that the group launches where it is none of this upgrade's; None where it is, or is gone."""
    template = group.launch.template
    now = _numbered(template, templates) if template is not None else None
    return None if now is None or _is_ours(now, record) else now


def is_version(now: LaunchTemplateRef, target: Target | None) -> bool:
    """Return whether the version is the target's own."""
    return target is not None and target.template is not None and _is_same(now, target.template)


def _is_ours(now: LaunchTemplateRef, record: UpgradeRecord) -> bool:
    versions = (record.target.template, *record.pointed_at)
    return any(version is not None and _is_same(now, version) for version in versions)


def _launches(record: UpgradeRecord, group: Group) -> Iterator[tuple[LaunchTemplateRef, LaunchTemplateRef]]:
    """Yield the target and what the group launches: of its own template, and of types with a template of their own."""
    target, template = record.target, group.launch.template
    if target.template is None or template is None:
        return
    yield target.template, template
    own = {one.instance_type: one.template for one in group.launch.overrides if one.template and one.instance_type}
    for name in sorted({*own, *target.overrides}):
        if wanted := target.of(name):
            yield wanted, own.get(name, template)
    chosen = [one.template for one in group.launch.overrides if one.template and not one.instance_type]
    for wanted in target.by_requirements:
        yield from ((wanted, now) for now in chosen if is_template(now, wanted))


def _numbered(template: LaunchTemplateRef, templates: Templates) -> LaunchTemplateRef | None:
    """Return the template with its version as a number, None where it is gone: launches fail and name it."""
    if template.version.isdecimal():
        return template
    try:
        return templates.numbered(template)
    except ObjectGoneError:
        return None


def _is_same(now: LaunchTemplateRef, wanted: LaunchTemplateRef) -> bool:
    return is_template(now, wanted) and now.version == wanted.version
