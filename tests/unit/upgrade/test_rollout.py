"""One turn of a running upgrade, run again after a step that was killed."""

from leeward.model.termination import CauseKind
from leeward.upgrade.run import Next
from leeward.upgrade.steps import STEPS
from tests.unit.upgrade.test_stalled import OLD, RUN, a_rolling_group, draining


def test_a_node_that_a_killed_step_has_chosen_is_drained_by_the_next_one():
    """Written down as on its way, and the step died before the claim."""
    system = a_rolling_group()
    draining(system, under_way={OLD: "t.1"}, started=1)
    assert STEPS["drain"](RUN, {}, system.ports).next is Next.WAIT
    (claimed,) = system.claims.records.values()
    assert claimed.instance == OLD
    assert claimed.has(CauseKind.UPGRADE)
    assert system.kubernetes.by_name[f"node-{OLD}"].unschedulable


def test_a_node_that_ended_before_it_was_claimed_is_gone():
    system = a_rolling_group()
    draining(system, under_way={OLD: "t.1"}, started=1)
    system.instances.set_state(OLD, "terminated")
    STEPS["drain"](RUN, {}, system.ports)
    assert not system.claims.records
    assert system.upgrades.records["web-a"].finished == 1
