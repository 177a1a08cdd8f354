"""One deployment over three accounts: events are forwarded to it, roles are assumed, and each account stands alone."""

import json
import logging
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from leeward.doctor import expected
from local import fleet
from local.accounts import Account, external_id, running
from local.demo import ledger, scenario
from local.fleet import GroupPlan
from local.stack import LocalStack, LocalStackError
from local.workloads import apply_roles
from tests.local.chain.conftest import called, forget_what_is_cached
from tests.tools import need

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.local, pytest.mark.long]

HUB = Account(account="111122223333", region="us-east-1", cluster="blue")
EAST = Account(account="222233334444", region="us-east-1", cluster="east")
WEST = Account(account="333344445555", region="eu-west-1", cluster="west")
PATIENCE = 600.0  # seconds: only how long a test that fails takes
GROUP = "web-spot"  # of one name in every account
SMALL = "web-small"  # in cluster west alone
POLICIES = {"west": "tests/local/accounts/west.yaml"}  # the demo's, and one for the small group


@dataclass
class Team:
    """The group of an account, with a hook of ours."""

    stack: LocalStack
    instances: list[str]


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    """Deployed once; schedules are off, so that a test says when a function runs."""
    need("kubectl")
    pace = {"boot_delay": 0.5, "termination_scale": 0.1, "pod_start": 0.3}
    with running(tmp_path_factory.mktemp("accounts"), HUB, EAST, WEST, **pace) as found:
        found.deploy(POLICIES)
        for stack in (found.hub, *found.members.values()):
            apply_roles(stack)
        for name in ("sync", "disruption-planner", "reconciler"):
            found.hub.client("events").disable_rule(Name=f"leeward-{name}-schedule")
        yield found


@pytest.fixture(scope="module")
def teams(accounts):
    """Three spot instances in each account, in groups of one name."""
    made = {}
    for stack in (accounts.hub, *accounts.members.values()):
        fleet.build_group(stack, fleet.build_network(stack), GroupPlan(name=GROUP, size=3, spot=True))
        instances = [str(member["InstanceId"]) for member in fleet.instances_of(stack, GROUP)]
        made[stack.cluster] = Team(stack=stack, instances=instances)
    for team in made.values():
        until(lambda team=team: all_ready(team), f"nodes of {team.stack.cluster} Ready")
    return made


def all_ready(team):
    nodes = ledger.nodes(team.stack)
    return all(one in nodes and scenario.is_ready(nodes[one]) for one in team.instances)


def until(look, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.2)
    return found


def closed(accounts, instance):
    record = ledger.termination(accounts.hub, instance)
    return record if record is not None and record.status == "closed" else None


def state_of(stack, instance):
    (reservation,) = stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
    return reservation["Instances"][0]["State"]["Name"]


