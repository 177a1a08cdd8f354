"""`leeward blockers` while an upgrade or a run runs: it names who keeps its new nodes, and until when."""

from datetime import timedelta

from leeward.blockers.blocker import BlockerKind
from leeward.blockers.find import blockers
from leeward.cli.blockers.inputs import node_inputs_of
from leeward.model.well_known import KEPT_FOR
from simulation import fleets
from tests.simulation.disruption_stand_in import FIRST, Disrupted
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded

MINUTES = range(60, 660, 60)


def kept(world):
    """Of each node that is kept from being scaled down, who keeps it: as reported now."""
    ports = world.world.system.ports
    now = ports.clock.now()
    reported = [one for scene in node_inputs_of(ports, fleets.CLUSTER, None, now) for one in blockers(scene, now)]
    return {one.node: one for one in reported if one.kind is BlockerKind.NODE_SCALE_DOWN_DISABLED}


def annotated(world):
    nodes = [node["metadata"] for node in world.world.cluster.store.each("nodes")]
    return {meta["name"] for meta in nodes if KEPT_FOR in (meta.get("annotations") or {})}


def looking(world, times=MINUTES):
    """At these times from the start: (now, nodes that say so themselves, what is reported)."""
    looks = []
    for after in times:
        world.at(BEGIN + after, lambda: looks.append((world.world.timeline.instant(), annotated(world), kept(world))))
    return looks


def test_new_nodes_are_kept_by_the_upgrade_until_its_end():
    world = Upgraded().start(launchTemplateVersion="2")
    looks = looking(world)
    world.run()
    assert world.ended() == "Upgraded"
    assert all(reported.keys() == there for _, there, reported in looks)
    assert max(len(reported) for _, _, reported in looks) == 6
    found = [(now, one) for now, _, reported in looks for one in reported.values()]
    assert {one.owner for _, one in found} == {f"Upgrade/{GROUP}"}
    assert all(now < one.until and now < world.record.ended for now, one in found)
    assert all("execution first is " in one.fix for _, one in found)


def test_a_paused_upgrade_has_no_end_until_it_is_resumed():
    world = Upgraded().start(launchTemplateVersion="2")
    world.at(BEGIN + 70, lambda: world.machine.start("pause", {"group": GROUP, "action": "pause"}))
    looks = looking(world)
    world.run()
    _, _, reported = looks[-1]
    assert reported
    assert {one.until for one in reported.values()} == {None}
    assert all("is paused: leeward upgrade resume app lets it go on" in one.fix for one in reported.values())


def test_nodes_of_an_upgrade_that_was_stopped_are_let_go_by_the_next_sweep():
    world = Upgraded().start(launchTemplateVersion="2")
    at, reported = BEGIN + 75, []  # between two reconciliations
    world.at(at, lambda: world.machine.stop("first"))
    for later in (0, 60):
        world.at(at + later, lambda: reported.append((world.world.timeline.instant(), annotated(world), kept(world))))
    world.run(0.2)
    (now, there, first), (_, left, second) = reported
    assert there
    assert {name: one.until for name, one in first.items()} == dict.fromkeys(there, now + timedelta(minutes=1))
    assert (left, second) == (set(), {})


def test_new_nodes_are_kept_by_the_round_until_the_nodes_that_they_replace_are_gone():
    world = Disrupted().drifting()
    looks = looking(world, range(0, 600, 20))
    world.run(0.3)
    assert all(reported.keys() == there for _, there, reported in looks)
    found = [one for _, _, reported in looks for one in reported.values()]
    assert "Disruption/1" in {one.owner for one in found}
    assert any(f"waits until node-{FIRST} are gone (leeward blockers node-{FIRST} says" in one.fix for one in found)
