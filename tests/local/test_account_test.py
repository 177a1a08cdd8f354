"""`make account-test` against the local stack: what it plays there, and that nothing of it is left, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from account_test.journal import Journal
from account_test.on_local_stack import prepared
from account_test.run import FOLDER, TAG
from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan, Network
from local.workloads import apply_roles
from tests.local.chain.conftest import called
from tests.local.deployment import deploy

pytestmark = pytest.mark.local

PATIENCE = 1800.0  # seconds: only how long one that does not end takes
STAGE = {
    *("deploy and delete", "deploy with kmsKey", "deploy with a webhook", "deploy with a member account"),
    "deploy with vpc",
}
STEPS = {
    *(
        "deploy and delete",
        "deployment",
        "launch rights",
        "SDK of the runtime",
        "IAM",
        "state machines",
        "manual termination",
        "scale-in",
    ),
    *("spot interruption", "self-managed upgrade", "managed upgrade", "consolidation", "another team's hook", "states"),
}


@pytest.fixture(scope="module")
def local():
    """A bootstrapped account with a cluster, which the environment points to, and another account."""
    with prepared(member=True) as found:
        yield found


@pytest.fixture
def plain():
    """One account alone."""
    with prepared() as found:
        yield found


def extras(local):
    return (
        *("--security-groups", local.security_group, "--kms-key", local.kms_key),
        *("--webhook-secret", local.secret, "--member", local.member),
    )


def started(local, *more):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "account_test", "--cluster", local.stack.cluster, "--yes"),
            *("--endpoint-url", local.stack.endpoint, "--subnets", ",".join(local.subnets), "--image", local.image),
            *more,
        ],
        env=local.stack.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process):
    """(exit code, what it printed)."""
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output


def run_of(output):
    return output.split("This run ")[1].split()[0]


def results_of(run):
    document = json.loads((FOLDER / run / "results.json").read_text())
    return {one["name"]: one for one in document["results"]}


def things_of(stack, run):
    """Everything in the local AWS and the cluster whose name or tag says that it is of the run."""
    pages = {
        "stacks": (stack.client("cloudformation").describe_stacks, "Stacks", "StackName"),
        "groups": (
            stack.client("autoscaling").describe_auto_scaling_groups,
            "AutoScalingGroups",
            "AutoScalingGroupName",
        ),
        "templates": (stack.client("ec2").describe_launch_templates, "LaunchTemplates", "LaunchTemplateName"),
        "roles": (stack.client("iam").list_roles, "Roles", "RoleName"),
        "profiles": (stack.client("iam").list_instance_profiles, "InstanceProfiles", "InstanceProfileName"),
        "rules": (stack.client("events").list_rules, "Rules", "Name"),
        "functions": (stack.client("lambda").list_functions, "Functions", "FunctionName"),
        "machines": (stack.client("stepfunctions").list_state_machines, "stateMachines", "name"),
        "logs": (stack.client("logs").describe_log_groups, "logGroups", "logGroupName"),
    }
    found = [
        f"{kind}: {one[name]}"
        for kind, (call, key, name) in pages.items()
        for one in call()[key]
        if run in one[name] and one.get("StackStatus") != "DELETE_COMPLETE"
    ]
    found += [url for url in stack.client("sqs").list_queues().get("QueueUrls", ()) if run in url]
    found += [name for name in stack.client("dynamodb").list_tables()["TableNames"] if run in name]
    eks = stack.client("eks")
    found += [name for name in eks.list_nodegroups(clusterName=stack.cluster)["nodegroups"] if run in name]
    found += [arn for arn in eks.list_access_entries(clusterName=stack.cluster)["accessEntries"] if run in arn]
    found += [
        f"namespace {one['metadata']['name']}"
        for one in stack.kubernetes("GET", "/api/v1/namespaces")["items"]
        if run in one["metadata"]["name"] and one["status"].get("phase") != "Terminating"
    ]
    filters = [
        {"Name": f"tag:{TAG}", "Values": [run]},
        {"Name": "instance-state-name", "Values": ["running", "pending"]},
    ]
    reservations = stack.client("ec2").describe_instances(Filters=filters)["Reservations"]
    return found + [one["InstanceId"] for each in reservations for one in each["Instances"]]


@pytest.mark.long
def test_deployed_deleted_and_deployed_again_everything_is_kept_and_nothing_stays(plain):
    code, output = finished(started(plain, "--only", "deploy"))
    assert code == 0, output
    run = run_of(output)
    found = results_of(run)
    assert {name: one["outcome"] for name, one in found.items()} == {"deploy and delete": "kept", "deployment": "kept"}
    assert "nothing of it stays in the account" in json.dumps(found["deploy and delete"])
    assert "It starts no instance" in output
    assert things_of(plain.stack, run) == []


@pytest.mark.long
def test_the_first_stage_deploys_with_every_setting_that_it_is_given(local):
    code, output = finished(started(local, "--only", "deploy", *extras(local)))
    assert code == 0, output
    run = run_of(output)
    found = results_of(run)
    assert {name: one["outcome"] for name, one in found.items()} == dict.fromkeys(STAGE | {"deployment"}, "kept")
    promises = [one["promise"] for one in found["deploy with a member account"]["findings"]]
    assert f"test-{run}-leeward-drain assumes its role in the member account" in promises
    assert "nothing of it stays in both accounts" in promises
    assert things_of(local.stack, run) == []


@pytest.mark.long
def test_a_deployment_that_fails_names_the_resource_and_the_fix_and_what_is_left(local):
    """Of all resources the local CloudFormation refuses an event bus alone whose name is taken."""
    events, lines, bus = local.stack.client("events"), [], ""
    with started(local, "--only", "member", "--member", local.member) as process:
        for line in process.stdout:
            lines.append(line)
            if "This run " in line:
                run = run_of(line)
                bus = f"test-{run}-leeward-members"
                events.create_event_bus(Name=bus)
    output = "".join(lines)
    assert process.wait(PATIENCE) == 1, output
    rows = {one["name"]: one for one in results_of(run).values()}
    assert {name: one["outcome"] for name, one in rows.items()} == {
        "deploy with a member account": "broken",
        "deployment": "kept",
    }, output
    why = rows["deploy with a member account"]["why"]
    assert "AWS::Events::EventBus" in why
    assert "already exists" in why
    assert "Fix: it is left from an earlier deployment" in why
    assert f"STILL THERE: event bus {bus}" in output
    command = [sys.executable, "-m", "account_test", "--remove", run]
    events.delete_event_bus(Name=bus)
    assert subprocess.run(command, env=local.stack.environment(), check=False).returncode == 0
    assert things_of(local.stack, run) == []


@pytest.mark.long
def test_a_scale_in_is_played_and_judged_and_everything_is_removed(local):
    code, output = finished(started(local, "--only", "SDK,IAM,scale-in"))
    assert code == 0, output
    run = run_of(output)
    found = results_of(run)
    assert {name: one["outcome"] for name, one in found.items()} == {
        "deployment": "kept",
        "SDK of the runtime": "kept",
        "IAM": "unproven",
        "scale-in": "kept",
    }, output
    assert len(found["scale-in"]["findings"]) == 9
    assert "everything that this run made is removed" in output
    assert Journal.load(run).left == []
    assert things_of(local.stack, run) == []
    assert (FOLDER / run / "report.html").stat().st_size > 10_000
    assert "| scale-in | kept |" in (FOLDER / run / "results.md").read_text()


def usual(stack, subnets):
    """The usual Leeward with a group of its own; answers the group's state, which must not change."""
    deploy(stack, scenario.settings(stack))
    apply_roles(stack)
    fleet.build_group(stack, Network(vpc="", subnets=subnets), GroupPlan(name="web-usual", size=2))
    deadline = time.monotonic() + PATIENCE
    while sum(scenario.is_ready(node) for node in ledger.nodes(stack).values()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.3)
    called(stack, "sync")


