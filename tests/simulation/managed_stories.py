"""Upgrades of managed node groups whose ways through managed-node-group-upgrade, taken together, are all that there
are, and starts in the state machine of the other kind of group."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import InvalidInputError
from leeward.policy.document import Window
from simulation.aws.managed import ManagedState
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.managed_stand_in import Managed
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, a_fleet
from tests.simulation.upgrade_story import LONG, Story, an_upgrade, broken, full, robbed

IMPOSSIBLE = (deployment("web", 8), budget("web", 0))
HOURLY = Window(schedule="0 * * * *", duration=timedelta(minutes=10))  # a world begins at midnight
LATE = 1200.0  # seconds: it is closed
ROLLS = BEGIN + 240


def _managed(fleet=None, at=BEGIN, *, elsewhere=False, **more):
    return Managed(fleet, **more).start(launchTemplateVersion="2", at=at, elsewhere=elsewhere)


def _managed_elsewhere():
    return _managed(elsewhere=True)


def _self_managed_elsewhere():
    return an_upgrade(elsewhere=True)


def _forcing():
    fleet = a_fleet(workloads=IMPOSSIBLE)
    forced = tuple(replace(one, drain=replace(one.drain, force=True)) for one in fleet.policies.policies)
    return _managed(replace(fleet, policies=replace(fleet.policies, policies=forced)))


def _held():
    return _managed(a_fleet(windows=(HOURLY,)), at=LATE)


def _alarm():
    """It rings from before the start, and falls quiet later."""
    world = _managed(a_fleet(alarms=("errors",)))
    alarms = world.world.system.alarms
    alarms.quiet("errors")
    return world.at(BEGIN - 60, lambda: alarms.ring("errors")).at(BEGIN + 900, lambda: alarms.quiet("errors"))


def _paused():
    world = _held().start("pause", at=LATE + 100, action="pause")
    return world.start("resume", at=2 * LONG + 100, action="resume")


def _pods_stay():
    world = Managed(a_fleet(workloads=IMPOSSIBLE)).start(launchTemplateVersion="2", override=["PdbNeverAllows"])
    return world.start("again", at=BEGIN + 2 * LONG, force=True)


def _blocked():
    world = _managed(a_fleet(workloads=IMPOSSIBLE))
    change = {"spec": {"maxUnavailable": 1}}
    return world.at(BEGIN + 60, lambda: world.world.cluster.patch("poddisruptionbudgets", "web", change, "default"))


def _refused():
    """EKS does not take the first request."""
    world = _managed()
    world.world.injector.faultless = False  # EKS' answers are as under a fault
    updates = world.world.system.managed_updates
    real, refusals = updates.start, ["InvalidRequestException: the node group is not ready for it"]

    def start(*args, **more):
        if refusals:
            raise InvalidInputError(refusals.pop())
        return real(*args, **more)

    updates.start = start
    return world.start("again", at=BEGIN + 600)


def _failed():
    """EKS gives up for a reason of its own."""
    world = _managed()
    world.world.injector.faultless = False
    updates = world.world.system.managed_updates
    world.at(ROLLS, lambda: updates.end("update-1", ManagedState.FAILED, "InternalFailure: try again"))
    return world.start("again", at=BEGIN + LONG)


def _never_joined():
    """EKS leaves what has not joined to its owner, who ends it and mends the image."""
    world = _managed()
    world.template.bad.add("2")  # EKS' next copy of the template
    fleet = world.world.fleet

    def mend():
        world.template.bad.clear()
        for member in [one for one in fleet.groups[GROUP].staying if not one.joined]:
            fleet.terminate(member, decrement=True)

    return world.at(BEGIN + 1.5 * LONG, mend).start("again", at=BEGIN + 1.5 * LONG + 120)


UPGRADED = {"first": "Upgraded"}
TAKEN = "ControlRequestRecorded"
AGAIN = {"first": "Delegated", "again": "Upgraded"}
MENDED = {"first": "UpgradeFailure", "again": "Upgraded"}
REFUSED = {"first": "NodegroupUpdateFailure", "again": "Upgraded"}
CONTINUED = {"first": "Continued", f"{GROUP}-2": "Upgraded"}

MANAGED: dict[str, Story] = {
    "EKS rolls it": Story(plan=lambda _: _managed(), ends=UPGRADED, hours=2),
    "EKS may not start yet": Story(plan=lambda _: _held(), ends=UPGRADED, hours=3),
    "EKS may not start, alarm": Story(plan=lambda _: _alarm(), ends=UPGRADED, hours=3),
    "EKS may not start, paused": Story(
        plan=lambda _: _paused(),
        ends={**UPGRADED, "pause": TAKEN, "resume": TAKEN},
        hours=4,
    ),
    "EKS may not start, aborted": Story(
        plan=lambda _: _held().start("abort", at=LATE + 100, action="abort"),
        ends={"first": "Aborted", "abort": TAKEN},
        versions=("1",),
    ),
    "EKS is asked by force": Story(plan=lambda _: _forcing(), ends=UPGRADED, hours=5),
    "pods stay with EKS": Story(
        plan=lambda _: _pods_stay(), ends={"first": "PodEvictionFailure", "again": "Upgraded"}, hours=5
    ),
    "blocked before EKS is asked": Story(
        plan=lambda _: _blocked().start("again", at=BEGIN + 120),
        ends={"first": "PreflightBlocked", "again": "Upgraded"},
        hours=2,
    ),
    "EKS refuses": Story(plan=lambda _: _refused(), ends=REFUSED, hours=2),
    "EKS fails": Story(plan=lambda _: _failed(), ends=REFUSED, hours=3),
    "EKS' nodes never join": Story(
        plan=lambda _: _never_joined(), ends={"first": "NodeCreationFailure", "again": "Upgraded"}, hours=3
    ),
    "started twice while EKS rolls": Story(
        plan=lambda _: _managed().start("second", at=ROLLS), ends={**UPGRADED, "second": "Delegated"}, hours=2
    ),
    "EKS rolls it back": Story(
        plan=lambda _: _managed().start("back", at=ROLLS, action="rollback"),
        ends={"first": "RolledBack", "back": TAKEN},
        versions=("3",),
        hours=5,
    ),
    **{
        f"{step} fails": Story(plan=broken(step, _managed), ends=MENDED, hours=4)
        for step in ("start-managed", "watch-managed", "restore")
    },
    "a wrong input": Story(
        plan=lambda _: Managed().start(dryRun=True).start("again", at=BEGIN + 60, launchTemplateVersion="2"),
        ends={"first": "InvalidInput", "again": "Upgraded"},
        hours=2,
    ),
    "take-lease fails": Story(
        plan=broken("take-lease", _managed, launchTemplateVersion="2"),
        ends={"first": "LeaseNotAcquired", "again": "Upgraded"},
        hours=4,
    ),
    "nothing can be written down": Story(
        plan=broken("start-managed", _managed, also=("note-failure",)), ends=MENDED, hours=4
    ),
    "not even that it is blocked": Story(plan=broken("note-failure", _blocked), ends=MENDED, hours=4),
    **{
        f"robbed before {step}": Story(plan=robbed(step, _managed), ends=AGAIN, hours=3)
        for step in ("start-managed", "watch-managed", "restore")
    },
    "robbed before note-failure": Story(plan=robbed("note-failure", _blocked), ends=AGAIN, hours=3),
    "full before EKS may start": Story(plan=full("start-managed", _held), ends=CONTINUED, hours=3),
    "full while EKS rolls": Story(plan=full("watch-managed", _managed), ends=CONTINUED, hours=2),
    "full, and no pod can go on": Story(
        plan=lambda patch: broken("continue", lambda: full("watch-managed", _managed)(patch))(patch),
        ends=MENDED,
        hours=4,
    ),
    "full, and robbed": Story(
        plan=lambda patch: robbed("continue", lambda: full("watch-managed", _managed)(patch))(patch),
        ends=AGAIN,
        hours=3,
    ),
}
MANAGED_ELSEWHERE: dict[str, Story] = {
    "a managed group, started as a self-managed one": Story(
        plan=lambda _: _managed_elsewhere(), ends=CONTINUED, hours=2
    ),
    "a managed group that cannot be passed on": Story(
        plan=broken("continue", _managed_elsewhere), ends=MENDED, hours=4
    ),
}
"""Stories that begin in node-group-upgrade."""
SELF_MANAGED_ELSEWHERE: dict[str, Story] = {
    "a self-managed group, started as a managed one": Story(plan=lambda _: _self_managed_elsewhere(), ends=CONTINUED),
    "a self-managed group that cannot be passed on": Story(
        plan=broken("continue", _self_managed_elsewhere), ends=MENDED, hours=3
    ),
}
"""Stories that begin in managed-node-group-upgrade."""
