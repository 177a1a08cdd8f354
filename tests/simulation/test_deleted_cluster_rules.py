"""The rule about deleted clusters finds what is terminated for them, and what does not end."""

from types import SimpleNamespace

from simulation.asked import Asked, AskedOf, Kind
from simulation.deleted_cluster_rules import ENDS_WITHIN, UNDER_WAY, DeletedClusters
from simulation.facts import FAR_AHEAD
from simulation.rule import Rule
from tests.simulation.view_stand_in import INSTANCE as MEMBER
from tests.simulation.view_stand_in import rules

INSTANCE, OTHER = "i-00000000000000001", "i-00000000000000002"


def a_view(now, **more):
    given = {"terminations": [], "open_executions": set(), "open_since": {}, "known_causes": lambda _: ("drift#1",)}
    return SimpleNamespace(cluster_deleted=0.0, now=now, started=lambda _: 0.0, **{**given, **more})


def test_an_instance_that_only_we_terminate_after_the_deletion_is_found():
    late, soon = a_view(UNDER_WAY + 1, terminations=[INSTANCE]), a_view(UNDER_WAY - 1, terminations=[INSTANCE])
    assert len([*DeletedClusters(AskedOf()).check(late)]) == 1
    assert [*DeletedClusters(AskedOf()).check(soon)] == []
    asked = AskedOf()
    asked.read([Asked(at=0, instance=INSTANCE, kind=Kind.SPOT, takes=900.0)])
    assert [*DeletedClusters(asked).check(late)] == []


def test_an_execution_or_a_termination_that_stays_open_is_found_but_for_a_surplus():
    rule, later = DeletedClusters(AskedOf()), ENDS_WITHIN + 1
    stays = a_view(later, open_executions={f"{INSTANCE}-1"}, open_since={INSTANCE: 0.0})
    assert len([*rule.at_the_end(stays)]) == 2
    assert [*rule.at_the_end(a_view(ENDS_WITHIN - 1, open_since={INSTANCE: 0.0}))] == []
    surplus = a_view(later, open_since={INSTANCE: 0.0}, known_causes=lambda _: ("surplus#1",))
    assert [*rule.at_the_end(surplus)] == []


def test_a_termination_for_maintenance_that_is_far_ahead_may_stay_open():
    asked, later = AskedOf(), ENDS_WITHIN + 1
    far, near = later + FAR_AHEAD.total_seconds() + 1, later + FAR_AHEAD.total_seconds() - 1
    for instance, takes in ((INSTANCE, far), (OTHER, near)):
        asked.read([Asked(at=0, instance=instance, kind=Kind.MAINTENANCE, takes=takes)])
    stays = a_view(later, open_since={INSTANCE: 0.0, OTHER: 0.0})
    assert [*DeletedClusters(asked).at_the_end(stays)] == [f"the termination of {OTHER} is open"]


def test_the_rule_is_checked_after_each_event(world, checker):
    world.cluster_deleted = world.now - UNDER_WAY - 1
    assert checker.after_event(world) == []
    world.terminations.append(MEMBER)
    assert rules(checker.after_event(world)) == [Rule.CLUSTER_GONE]
