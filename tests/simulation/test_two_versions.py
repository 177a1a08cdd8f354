"""Execution environments of two versions of Leeward that share the table during an update of the stack."""

from dataclasses import replace
from random import Random

import pytest

from leeward.disruption.record import DisruptionRecord
from leeward.errors import NewerRecordError
from leeward.model.codec import encode
from leeward.model.termination import CauseKind, Outcome, TerminationRecord
from leeward.upgrade.record import UpgradeRecord
from simulation import fleets as plans
from simulation.aws.items import termination_item
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.mishaps import versions
from simulation.mishaps.versions import TwoVersions, TwoWires
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival, budget, deployment

LASTS = 600.0  # seconds, of which the world warms up for 180
FIRST = "i-00000000000000001"
FLEET = replace(SMALL, workloads=(deployment(replicas=6), budget(unavailable=6)))


@pytest.fixture(autouse=True)
def records(monkeypatch):
    """(record, what the calling environment reads) of each read, None where it cannot."""
    reads, parsed = [], TwoWires.parsed

    def observed(wire, key, record):
        try:
            reads.append((record, parsed(wire, key, record)))
        except NewerRecordError:
            reads.append((record, None))
            raise
        return reads[-1][1]

    monkeypatch.setattr(TwoWires, "parsed", observed)
    return reads


def a_world(monkeypatch, *, newer, unreadable=0.0, arrivals=(), fleet=FLEET):
    """A world with an update from the first second; environments of these functions are of the newer version."""
    world = World(1, fleet, Faults.none(), arrivals)
    monkeypatch.setattr(versions, "UNREADABLE", unreadable)
    monkeypatch.setattr(
        TwoWires, "_is_newer", lambda wire: world.invocations.environment().partition("-")[0] in {"", *newer}
    )
    mishap = TwoVersions(world, Random(1))
    mishap._wire.update(LASTS)
    return world, mishap


def survives(reads):
    """Whether each record is the same for its reader, to the millisecond, but for the kinds that it does not know."""
    known = [(record, read) for record, read in reads if read is not None]
    alike = [
        pair for pair in known if not any(cause.kind is CauseKind.OTHER for cause in getattr(pair[1], "causes", ()))
    ]
    item = {TerminationRecord: termination_item, UpgradeRecord: encode, DisruptionRecord: encode}
    return alike and all(item[type(record)](read) == item[type(record)](record) for record, read in alike)


@pytest.mark.long  # seconds: a planner and upgrades
def test_every_record_of_a_run_survives_the_wire(records):
    features = (Feature.TWO_VERSIONS, Feature.NO_FAULTS)
    case = Case(seed=2, hours=0.3, per_hour=20, upgrades=8, disruption=True, features=features)
    assert case.world().run(0.3, converge=60).unexpected == ()
    assert {type(record) for record, _ in records} == {TerminationRecord, UpgradeRecord, DisruptionRecord}
    assert survives(records)


def test_a_node_is_drained_for_a_cause_that_the_older_version_does_not_know(monkeypatch, records):
    world, mishap = a_world(monkeypatch, newer=())
    mishap._scene.timeline.after(200, mishap._drain, "test")
    outcome = world.run(0.3, converge=900)
    assert (outcome.violations, outcome.unexpected) == ((), ())
    assert CauseKind.OTHER in {cause.kind for _, known in records for cause in known.causes}
    assert [record.outcome for record in world.records.values()] == [Outcome.TERMINATED]


def test_the_pods_of_a_spot_instance_leave_although_its_record_cannot_be_read(monkeypatch, records):
    warned = Arrival(at_seconds=20, kind="spot_warning")
    world, _ = a_world(monkeypatch, newer={"interruption", "terminate"}, unreadable=1.0, arrivals=(warned,))
    left = []

    def look():
        node = world.fleet.instances[FIRST].node
        left.extend(pod["metadata"]["name"] for pod in world.cluster.store.pods_on(node))

    world.timeline.at(world.timeline.now() + 180 + 20 + 110, look, "test")
    outcome = world.run(0.3, converge=900)
    assert outcome.unexpected == ()
    assert any(known is None for _, known in records)
    assert left == []
    assert survives(records)
    assert world.records[FIRST].outcome is Outcome.TERMINATED


def test_a_short_hook_holds_its_instance_while_only_a_newer_version_can_read_the_record(monkeypatch):
    (policy,) = FLEET.policies.policies
    plan = {name: value for name, value in vars(FLEET.groups[0]).items() if name != "hooks"}
    group = plans.GroupPlan(**plan, hooks=(plans.HookPlan(name="short", timeout=180),))
    policy = replace(policy, interruption=replace(policy.interruption, hooks=("short",)))
    fleet = replace(FLEET, groups=(group,), policies=replace(FLEET.policies, policies=(policy,)))
    world, _ = a_world(monkeypatch, newer={"interruption"}, unreadable=1.0, fleet=fleet)
    world.timeline.at(world.timeline.now() + 200, lambda: world.fleet.unhealthy(world.fleet.instances[FIRST]), "test")
    outcome = world.run(0.3, converge=900)
    assert (outcome.violations, outcome.hooks_timed_out) == ((), 0)
    assert world.records[FIRST].outcome is Outcome.TERMINATED
