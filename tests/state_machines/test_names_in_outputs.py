"""Outputs and failures of executions name the node, its group and its cluster, for readers of Step Functions alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.run import DisruptionNext, DisruptionRun
from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from leeward.termination.run import Next as TerminationNext
from leeward.termination.run import Run as TerminationRun
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from tests.fakes.builders import CLUSTER, GROUP, a_subject
from tests.state_machines.graph import Graph
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, spot
from tests.state_machines.walker import Walker, evaluate

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
    assert walk.cause.startswith(f"{I}: ")
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


UPGRADE = UpgradeRun(group=GROUP, execution="x", next=UpgradeNext.CHECK, cluster=CLUSTER)
RUN = DisruptionRun(cluster=CLUSTER, number=7, next=DisruptionNext.VALIDATE)
DOCUMENTS = {
    "node-termination": TerminationRun(
        instance=I, attempt=1, version=1, next=TerminationNext.DRAIN, node=NODE, group=GROUP, cluster=CLUSTER
    ).to_json(),
    "node-group-upgrade": UpgradeRun(group=GROUP, execution="x", next=UpgradeNext.CHECK, cluster=CLUSTER).to_json(),
    "managed-node-group-upgrade": UpgradeRun(
        group=GROUP, execution="x", next=UpgradeNext.CHECK, cluster=CLUSTER
    ).to_json(),
    "disruption": DisruptionRun(cluster=CLUSTER, number=7, next=DisruptionNext.VALIDATE)
    .naming([NODE], [GROUP])
    .to_json(),
}
STARTED = {
    "node-termination": ({"instance": I}, I),
    "node-group-upgrade": ({"group": GROUP}, GROUP),
    "managed-node-group-upgrade": ({"group": GROUP}, GROUP),
    "disruption": ({"cluster": CLUSTER}, CLUSTER),
}
"""Input of a manual start, and the only name that is known then."""
NAMED = {"node-termination": (NODE, GROUP, CLUSTER), "disruption": (NODE, CLUSTER)}
FAILURE = {"Error": "Lambda.TooManyRequestsException", "Cause": "rate exceeded"}
machines = pytest.mark.parametrize("machine", sorted(DOCUMENTS))


def names_of(machine):
    return NAMED.get(machine, (GROUP, CLUSTER))


def expected(machine, failure, names):
    """Names in the cause: a lease that was not acquired has read no record, and knows the input alone."""
    return (STARTED[machine][1],) if failure == "LeaseNotAcquired" else names


@machines
def test_the_cause_of_a_failure_names_what_it_is_about(machine):
    states = {name: state for name, state in Graph(machine).of_type("Fail").items() if name != "InvalidInput"}
    assert len(states) >= 2
    for name, state in states.items():
        document = {**DOCUMENTS[machine], "why": "the budget allows none"}
        cause = evaluate(state["Cause"], document, {})
        assert cause.endswith(": the budget allows none")
        assert [one for one in names_of(machine) if one not in cause] == [], name


@machines
@pytest.mark.parametrize("known", ["everything", "the input alone"])
def test_a_failure_that_could_not_be_recorded_is_named_as_well(machine, known):
    """The step that records a failure fails itself, after any step, also after the first."""
    graph, (started, only) = Graph(machine), STARTED[machine]
    document, names = (DOCUMENTS[machine], names_of(machine)) if known == "everything" else (started, (only,))
    ways = [(task, catcher) for task in graph.tasks.values() for catcher in task["Catch"]]
    ends = {name for name, state in graph.states.items() if state["Type"] == "Fail"} - {"InvalidInput"}
    ways = [(task, catcher) for task, catcher in ways if catcher["Next"] in ends]
    assert ways
    for task, catcher in ways:
        wrapped = task["Arguments"]["Payload"]["run"] == "{% $states.input.run %}"
        given = {"run": document, "error": "e", "cause": "c"} if wrapped else document
        said = evaluate(catcher["Output"], given, {"State": {"Name": "X"}}, error=FAILURE)
        cause = evaluate(graph.states[catcher["Next"]]["Cause"], said, {})
        assert cause.endswith("rate exceeded")
        assert [one for one in expected(machine, catcher["Next"], names) if one not in cause] == []


@machines
def test_the_output_of_an_execution_is_the_document_of_its_last_step(machine):
    """So that it has every name that the document has: no state that succeeds makes another one."""
    graph = Graph(machine)
    assert [name for name, state in graph.of_type("Succeed").items() if "Output" in state] == []
    document = DOCUMENTS[machine]
    assert document["cluster"] == CLUSTER
    assert document.get("group") == GROUP or document["groups"] == [GROUP]


@pytest.mark.parametrize("machine", ["node-group-upgrade", "managed-node-group-upgrade", "disruption"])
def test_a_failure_without_a_name_has_the_reason_alone(machine):
    state = Graph(machine).states["LeaseNotAcquired"]
    assert evaluate(state["Cause"], {"about": "", "why": "found nothing"}, {}) == "found nothing"
