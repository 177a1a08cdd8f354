"""Ports of a deployment with several accounts: they act in the account of the named cluster, and nowhere else."""

from dataclasses import fields
from importlib import import_module

import pytest

from leeward.adapters.account_check import check_accounts
from leeward.adapters.initialization import NEEDS
from leeward.adapters.places import Accounts
from leeward.adapters.settings import ServedCluster
from leeward.disruption.controller import decide_once
from leeward.errors import AccessDeniedError, AwsUnreachableError, InvalidInputError, ThrottledError
from leeward.model.termination import CauseKind
from leeward.ports import AwsPorts, Ports
from leeward.reconcile.reconciler import reconcile_once
from leeward.sync.controller import sync_once
from leeward.termination import steps
from leeward.termination.run import Next, Run
from leeward.upgrade.start import where_the_group_is
from leeward.workflow.steps import take_step
from tests.fakes.accounts import CLUSTERS, EAST, HUB, INSTANCES, WEST, FakeAccounts
from tests.fakes.builders import a_group, an_instance
from tests.fakes.clock import FakeClock
from tests.fakes.system import FakeSystem

TROUBLE = pytest.mark.parametrize(
    "error",
    [AccessDeniedError("sts:AssumeRole"), ThrottledError("sts:AssumeRole"), AwsUnreachableError("sts:AssumeRole")],
    ids=["denied", "throttled", "hanging"],
)


OF_THE_DEPLOYMENT = {
    *("clock", "clusters", "catalog", "claims", "executions", "dead_letters", "redelivery", "upgrade_executions"),
    *("managed_upgrade_executions", "disruptions", "disruption_executions", "pauses", "policy_store"),
    *("deployment", "queue_arns", "hook_mark", "origins", "budget", "places", "place", "caller"),
}
"""Ports and values of `Ports` that are the same for every cluster."""


def test_every_port_is_one_of_the_deployment_or_one_of_each_place():
    """A new AWS port that is not in `AwsPorts` would act in the hub's account for every cluster."""
    assert {field.name for field in fields(Ports)} == OF_THE_DEPLOYMENT | {field.name for field in fields(AwsPorts)}
    assert not OF_THE_DEPLOYMENT & {field.name for field in fields(AwsPorts)}


@pytest.fixture
def accounts():
    return FakeAccounts()


def test_a_deployment_of_one_account_has_one_set_of_ports():
    ports = FakeSystem().ports
    assert ports.of_cluster("any") is ports
    assert ports.at("111122223333", "us-east-1") is ports
    assert ports.everywhere() == (ports,)


def test_ports_of_a_cluster_act_in_its_account_and_know_its_clusters_alone(accounts):
    west = accounts.ports.of_cluster("west")
    assert west.instances is accounts.of[WEST].instances
    assert west.clusters.names() == ("west",)
    assert west.claims is accounts.hub.claims
    for call in (west.clusters.policies, west.clusters.kubernetes, west.of_cluster):
        with pytest.raises(InvalidInputError, match="east"):
            call("east")


def test_ports_of_a_cluster_keep_the_time_budget(accounts):
    bounded = accounts.ports.for_seconds(5)
    assert bounded.of_cluster("west").budget == bounded.budget


def test_nothing_acts_before_a_cluster_is_named(accounts):
    with pytest.raises(InvalidInputError, match="names the account"):
        accounts.ports.instances.describe(["i-0abc"])
    with pytest.raises(InvalidInputError, match="expected one of blue, east, west"):
        accounts.ports.of_cluster("gone")


@TROUBLE
def test_a_pass_of_sync_puts_hooks_in_every_account_that_can_be_reached(accounts, error):
    for system in accounts.of.values():
        system.groups.hooks_of.clear()
    accounts.refuse(EAST, error)
    synced = sync_once(accounts.ports)
    assert synced.hooks == ["web-a", "web-a"]
    assert [one.split(":")[0] for one in synced.errors] == ["east"]
    assert not accounts.of[EAST].groups.hooks_of
    assert accounts.of[WEST].groups.hooks_of


@TROUBLE
def test_a_minute_of_the_reconciler_serves_every_account_that_can_be_reached(accounts, error):
    accounts.refuse(EAST, error)
    for system in accounts.of.values():
        system.groups.begin_terminating("web-a", *(i for i in INSTANCES.values() if i in system.instances.known))
    result = reconcile_once(accounts.ports)
    assert {one.split(":")[0] for one in result.errors} == {"east"}
    assert set(accounts.hub.claims.records) == {INSTANCES[HUB], INSTANCES[WEST]}


@TROUBLE
def test_the_planner_plans_for_every_account_that_can_be_reached(accounts, error):
    accounts.refuse(EAST, error)
    decided = decide_once(accounts.ports)
    assert {one.split(":")[0] for one in decided.errors} == {"east"}
    assert all(accounts.of[account].groups.asked["of_clusters"] for account in (HUB, WEST))


