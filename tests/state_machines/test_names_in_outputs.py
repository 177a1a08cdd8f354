"""Outputs and failures of executions name the node, its group and its cluster, for readers of Step Functions alone."""

from dataclasses import replace
from datetime import timedelta

from leeward.disruption.run import DisruptionRun
from leeward.disruption.run import Next as DisruptionNext
from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from leeward.upgrade.run import Next as UpgradeNext
from leeward.upgrade.run import Run as UpgradeRun
from tests.fakes.builders import CLUSTER, GROUP, a_subject
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, spot
from tests.state_machines.walker import Walker

NODE = f"node-{I}"


def test_a_termination_names_node_group_and_cluster_in_its_output():
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)])
    spot(system)
    output = Walker(system).run(I).output
    assert (output["instance"], output["node"], output["group"], output["cluster"]) == (I, NODE, GROUP, CLUSTER)


def test_a_drain_that_gives_up_names_them_in_its_cause():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=DrainPolicy(timeout=timedelta(minutes=2)))
    claim(system, CauseKind.MANUAL)
    walk = Walker(system).run(I)
    assert walk.ended == "PodEvictionFailure"
    assert walk.cause.startswith(f"{NODE} ({I}), group {GROUP}, cluster {CLUSTER}: ")
    assert "shop/web-1" in walk.cause


def test_a_node_that_the_claim_did_not_know_is_named_once_its_drain_has_found_it():
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)])
    record = spot(system)
    system.claims.records[I] = replace(record, subject=a_subject(I, node=None))
    assert Walker(system).run(I).output["node"] == NODE


def test_a_failure_of_the_claim_has_a_cause_though_nothing_is_known_yet():
    system = a_system()
    spot(system)
    system.claims.read = None  # every step fails
    walk = Walker(system).run(I)
    assert walk.ended == "NodeTerminationFailure"
    assert "not callable" in walk.cause


def test_an_upgrade_names_group_and_cluster():
    run = UpgradeRun(group="web", execution="web-1", next=UpgradeNext.CHECK, cluster="blue")
    assert UpgradeRun.from_json(run.to_json()) == run
    assert run.to_json()["about"] == "group web, cluster blue"


def test_a_disruption_run_names_its_nodes_and_groups_up_to_a_limit():
    run = DisruptionRun(cluster="blue", number=7, next=DisruptionNext.VALIDATE)
    named = run.naming([f"n{number:02}" for number in range(30)], ["web"])
    assert (len(named.nodes), named.groups) == (20, ("web",))
    assert DisruptionRun.from_json(named.to_json()) == named
    assert run.naming(["n2", "n1"], ["web"]).about == "run 7 of cluster blue (n1, n2)"
