"""`kubectl delete node` in virtual time, where the policy asks for our finalizer, and where it does not."""

from itertools import product

import pytest

from leeward.model import well_known
from leeward.policy.repair import RepairPolicy
from local.cluster.objects import is_deleting
from simulation.fault_rates import Faults
from simulation.owners import set_desired
from tests.drawing import drawn
from tests.simulation.fleet_stand_in import GroupPlan
from tests.simulation.health_stand_in import BEGIN, GROUP, MINUTE, Clinic, paused, written

WITH = written(finalizer=True)
FULL = (9, 9, 9)


def finalizers(clinic):
    return [node["metadata"].get("finalizers", []) for node in clinic.world.cluster.list("nodes")]


def test_every_node_of_such_a_group_carries_it_and_no_other_node_does():
    assert finalizers(Clinic(WITH).run(0.2, 600)) == [[well_known.FINALIZER]] * 9
    assert finalizers(Clinic().run(0.2, 600)) == [[]] * 9


def test_a_deleted_node_is_drained_its_instance_ended_and_replaced_by_the_group():
    clinic = Clinic(WITH).delete_node(4).run()
    assert clinic.ended() == {4}
    assert clinic.causes(4)[0] == "node_deleted"
    assert clinic.sizes == FULL
    assert list(clinic.world.decrements) == []
    assert clinic.since_the_beginning(4, "drained") <= clinic.since_the_beginning(4, "terminating")
    assert clinic.world.cluster.history.violations() == []


def test_it_begins_within_a_minute():
    clinic = Clinic(WITH).delete_node(4).run()
    assert clinic.since_the_beginning(4, "claimed") - BEGIN <= MINUTE + 1


def test_all_nodes_of_a_group_can_be_deleted_at_once():
    clinic = Clinic(WITH)
    for number in range(9):
        clinic.delete_node(number)
    clinic.run(2)
    assert clinic.ended() == set(range(9))
    assert clinic.sizes == FULL
    assert clinic.world.cluster.history.violations() == []


def test_without_it_a_deleted_node_is_only_deleted():
    """The instance goes on running, as everywhere in Kubernetes."""
    clinic = Clinic(written(repair=RepairPolicy(enabled=False))).delete_node(4).run()
    assert (clinic.ended(), clinic.causes(4)) == (set(), [])


def test_a_node_whose_instance_is_ended_at_ec2_does_not_stay_behind():
    clinic = Clinic(WITH)
    clinic.at(BEGIN, lambda: clinic.world.fleet.end_instance(clinic.instance(4), direct=True)).run()
    assert clinic.ended() == {4}
    assert clinic.sizes == FULL
    assert not [node for node in clinic.world.cluster.list("nodes") if is_deleting(node)]


def test_in_a_paused_cluster_it_waits_but_not_for_an_instance_that_is_gone():
    clinic = Clinic(paused(WITH), groups=(GroupPlan(name=GROUP, size=9, maximum=9, spot=False),))

    def hold():
        """As it was before an operator paused the cluster."""
        for number in (4, 5):
            clinic.world.cluster.patch(
                "nodes", clinic.instance(number).node, {"metadata": {"finalizers": [well_known.FINALIZER]}}
            )

    clinic.at(BEGIN - 1, hold).delete_node(4).delete_node(5)
    clinic.at(BEGIN + 1, lambda: clinic.world.fleet.end_instance(clinic.instance(5), direct=True))
    clinic.run()
    deleting = [node["metadata"]["name"] for node in clinic.world.cluster.list("nodes") if is_deleting(node)]
    assert deleting == [clinic.instance(4).node]
    assert clinic.ended() == {5}


def test_after_an_outage_of_the_api_it_is_carried_out():
    clinic = Clinic(WITH).delete_node(4, at=BEGIN + 10).outage(at=BEGIN + 5, minutes=20).run()
    assert clinic.ended() == {4}
    assert clinic.since_the_beginning(4, "claimed") > BEGIN + 20 * MINUTE
    assert clinic.sizes == FULL


@pytest.mark.parametrize("seed", range(3))
def test_whatever_else_goes_wrong_no_node_stays_behind(seed):
    clinic = Clinic(WITH, faults=Faults.all(), seed=seed).delete_node(4).run(1.5, converge=4 * 3600.0 + 30, quiet=False)
    assert 4 in clinic.ended()
    assert not [node for node in clinic.world.cluster.list("nodes") if is_deleting(node)]


@pytest.mark.parametrize(("after", "part"), drawn(product((False, True), range(3))))
def test_killed_at_any_call_it_ends_in_the_same_state(after, part):
    calls = Clinic(WITH).delete_node(4).run().world.injector.calls
    for call in range(60, calls, max(calls // 12, 1))[part::3]:
        clinic = Clinic(WITH, faults=Faults(kill_call=call, kill_after=after)).delete_node(4).run(quiet=False)
        assert (clinic.ended(), clinic.sizes) == ({4}, FULL), call


def test_a_group_that_is_being_removed_is_drained_node_by_node():
    """A tool that deletes a group sets its size to zero first: CloudFormation, Terraform, eksctl, EKS itself."""
    other = GroupPlan(name="other", size=3, maximum=12, spot=False)
    clinic = Clinic(WITH, groups=(GroupPlan(name=GROUP, size=9, maximum=12, spot=False), other))
    clinic.at(BEGIN, lambda: set_desired(clinic.world, clinic.world.fleet.groups[GROUP], 0, "its owner")).run(2)
    assert clinic.world.fleet.groups[GROUP].members == {}
    assert clinic.world.cluster.history.violations() == []
    assert len(clinic.world.cluster.list("nodes")) == 3
    assert all("asg_terminate" in clinic.causes(number) for number in range(9))


def test_once_its_policy_is_removed_the_group_keeps_its_nodes_and_nothing_of_ours():
    clinic = Clinic(WITH)
    nothing = written(groups=("absent",))
    clinic.rewrite(nothing).run()
    assert (clinic.ended(), clinic.sizes) == (set(), FULL)
    assert finalizers(clinic) == [[]] * 9
    assert list(clinic.world.fleet.groups[GROUP].hooks) == []


def test_a_drain_that_has_begun_goes_on_when_its_policy_is_removed():
    clinic = Clinic(WITH).delete_node(4)
    nothing = written(groups=("absent",))
    clinic.rewrite(nothing, at=BEGIN + MINUTE + 5).run()
    assert clinic.ended() == {4}
    assert clinic.since_the_beginning(4, "drained") <= clinic.since_the_beginning(4, "terminating")
    assert not [node for node in clinic.world.cluster.list("nodes") if is_deleting(node)]