def run_of(step, run, ports, execution):
    return take_step({"step": step, "run": run, "execution": execution}, steps.STEPS, Run.from_json, ports)


def test_a_termination_started_manually_finds_the_account_of_the_instance(accounts):
    accounts.refuse(EAST, AccessDeniedError("sts:AssumeRole"))
    run = run_of("claim", {"instance": INSTANCES[WEST]}, accounts.ports, "mine")
    assert run.next is Next.HAND_OVER
    record = accounts.hub.claims.records[INSTANCES[WEST]]
    assert (record.subject.cluster, record.causes[0].kind) == ("west", CauseKind.MANUAL)


def test_an_instance_that_only_a_refused_account_can_have_is_no_unknown_instance(accounts):
    accounts.refuse(EAST, AccessDeniedError("sts:AssumeRole"))
    with pytest.raises(AccessDeniedError):
        run_of("claim", {"instance": INSTANCES[EAST]}, accounts.ports, "mine")


def test_the_steps_of_a_termination_act_in_the_account_of_its_record(accounts):
    run_of("claim", {"instance": INSTANCES[WEST]}, accounts.ports, "mine")
    execution = {"instance": INSTANCES[WEST], "attempt": 1}
    claimed = run_of("claim", execution, accounts.ports, f"{INSTANCES[WEST]}-1")
    assert (claimed.next, claimed.cluster) == (Next.REPLACE, "west")
    run_of("terminate", claimed.to_json(), accounts.ports, f"{INSTANCES[WEST]}-1")
    assert accounts.of[WEST].groups.terminated == [(INSTANCES[WEST], False)]
    assert not any(accounts.of[account].groups.terminated for account in (HUB, EAST))


def test_an_input_that_names_another_cluster_than_the_record_is_refused(accounts):
    run_of("claim", {"instance": INSTANCES[WEST]}, accounts.ports, "mine")
    forged = {"instance": INSTANCES[WEST], "attempt": 1, "cluster": "east"}
    with pytest.raises(InvalidInputError):
        run_of("claim", forged, accounts.ports, f"{INSTANCES[WEST]}-1")
    assert not any(system.groups.terminated for system in accounts.of.values())


def test_a_function_says_in_which_accounts_it_can_act(accounts):
    accounts.refuse(EAST, AccessDeniedError("sts:AssumeRole on its role"))
    assert check_accounts(accounts.ports) == {"blue": "", "east": "sts:AssumeRole on its role", "west": ""}


def test_every_handler_answers_the_question_and_no_other_event(accounts, monkeypatch):
    monkeypatch.setattr("leeward.adapters.wiring.invocation_ports", lambda _: accounts.ports)
    for path in sorted(NEEDS):
        module, _, name = path.rpartition(".")
        answer = getattr(import_module(module), name)({"check": "accounts"}, None)
        assert answer == {"accounts": {"blue": "", "east": "", "west": ""}}, path
    assert accounts.hub.claims.records == {}


class TestUpgradeOfAGroupWhoseNameSeveralAccountsHave:
    def test_the_start_has_to_name_the_cluster(self, accounts):
        with pytest.raises(InvalidInputError, match='at blue and east and west, expected "cluster"'):
            where_the_group_is("web-a", accounts.ports)
        west = accounts.ports.of_cluster("west")
        assert where_the_group_is("web-a", west) is west

    def test_a_name_that_one_account_has_is_found_there(self, accounts):
        west = accounts.of[WEST]
        west.instances.put(an_instance("i-0222", group="batch", cluster=CLUSTERS[WEST]))
        west.groups.by_name["batch"] = a_group("batch", "i-0222", cluster=CLUSTERS[WEST])
        assert where_the_group_is("batch", accounts.ports).place.account == WEST


class Signing:
    """Clients that say by which Region they are signed."""

    def __init__(self):
        self.made = []

    def signed_by(self, _credentials, *, region):
        self.made.append(region)
        return f"clients of {region}, {len(self.made)}"


def test_clusters_of_one_role_share_clients_within_a_region_alone():
    """A session of the other Region would read the other Region's groups."""
    clients, role = Signing(), "arn:aws:iam::222233334444:role/leeward"
    accounts = Accounts(clients, FakeClock(), session="leeward-drain")

    def of(name, region, member_role=role):
        cluster = ServedCluster(name=name, account=EAST, region=region, member_role=member_role, external_id="hub-4711")
        return accounts.clients_of(cluster)

    first, second, other = of("east", "us-east-1"), of("east-2", "us-east-1"), of("west", "eu-west-1")
    assert first == second == "clients of us-east-1, 1"
    assert other == "clients of eu-west-1, 2"
    assert of("third", "us-east-1", f"{role}-2") == "clients of us-east-1, 3"
