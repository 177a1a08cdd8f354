"""Upgrades of self-managed groups whose ways through node-group-upgrade, taken together, are all that there are."""

from datetime import timedelta

from leeward.policy.document import Canary, OnAlarm, Window
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, FIRST, GROUP, a_fleet
from tests.simulation.upgrade_story import LONG, Story, an_upgrade, broken, full, robbed, stalled, template_denied

IMPOSSIBLE = (deployment("web", 8), budget("web", 0))


def _allow(world, at):
    def allow():
        world.world.cluster.patch("poddisruptionbudgets", "web", {"spec": {"maxUnavailable": 1}}, "default")

    return world.at(at, allow)


def _abort(at=150):
    return an_upgrade().start("abort", at=BEGIN + at, action="abort")


def _rollback(at=120):
    return an_upgrade().start("back", at=BEGIN + at, action="rollback")


def _blocked():
    world = an_upgrade(a_fleet(workloads=IMPOSSIBLE))
    return _allow(world, BEGIN + 600)


def _bad_image():
    world = an_upgrade()
    world.template.bad.add("2")
    return world


def _paused():
    world = an_upgrade().start("pause", at=BEGIN + 80, action="pause")
    return world.start("resume", at=BEGIN + 900, action="resume")


def _canary():
    return an_upgrade(a_fleet(canary=Canary(nodes=1, bake=timedelta(minutes=10))))


def _alarm():
    world = an_upgrade(a_fleet(alarms=("errors",)))
    alarms = world.world.system.alarms
    alarms.quiet("errors")
    return world.at(BEGIN + 110, lambda: alarms.ring("errors")).at(BEGIN + 900, lambda: alarms.quiet("errors"))


def _alarm_rolls_back():
    world = an_upgrade(a_fleet(alarms=("errors",), on_alarm=OnAlarm.ROLLBACK))
    alarms = world.world.system.alarms
    alarms.quiet("errors")
    return world.at(BEGIN + 110, lambda: alarms.ring("errors"))


def _windows():
    """Open for the first minutes of each hour, which is not enough."""
    return an_upgrade(a_fleet(windows=(Window(schedule="0 * * * *", duration=timedelta(minutes=7)),)))


def _pods_stay():
    """The finding is overridden, and no pod may leave."""
    world = an_upgrade(a_fleet(workloads=IMPOSSIBLE), override=["PdbNeverAllows"])
    return _allow(world, BEGIN + 6 * LONG).start("again", at=BEGIN + 6 * LONG + 60)


def _goes_bad():
    """The image no longer boots soon after the gate has opened, when half of the new nodes are still to come."""
    world = an_upgrade(a_fleet(12, maximum=12))
    bad = world.template.bad
    world.at(BEGIN + 75, lambda: bad.add("2")).at(BEGIN + LONG, bad.clear)
    return world.start("again", at=BEGIN + LONG + 60)


def _surplus():
    """An old node is ended by another tool: a new one is left over and has to go."""
    world = an_upgrade()
    end = world.world.fleet.end_instance
    return world.at(BEGIN + 80, lambda: end(world.world.fleet.instances[FIRST], direct=True))


def _denied(patch):
    """The template's tag is missing for a while."""
    return template_denied(patch, an_upgrade(), until=BEGIN + 600).start("again", at=BEGIN + 700)


UPGRADED = {"first": "Upgraded"}
TAKEN = "ControlRequestRecorded"
AGAIN = {"first": "Delegated", "again": "Upgraded"}
MENDED = {"first": "UpgradeFailure", "again": "Upgraded"}
CONTINUED = {"first": "Continued", f"{GROUP}-2": "Upgraded"}
STRAIGHT = ("take-lease", "check", "prepare", "point", "launch", "gate", "cordon", "drain", "scale-down", "restore")

