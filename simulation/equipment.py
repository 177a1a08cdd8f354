"""Additions of a feature to a world beside its fleet and its faults: events that hit it, and how nodes register."""

from dataclasses import replace
from datetime import timedelta
from random import Random

from leeward.model import well_known
from leeward.policy.document import Rebalance
from simulation.asked import Asked, Kind
from simulation.aws.compute import IN_SERVICE, SimGroup, SimInstance
from simulation.broken_hardware import FAILS_EVERY, REBOOTS_EVERY, BrokenHardware
from simulation.features import Feature
from simulation.foreign_taints import OTHER_DEPLOYMENT, tainted_by_others
from simulation.image_aliases import DENIED_EVERY, MOVES_EVERY, ImageAliases
from simulation.managed_fleet import manage_some
from simulation.mishaps.playbill import MISHAPS
from simulation.owners import set_desired, terminate
from simulation.policy_features import alarm_of
from simulation.registration import Registration
from simulation.site import Site
from simulation.world import World
from simulation.zonal_shifts import SHIFTS_EVERY, ZonalShifts
from simulation.zone_evacuations import EVACUATES_EVERY, ZoneEvacuations

STANDBY_EVERY, STANDBY_FOR = 1200.0, 2400.0
ILL_EVERY, ILL_FOR = 900.0, 1200.0
RARER = 20.0  # times as long a pause in a world that lasts weeks
REWRITTEN_EVERY = 1200.0
SCALER = "a scaling policy"
SPARED_EVERY = 1500.0
TAKEN_BACK_EVERY = 600.0
BLOCK_EVERY, BLOCK_LASTS = 1200.0, (1860.0, 5400.0)  # seconds between beginnings, and from one to the end of a block
BLOCK_UNWARNED = 0.3  # chance that its warning is lost
ALARM_EVERY, RINGS_FOR = 700.0, (20.0, 600.0)
ALARM_IS_DELETED = 0.1  # chance that it is, instead of ringing
THEIRS_EVERY, THEIRS_FOR = 400.0, (60.0, 900.0)
PUBLISHED_EVERY, PUBLISHED = 1100.0, 5000  # seconds; number of the first image
BREATHES_EVERY, SMALLER_FOR = 500.0, (60.0, 900.0)


