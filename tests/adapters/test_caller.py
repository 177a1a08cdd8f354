"""Two sets of credentials of one call of `leeward`: the deployment's, and those of the account that has the cluster."""

import contextlib

import pytest
from moto import mock_aws

from leeward.adapters import wiring
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.table import DynamoTable
from leeward.adapters.aws.workflow_records import DynamoUpgrades
from leeward.adapters.caller import Elsewhere
from leeward.errors import InvalidInputError
from leeward.model.execution import Machine
from tests.adapters.test_member import CALLS, NOW, Aws
from tests.contract.tables import make_table

ACCOUNT, REGION = "222233334444", "eu-north-1"
EAST = Elsewhere(
    account=ACCOUNT, region=REGION, profile="east", member_role=f"arn:aws:iam::{ACCOUNT}:role/leeward-member"
)
HOME = {"region": "us-east-1", "account": "111122223333", "profile": "hub"}


@pytest.fixture
def profiles(aws_environment, monkeypatch, tmp_path):
    """Profiles of both accounts; the environment has other credentials, which neither may use."""
    credentials = tmp_path / "credentials"
    keys = [f"[{name}]\naws_access_key_id = {name.upper()}\naws_secret_access_key = x\n" for name in ("hub", "east")]
    credentials.write_text("".join(keys))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@pytest.fixture
def aws(profiles, monkeypatch):
    made = Aws()
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def ports(aws):
    return wiring.command_line_ports("east", elsewhere=EAST, **HOME)


@pytest.mark.parametrize("port", sorted(CALLS))
def test_ports_of_the_place_sign_with_the_credentials_of_the_cluster_s_account(ports, aws, port):
    with contextlib.suppress(Exception):  # the answer is that of EC2, whatever the service
        CALLS[port](getattr(ports, port))
    assert (set(aws.signed), aws.assumed) == ({"EAST"}, [])


OF_THE_DEPLOYMENT = {
    "records of terminations": lambda ports: ports.claims.read("i-0abc"),
    "records of upgrades": lambda ports: ports.upgrades.read("web"),
    "raised maxima": lambda ports: ports.maxima.read("web"),
    "runs": lambda ports: ports.disruptions.read("east"),
    "facts and zones": lambda ports: ports.catalog.zone_record("east"),
    "pauses": lambda ports: ports.pauses.read("east"),
    "policies": lambda ports: ports.clusters.policies("east"),
    "applied policies": lambda ports: ports.policy_store.read("east"),
    "executions of terminations": lambda ports: ports.executions.running("i-0abc", 1),
    "executions of upgrades": lambda ports: ports.upgrade_executions.running("web-1"),
    "executions of runs": lambda ports: ports.disruption_executions.running("east-1-1"),
}


@pytest.mark.parametrize("what", sorted(OF_THE_DEPLOYMENT))
def test_ports_of_the_deployment_sign_with_its_own_credentials(ports, aws, what):
    with contextlib.suppress(Exception):
        OF_THE_DEPLOYMENT[what](ports)
    assert set(aws.signed) == {"HUB"}


def test_the_token_for_the_api_server_is_signed_with_the_credentials_of_the_cluster_s_account(ports, monkeypatch):
    signed = []
    monkeypatch.setattr(
        "leeward.adapters.kubernetes.token.eks_token",
        lambda grant, **named: signed.append((grant.access_key, named["region"])) or "token",
    )
    ports.clusters.kubernetes("east")._client._kube_config.token()
    assert signed == [("EAST", REGION)]


def test_the_owner_of_taints_and_the_origin_of_events_stay_apart(ports):
    assert ports.deployment == "111122223333-us-east-1"
    assert ports.origins == {(ACCOUNT, REGION)}
    assert ports.clusters.names() == ("east",)


def test_a_group_s_records_have_the_keys_that_the_functions_use(profiles):
    with mock_aws():
        make_table()
        kept = DynamoUpgrades(DynamoTable(AwsClients("us-east-1", "hub"), "leeward"), f"{ACCOUNT}/{REGION}/")
        kept.keep_plan("web", {"waves": 1})
        ports = wiring.command_line_ports("east", elsewhere=EAST, **HOME)
        assert ports.upgrades.plan("web") == {"waves": 1}
        assert wiring.command_line_ports("blue", **HOME).upgrades.plan("web") is None


def test_a_cluster_of_another_region_of_the_account_needs_no_profile_of_its_own(aws):
    there = Elsewhere(account=HOME["account"], region=REGION, member_role="arn:aws:iam::111122223333:role/leeward-far")
    ports = wiring.command_line_ports("far", elsewhere=there, **HOME)
    ports.instances.describe(["i-0abc"])
    assert aws.signed == ["HUB"]
    assert ports.maxima._build()._prefix == f"maximum#{HOME['account']}/{REGION}/"


def test_a_snapshot_has_the_groups_of_the_cluster_s_account_and_the_deployment_s_policies(aws):
    raw = wiring.command_line_raw("us-east-1", profile="hub", elsewhere=EAST)
    for read in (lambda: raw.subnets(["subnet-1"]), lambda: raw.policies("east")):
        with contextlib.suppress(Exception):
            read()
    assert list(dict.fromkeys(aws.signed)) == ["EAST", "HUB"]


def test_an_execution_s_history_is_the_deployment_s(aws):
    ports, past = wiring.command_line_past("east", elsewhere=EAST, **HOME)
    assert past._arn(Machine.UPGRADE, "web-1").startswith("arn:aws:states:us-east-1:111122223333:execution:leeward-")
    with contextlib.suppress(Exception):
        ports.recovery.shifts("east", NOW)
    assert aws.signed == ["EAST"]


def test_an_unknown_profile_of_the_cluster_is_named_by_its_option(profiles):
    there = Elsewhere(account=ACCOUNT, region=REGION, profile="eats")
    with pytest.raises(InvalidInputError, match=r"^--cluster-profile: found 'eats', expected a profile of your AWS"):
        wiring.command_line_deployment("us-east-1", profile="hub", elsewhere=there).identity()