def test_sync_puts_a_hook_on_the_groups_of_every_account(accounts, teams):
    synced = called(accounts.hub, "sync")
    assert synced["errors"] == []
    assert synced["hooksPut"] == [GROUP] * 3
    for team in teams.values():
        hooks = team.stack.client("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName=GROUP)["LifecycleHooks"]
        assert [hook["LifecycleHookName"] for hook in hooks] == ["leeward-terminate"]


def can_act(accounts, function):
    """What the function answers to `leeward doctor`: cluster -> why it cannot act there."""
    answer = accounts.hub.client("lambda").invoke(FunctionName=function, Payload=json.dumps({"check": "accounts"}))
    return json.loads(answer["Payload"].read())["accounts"]


def test_every_function_can_assume_its_role_in_every_account(accounts):
    everywhere = {"blue": "", "east": "", "west": ""}
    assert {name: can_act(accounts, name) for name in expected.ACTING} == dict.fromkeys(expected.ACTING, everywhere)


@pytest.mark.parametrize("cluster", ["east", "west"])
def test_a_spot_warning_in_another_account_is_forwarded_drained_and_completed(accounts, teams, cluster):
    team = teams[cluster]
    victim = team.instances.pop()
    node = ledger.nodes(team.stack)[victim]["metadata"]["name"]
    began = time.monotonic()
    team.stack.emit(scenario.spot_warning(team.stack, victim))
    record = until(lambda: closed(accounts, victim), f"the record of {victim} closed")
    log.info("%s: closed after %.1f s", cluster, time.monotonic() - began)
    assert record.outcome == "terminated"
    assert state_of(team.stack, victim) in {"shutting-down", "terminated"}
    assert node not in {one["metadata"]["name"] for one in ledger.nodes(team.stack).values()}
    until(lambda: len(fleet.instances_of(team.stack, GROUP)) == 3, "the replacement in the group")


def test_a_forged_warning_from_another_account_acts_on_nothing(accounts, teams):
    east, west = teams["east"], teams["west"]
    victim = west.instances[0]
    forged = {**scenario.spot_warning(east.stack, victim), "account": WEST.account, "region": WEST.region}
    east.stack.emit(forged)
    east.stack.emit(scenario.spot_warning(east.stack, victim))
    own = east.instances.pop()
    east.stack.emit(scenario.spot_warning(east.stack, own))
    until(lambda: closed(accounts, own), "the true warning behind the forged ones")
    assert ledger.termination(accounts.hub, victim) is None
    assert not ledger.nodes(west.stack)[victim]["spec"].get("taints")


def profiles(accounts, directory):
    """A configuration with a profile of each account; `empty` has no credentials. Its environment names none."""
    config, credentials = directory / "config", directory / "credentials"
    stacks = {"hub": accounts.hub, **accounts.members}
    config.write_text(
        "".join(
            f"[profile {name}]\nregion = {stack.region}\nendpoint_url = {stack.endpoint}\n"
            for name, stack in {**stacks, "empty": accounts.members["west"]}.items()
        )
    )
    credentials.write_text(
        "".join(f"[{name}]\naws_access_key_id = local\naws_secret_access_key = local\n" for name in stacks)
    )
    unnamed = {name: value for name, value in accounts.hub.environment().items() if not name.startswith("AWS_")}
    files = {"AWS_CONFIG_FILE": str(config), "AWS_SHARED_CREDENTIALS_FILE": str(credentials)}
    return {**unnamed, **files, "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture
def run(accounts, tmp_path):
    """Run the command for cluster west with the credentials of the hub, of its own account, or with profiles of both;
    all of it that was printed is returned with the exit code.
    """
    west = accounts.members["west"]
    operator = accounts.hub.client("sts").get_caller_identity()["Arn"]  # the local clusters ask the hub's STS
    entry = {"clusterName": "west", "principalArn": operator, "kubernetesGroups": ["leeward:read"]}
    west.client("eks").create_access_entry(**entry)
    west.take_over_access_entries()
    both = profiles(accounts, tmp_path)
    environments = {"hub": accounts.hub.environment(), "member": west.environment(), "both": both}

    def call(where, *arguments, member="west"):
        named = ("--profile", "hub", "--cluster-profile", member) if where == "both" else ()
        command = [sys.executable, "-m", "leeward.cli.main", *arguments, "--cluster", "west", *named]
        done = subprocess.run(command, env=environments[where], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    yield call
    west.client("eks").delete_access_entry(clusterName="west", principalArn=operator)
    west.take_over_access_entries()


def test_commands_about_the_deployment_take_the_hub_s_credentials(run, tmp_path):
    assert run("hub", "pause", "--why", "a test", "--for", "1h")[0] == 0
    assert "resumed" in run("hub", "resume", "--why", "a test")[1]
    assert "-  name: web" in run("hub", "policy", "diff", "policies/default.yaml")[1]  # the policy in force
    assert run("hub", "metrics")[0] == 0
    assert "member-role" in run("hub", "doctor")[1]
    for command in (("pause", "--why", "a test"), ("metrics",)):
        code, said = run("member", *command)
        assert (code, "DynamoDB has no table leeward" in said) == (1, True)


def test_commands_about_nodes_and_groups_take_the_member_s_credentials(run, tmp_path):
    for command in (("blockers",), ("top",), ("inspect", "zones"), ("init", "--to", str(tmp_path / "policy.yaml"))):
        assert run("member", *command)[0] == 0, command
        assert run("hub", *command)[0] == 2, command
    assert run("member", "inspect", "template", GROUP)[0] == 0
    code, said = run("hub", "inspect", "template", GROUP)  # the hub has a group of that name
    assert (code, "expected --cluster-profile NAME" in said) == (2, True)
    run("member", "snapshot", "--to", str(tmp_path / "west"))
    assert (tmp_path / "west" / "nodes.json").exists()


def test_what_needs_the_nodes_and_the_records_takes_neither_alone(run, accounts, teams):
    instance = teams["west"].instances[0]
    place = f"account {WEST.account}, Region {WEST.region}"
    for command in (
        ("drain", instance, "--yes"),
        ("upgrade", "start", GROUP, "--yes"),
        ("plan", "--apply", "--yes"),
        ("zone", "status"),
    ):
        code, said = run("hub", *command)
        assert (code, place in said, "expected --cluster-profile NAME" in said) == (2, True, True), said
        assert run("member", *command)[0] == 1, command
    assert ledger.termination(accounts.hub, instance) is None


def test_credentials_that_are_refused_or_of_a_third_account_change_nothing(run, accounts, teams):
    instance = teams["west"].instances[0]
    code, said = run("both", "drain", instance, "--yes", member="empty")
    assert (code, "--cluster-profile empty: sts:GetCallerIdentity" in said) == (1, True), said
    code, said = run("both", "drain", instance, "--yes", member="east")
    assert (code, f"found credentials of account {EAST.account}, expected those of {WEST.account}" in said) == (2, True)
    assert ledger.termination(accounts.hub, instance) is None


def document(answer):
    code, said = answer
    assert code == 0, said
    return json.loads(said[said.index("{") :])


def test_with_both_the_command_line_drains_a_node_and_sees_the_cluster_as_at_home(run, accounts, teams):
    west = teams["west"]
    instance = west.instances.pop()
    execution = document(run("both", "drain", instance, "--yes", "-o", "json"))["execution"]
    assert execution == f"{instance}-1"
    plan = document(run("both", "plan", "-o", "json"))
    names = {node["metadata"]["name"] for node in ledger.nodes(west.stack).values()}
    assert names & {node["node"] for node in plan["nodes"]}
    zones = document(run("both", "zone", "status", "-o", "json"))["zones"]
    assert {zone["zone"] for zone in zones} >= {f"{WEST.region}a"}
    findings = json.loads(run("both", "doctor", "-o", "json")[1])["findings"]
    states = {(one["check"], one["object"]): one["state"] for one in findings}
    assert states["hook", f"group {GROUP}"] == states["api-server", "cluster west"] == "ok"
    assert states["selection", "policy web of cluster west"] == "ok"
    entries = {name: state for (check, name), state in states.items() if check == "access-entry"}
    assert set(entries.values()) == {"ok"}
    assert "leeward-member-drain in cluster west" in entries
    record = until(lambda: closed(accounts, instance), f"the record of {instance} closed")
    assert record.outcome == "terminated"
    assert state_of(west.stack, instance) in {"shutting-down", "terminated"}


def test_with_both_a_group_is_upgraded_and_its_record_is_the_one_of_its_account(run, accounts, teams):
    west = teams["west"].stack
    fleet.build_group(west, fleet.build_network(west), GroupPlan(name=SMALL, size=1))
    (old,) = [str(one["InstanceId"]) for one in fleet.instances_of(west, SMALL)]
    until(lambda: old in ledger.nodes(west) and scenario.is_ready(ledger.nodes(west)[old]), "the node Ready")
    image = west.client("ec2").describe_images()["Images"][-1]["ImageId"]
    began = time.monotonic()
    started = document(run("both", "upgrade", "start", SMALL, "--ami", image, "--yes", "-o", "json"))
    assert started["execution"] == f"{SMALL}-1"
    status = ("upgrade", "status", SMALL, "-o", "json")
    assert document(run("both", *status))["phase"] not in {"not-started", "failed"}
    until(lambda: "ended" in upgrade_of(accounts, west), "the end of the upgrade")
    log.info("upgraded after %.1f s", time.monotonic() - began)
    (new,) = [str(one["InstanceId"]) for one in fleet.instances_of(west, SMALL)]
    assert new != old
    assert document(run("both", *status))["phase"] == "done"


def upgrade_of(accounts, stack):
    """The item of the small group's upgrade, by the key that the functions and the command line use for its account."""
    key = {"pk": {"S": f"upgrade#{stack.account}/{stack.region}/{SMALL}"}}
    return accounts.hub.client("dynamodb").get_item(TableName="leeward", Key=key).get("Item", {})


def zone_of(stack, instance):
    (reservation,) = stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
    return reservation["Instances"][0]["Placement"]["AvailabilityZone"]


def small(stack):
    """Instances of the small group, its desired size and its suspended processes."""
    client = stack.client("autoscaling")
    (group,) = client.describe_auto_scaling_groups(AutoScalingGroupNames=[SMALL])["AutoScalingGroups"]
    suspended = [one["ProcessName"] for one in group["SuspendedProcesses"]]
    return [one["InstanceId"] for one in group["Instances"]], group["DesiredCapacity"], suspended


def test_with_both_a_zone_is_evacuated_and_opened_and_the_group_has_its_size(run, accounts, teams):
    west = teams["west"].stack
    ((old,), *sizes) = small(west)
    zone = zone_of(west, old)
    command = ("zone", "evacuate", zone, "--group", SMALL, "--why", "a test", "--yes", "-o", "json")
    assert document(run("both", *command))["started"]
    try:
        called(accounts.hub, "reconciler")
        record = until(lambda: closed(accounts, old), f"the record of {old} closed")
        assert "evacuation" in record.causes
        assert zone_of(west, record.launched[0]) != zone
    finally:
        returned = document(run("both", "zone", "return", zone, "-o", "json"))
    assert returned["returned"]
    until(
        lambda: called(accounts.hub, "reconciler") and small(west)[1:] == tuple(sizes), "size and processes as before"
    )


def test_with_both_a_plan_is_carried_out_in_the_cluster_of_its_account_alone(run, accounts, teams):
    """The small group's node is empty. The hub and another account have empty nodes as well, and no such policy."""
    west = teams["west"].stack
    ((empty,), *_) = small(west)
    called(accounts.hub, "sync")
    node = ledger.nodes(west)[empty]["metadata"]["name"]
    answer = document(run("both", "plan", "--apply", "--yes", "-o", "json"))
    assert answer["run"]["started"], answer
    assert [command["nodes"] for command in answer["commands"]] == [[node]], answer["commands"]
    record = until(lambda: closed(accounts, empty), f"the record of {empty} closed")
    assert (record.outcome, small(west)[:2]) == ("terminated", ([], 0))
    for stack in (accounts.hub, accounts.members["east"]):
        assert len(fleet.instances_of(stack, GROUP)) == 3


def test_an_account_that_is_not_listed_may_not_send_to_the_bus(accounts):
    sent = {"event": {}, "bus": "leeward-members", "sender": "999900001111"}
    with pytest.raises(LocalStackError, match="may not put events"):
        accounts.hub.control("POST", "forwarded", sent)


def set_trust(stack, external):
    """Ask for another external id in every role of the member stack."""
    iam = stack.client("iam")
    for role in iam.list_roles()["Roles"]:
        if role["RoleName"].startswith("leeward-member-") and role["RoleName"] != f"leeward-member-{stack.region}":
            policy = role["AssumeRolePolicyDocument"]
            policy["Statement"][0]["Condition"]["StringEquals"]["sts:ExternalId"] = external
            iam.update_assume_role_policy(RoleName=role["RoleName"], PolicyDocument=json.dumps(policy))


def test_an_account_that_refuses_the_role_delays_nothing_of_the_others(accounts, teams):
    east, west = teams["east"], teams["west"]
    set_trust(west.stack, "changed-by-its-owner")
    for name in ("interruption", "drain", "terminate", "reconciler", "sync"):
        forget_what_is_cached(accounts.hub, f"leeward-{name}")
    try:
        refused, served = west.instances.pop(), east.instances.pop()
        began = time.monotonic()
        for team, victim in ((west, refused), (east, served)):
            team.stack.emit(scenario.spot_warning(team.stack, victim))
        until(lambda: closed(accounts, served), "the termination of the account that trusts")
        log.info("closed after %.1f s beside a refused account", time.monotonic() - began)
        assert ledger.termination(accounts.hub, refused) is None
        said = can_act(accounts, "leeward-drain")
        assert (said["blue"], said["east"]) == ("", "")
        assert "leeward-member-drain" in said["west"]
        swept = called(accounts.hub, "reconciler")
        assert {error.split(":")[0] for error in swept["errors"]} == {"west"}
        answer = accounts.hub.client("lambda").invoke(FunctionName="leeward-sync")
        failure = json.loads(answer["Payload"].read())["errorMessage"]  # a run that could not put a hook fails
        assert failure.startswith("west: sts:AssumeRole on ")
        assert "deploy the member stack" in failure
        assert not any(name in failure for name in ("blue:", "east:"))
    finally:
        set_trust(west.stack, external_id(west.stack))
    until(lambda: closed(accounts, refused), "the warning that was delivered again")
