"""Commands for a cluster of another account: whose credentials they use, and what is said where those are not right."""

from dataclasses import replace

import pytest

from leeward.adapters import wiring
from leeward.adapters.caller import Elsewhere
from leeward.doctor.facts import CallerIdentity
from leeward.doctor.finding import State
from leeward.errors import AccessDeniedError, ObjectGoneError
from leeward.model.facts import FactKind, Sheet
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.model.zonal_shift import Evacuation, ZoneRecord
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.accounts import EAST, HUB, INSTANCES, REGIONS, FakeAccounts
from tests.fakes.builders import a_policy, policies
from tests.fakes.clock import START
from tests.fakes.deployment import FakeDeployment
from tests.unit.doctor.test_accounts import EAST as SERVED
from tests.unit.doctor.test_accounts import serving

SERVED = {**SERVED, "region": REGIONS[EAST]}
NODE = f"node-{INSTANCES[EAST]}"
GROUP = "web-a"
TEMPLATE = LaunchTemplateRef(id=f"lt-{GROUP}", name=GROUP, version="1")
OPTIONS = ("--cluster", "east", "--cluster-profile", "east")
AT = ("--now", "2026-03-02T10:05:00Z")
ELSEWHERE = (
    f"--cluster: cluster 'east' is in account {EAST}, Region us-east-1, where the deployment in account {HUB}, Region "
    "us-east-1 serves it; found no --cluster-profile, expected --cluster-profile NAME: a profile of that account"
)


class ClustersOfTheHub:
    """Clusters that credentials of the hub's account reach: none of another account."""

    def names(self):
        return ()

    def policies(self, cluster):
        return policies(a_policy(), cluster=cluster)

    def kubernetes(self, cluster, *, within=None):
        raise ObjectGoneError(f"eks:DescribeCluster on {cluster}: ResourceNotFoundException: No cluster found")


@pytest.fixture
def accounts():
    return FakeAccounts()


@pytest.fixture
def hub():
    """The deployment, which serves a cluster at home and one in account EAST."""
    return serving(FakeDeployment("blue"), SERVED)


@pytest.fixture
def member():
    """Reader with the caller's credentials of account EAST, in which there is no function and no table."""
    found = FakeDeployment("east")
    found.who = CallerIdentity(account=EAST, region=REGIONS[EAST], arn=f"arn:aws:iam::{EAST}:user/me")
    found.functions = dict.fromkeys(found.functions)
    return found


@pytest.fixture
def asked(monkeypatch, accounts, hub, member):
    """The places in which ports were asked for, None for the deployment's own."""
    places = []

    def ports(cluster, region=None, account=None, profile=None, elsewhere=None):
        places.append(elsewhere)
        if elsewhere is not None:
            return accounts.ports.of_cluster(cluster)
        return replace(accounts.hub.ports, clusters=ClustersOfTheHub())

    def deployment(region=None, profile=None, elsewhere=None):
        return hub if elsewhere is None else member

    monkeypatch.setattr(wiring, "command_line_ports", ports)
    monkeypatch.setattr(wiring, "command_line_deployment", deployment)
    return places


def an_upgrade(group, cluster):
    """A paused upgrade, on which nothing works."""
    return UpgradeRecord(
        group=group,
        cluster=cluster,
        target=UpgradeTarget(template=replace(TEMPLATE, version="2")),
        previous=UpgradeTarget(template=TEMPLATE),
        strategy=Strategy.DEFAULT,
        desired=1,
        maximum=10,
        began=START,
        attempt=1,
        execution=f"{group}-1",
        control=ControlRequest.PAUSE,
    )


def test_a_node_is_drained_by_an_execution_of_the_deployment(leeward, asked, accounts):
    result = leeward("drain", NODE, *OPTIONS, *AT, "--yes", "-o", "json")
    assert (result.code, result.err) == (0, "")
    record = accounts.hub.claims.read(INSTANCES[EAST])
    assert (record.subject.cluster, record.subject.group) == ("east", GROUP)
    assert asked == [
        Elsewhere(account=EAST, region=REGIONS[EAST], profile="east", member_role=SERVED["memberRole"]),
    ]