def state_of_the_usual(stack):
    client = stack.client("autoscaling")
    group = client.describe_auto_scaling_groups(AutoScalingGroupNames=["web-usual"])["AutoScalingGroups"][0]
    hooks = client.describe_lifecycle_hooks(AutoScalingGroupName="web-usual")["LifecycleHooks"]
    nodes = ledger.nodes(stack)
    members = [one["InstanceId"] for one in group["Instances"]]
    spec = {one: (nodes[one]["spec"].get("taints"), nodes[one]["spec"].get("unschedulable")) for one in members}
    return (
        group["DesiredCapacity"],
        group["MaxSize"],
        hooks,
        spec,
        ledger.terminations(stack),
        ledger.executions(stack),
    )


@pytest.mark.long
def test_the_whole_of_it_runs_beside_the_usual_deployment_and_touches_nothing_of_it(local):
    stack = local.stack
    usual(stack, local.subnets)
    before = state_of_the_usual(stack)
    assert [hook["LifecycleHookName"] for hook in before[2]] == ["leeward-terminate"]
    code, output = finished(started(local))
    assert code == 0, output
    run = run_of(output)
    found = results_of(run)
    assert set(found) == STEPS
    assert {name for name, one in found.items() if one["outcome"] == "broken"} == set(), output
    assert {name for name, one in found.items() if one["outcome"] == "not run"} <= {"states"}, output
    assert {name for name, one in found.items() if one["outcome"] == "unproven"} == {"IAM", "launch rights"}, output
    assert things_of(stack, run) == []
    assert state_of_the_usual(stack) == before
    assert stack.kubernetes("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/leeward-act")


def journal_with(local, process, kind):
    """Wait until the run has written down a thing of this kind; its id."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        for path in FOLDER.glob("*.json"):
            document = json.loads(path.read_text())
            mine = document["run"]["endpoint"] == local.stack.endpoint
            if mine and any(one["kind"] == kind for one in document["made"]):
                return str(document["run"]["id"])
        time.sleep(0.1)
    raise AssertionError(f"no {kind} was written down: {finished(process)}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "only"),
    [
        ("rule", "deploy"),
        ("stack", "deploy"),
        ("process", "deploy"),
        ("stack", "manual"),
        ("auto-scaling-group", "manual"),
    ],
)
def test_killed_at_any_moment_it_is_removed_by_another_command(local, kind, only):
    process = started(local, "--only", only)
    run = journal_with(local, process, kind)
    process.kill()
    process.communicate()
    assert things_of(local.stack, run) or kind == "process"
    command = [sys.executable, "-m", "account_test", "--remove", run]
    done = subprocess.run(command, env=local.stack.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert things_of(local.stack, run) == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_removes_what_it_made_and_says_so(local, number):
    process = started(local, "--only", "manual")
    run = journal_with(local, process, "auto-scaling-group")
    os.kill(process.pid, number)
    code, output = finished(process)
    assert code == 130, output
    assert "interrupted: what was made is removed now" in output
    assert things_of(local.stack, run) == []
