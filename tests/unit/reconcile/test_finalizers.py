"""Our finalizer on Nodes: who gets it, who loses it, and what a deleted Node leads to."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known
from leeward.cluster.state import ClusterState
from leeward.errors import AwsUnavailableError
from leeward.model import well_known
from leeward.model.node import disruption_taint
from leeward.model.termination import CauseKind, Outcome
from leeward.policy.document import DrainPolicy
from leeward.reconcile.finalizers import is_wanted
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import DEPLOYMENT, GROUP, a_group, a_node, a_policy, an_instance, our_hook, policies
from tests.fakes.system import FakeSystem
from tests.state_machines.test_walks import a_budget, a_pod
from tests.state_machines.walker import Walker

I, OTHER = "i-0abc", "i-0def"  # noqa: E741  (the instance of every story)
NODE = f"node-{I}"
HELD = (well_known.FINALIZER,)
WITH = replace(a_policy(), finalizer=True)
WITHOUT = a_policy()


def a_system(*, policy=WITH, held=True, hooks=(), pods=(), budgets=(), **settings):
    """Two nodes of a group; `held`: they carry the finalizer already."""
    nodes = [replace(a_node(name), finalizers=HELD if held else ()) for name in (I, OTHER)]
    system = FakeSystem(
        instances=[an_instance(name) for name in (I, OTHER)],
        groups=[a_group(GROUP, I, OTHER)],
        hooks=hooks,
        nodes=nodes,
        written=policies(policy, **settings),
    )
    for pod in pods:
        system.kubernetes.put_pod(pod)
    system.kubernetes.budget_list = list(budgets)
    return system


def finalizers(system, name=NODE):
    return system.kubernetes.by_name[name].finalizers


def delete_node(system, name=NODE):
    """As `kubectl delete node` does."""
    system.kubernetes.delete_node(system.kubernetes.by_name[name])


def ends(system, instance=I, state="terminated"):
    system.instances.set_state(instance, state)
    node = system.kubernetes.by_name[f"node-{instance}"]
    system.kubernetes.put_node(replace(node, ready=False))


class TestWhoGetsIt:
    def test_nodes_of_groups_whose_policy_asks_for_it(self):
        system = a_system(held=False)
        assert sorted(reconcile_once(system.ports).finalizers_added) == [NODE, f"node-{OTHER}"]
        assert finalizers(system) == HELD
        assert reconcile_once(system.ports).finalizers_added == []

    def test_no_node_by_default(self):
        system = a_system(policy=WITHOUT, held=False)
        assert reconcile_once(system.ports).finalizers_added == []
        assert finalizers(system) == ()

    def test_no_node_in_a_paused_cluster(self):
        system = a_system(held=False, paused="all")
        assert reconcile_once(system.ports).finalizers_added == []

    def test_no_node_that_is_on_its_way_out(self):
        system = a_system(held=False)
        mark = disruption_taint(DEPLOYMENT)
        system.kubernetes.put_node(replace(a_node(I), taints=(mark,)))
        system.kubernetes.put_node(replace(a_node(OTHER), deleting=True, finalizers=("other.dev/backup",)))
        assert reconcile_once(system.ports).finalizers_added == []

    def test_no_node_of_a_lone_instance(self):
        system = a_system(held=False)
        system.kubernetes.put_node(a_node("i-0lone"))
        reconcile_once(system.ports)
        assert finalizers(system, "node-i-0lone") == ()


class TestWhoLosesIt:
    @pytest.mark.parametrize("paused", ["", "voluntary", "all"])
    @pytest.mark.parametrize("policy", [WITH, WITHOUT])
    def test_a_node_whose_instance_is_gone_also_in_a_paused_cluster(self, policy, paused):
        system = a_system(policy=policy, paused=paused)
        ends(system)
        assert NODE in reconcile_once(system.ports).finalizers_removed
        assert finalizers(system) == ()

    def test_one_whose_instance_ec2_has_forgotten(self):
        system = a_system()
        ends(system)
        system.instances.forget(I)
        assert reconcile_once(system.ports).finalizers_removed == [NODE]

    def test_a_deleted_node_goes_with_it(self):
        system = a_system()
        ends(system)
        delete_node(system)
        assert reconcile_once(system.ports).finalizers_removed == [NODE]
        assert NODE not in system.kubernetes.by_name

    def test_before_all_else(self):
        system = a_system(paused="all")
        ends(system)
        system.claims.fail("open_instances", AwsUnavailableError("the table is away"))
        with pytest.raises(AwsUnavailableError):
            reconcile_once(system.ports)
        assert finalizers(system) == ()

    def test_no_node_whose_kubelet_reports_and_ec2_is_not_even_asked(self):
        system = a_system()
        reconcile_once(system.ports)
        asked = system.instances.asked["describe"]  # for the labels of new nodes
        reconcile_once(system.ports)
        assert finalizers(system) == HELD
        assert system.instances.asked["describe"] == asked

    def test_no_node_whose_instance_only_stops(self):
        system = a_system()
        ends(system, state="stopping")
        reconcile_once(system.ports)
        assert finalizers(system) == HELD

    def test_every_node_once_the_policy_does_not_ask_for_it_any_more(self):
        system = a_system(policy=WITHOUT)
        assert sorted(reconcile_once(system.ports).finalizers_removed) == [NODE, f"node-{OTHER}"]
        assert finalizers(system) == ()

    def test_every_node_once_no_policy_selects_the_group_any_more(self):
        system = a_system(policy=a_policy("other", "batch-*"))
        assert len(reconcile_once(system.ports).finalizers_removed) == 2

    def test_other_finalizers_stay(self):
        system = a_system(policy=WITHOUT)
        system.kubernetes.put_node(replace(a_node(I), finalizers=("other.dev/backup", *HELD)))
        reconcile_once(system.ports)
        assert finalizers(system) == ("other.dev/backup",)

    def test_no_node_whose_deletion_is_being_carried_out_though_the_policy_is_gone(self):
        system = a_system()
        delete_node(system)
        reconcile_once(system.ports)
        system.clusters.policies_of["blue"] = policies(WITHOUT)
        assert NODE not in reconcile_once(system.ports).finalizers_removed
        assert finalizers(system) == HELD

    def test_no_node_while_the_api_server_is_away(self):
        system = a_system(policy=WITHOUT)
        system.kubernetes.down = True
        found = reconcile_once(system.ports)
        assert (found.finalizers_removed, len(found.errors)) == ([], 1)


class TestADeletedNode:
    def test_is_claimed_and_its_termination_started(self):
        system = a_system()
        delete_node(system)
        assert reconcile_once(system.ports).deleted == [I]
        (cause,) = system.claims.records[I].causes
        assert (cause.kind, NODE in cause.reason) == (CauseKind.NODE_DELETED, True)
        assert system.executions.open == {f"{I}-1"}
        assert reconcile_once(system.ports).deleted == []

    def test_waits_in_a_paused_cluster(self):
        system = a_system(paused="all")
        delete_node(system)
        assert reconcile_once(system.ports).deleted == []
        assert NODE in system.kubernetes.by_name

    def test_without_the_finalizer_is_none_of_our_business(self):
        system = a_system(policy=WITHOUT, held=False)
        system.kubernetes.put_node(replace(a_node(I), deleting=True, finalizers=("other.dev/backup",)))
        assert reconcile_once(system.ports).deleted == []

    def test_of_an_instance_that_ended_meanwhile_only_goes(self):
        system = a_system()
        delete_node(system)
        system.instances.set_state(I, "shutting-down")
        found = reconcile_once(system.ports)
        assert (found.deleted, found.finalizers_removed) == ([], [NODE])

    def test_is_drained_and_ended_and_the_group_replaces_it(self):
        system = a_system(hooks=[our_hook()], pods=[a_pod()])
        delete_node(system)
        reconcile_once(system.ports)
        walk = Walker(system).run(I)
        assert walk.error == ""
        assert system.kubernetes.done == ["evict shop/web-1"]
        assert system.groups.terminated == [(I, False)]  # without decrement: the group replaces it
        assert system.groups.launches == []
        assert NODE not in system.kubernetes.by_name
        assert system.claims.records[I].outcome is Outcome.TERMINATED

    def test_that_cannot_be_drained_stays_tainted_and_is_tried_again(self):
        policy = replace(WITH, drain=DrainPolicy(timeout=timedelta(minutes=2)))
        system = a_system(policy=policy, pods=[a_pod()], budgets=[a_budget(0)])
        delete_node(system)
        reconcile_once(system.ports)
        walk = Walker(system).run(I)
        assert walk.error == "PodEvictionFailure"
        node = system.kubernetes.by_name[NODE]
        assert (node.deleting, node.tainted, node.unschedulable, node.finalizers) == (True, True, True, HELD)
        assert reconcile_once(system.ports).restarted == []  # it rests
        system.kubernetes.set_allowed("shop/web", 1)
        system.clock.advance(minutes=15)
        assert reconcile_once(system.ports).restarted == [I]
        assert Walker(system).run(I, 2).error == ""
        assert NODE not in system.kubernetes.by_name

    def test_several_and_all_of_a_group_go_each_by_its_own_termination(self):
        system = a_system()
        for name in (NODE, f"node-{OTHER}"):
            delete_node(system, name)
        assert sorted(reconcile_once(system.ports).deleted) == [I, OTHER]

    def test_of_an_instance_that_its_group_retains_waits_for_an_operator_to_drain_it(self):
        system = a_system()
        delete_node(system)
        system.groups.set_lifecycle(GROUP, I, "Terminating:Retained")
        found = reconcile_once(system.ports)
        assert (found.deleted, found.finalizers_removed) == ([], [])

    def test_of_a_detached_instance_is_released(self):
        """No group holds it any more: it is its new owner's, and so is its Node."""
        system = a_system()
        delete_node(system)
        system.groups.by_name[GROUP] = a_group(GROUP, OTHER)
        found = reconcile_once(system.ports)
        assert (found.deleted, found.finalizers_removed) == ([], [NODE])