def test_an_upgrade_names_its_cluster_so_that_the_right_group_of_that_name_is_rolled(leeward, asked, accounts):
    group = accounts.of[EAST].groups.by_name[GROUP]
    accounts.of[EAST].groups.by_name[GROUP] = replace(group, launch=LaunchSource(template=TEMPLATE))
    result = leeward("upgrade", "start", GROUP, *OPTIONS, *AT, "--yes", "-o", "json")
    assert (result.code, result.json["execution"]) == (0, f"{GROUP}-1"), result.err
    ((_, document),) = accounts.hub.upgrade_executions.started
    assert (document["group"], document["cluster"]) == (GROUP, "east")


def test_a_control_request_is_recorded_for_the_group_of_the_cluster(leeward, asked, accounts):
    record = an_upgrade(GROUP, "east")
    accounts.of[EAST].upgrades.write(record)
    accounts.hub.upgrades.write(replace(record, cluster="blue"))
    assert leeward("upgrade", "resume", GROUP, *OPTIONS, *AT).code == 0
    ((_, document),) = accounts.hub.upgrade_executions.started
    assert document == {"group": GROUP, "cluster": "east"}


def test_the_next_command_of_a_status_names_the_profile_too(leeward, asked, accounts):
    accounts.of[EAST].upgrades.write(replace(an_upgrade(GROUP, "east"), ended=START, error="PodEvictionFailure: pdb"))
    found = leeward("upgrade", "status", GROUP, *OPTIONS, *AT, "-o", "json").json
    assert found["next"] == f"leeward upgrade start {GROUP} --cluster east --cluster-profile east"


def test_a_group_of_the_cluster_is_paused(leeward, asked, accounts):
    assert leeward("pause", "--group", GROUP, "--why", "a test", *OPTIONS, *AT).code == 0
    (pause,) = accounts.hub.pauses.records["east"].pauses
    assert pause.group == GROUP


def test_a_zone_is_closed_and_opened_in_the_record_that_the_deployment_s_reconciler_reads(
    leeward, asked, accounts, hub
):
    evacuation = Evacuation(zone="us-east-1a", by="me", since=START)
    accounts.hub.catalog.write_zone_record(ZoneRecord(cluster="east").with_evacuation(evacuation), START)
    shown = leeward("zone", "status", *OPTIONS, *AT, "-o", "json").json
    assert [(one["zone"], one["state"]) for one in shown["zones"]] == [("us-east-1a", "evacuated")]
    assert leeward("zone", "return", "us-east-1a", *OPTIONS, *AT).code == 0
    assert accounts.hub.catalog.zone_record("east").evacuation_of("us-east-1a").returned is not None


def test_uninstall_sees_the_work_that_is_under_way_and_the_missing_pause(leeward, asked, accounts):
    assert leeward("drain", NODE, *OPTIONS, *AT, "--yes", "-o", "json").code == 0
    result = leeward("uninstall", *OPTIONS, *AT, "--yes")
    assert result.code == 1
    assert f"group {GROUP}: {INSTANCES[EAST]} of it is being terminated" in result.out
    assert "it is not paused" in result.out


def test_a_member_s_cluster_without_its_credentials_ends_with_the_option_and_the_account(leeward, asked, accounts):
    for command in (
        ("drain", NODE, "--yes"),
        ("top",),
        ("plan", "--apply", "--yes"),
        ("upgrade", "start", GROUP, "--yes"),
        ("upgrade", "pause", GROUP),
        ("inspect", "template", GROUP),
        ("pause", "--group", GROUP, "--why", "a test"),
        ("zone", "status"),
        ("init", "--to", "none.yaml"),
        ("uninstall", "--yes"),
    ):
        assert leeward.refuses(*command, "--cluster", "east", *AT) == ELSEWHERE, command
    assert accounts.hub.claims.read(INSTANCES[EAST]) is None


