"""Errors of live commands name account, Region and the fix; Region and profile are found as the AWS CLI does."""

import pytest

from leeward.adapters import wiring
from leeward.adapters.aws.clients import AwsClients
from leeward.errors import AccessDeniedError, AwsUnreachableError, ClusterUnreachableError, ObjectGoneError
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_policy, an_instance, policies
from tests.fakes.system import FakeSystem

ACCOUNT, REGION = "111122223333", "eu-west-1"
DRAIN = ("drain", "node-i-0a", "--cluster", CLUSTER, "--dry-run")


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """An environment without credentials and Region, and a configuration with two profiles."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    config, credentials = tmp_path / "config", tmp_path / "credentials"
    config.write_text("[default]\nregion = us-west-1\n[profile staging]\nregion = eu-central-1\n")
    credentials.write_text("[staging]\naws_access_key_id = STAGING\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


@pytest.fixture
def system(monkeypatch):
    found = FakeSystem(
        instances=[an_instance("i-0a")],
        groups=[a_group(GROUP, "i-0a")],
        nodes=[a_node("i-0a")],
        written=policies(a_policy()),
        origins=frozenset({(ACCOUNT, REGION)}),
    )
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


def test_the_region_is_that_of_the_option_then_the_environment_then_the_profile(environment):
    assert AwsClients().region == "us-west-1"
    assert AwsClients(profile="staging").region == "eu-central-1"
    environment.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert AwsClients(profile="staging").region == "us-west-2"
    environment.setenv("AWS_REGION", "eu-west-1")
    assert AwsClients(profile="staging").region == "eu-west-1"
    assert AwsClients("us-east-2", "staging").region == "us-east-2"


def test_the_credentials_of_a_named_profile_win_over_those_of_the_environment(environment):
    environment.setenv("AWS_ACCESS_KEY_ID", "ENVIRONMENT")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert AwsClients().credentials().access_key == "ENVIRONMENT"
    assert AwsClients(profile="staging").credentials().access_key == "STAGING"


def test_an_unknown_profile_is_bad_input_that_lists_the_profiles(leeward, environment):
    reported = leeward.refuses(*DRAIN, "--profile", "stagin")
    assert reported == ("--profile: found 'stagin', expected a profile of your AWS configuration: default, staging")


def test_missing_credentials_come_with_the_fix(leeward, environment):
    result = leeward(*DRAIN)
    assert (result.code, result.out) == (1, "")
    assert "Unable to locate credentials; log in (aws sso login" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    "kind", ["sso_region = r\nsso_account_id = 1\nsso_role_name = r\nsso_start_url", "credential_process"]
)
def test_a_profile_without_a_session_comes_with_its_own_login(leeward, environment, tmp_path, kind):
    environment.setenv("HOME", str(tmp_path))  # which has no session of SSO
    (tmp_path / "config").write_text(f"[profile own]\nregion = us-west-1\n{kind} = false\n")
    assert "; log in (aws sso login --profile own, or set" in leeward(*DRAIN, "--profile", "own").err


@pytest.fixture
def unreachable(monkeypatch):
    """No endpoint answers."""

    def refuse(*_):
        raise AwsUnreachableError("sts:GetCallerIdentity on the default credentials: no answer")

    monkeypatch.setattr(wiring, "command_line_ports", refuse)


def test_a_typing_error_in_the_region_names_the_nearest(leeward, environment, unreachable):
    environment.setenv("AWS_REGION", "us-esat-1")
    result = leeward(*DRAIN)
    assert result.code == 1
    assert "AWS_REGION: found 'us-esat-1', expected an AWS Region; did you mean us-east-1?" in result.err
    assert "--region: found 'eu-wst-3', expected an AWS Region; did you mean eu-west-3?" in (
        leeward(*DRAIN, "--region", "eu-wst-3").err
    )


def test_an_endpoint_that_does_not_answer_in_a_real_region_leaves_the_region_alone(leeward, environment, unreachable):
    environment.setenv("AWS_REGION", "cn-north-1")
    said = leeward(*DRAIN).err
    assert ("expected an AWS Region" in said, "HTTPS_PROXY, AWS_ENDPOINT_URL" in said) == (False, True)


def test_a_cluster_that_is_not_there_is_bad_input_with_account_and_region(leeward, system):
    gone = ObjectGoneError(f"eks:DescribeCluster on {CLUSTER}: ResourceNotFoundException: No cluster found for name")
    system.kubernetes.fail("node", gone)
    reported = leeward.refuses(*DRAIN)
    assert f"found no cluster '{CLUSTER}' in account {ACCOUNT}, Region {REGION}" in reported
    assert "--region, --profile or AWS_PROFILE name another place" in reported


@pytest.mark.parametrize(
    "error", [AccessDeniedError("ec2:DescribeInstances: denied"), ClusterUnreachableError("no answer")]
)
def test_every_error_of_a_live_call_names_account_and_region(leeward, system, error):
    system.kubernetes.fail("node", error)
    result = leeward(*DRAIN)
    assert (result.code, result.err) == (1, f"leeward: {error} (account {ACCOUNT}, Region {REGION})\n")


def test_a_folder_and_a_cluster_together_are_refused(leeward, tmp_path):
    reported = leeward.refuses("plan", "--snapshot", tmp_path, "--cluster", "blue")
    expected = "expected one of them: a folder is read offline, a cluster live"
    assert reported == f"found --snapshot {tmp_path} and --cluster blue, {expected}"