def test_every_other_end_of_a_node_takes_the_finalizer_off():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    reconcile_once(system.ports)
    assert Walker(system).run(I).error == ""
    assert NODE not in system.kubernetes.by_name


class TestWhetherAPolicyAsksForIt:
    def state(self, *members, nodes):
        return ClusterState(
            cluster="blue",
            policies=policies(WITH),
            groups={GROUP: a_group(GROUP, *members)},
            instances={I: an_instance(I)},
            node_list=Known(tuple(nodes)),
        )

    def test_a_member_of_the_group_has_it(self):
        assert is_wanted(a_node(I), self.state(I, nodes=[a_node(I)]))

    def test_a_node_in_a_warm_pool_has_none_although_its_tag_names_the_group(self):
        """Deleting such a Node must not end the instance that the pool keeps."""
        assert not is_wanted(a_node(I), self.state(nodes=[a_node(I)]))

    def test_a_node_whose_instance_has_a_newer_one_has_none(self):
        """Deleting it must not end the instance that serves under another name."""
        newer = replace(a_node(I), name="renamed", uid="renamed", created=a_node(I).created + timedelta(minutes=1))
        state = self.state(I, nodes=[newer, a_node(I, ready=False)])
        assert (is_wanted(a_node(I), state), is_wanted(newer, state)) == (False, True)
