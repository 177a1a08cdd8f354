"""A stack of an earlier commit's package, code included, updated in place while a drain is open."""

import pytest

from leeward.adapters.folder.policy_files import canonical_parameters
from local import fleet
from local.demo import ledger, scenario
from local.installation import physical_ids, update
from tests.local.chain.conftest import Crew
from tests.local.package.conftest import installed, two_nodes
from tests.local.package.keep import unpacked

pytestmark = [pytest.mark.local, pytest.mark.long]

PATIENT = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web}
spec:
  selector: {groups: ["web-*"]}
  drain: {timeout: 45m, settle: 4s}
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory, package):
    """Installed from the earlier package, its policy a parameter: the earlier command could not apply policies."""
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "policy.yaml").write_text(PATIENT)
    with installed(tmp_path_factory.mktemp("update"), unpacked(folder, package)) as running:
        for name, value in canonical_parameters(["policy.yaml"], running.cluster, folder):
            path = f"/leeward/{running.cluster}/policies/{name}"
            running.client("ssm").put_parameter(Name=path, Value=value, Type="String")
        yield running


def start(stack, instance):
    """Start a manual termination, which has all the time of its policy."""
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-node-termination"
    stack.client("stepfunctions").start_execution(stateMachineArn=machine, input=f'{{"instance": "{instance}"}}')


def code(stack):
    """Digest of the code that the functions run."""
    return stack.client("lambda").get_function_configuration(FunctionName="leeward-drain")["CodeSha256"]


def execution(stack, instance):
    """The one execution of an instance's termination."""
    arn = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-node-termination"
    found = stack.client("stepfunctions").list_executions(stateMachineArn=arn)["executions"]
    (run,) = [run for run in found if run["name"].startswith(instance)] or [None]
    return run


def test_an_open_drain_continues_after_the_update_and_nothing_is_replaced(stack, package):
    team: Crew = two_nodes(stack)
    held, other = team.instances
    team.run_pods(fleet.deployment("app", 2, grace=1), fleet.budget("app", maxUnavailable=0), instance=held)
    team.stack.kubectl("label", "node", team.node_name(other), f"group={team.group}")
    start(stack, held)
    team.until(lambda: (record := team.record(held)) is not None and record.blocked_by, "the drain is held")
    before, opened, earlier = physical_ids(stack), execution(stack, held), code(stack)

    update(stack, package)

    assert code(stack) != earlier
    after = physical_ids(stack)
    assert {name: (before[name], after.get(name)) for name in before if before[name] != after.get(name)} == {}
    going_on = execution(stack, held)
    assert going_on["status"] == "RUNNING"
    assert (going_on["executionArn"], going_on["startDate"]) == (opened["executionArn"], opened["startDate"])
    assert team.record(held).status != "closed"

    stack.kubectl("delete", "pdb", "app")
    record = team.closed(held)
    assert record.outcome == "terminated"
    assert record.evicted == 2
    assert held not in ledger.nodes(stack)
    assert execution(stack, held)["executionArn"] == opened["executionArn"]


def test_after_the_update_a_spot_warning_drains_a_node(stack):
    team = two_nodes(stack)
    victim = team.instances[0]
    stack.emit(scenario.spot_warning(stack, victim))
    assert team.closed(victim).outcome == "terminated"