SELF_MANAGED: dict[str, Story] = {
    "upgraded": Story(plan=lambda _: an_upgrade(), ends=UPGRADED),
    "started twice": Story(
        plan=lambda _: an_upgrade().start("second", at=BEGIN + 60), ends={**UPGRADED, "second": "Delegated"}
    ),
    "paused": Story(
        plan=lambda _: _paused(),
        ends={**UPGRADED, "pause": TAKEN, "resume": TAKEN},
    ),
    "canary": Story(plan=lambda _: _canary(), ends=UPGRADED, hours=1.5),
    "alarm": Story(plan=lambda _: _alarm(), ends=UPGRADED, hours=1.5),
    "alarm rolls back": Story(
        plan=lambda _: _alarm_rolls_back(), ends={"first": "RolledBack"}, hours=1.5, versions=("1",)
    ),
    "outside its windows": Story(plan=lambda _: _windows(), ends=UPGRADED, hours=3),
    "pods stay": Story(
        plan=lambda _: _pods_stay(), ends={"first": "PodEvictionFailure", "again": "Upgraded"}, hours=7.5
    ),
    "the image goes bad": Story(
        plan=lambda _: _goes_bad(), ends={"first": "NodeCreationFailure", "again": "Upgraded"}, hours=2, size=12
    ),
    "surplus": Story(plan=lambda _: _surplus(), ends=UPGRADED),
    "aborted at the gate": Story(plan=lambda _: _abort(10), ends={"first": "Aborted", "abort": TAKEN}, versions=("1",)),
    "aborted": Story(plan=lambda _: _abort(), ends={"first": "Aborted", "abort": TAKEN}, versions=("1", "2")),
    "aborted after a failure": Story(
        plan=lambda _: _bad_image().start("abort", at=BEGIN + 2400, action="abort"),
        ends={"first": "NodeCreationFailure", "abort": "Aborted"},
        versions=("1",),
    ),
    "rolled back at the gate": Story(
        plan=lambda _: _rollback(10), ends={"first": "RolledBack", "back": TAKEN}, versions=("1",)
    ),
    "rolled back": Story(plan=lambda _: _rollback(), ends={"first": "RolledBack", "back": TAKEN}, versions=("1",)),
    "rolled back afterwards": Story(
        plan=lambda _: _rollback(1500), ends={**UPGRADED, "back": "RolledBack"}, versions=("1",)
    ),
    "blocked": Story(
        plan=lambda _: _blocked().start("again", at=BEGIN + 700),
        ends={"first": "PreflightBlocked", "again": "Upgraded"},
    ),
    "a wrong input": Story(
        plan=lambda _: an_upgrade(ami="ami-00000000000000009").start("again", at=BEGIN + 60, launchTemplateVersion="2"),
        ends={"first": "InvalidInput", "again": "Upgraded"},
    ),
    **{f"{step} fails": Story(plan=broken(step), ends=MENDED, hours=3) for step in STRAIGHT[1:]},
    "take-lease fails": Story(
        plan=broken("take-lease", launchTemplateVersion="2"),
        ends={"first": "LeaseNotAcquired", "again": "Upgraded"},
        hours=3,
    ),
    "undo fails": Story(
        plan=broken("undo", _abort),
        ends={"first": "UpgradeFailure", "abort": TAKEN, "again": "Aborted"},
        versions=("1", "2"),
        hours=3,
    ),
    "start-rollback fails": Story(
        plan=broken("start-rollback", _rollback),
        ends={"first": "UpgradeFailure", "back": TAKEN, "again": "RolledBack"},
        versions=("1",),
        hours=3,
    ),
    "nothing can be written down": Story(plan=broken("check", also=("note-failure",)), ends=MENDED, hours=3),
    "not even that it is blocked": Story(plan=broken("note-failure", _blocked), ends=MENDED, hours=3),
    **{
        f"robbed before {step}": Story(plan=robbed(step), ends=AGAIN, hours=1.8)
        for step in ("check", "gate", "drain", "scale-down", "restore")
    },
    "robbed before undo": Story(
        plan=robbed("undo", _abort),
        ends={"first": "Delegated", "abort": TAKEN, "again": "Aborted"},
        versions=("1", "2"),
        hours=1.8,
    ),
    "robbed before note-failure": Story(plan=robbed("note-failure", _blocked), ends=AGAIN, hours=1.8),
    "the launch template is denied": Story(
        plan=_denied, ends={"first": "NodeCreationFailure", "again": "Upgraded"}, hours=2
    ),
    "no instance comes for the raised size": Story(
        plan=stalled("scale-down", "creation-failure"),
        ends={"first": "NodeCreationFailure", "again": "Upgraded"},
        hours=2,
    ),
    "no node pays for a launch": Story(
        plan=stalled("scale-down", "eviction-failure"),
        ends={"first": "PodEvictionFailure", "again": "Upgraded"},
        hours=2,
    ),
    "no instance comes while it is undone": Story(
        plan=stalled("undo", "creation-failure", _abort),
        ends={"first": "NodeCreationFailure", "abort": TAKEN, "again": "Aborted"},
        versions=("1", "2"),
        hours=2,
    ),
    "nodes do not finish while it is undone": Story(
        plan=stalled("undo", "eviction-failure", _abort),
        ends={"first": "PodEvictionFailure", "abort": TAKEN, "again": "Aborted"},
        versions=("1", "2"),
        hours=2,
    ),
    "full at the gate": Story(plan=full("gate"), ends=CONTINUED),
    "full, and no pod can go on": Story(
        plan=lambda patch: broken("continue", lambda: full("gate")(patch))(patch), ends=MENDED, hours=3
    ),
    "full, and robbed": Story(
        plan=lambda patch: robbed("continue", lambda: full("gate")(patch))(patch), ends=AGAIN, hours=1.8
    ),
    "full while nodes drain": Story(plan=full("drain"), ends=CONTINUED),
    "full while the surplus leaves": Story(plan=full("scale-down", _surplus), ends=CONTINUED),
    "full while it is undone": Story(
        plan=full("undo", _abort),
        ends={"first": "Continued", "abort": TAKEN, f"{GROUP}-2": "Aborted"},
        versions=("1", "2"),
    ),
}