class Equipment:
    """Events of one cluster of a world; none of them happens any more once arrivals are over."""

    def __init__(self, world: World | Site, *, lasts_weeks: bool = False) -> None:
        self._world, self._random, self._lasts_weeks = world, Random(f"{world.seed}/equipment"), lasts_weeks

    def flags(self) -> None:
        """Let operators who manually start a drain or an upgrade give flags."""
        self._world.flags = True

    def protected(self) -> None:
        """Protect a third of the instances from scale-in."""
        self._world.fleet.protects = lambda _: self._random.random() < 1 / 3

    def late_provider_id(self) -> None:
        """Withhold the provider id of a Node until the cloud controller has read it; it takes no pods until then."""
        self._world.register = Registration(self._world, self._random).withhold

    def same_names(self) -> None:
        """Give an address, and the name that comes from it, to another instance once its Node is gone."""
        self._world.fleet.named = Registration(self._world, self._random).free_name

    def standby(self) -> None:
        """Put an instance into Standby for a while now and then, as an owner does."""
        self._every(STANDBY_EVERY, self._stand_by)

    def repair(self) -> None:
        """Make kubelets fall silent; some come back."""
        self._every(ILL_EVERY, self._fall_ill)

    def conditions(self) -> None:
        """Let hardware and kernels of nodes fail while their kubelets stay Ready, and EC2 schedule reboots."""
        hardware = BrokenHardware(self._world, Random(f"{self._world.seed}/{Feature.CONDITIONS}"))
        self._every(FAILS_EVERY, hardware.fail)
        self._every(REBOOTS_EVERY, hardware.schedule)

    def policies_change(self) -> None:
        """Deploy other policies now and then."""
        self._every(REWRITTEN_EVERY, self._rewrite)

    def maintenance_spares(self) -> None:
        """Let a date pass while the instance runs on: it was rebooted, or AWS has cancelled the maintenance."""
        self._every(SPARED_EVERY, self._spare)

    def reservations(self) -> None:
        """Take capacity reservations back, and an on-demand instance with each, as EC2 does."""
        self._every(TAKEN_BACK_EVERY, self._take_back)

    def capacity_blocks(self) -> None:
        """Put on-demand instances into Capacity Blocks that end; the warning about some is lost."""
        self._every(BLOCK_EVERY, self._reserve)

    def alarms(self) -> None:
        """Put the alarm of a policy into ALARM for a while, or delete it and make it again."""
        for policy in self._world.policies.policies:
            self._world.system.alarms.quiet(alarm_of(policy))
        self._every(ALARM_EVERY, self._ring)

    def warm_launches(self) -> None:
        """Make a group one smaller, and larger again, as a scaling policy does."""
        self._every(BREATHES_EVERY, self._breathe)

    def zonal_shifts(self) -> None:
        """Shift the traffic of the cluster away from a zone now and then."""
        shifts = ZonalShifts(self._world, Random(f"{self._world.seed}/{Feature.ZONAL_SHIFT}"))
        self._every(SHIFTS_EVERY, shifts.shift)

    def evacuations(self) -> None:
        """Let operators evacuate a zone now and then."""
        evacuations = ZoneEvacuations(self._world, Random(f"{self._world.seed}/{Feature.EVACUATION}"))
        self._every(EVACUATES_EVERY, evacuations.evacuate)

    def workers(self) -> None:
        """Let functions work in threads."""
        self._world.work_in_threads()

    def other_deployment(self) -> None:
        """Taint nodes as another deployment does, which returns them to service or has their groups terminate them."""
        self._every(THEIRS_EVERY, self._mark)

    def image_aliases(self) -> None:
        """Put images of some groups behind SSM parameters that move, and that our role may not read now and then."""
        aliases = ImageAliases(self._world, Random(f"{self._world.seed}/{Feature.ALIASES}"))
        aliases.begin()
        self._every(MOVES_EVERY, aliases.move)
        self._every(DENIED_EVERY, aliases.deny)

    def automatic_upgrades(self) -> None:
        """Put images of some groups behind SSM parameters of their own, and move those that groups launch from."""
        aliases = ImageAliases(self._world, Random(f"{self._world.seed}/{Feature.AUTOMATIC}"), PUBLISHED)
        aliases.begin()
        self._every(PUBLISHED_EVERY, aliases.move_own)

    def mishap(self, feature: Feature) -> None:
        """Let one of the mishaps happen now and then."""
        mishap = MISHAPS[feature](self._world, Random(f"{self._world.seed}/{feature}"))
        self._every(mishap.every, mishap.play)

    def _every(self, seconds: float, what: object) -> None:
        def play() -> None:
            if not self._world.over and callable(what):
                what()

        pause = seconds * RARER if self._lasts_weeks else seconds
        self._world.timeline.every(pause, play, "equipment")

    def _one(self, *, spot: bool = True) -> SimInstance | None:
        serving = [m for m in self._world.fleet.instances.values() if m.lifecycle == IN_SERVICE and m.joined]
        serving = [m for m in serving if spot or not m.spot]
        return self._random.choice(serving) if serving else None

    def _stand_by(self) -> None:
        member = self._one()
        group = self._world.fleet.groups[member.group] if member is not None else None
        if member is None or group is None or group.desired <= max(group.minimum, 1):
            return
        self._world.say(f"the owner of {group.name} puts {member.id} into Standby")
        self._world.fleet.detachment.enter_standby(member)
        self._world.timeline.after(
            STANDBY_FOR, lambda: self._world.fleet.detachment.exit_standby(member), "standby ends"
        )

    def _fall_ill(self) -> None:
        member = self._one()
        if member is None or self._world.cluster.store.find("nodes", member.node) is None:
            return
        self._world.say(f"the kubelet of {member.id} falls silent")
        self._world.asked.append(Asked(at=self._world.timeline.now(), instance=member.id, kind=Kind.ILL))
        self._world.cluster.set_node_ready(member.node, "Unknown")
        if self._random.random() < 0.4:
            self._world.timeline.after(self._random.uniform(30, ILL_FOR), lambda: self._recover(member), "recovers")

    def _recover(self, member: SimInstance) -> None:
        if not member.gone and self._world.cluster.store.find("nodes", member.node) is not None:
            self._world.cluster.set_node_ready(member.node, "True")

    def _rewrite(self) -> None:
        written = self._world.policies
        at = self._random.randrange(len(written.policies))
        policy, random = written.policies[at], self._random
        drain = replace(policy.drain, timeout=timedelta(minutes=random.choice((2, 5, 15))))
        asks = replace(policy.interruption, rebalance=random.choice(tuple(Rebalance)))
        policies = list(written.policies)
        policies[at] = replace(policy, drain=drain, interruption=asks)
        self._world.say(f"policy {policy.name} is changed")
        self._world.rewrite(replace(written, policies=tuple(policies)))

    def _spare(self) -> None:
        if member := self._one():
            ahead = self._random.uniform(60, 1800)
            self._world.say(f"maintenance of {member.id} in {ahead:.0f} s, which will pass over it")
            self._world.fleet.notices.maintenance(member, self._world.timeline.now() + ahead)

    def _take_back(self) -> None:
        if member := self._one(spot=False):
            self._world.fleet.notices.reservation_warning(member)

    def _reserve(self) -> None:
        serving = [m for m in self._world.fleet.instances.values() if m.lifecycle == IN_SERVICE and m.joined]
        free = [m for m in serving if not m.spot and not m.reservation]
        members = self._random.sample(free, min(len(free), self._random.randint(1, 3)))
        if members:
            ends = self._world.timeline.now() + self._random.uniform(*BLOCK_LASTS)
            warns = self._random.random() >= BLOCK_UNWARNED
            names = ", ".join(member.id for member in members)
            self._world.say(f"the Capacity Block of {names} ends in {ends - self._world.timeline.now():.0f} s")
            self._world.fleet.notices.capacity_block(members, ends, warns=warns)

    def _ring(self) -> None:
        alarms, now = self._world.system.alarms, self._world.timeline.now()
        name = alarm_of(self._random.choice(self._world.policies.policies))
        if name in alarms.rings or name not in alarms.known:
            return
        if self._random.random() < ALARM_IS_DELETED:
            self._world.say(f"alarm {name} is deleted")
            alarms.known.discard(name)
        else:
            self._world.say(f"alarm {name} rings")
            alarms.ring(name, now)
        self._world.timeline.after(self._random.uniform(*RINGS_FOR), lambda: alarms.quiet(name), "an alarm is quiet")

    def _mark(self) -> None:
        member = self._one()
        node = self._world.cluster.store.find("nodes", member.node) if member is not None else None
        if member is None or node is None or node["spec"].get("unschedulable"):
            return
        name = member.node
        self._world.say(f"another deployment taints {name}")
        self._world.tainted_by_others.add(name)
        taint = {"key": well_known.DISRUPTED_TAINT, "value": OTHER_DEPLOYMENT, "effect": "NoSchedule"}
        own = [taint, *(node["spec"].get("taints") or ())]
        self._world.cluster.patch("nodes", name, {"spec": {"taints": own, "unschedulable": True}})
        ends = self._random.random() < 0.5
        done = self._random.uniform(*THEIRS_FOR)
        self._world.timeline.after(done, lambda: self._finish(member, ends=ends), "another deployment")

    def _finish(self, member: SimInstance, *, ends: bool) -> None:
        self._world.tainted_by_others.discard(member.node)
        node = self._world.cluster.store.find("nodes", member.node)
        if node is None or not tainted_by_others(node):
            return
        if ends and not self._world.over and terminate(self._world, member, "another deployment", decrement=False):
            self._world.tainted_by_others.add(member.node)  # until the node has gone
            return
        left = [taint for taint in node["spec"]["taints"] if taint["key"] != well_known.DISRUPTED_TAINT]
        self._world.cluster.patch("nodes", member.node, {"spec": {"taints": left, "unschedulable": None}})

    def _breathe(self) -> None:
        groups = [one for one in self._world.fleet.groups.values() if getattr(one.plan, "launches_warm", False)]
        groups = [one for one in groups if one.desired > max(one.minimum, 1)]
        if groups:
            group = self._random.choice(groups)
            set_desired(self._world, group, group.desired - 1, SCALER)
            again = self._random.uniform(*SMALLER_FOR)
            self._world.timeline.after(again, lambda: self._grow(group), "a scaling policy")

    def _grow(self, group: SimGroup) -> None:
        if not self._world.over:
            set_desired(self._world, group, group.desired + 1, SCALER)


