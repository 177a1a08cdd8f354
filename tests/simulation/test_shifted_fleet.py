"""A fleet in three zones, one of which is shifted in virtual time: no launch there, and the sizes of before when the
shift is over.

`make test` plays it with 120 nodes, `make test-long` also with 300, in three times as long: the same assertions."""

from dataclasses import replace

import pytest

from leeward.cli.zone.record import evacuated, opened
from leeward.evacuation.plan import EvacuationStanding, plan_evacuation
from leeward.model.zonal_shift import ShiftKind, ZoneRecord
from leeward.reconcile import evacuations
from simulation.aws.recovery import Shifted, zone_id_of
from simulation.fault_rates import Faults
from simulation.fleets import Arrival, ArrivalKind, Fleet, GroupPlan, generate
from simulation.timeline import Streams
from simulation.world import WARM_UP, World
from simulation.zone_rules import POLLED

ZONES = tuple(f"us-east-1{letter}" for letter in "abc")
ILL = ZONES[0]
SIZES = [pytest.param(120, id="120 nodes"), pytest.param(300, id="300 nodes", marks=pytest.mark.long)]
BOOTS, JOINS = (15.0, 40.0), (10.0, 30.0)
BEGINS, LASTS = WARM_UP + 605.0, 1500.0  # five seconds after the reconciler has polled: the longest wait
HOURS, CONVERGES = 0.9, 3600.0
ZONE_LABEL = "topology.kubernetes.io/zone"


def a_plan(name, size, *, spot):
    return GroupPlan(
        name=name,
        zones=ZONES,
        spot=spot,
        size=size,
        maximum=size * 2,
        capacity_rebalance=False,
        instance_type="m5.large",
        foreign_hook=False,
        selected=True,
        boots=BOOTS,
        joins=JOINS,
    )


def a_fleet(nodes):
    """Two groups over all three zones, of four fifths and one fifth of the nodes."""
    drawn = generate(Streams(1).stream("fleet plan"), nodes=nodes)
    return Fleet(
        cluster=drawn.cluster,
        zones=ZONES,
        groups=(a_plan("app", nodes * 4 // 5, spot=False), a_plan("batch", nodes // 5, spot=True)),
        workloads=drawn.workloads,
        policies=drawn.policies,
        autoscaler=None,
    )


def warnings():
    """A spot instance is taken every two minutes, in whatever zone."""
    moments = range(300, int(HOURS * 3600), 120)
    return [Arrival(at_seconds=float(at), kind=ArrivalKind.SPOT_WARNING, pick=at * 7919) for at in moments]


class ShiftedWorld:
    """The world with one shift."""

    def __init__(self, nodes, *, event):
        self.world = World(1, a_fleet(nodes), Faults.none(), warnings())
        self.event = event
        self.world.timeline.at(self.world.timeline.now() + BEGINS, self.begin, "the zone is ill")

    def begin(self):
        world = self.world
        self.began = world.timeline.now()
        world.system.recovery.start(world.cluster_name, zone_id_of(ILL), ShiftKind.AUTOSHIFT, world.timeline.instant())
        self.shift = Shifted(zone=ILL, began=self.began)
        world.system.recovery.history(world.cluster_name).append(self.shift)
        if self.event:
            world.fleet.notices.zonal_shift("Autoshift In Progress", zone_id_of(ILL))
        world.timeline.after(LASTS, self.end, "the zone is well")

    def end(self):
        self.world.system.recovery.end(self.world.cluster_name, zone_id_of(ILL))
        self.shift.ended = self.world.timeline.now()

    def sizes(self):
        return {name: (one.minimum, one.desired, one.maximum) for name, one in self.world.groups.items()}


def zone_of(node):
    return (node["metadata"].get("labels") or {}).get(ZONE_LABEL)


@pytest.mark.parametrize(
    "event",
    [pytest.param(True, marks=pytest.mark.long, id="with its event"), pytest.param(False, id="the event is lost")],
)
@pytest.mark.parametrize("nodes", SIZES)
def test_one_zone_of_a_fleet_is_shifted(nodes, event):
    shifted = ShiftedWorld(nodes, event=event)
    before = {"app": (0, nodes * 4 // 5, nodes * 8 // 5), "batch": (0, nodes // 5, nodes * 2 // 5)}
    outcome = shifted.world.run(HOURS, CONVERGES)
    assert [str(one) for one in outcome.violations] == []
    instances = shifted.world.fleet.instances
    known = [instances[one] for _, one in shifted.world.launches if one in instances]  # it forgets ended ones
    launched = [member for member in known if during(member, shifted)]
    assert len(launched) > nodes // 60, "replacements of the spot instances"
    assert {member.zone for member in launched} == {*ZONES} - {ILL}
    assert shifted.sizes() == before


def during(member, shifted):
    """Whether it was launched more than a minute after the shift began and before it was over."""
    return shifted.began + POLLED < member.launched < shifted.shift.ended


def without_budgets(fleet):
    """Some PodDisruptionBudgets of a drawn fleet never allow an eviction: their nodes stay."""
    return replace(fleet, workloads=tuple(one for one in fleet.workloads if one["kind"] != "PodDisruptionBudget"))


@pytest.fixture
def verdicts(monkeypatch):
    """The reconciler's last plan."""
    last = []

    def planned(*arguments):
        last[:] = plan_evacuation(*arguments)
        return last

    monkeypatch.setattr(evacuations, "plan_evacuation", planned)
    return last


@pytest.mark.parametrize("nodes", SIZES)
def test_one_zone_of_a_fleet_is_evacuated_and_opened_again(nodes, verdicts):
    world = World(1, without_budgets(a_fleet(nodes)), Faults.none(), [])
    catalog, name = world.system.catalog, world.cluster_name
    left = []

    def evacuate():
        now = world.timeline.instant()
        empty = ZoneRecord(cluster=name)
        catalog.write_zone_record(evacuated(empty, zone=ILL, groups=(), by="me", why="", now=now), now)
        world.system.recovery.history(name).append(closed)

    def open_again():
        left.extend(node["metadata"]["name"] for node in world.cluster.store.each("nodes") if zone_of(node) == ILL)
        now = world.timeline.instant()
        catalog.write_zone_record(opened(catalog.zone_record(name), ILL, now), now)
        closed.ended = world.timeline.now()

    begins = world.timeline.now() + BEGINS
    closed = Shifted(zone=ILL, began=begins)
    world.timeline.at(begins, evacuate, "an operator evacuates the zone")
    world.timeline.at(begins + 3600, open_again, "an operator opens the zone")
    outcome = world.run(1.5, CONVERGES)
    assert [str(one) for one in outcome.violations] == []
    assert len(left) <= nodes / 15
    assert sorted(left) == sorted(one.node.name for one in verdicts)
    assert {one.standing for one in verdicts} == {EvacuationStanding.STAYS}
    assert all(one.pods for one in verdicts), "the pods that hold them are named"
    assert {one.name: (one.desired, one.maximum) for one in world.groups.values()} == {
        "app": (nodes * 4 // 5, nodes * 8 // 5),
        "batch": (nodes // 5, nodes * 2 // 5),
    }
    assert catalog.zone_record(name).evacuations == ()
    assert not any("AZRebalance" in one.suspended for one in world.groups.values())
