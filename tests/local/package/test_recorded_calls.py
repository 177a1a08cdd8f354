"""Every call that the `leeward` command makes on an installed stack is allowed by docs/permissions."""

import pytest

from local.demo import scenario
from tests.infra.iam_evaluator import Request, allows
from tests.infra.permission_files import statements
from tests.local.chain.conftest import called
from tests.local.package.conftest import POLICY, installed, run_leeward, two_nodes

pytestmark = [pytest.mark.local, pytest.mark.long]

READS, OPERATES = "a-person-who-reads", "a-person-who-operates"


@pytest.fixture(scope="module")
def stack(tmp_path_factory, package):
    """Installed, without policies."""
    with installed(tmp_path_factory.mktemp("recorded"), package) as running:
        yield running


@pytest.fixture(scope="module")
def team(stack):
    return two_nodes(stack)


def requests(stack, person):
    """Return the calls of a person so far, in one deployment of many."""
    found = []
    for one in stack.control("GET", "requests"):
        if one["function"] == person:
            context = {key: values if len(values) > 1 else values[0] for key, values in one["context"].items()}
            found.append(Request(action=one["action"], resource=one["resource"], context=context))
    return found


def denied(stack, made, *files):
    """The requests that the files do not allow. The local AWS names no resource of some calls: any is allowed then."""
    place = {"account": stack.account, "region": stack.region, "cluster": stack.cluster}
    allowed = [statement for name in files for statement in statements(name, **place)]
    actions = {action for statement in allowed for action in statement.actions}
    return [
        f"{one.action} on {one.resource} {dict(one.context)}"
        for one in made
        if not (one.action in actions if one.resource == "*" else allows(allowed, one))
    ]


def play(stack, person, *commands):
    """Run the commands: each does its work, whatever it finds."""
    run = run_leeward(stack, application=person)
    for command in commands:
        done = run(*command)
        assert done.returncode in {0, 1}, (command, done.stderr)
        assert "Denied" not in done.stderr, (command, done.stderr)


def test_what_a_person_calls_who_reads_is_in_the_policy_to_read(stack, team, tmp_path):
    victim = team.instances[1]
    node, group = team.node_name(team.instances[0]), team.group
    run_leeward(stack)("policy", "apply", str(POLICY), "--yes")
    stack.emit(scenario.spot_warning(stack, victim))
    team.closed(victim)
    play(
        stack,
        READS,
        ("doctor",),
        ("top",),
        ("blockers", node),
        ("inspect", "budget"),
        ("drift",),
        ("plan",),
        ("plan", "--method", "consolidation"),
        ("inspect", "zones"),
        ("inspect", "place", group, "--count", "2", "--pods", "10"),
        ("inspect", "template", group),
        ("drain", node, "--dry-run"),
        ("policy", "diff", str(POLICY)),
        ("init", "--to", str(tmp_path / "first.yaml")),
        ("upgrade", "plan", group),
        ("upgrade", "status", group),
        ("report", f"{victim}-1", "--to", str(tmp_path / "page.html")),
        ("snapshot", "--to", str(tmp_path / "snapshot")),
        ("uninstall", "--dry-run"),
    )
    made = requests(stack, READS)
    assert len({one.action for one in made}) > 30
    assert denied(stack, made, "read") == []


def test_what_a_person_calls_who_operates_and_applies_policies_is_in_the_policies_beside_it(stack, team, tmp_path):
    called(stack, "sync")  # puts the hook that is removed below
    node, group = team.node_name(team.instances[0]), team.group
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.read_text().replace("90s", "80s"))
    play(
        stack,
        OPERATES,
        ("policy", "apply", str(policy), "--yes"),
        ("drain", node, "--yes"),
        ("upgrade", "start", group, "--yes"),
        ("pause", "--all", "--why", "maintenance of the network"),
        ("uninstall", "--yes"),
        ("resume", "--why", "it is over"),
    )
    made = requests(stack, OPERATES)
    changes = {"dynamodb:PutItem", "states:StartExecution", "autoscaling:DeleteLifecycleHook"}
    assert changes <= {one.action for one in made}
    assert denied(stack, made, "read", "operate", "policies") == []
    assert denied(stack, made, "read") != [], "who reads alone could do as much"
