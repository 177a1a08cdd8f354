"""The EKS token: what aws-cli would sign, and for how long it is kept."""

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from leeward.adapters.aws.access import AssumedRole, Grant, NoAccess, OwnCredentials
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.kubernetes.token import TokenSource, eks_token
from leeward.errors import AccessDeniedError
from tests.fakes.clock import START, FakeClock

GRANT = Grant(access_key="AKIDEXAMPLE", secret_key="not-a-secret", session_token="s" * 300)
SIGNED_AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def opened(token):
    prefix, encoded = token.split(".", 1)
    assert prefix == "k8s-aws-v1"
    assert "=" not in encoded
    return urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


def signed_as_aws_cli_does(cluster, region):
    """aws eks get-token: header by event handlers on an STS client (awscli/customizations/eks/get_token.py)."""
    session = boto3.Session(GRANT.access_key, GRANT.secret_key, GRANT.session_token)
    client = session.client("sts", region_name=region)

    def retrieve(params, context, **_):
        context["cluster"] = params.pop("ClusterName")

    def inject(request, **_):
        request.headers["x-k8s-aws-id"] = request.context["cluster"]

    client.meta.events.register("provide-client-params.sts.GetCallerIdentity", retrieve)
    client.meta.events.register("before-sign.sts.GetCallerIdentity", inject)
    url = client.generate_presigned_url(
        "get_caller_identity", Params={"ClusterName": cluster}, ExpiresIn=60, HttpMethod="GET"
    )
    return urlsplit(url)


@pytest.fixture
def stopped_time(monkeypatch):
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: SIGNED_AT.replace(tzinfo=None))


@pytest.mark.parametrize("region", ["eu-west-1", "us-east-1"])
def test_the_token_carries_the_signature_that_aws_cli_would_make(aws_environment, stopped_time, region):
    endpoint = f"https://sts.{region}.amazonaws.com"
    ours = opened(eks_token(GRANT, cluster="blue", region=region, sts_endpoint=endpoint))
    theirs = signed_as_aws_cli_does("blue", region)
    assert ours.netloc == theirs.netloc == f"sts.{region}.amazonaws.com"
    assert parse_qs(ours.query) == parse_qs(theirs.query)
    assert parse_qs(ours.query)["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]


@pytest.mark.parametrize("sdk_default", ["legacy", "regional"])
def test_the_token_is_for_the_region_s_endpoint_whatever_the_sdk_defaults_to(aws_environment, monkeypatch, sdk_default):
    monkeypatch.setenv("AWS_STS_REGIONAL_ENDPOINTS", sdk_default)  # botocore before 1.40 has the default `legacy`
    source = TokenSource(AwsClients(), FakeClock(), Fixed(), cluster="blue", region="eu-west-1")
    assert opened(source.token()).netloc == "sts.eu-west-1.amazonaws.com"


def test_another_cluster_makes_another_signature(stopped_time):
    signatures = {
        parse_qs(opened(eks_token(GRANT, cluster=name, region="eu-west-1", sts_endpoint="https://sts")).query)[
            "X-Amz-Signature"
        ][0]
        for name in ("blue", "green")
    }
    assert len(signatures) == 2


def test_a_local_endpoint_is_signed_where_aws_endpoint_url_says(aws_environment, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    source = TokenSource(AwsClients(), FakeClock(), Fixed(), cluster="blue", region="us-east-1")
    assert opened(source.token()).netloc == "127.0.0.1:4566"


class Fixed:
    """Credentials that expire at a known moment."""

    def __init__(self, expires=None):
        self.expires = expires
        self.asked = []

    def grant(self, *, fresh=False):
        self.asked.append(fresh)
        key = f"AKID{len(self.asked)}"
        return Grant(access_key=key, secret_key="s", session_token=None, expires=self.expires)


def tokens(access, clock):
    return TokenSource(AwsClients(), clock, access, cluster="blue", region="us-east-1")


def test_a_token_is_kept_for_ten_minutes(aws_environment):
    clock, access = FakeClock(), Fixed()
    source = tokens(access, clock)
    first = source.token()
    clock.advance(minutes=9, seconds=59)
    assert source.token() == first
    clock.advance(seconds=1)
    assert source.token() != first


def test_a_token_does_not_outlive_the_credentials_that_signed_it(aws_environment):
    clock = FakeClock()
    access = Fixed(expires=START + timedelta(minutes=5))
    source = tokens(access, clock)
    first = source.token()
    clock.advance(minutes=3, seconds=59)
    assert source.token() == first
    clock.advance(seconds=1)
    assert source.token() != first


def test_a_refused_token_is_signed_anew_with_new_credentials(aws_environment):
    access = Fixed()
    source = tokens(access, FakeClock())
    first = source.token()
    assert source.token(fresh=True) != first
    assert access.asked == [False, True]


class Sts:
    def __init__(self, clock):
        self.clock = clock
        self.calls = []

    def assume_role(self, **arguments):
        self.calls.append(arguments)
        expires = self.clock.now() + timedelta(hours=1)
        return {
            "Credentials": {
                "AccessKeyId": f"ASIA{len(self.calls)}",
                "SecretAccessKey": "very-secret",
                "SessionToken": "t",
                "Expiration": expires,
            }
        }


class Clients:
    def __init__(self, client):
        self.client = client
        self.asked = []

    def get(self, service, *, region=None, retries=True):
        self.asked.append((service, region))
        return self.client


def test_a_role_is_assumed_once_until_five_minutes_before_its_session_ends():
    clock = FakeClock()
    clients = Clients(Sts(clock))
    role = AssumedRole(clients, clock, role="arn:aws:iam::111122223333:role/leeward-blue-act", region="eu-west-1")
    assert role.grant() == role.grant()
    clock.advance(minutes=54)
    assert role.grant().access_key == "ASIA1"
    clock.advance(minutes=1)
    assert role.grant().access_key == "ASIA2"
    assert role.grant(fresh=True).access_key == "ASIA3"
    assert clients.client.calls[0]["RoleArn"] == "arn:aws:iam::111122223333:role/leeward-blue-act"
    assert set(clients.asked) == {("sts", "eu-west-1")}


def test_a_grant_never_shows_its_secret():
    assert "not-a-secret" not in repr(GRANT)
    assert "sss" not in str(GRANT)


def test_the_command_line_signs_with_its_own_credentials(aws_environment):
    assert OwnCredentials(AwsClients()).grant().access_key == "AKIDEXAMPLE"


def test_no_credentials_are_denied_access(aws_environment, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AccessDeniedError, match="no AWS credentials"):
        OwnCredentials(AwsClients()).grant()


def test_a_function_without_access_speaks_to_no_cluster():
    with pytest.raises(AccessDeniedError, match="KUBERNETES_ACCESS"):
        NoAccess().grant()