def equip(world: World, features: frozenset[Feature], *, lasts_weeks: bool = False) -> None:
    """Add the equipment of the features."""
    if Feature.MANAGED in features:
        manage_some(world, Random(f"{world.seed}/{Feature.MANAGED}"))
    for scene in world.scenes:
        _equip(Equipment(scene, lasts_weeks=lasts_weeks), features)


def _equip(equipment: Equipment, features: frozenset[Feature]) -> None:
    put = {
        Feature.FLAGS: equipment.flags,
        Feature.PROTECTED: equipment.protected,
        Feature.LATE_PROVIDER_ID: equipment.late_provider_id,
        Feature.SAME_NAMES: equipment.same_names,
        Feature.STANDBY: equipment.standby,
        Feature.REPAIR: equipment.repair,
        Feature.CONDITIONS: equipment.conditions,
        Feature.POLICIES_CHANGE: equipment.policies_change,
        Feature.MAINTENANCE_SPARES: equipment.maintenance_spares,
        Feature.RESERVATIONS: equipment.reservations,
        Feature.WARM_LAUNCHES: equipment.warm_launches,
        Feature.OTHER_DEPLOYMENT: equipment.other_deployment,
        Feature.ALIASES: equipment.image_aliases,
        Feature.AUTOMATIC: equipment.automatic_upgrades,
        Feature.ALARMS: equipment.alarms,
        Feature.BLOCKS: equipment.capacity_blocks,
        Feature.ZONAL_SHIFT: equipment.zonal_shifts,
        Feature.EVACUATION: equipment.evacuations,
        Feature.WORKERS: equipment.workers,
    }
    for feature in sorted(features & put.keys()):
        put[feature]()
    for feature in sorted(features & MISHAPS.keys()):
        equipment.mishap(feature)