def test_a_cluster_of_another_region_of_the_account_is_named_with_its_region(leeward, asked, hub):
    serving(hub, {**SERVED, "name": "far", "account": HUB, "region": "eu-north-1"})
    reported = leeward.refuses("top", "--cluster", "far", *AT)
    assert reported.endswith("found no --cluster-region, expected --cluster-region eu-north-1")


def test_an_unknown_cluster_is_still_one_that_eks_does_not_have(leeward, asked):
    assert "found no cluster 'esat' in" in leeward.refuses("top", "--cluster", "esat", *AT)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--cluster", "esat", "--cluster-profile", "east"),
            f"--cluster: found 'esat', expected one that the deployment in account {HUB}, Region us-east-1 serves: "
            f"blue, east ({EAST}/us-east-1); did you mean east?",
        ),
        (
            ("--cluster", "blue", "--cluster-profile", "east"),
            f"--cluster-profile: found credentials of account {EAST}, expected those of {HUB}, where the deployment "
            "has cluster 'blue'",
        ),
        (
            (*OPTIONS, "--cluster-region", "eu-west-1"),
            "--cluster-region: found eu-west-1, expected us-east-1, where the deployment has cluster 'east'",
        ),
        (
            ("--cluster", "east", "--cluster-region", "us-east-1"),
            f"--cluster-region without --cluster-profile: found credentials of account {HUB}, expected those of "
            f"{EAST}, where the deployment has cluster 'east'",
        ),
        (
            ("--cluster-profile", "east"),
            "found --cluster-profile without --cluster, expected --cluster NAME: the cluster that is there",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_with_what_the_deployment_knows(leeward, asked, accounts, options, said):
    assert leeward.refuses("drain", NODE, "--yes", *options, *AT) == said
    assert accounts.hub.claims.read(INSTANCES[EAST]) is None


def test_where_no_deployment_is_the_options_are_explained(leeward, asked, hub):
    hub.functions = dict.fromkeys(hub.functions)
    assert f"found no deployment in account {HUB}, Region us-east-1" in leeward.refuses("top", *OPTIONS, *AT)


def test_a_caller_who_may_not_read_the_settings_learns_which_right_is_missing(leeward, asked, hub):
    hub.fail("function", AccessDeniedError("lambda:GetFunction on leeward-interruption: AccessDenied: no"))
    result = leeward("top", *OPTIONS, *AT)
    assert (result.code, result.out) == (1, "")
    assert "lambda:GetFunction on leeward-interruption" in result.err


def test_credentials_that_are_refused_change_nothing(leeward, asked, accounts, member):
    member.fail("identity", AccessDeniedError("sts:GetCallerIdentity on the default credentials: ExpiredToken: old"))
    result = leeward("drain", NODE, *OPTIONS, *AT, "--yes")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("leeward: --cluster-profile east: sts:GetCallerIdentity")
    assert result.err.strip().endswith("or name another profile of the cluster's account")
    assert asked == []
    assert accounts.hub.claims.read(INSTANCES[EAST]) is None


def test_doctor_checks_nodes_groups_and_hooks_of_the_cluster_with_its_credentials(leeward, asked, accounts, member):
    for kind in FactKind:
        accounts.hub.catalog.keep("east", kind, Sheet(synced=START, content={}))
    member.listed = list(accounts.of[EAST].groups.by_name.values())
    findings = leeward("doctor", *OPTIONS, *AT, "-o", "json").json["findings"]
    there = {(found["check"], found["object"]) for found in findings}
    assert {("hook", f"group {GROUP}"), ("cluster", "cluster east"), ("api-server", "cluster east")} <= there
    entries = [found for found in findings if found["check"] == "access-entry"]
    assert {found["object"] for found in entries} >= {"leeward-member-drain in cluster east"}
    assert {found["state"] for found in entries} == {State.FAILED.value}  # the fake has no entry of these roles
    alone = leeward("doctor", "--cluster", "east", *AT, "-o", "json").json["findings"]
    assert not [found for found in alone if found["check"] == "hook"]
