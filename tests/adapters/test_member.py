"""Clusters of another account or Region: the role that is assumed, who signs, and what happens where STS does not."""

import contextlib
import json
import threading
import time
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest
from moto import mock_aws

from leeward.adapters import wiring
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.maxima import DynamoMaxima
from leeward.adapters.aws.table import DynamoTable
from leeward.adapters.aws.workflow_records import DynamoUpgrades
from leeward.adapters.settings import Settings
from leeward.errors import AccessDeniedError, AwsUnreachableError, InvalidInputError, ThrottledError
from leeward.model.capacity import RaisedMaximum
from leeward.ports import AwsPorts
from tests.adapters.test_settings import BLUE, GOOD
from tests.contract.tables import make_table
from tests.fakes.builders import an_instance

ROLE = "arn:aws:iam::222233334444:role/leeward-east"
EAST = {
    "name": "east",
    "region": "eu-north-1",
    "account": "222233334444",
    "memberRole": ROLE,
    "externalId": "hub-4711",
}
WEST = {**EAST, "name": "west", "account": "333344445555", "memberRole": ROLE.replace("2222333344", "3333444455")}
REFUSED = """<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"""
SESSION = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2096-03-02T10:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
INSTANCES = "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"


class Aws:
    """STS and EC2 on loopback: `assumed` are the roles asked for, `signed` the access key of each other call, which is
    answered as EC2 answers. `refusing`: role -> error code; `pause`: seconds before an answer of STS.
    """

    def __init__(self):
        self.assumed, self.signed, self.refusing = [], [], {}
        self.pause = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.do_POST()

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                status, body = outer.answer(self.headers, self.rfile.read(length).decode(errors="replace"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # a caller that waited too long is gone
                    self.wfile.write(body.encode())

            def log_message(self, *_):
                """Nothing is written."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, headers, body):
        form = {name: values[0] for name, values in parse_qs(body).items()}
        if form.get("Action") != "AssumeRole":
            self.signed.append(headers["Authorization"].partition("Credential=")[2].split("/")[0])
            return 200, INSTANCES
        self.assumed.append(form)
        time.sleep(self.pause)
        code = self.refusing.get(form["RoleArn"])
        return (400, REFUSED.format(code=code)) if code else (200, SESSION.format(key=f"KEY{len(self.assumed)}"))


@pytest.fixture
def aws():
    made = Aws()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def function(aws_environment, monkeypatch):
    """The ports of fn drain, with clusters here and in two other accounts."""
    settings = {**GOOD, "CLUSTERS": json.dumps([BLUE, EAST, WEST]), "FUNCTION": "drain"}
    for name, value in {**settings, "AWS_LAMBDA_FUNCTION_NAME": "leeward-drain"}.items():
        monkeypatch.setenv(name, value)
    wiring.lambda_ports.cache_clear()
    wiring.lambda_clients.cache_clear()

    def ports(url):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        return wiring.lambda_ports()

    yield ports
    wiring.lambda_ports.cache_clear()
    wiring.lambda_clients.cache_clear()


def test_each_function_assumes_a_role_of_its_own():
    settings = Settings.from_env({**GOOD, "CLUSTERS": json.dumps([BLUE, EAST]), "FUNCTION": "drain"})
    assert [cluster.member_role for cluster in settings.clusters] == ["", f"{ROLE}-drain"]


def test_a_function_that_does_not_know_its_name_does_not_start():
    with pytest.raises(InvalidInputError, match="FUNCTION: found nothing"):
        Settings.from_env({**GOOD, "CLUSTERS": json.dumps([EAST])})


def test_a_function_needs_no_cluster_role_where_it_assumes_one_of_the_account():
    assert Settings.from_env({**GOOD, "CLUSTERS": json.dumps([EAST]), "FUNCTION": "drain"}).clusters[0].act_role == ""


def test_calls_for_a_cluster_are_signed_by_the_role_of_its_account_assumed_once(function, aws):
    ports = function(aws.url)
    for cluster in ("blue", "east", "east", "west"):
        ports.of_cluster(cluster).instances.describe(["i-0abc"])
    assert aws.signed == ["AKIDEXAMPLE", "KEY1", "KEY1", "KEY2"]
    asked = {(form["RoleArn"], form["ExternalId"], form["RoleSessionName"]) for form in aws.assumed}
    assert asked == {(f"{one['memberRole']}-drain", "hub-4711", "leeward-drain") for one in (EAST, WEST)}


NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
CALLS = {
    "instances": lambda port: port.describe(["i-0abc"]),
    "network": lambda port: port.subnets(["subnet-1"]),
    "price_list": lambda port: port.spot(["m5.large"], ["eu-north-1a"], NOW),
    "nodegroups": lambda port: port.get("east", "web", timedelta(0)),
    "launches": lambda port: port.instance_types(["m5.large"]),
    "groups": lambda port: port.describe(["web"]),
    "load_balancers": lambda port: port.targets("east", an_instance("i-0abc", cluster="east")),
    "group_changes": lambda port: port.suspend("web", "AZRebalance"),
    "templates": lambda port: port.image_exists("ami-1"),
    "managed_updates": lambda port: port.nodegroup("east", "web"),
    "service_limits": lambda port: port.control_plane("east"),
    "alarms": lambda port: port.describe(["errors"]),
    "recovery": lambda port: port.shifts("east", NOW),
}
"""A call of each port that acts in the account of a cluster."""


def test_every_port_but_those_of_the_table_is_among_the_calls():
    assert {field.name for field in fields(AwsPorts)} == {*CALLS, "maxima", "upgrades"}


@pytest.mark.parametrize("port", sorted(CALLS))
def test_every_port_of_a_place_calls_with_the_role_of_its_account(function, aws, port):
    east = function(aws.url).of_cluster("east")
    with contextlib.suppress(Exception):  # the answer is that of EC2, whatever the service
        CALLS[port](getattr(east, port))
    assert set(aws.signed) == {"KEY1"}


def test_the_token_for_the_api_server_is_signed_by_the_same_session(function, aws, monkeypatch):
    ports = function(aws.url)
    ports.of_cluster("east").instances.describe(["i-0abc"])
    signed = []

    def sign(grant, **named):
        signed.append((grant.access_key, named["cluster"], named["region"]))
        return "token"

    monkeypatch.setattr("leeward.adapters.kubernetes.token.eks_token", sign)
    clusters = wiring.lambda_ports().clusters
    clusters._new_api(clusters._known("east"))._client._kube_config.token()
    assert signed == [("KEY1", "east", "eu-north-1")]
    assert len(aws.assumed) == 1


@pytest.mark.parametrize(("code", "error"), [("AccessDenied", AccessDeniedError), ("Throttling", ThrottledError)])
def test_a_role_that_is_refused_harms_its_account_alone_and_is_not_asked_for_each_call(function, aws, code, error):
    ports = function(aws.url)
    aws.refusing[f"{ROLE}-drain"] = code
    for _ in range(5):
        with pytest.raises(error, match=f"{ROLE}-drain"):
            ports.of_cluster("east").instances.describe(["i-0abc"])
    ports.of_cluster("west").instances.describe(["i-0abc"])
    assert aws.signed == ["KEY2"]
    assert len(aws.assumed) == 2


def test_a_denial_names_the_fix(function, aws):
    ports = function(aws.url)
    aws.refusing[f"{ROLE}-drain"] = "AccessDenied"
    with pytest.raises(AccessDeniedError, match="deploy the member stack in that account again"):
        ports.of_cluster("east").groups.describe(["web-a"])


def test_a_role_is_asked_for_again_after_some_seconds(function, aws, monkeypatch):
    monkeypatch.setattr("leeward.adapters.aws.member.FAILURE_KEPT", timedelta(0))
    ports = function(aws.url)
    aws.refusing[f"{ROLE}-drain"] = "AccessDenied"
    with pytest.raises(AccessDeniedError):
        ports.of_cluster("east").instances.describe(["i-0abc"])
    aws.refusing.clear()
    ports.of_cluster("east").instances.describe(["i-0abc"])
    assert aws.signed == ["KEY2"]


def test_an_sts_that_does_not_answer_in_time_costs_one_wait_of_seconds(function, aws, monkeypatch):
    monkeypatch.setattr("leeward.adapters.aws.member.READ_SECONDS", 0.3)
    aws.pause = 5.0
    ports = function(aws.url)
    began = time.monotonic()
    for _ in range(4):
        with pytest.raises(AwsUnreachableError, match="sts:AssumeRole"):
            ports.of_cluster("east").instances.describe(["i-0abc"])
    assert time.monotonic() - began < 3
    assert len(aws.assumed) == 1


def test_no_call_into_another_account_begins_once_the_budget_is_spent(function, aws):
    ports = function(aws.url)
    ports.of_cluster("east").instances.describe(["i-0abc"])

    class Context:
        def get_remaining_time_in_millis(self):
            return 0

    with pytest.raises(Exception, match="no time is left"):
        wiring.invocation_ports(Context()).of_cluster("east").instances.describe(["i-0abc"])
    assert aws.signed == ["KEY1"]


def test_nothing_is_called_before_a_cluster_is_named(function, aws):
    ports = function(aws.url)
    with pytest.raises(InvalidInputError):
        ports.groups.describe(["web-a"])
    assert (aws.assumed, aws.signed) == ([], [])


def test_records_of_groups_elsewhere_have_the_account_in_their_keys(function, aws):
    places = {place.account: place.aws.maxima._build()._prefix for place in function(aws.url).places}
    assert places == {
        BLUE["account"]: "maximum#",
        EAST["account"]: "maximum#222233334444/eu-north-1/",
        WEST["account"]: "maximum#333344445555/eu-north-1/",
    }


def test_groups_of_one_name_in_two_accounts_have_records_of_their_own(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        table = DynamoTable(AwsClients("us-east-1"), "leeward")
        here, there = DynamoMaxima(table), DynamoMaxima(table, "222233334444/us-east-1/")
        item = here.write(RaisedMaximum(group="web-a", before=5, raised=(6,)))
        assert there.read("web-a") is None
        other = there.write(RaisedMaximum(group="web-a", before=2, raised=(3,)))
        assert (here.read_all(["web-a"]), there.read_all(["web-a"])) == ({"web-a": item}, {"web-a": other})
        DynamoUpgrades(table).keep_plan("web-a", {"waves": 1})
        assert DynamoUpgrades(table, "222233334444/us-east-1/").plan("web-a") is None
