"""Several state machines in one deployment, and what upgrades find there."""

from leeward.model.group import Group
from simulation.definitions import DISRUPTION_RUN, NODE_TERMINATION, UPGRADES, definitions
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival


def a_world(*arrivals):
    return World(1, SMALL, Faults.none(), arrivals)


def test_every_machine_that_has_a_file_runs_under_its_name():
    machines = a_world().system.machines
    assert machines.keys() == definitions().keys()
    assert machines.keys() == {NODE_TERMINATION, *UPGRADES, DISRUPTION_RUN}
    assert [machine.arn.rpartition(":")[2] for machine in machines.values()] == [f"leeward-{name}" for name in machines]


def test_the_ports_of_upgrades_stand_on_the_fleet():
    world = a_world()
    ports = world.system.ports
    group: Group = ports.groups.describe(["spot"])["spot"]
    new = ports.templates.version_for(group.launch.template, "ami-new", token="t")
    ports.group_changes.point_at(group, new)
    ports.group_changes.suspend("spot", "AZRebalance")
    again = ports.groups.describe(["spot"])["spot"]
    assert (again.launch.template, again.suspended) == (new, ("AZRebalance",))
    assert ports.launches.settings(again).image == "ami-new"
    assert ports.upgrades.read("spot") is None
    assert ports.alarms.describe(["latency"]) == {}
    assert not ports.upgrade_executions.running("no-such-execution")


def test_an_alarm_that_exists_rings_by_arrival_and_falls_quiet_by_another():
    world = a_world(Arrival(at_seconds=60, kind="alarm_rings"), Arrival(at_seconds=120, kind="alarms_quiet"))
    alarms, heard = world.system.alarms, []
    alarms.quiet("latency")
    for seconds in (90, 150):
        world.timeline.after(180 + seconds, lambda: heard.append("latency" in alarms.rings), "look")
    outcome = world.run(0.1, converge=60)
    assert heard == [True, False]
    assert outcome.arrivals == {"alarm_rings": 1, "alarms_quiet": 1}
