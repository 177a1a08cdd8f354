"""`leeward drain --cancel` on a simulated cluster, whose rules hold: the deployed state machine takes it back."""

import pytest

from leeward.model.termination import Outcome
from recordings.scenes import Recording
from recordings.stage import shop


@pytest.fixture
def stage():
    """Eight nodes; a budget lets one pod of a workload go at a time, and a pod is Ready after 22 s."""
    return shop(web=3, spot=3)


def typed(stage, *arguments):
    recording = Recording(stage=stage, columns=150)
    code = recording.run("drain", *arguments)
    return code, ["".join(run.text for run in row) for row in recording.frames[-1].rows]


def test_a_drain_is_taken_back_while_pods_are_leaving_and_its_node_takes_pods_again(stage):
    node = max(stage.kubernetes.nodes(), key=lambda node: len(stage.kubernetes.pods_on(node.name)))
    claims, desired = stage.system.claims, {name: group.desired for name, group in stage.fleet.groups.items()}
    assert typed(stage, node.name, "--yes", "--wait=false")[0] == 0
    for _ in range(120):  # seconds, at most
        if claims.read(node.instance_id).pods_evicted:
            break
        stage.timeline.run_until(stage.timeline.now() + 1)
    assert claims.read(node.instance_id).pods_evicted
    assert "terminating" not in claims.read(node.instance_id).times
    began = stage.timeline.now()
    code, lines = typed(stage, node.name, "--cancel")
    assert code == 0
    assert any("left and " in line and "not moved back" in line for line in lines)
    assert any("in service again: leeward drain --cancel has taken the drain back" in line for line in lines)
    assert stage.timeline.now() - began < 30
    after = next(one for one in stage.kubernetes.nodes() if one.name == node.name)
    assert (after.taken_out, after.unschedulable) == (False, False)
    record = claims.read(node.instance_id)
    assert (record.outcome, record.causes) == (Outcome.RETURNED_TO_SERVICE, ())
    stage.timeline.run_until(stage.timeline.now() + 900)  # the minute reconciler starts nothing again
    assert claims.read(node.instance_id).attempt == 1
    assert {name: group.desired for name, group in stage.fleet.groups.items()} == desired
    assert stage.violations == []


def test_nodes_of_a_zone_are_drained_by_their_label_and_taken_back_together(stage):
    """One of each group: two of one group at once would break the rule of maxUnavailable."""
    label = "topology.kubernetes.io/zone=us-east-1c"
    zone = {node.name: node.instance_id for node in stage.kubernetes.nodes() if "us-east-1c" in node.labels.values()}
    assert len(zone) == 2
    assert typed(stage, "-l", label, "--yes", "--wait=false")[0] == 0
    assert set(stage.system.claims.records) == set(zone.values())
    stage.timeline.run_until(stage.timeline.now() + 3)
    code, _ = typed(stage, "-l", label, "--cancel")
    assert code == 0
    assert {node.name for node in stage.kubernetes.nodes() if node.taken_out} == set()
    assert len(stage.kubernetes.nodes()) == 8
    assert stage.violations == []
