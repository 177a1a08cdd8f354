"""`update.terminate: first`: the group is reported before the drain, and our hook holds the instance meanwhile (V3)."""

import pytest

from leeward.errors import AwsUnavailableError
from leeward.policy.document import Canary
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet

HOUR = 3600.0
IMPOSSIBLE = (deployment("web", 8), budget("web", 0))
OVERRIDE = ["PdbNeverAllows"]


def reported_first(world):
    """Instances for which the group was reported before their last pod had left."""
    times = {name: record.times for name, record in world.world.records.items()}
    return [
        name
        for name, seen in times.items()
        if "terminating" in seen and ("drained" not in seen or seen["terminating"] < seen["drained"])
    ]


def held(world):
    return [member.id for member in world.group.instances if member.lifecycle == "Terminating:Wait"]


def test_the_group_is_reported_before_the_drain_and_its_hook_is_answered_after_it():
    world = Upgraded(a_fleet(terminate="first", max_unavailable=2)).start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert len(reported_first(world)) == 6
    assert all(record.pods_evicted for record in world.world.records.values())


def test_with_minimal_the_group_replaces_each_node_while_it_drains():
    world = Upgraded(a_fleet(terminate="first", strategy="MINIMAL")).start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert len(reported_first(world)) == 6


def test_a_group_that_no_hook_of_ours_guards_drains_first_and_that_is_said():
    world = Upgraded(a_fleet(terminate="first"))
    world.world.system.groups.put_hook = lambda *_, **__: None
    world.world.fleet.groups[GROUP].hooks.clear()
    world.start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest(), reported_first(world)) == ("Upgraded", True, [])
    assert any("no terminate hook of ours" in line and "drains first" in line for line in world.world.story)


def test_pods_that_cannot_leave_are_held_and_not_deleted_and_the_upgrade_says_which():
    fleet = a_fleet(terminate="first", workloads=IMPOSSIBLE)
    world = Upgraded(fleet).start(launchTemplateVersion="2", override=OVERRIDE).run(2)
    assert world.ended() == "PodEvictionFailure"
    assert "PodDisruptionBudget default/web allows no disruption" in world.why()
    assert len(held(world)) == 1


def test_a_canary_that_its_hook_holds_ends_the_upgrade_and_so_does_the_next_start():
    fleet = a_fleet(terminate="first", workloads=IMPOSSIBLE, canary=Canary(nodes=1))
    world = Upgraded(fleet).start(launchTemplateVersion="2", override=OVERRIDE)
    world.start("again", at=BEGIN + HOUR, override=OVERRIDE).run(2)
    assert (world.ended(), world.ended("again")) == ("PodEvictionFailure", "PodEvictionFailure")
    assert "PodDisruptionBudget default/web allows no disruption" in world.why("again")
    assert (len(held(world)), world.record.finished) == (1, 0)


def test_started_again_with_force_what_the_hook_holds_is_let_go_without_its_pods():
    fleet = a_fleet(terminate="first", workloads=IMPOSSIBLE)
    world = Upgraded(fleet).start(launchTemplateVersion="2", override=OVERRIDE)
    world.start("again", at=BEGIN + HOUR, override=OVERRIDE, force=True).run(6)
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("PodEvictionFailure", "Upgraded", True)
    assert all(record.forced for record in world.world.records.values())


def test_an_abort_does_not_wait_for_what_the_hook_holds():
    fleet = a_fleet(terminate="first", workloads=IMPOSSIBLE)
    world = Upgraded(fleet).start(launchTemplateVersion="2", override=OVERRIDE)
    world.start("abort", at=BEGIN + HOUR, action="abort").run(2)
    assert (world.ended(), world.ended("abort")) == ("PodEvictionFailure", "Aborted")
    assert (world.group.suspended, world.group.desired) == ((), 6)
    assert world.cordoned == [f"node-{name}" for name in held(world)]
    assert "end when their pods leave" in " ".join(world.record.warnings)


def test_nor_does_an_abort_wait_for_it_where_no_record_says_that_it_is_the_offset():
    fleet = a_fleet(terminate="first", workloads=IMPOSSIBLE)
    world = Upgraded(fleet)
    groups = world.world.system.groups
    reported = groups.terminate

    def unheard(**asked):
        reported(**asked)
        raise AwsUnavailableError("connection reset, its effect may have come about")

    groups.terminate = unheard
    world.start(launchTemplateVersion="2", override=OVERRIDE)
    world.start("abort", at=BEGIN + HOUR, action="abort").run(2)
    assert (world.ended(), world.ended("abort")) == ("PodEvictionFailure", "Aborted")
    assert (world.group.suspended, world.group.desired, len(held(world))) == ((), 6, 1)


@pytest.mark.parametrize("terminate", ["last", "first"])
def test_instances_that_still_end_take_places_of_max_surge(terminate):
    """The rule MAX_SURGE counts at each launch; here EC2's instances are counted after each event. Nodes that drain
    before their launch is made offset one all the same.
    """
    fleet = a_fleet(size=12, maximum=12, terminate=terminate, max_surge=3, max_unavailable=2)
    world, most = Upgraded(fleet).start(launchTemplateVersion="2"), []
    running = world.world.fleet.instances
    world.watch(lambda: most.append(sum(one.group == GROUP and not one.gone for one in running.values())))
    world.run()
    assert (world.ended(), world.at_rest(12), max(most)) == ("Upgraded", True, 12 + 3)
    early = {name for name, record in world.world.records.items() if record.all_causes[0].awaits_launch}
    assert bool(early) is (terminate == "last")
    new = {instance for _, instance in world.world.launches}
    assert (len(new), len(world.world.decrements), new & set(world.world.decrements)) == (12, 12, set())
