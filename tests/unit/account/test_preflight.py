"""Before anything is made: each thing that is missing is named with its fix."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from account_test import preflight
from account_test.errors import PreflightError
from leeward.errors import AccessDeniedError
from tests.unit.account.builders import a_run

CLUSTER = {"name": "blue", "status": "ACTIVE", "version": "1.33", "resourcesVpcConfig": {"subnetIds": ["subnet-1"]}}


def refused(code):
    def call(**_):
        raise ClientError({"Error": {"Code": code, "Message": code}}, "Call")

    return call


class FakeAws:
    """Clients whose calls answer what they are given; what is not given is refused."""

    region = "eu-west-1"

    def __init__(self, **answers):
        self.answers = answers

    def __call__(self, service):
        calls = self.answers.get(service.replace("-", "_"), {})
        made = {
            name: (lambda answer=answer, **_: answer) if not callable(answer) else answer
            for name, answer in calls.items()
        }
        return SimpleNamespace(**made)


class FakeKube:
    def __init__(self, version="v1.33.1", denied=(), error=None):
        self._version, self._denied, self._error = version, denied, error

    def version(self):
        if self._error:
            raise self._error
        return self._version

    def may(self, verb, _group, resource):
        return (verb, resource) not in self._denied


def good(**changes):
    quota = {"get_service_quota": {"Quota": {"Value": 32.0}}}
    answers = {
        "ec2": {"describe_subnets": {"Subnets": [{"AvailableIpAddressCount": 200}]}},
        "cloudformation": {"describe_stacks": {"Stacks": [{}]}},
        "service_quotas": quota,
        "fis": {"get_action": {}},
    }
    return FakeAws(**{**answers, **changes})


@pytest.fixture(autouse=True)
def _no_policies(monkeypatch):
    monkeypatch.setattr(preflight, "_not_selected", lambda run, aws: None)


def test_with_everything_there_it_has_nothing_to_say():
    assert preflight.check(a_run(), good(), FakeKube()) == []


@pytest.mark.parametrize(
    ("aws", "kube", "words"),
    [
        (
            good(ec2={"describe_subnets": refused("InvalidSubnetID.NotFound")}),
            FakeKube(),
            r"subnets subnet-1.*--subnets",
        ),
        (
            good(ec2={"describe_subnets": {"Subnets": [{"AvailableIpAddressCount": 5}]}}),
            FakeKube(),
            "fewer than 40 free addresses",
        ),
        (
            good(cloudformation={"describe_stacks": refused("ValidationError")}),
            FakeKube(),
            r"bootstrapped.*cdk bootstrap",
        ),
        (good(), FakeKube(error=AccessDeniedError("401")), "does not let you in.*AmazonEKSClusterAdminPolicy"),
        (good(), FakeKube(version="v1.26.9"), "Kubernetes v1.26.9, expected 1.27"),
        (good(), FakeKube(denied=[("create", "namespaces")]), "you may not create namespaces"),
        (
            good(service_quotas={"get_service_quota": {"Quota": {"Value": 4.0}}}),
            FakeKube(),
            "quota of on-demand vCPUs is 4, expected at least 8.*request-service-quota-increase",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_fix(aws, kube, words):
    with pytest.raises(PreflightError, match=words):
        preflight.check(a_run(), aws, kube)


def test_what_cannot_be_looked_at_and_fis_that_is_not_there_are_notes():
    aws = good(
        service_quotas={"get_service_quota": refused("AccessDenied")}, fis={"get_action": refused("AccessDenied")}
    )
    notes = preflight.check(a_run(), aws, FakeKube())
    assert [note.split(":")[0] for note in notes] == [
        "the quota of on-demand vCPUs was not looked at",
        "the quota of spot vCPUs was not looked at",
        "AWS FIS cannot be used, the spot interruption will not be played",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "UPDATING"}, "blue is UPDATING, expected ACTIVE"),
        ({"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, "update-cluster-config --name blue"),
        ({"computeConfig": {"enabled": True}}, "Auto Mode"),
    ],
)
def test_a_cluster_that_will_not_do_is_named(changes, words):
    with pytest.raises(PreflightError, match=words):
        preflight.cluster_of(FakeAws(eks={"describe_cluster": {"cluster": {**CLUSTER, **changes}}}), "blue")


def test_a_cluster_that_is_not_there_and_credentials_that_do_not_work_are_named():
    with pytest.raises(PreflightError, match=r"cluster blue in eu-west-1: ResourceNotFoundException.*list-clusters"):
        preflight.cluster_of(FakeAws(eks={"describe_cluster": refused("ResourceNotFoundException")}), "blue")
    with pytest.raises(PreflightError, match=r"no AWS credentials that work.*aws sso login"):
        preflight.caller(FakeAws(sts={"get_caller_identity": refused("ExpiredToken")}))


NETWORKS = [{"endpointPublicAccess": False}, {"publicAccessCidrs": ["10.0.0.0/8"]}]


@pytest.mark.parametrize("network", NETWORKS)
def test_a_cluster_that_lets_in_no_function_from_elsewhere_needs_subnets(network):
    cluster = {**CLUSTER, "resourcesVpcConfig": {**network, "clusterSecurityGroupId": "sg-own"}}
    with pytest.raises(PreflightError, match=r"blue has no endpoint.*SUBNETS=.*NAT gateway"):
        preflight.function_network(cluster, (), ())
    assert preflight.function_network(cluster, ("subnet-2",), ()) == (("sg-own",), True)
    assert preflight.function_network(cluster, (), ("sg-3",)) == (("sg-3",), True)


def test_without_subnets_no_function_is_deployed_in_a_vpc():
    assert preflight.function_network(CLUSTER, (), ()) == ((), False)
    own = {**CLUSTER, "resourcesVpcConfig": {"clusterSecurityGroupId": "sg-own"}}
    assert preflight.function_network(own, (), ()) == ((), False)
    assert preflight.function_network(own, ("subnet-2",), ()) == (("sg-own",), False)


def test_steps_without_instances_ask_for_no_quota():
    aws = good(service_quotas={"get_service_quota": {"Quota": {"Value": 0.0}}})
    assert preflight.check(a_run(), aws, FakeKube(), instances=False) == []


KEY = "arn:aws:kms:eu-west-1:111122223333:key/12345678-1234-1234-1234-123456789012"
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:webhook-AbCdEf"
MEMBER = "arn:aws:iam::222233334444:role/deployer"


@pytest.mark.parametrize(
    ("run", "answers", "words"),
    [
        ({"kms_key": KEY}, {"kms": {"describe_key": refused("NotFoundException")}}, "there is no key.*list-keys"),
        (
            {"kms_key": KEY},
            {"kms": {"describe_key": {"KeyMetadata": {"KeyState": "Disabled"}}}},
            "the key is Disabled.*expected an enabled symmetric one",
        ),
        (
            {"webhook_secret": SECRET},
            {"secretsmanager": {"describe_secret": refused("ResourceNotFoundException")}},
            "there is no secret.*list-secrets",
        ),
    ],
)
def test_a_key_or_secret_that_will_not_do_is_named(run, answers, words):
    with pytest.raises(PreflightError, match=words):
        preflight.check(a_run(**run), good(**answers), FakeKube())


def test_a_key_and_a_secret_that_may_not_be_looked_at_are_notes():
    aws = good(
        kms={"describe_key": refused("AccessDenied")}, secretsmanager={"describe_secret": refused("AccessDenied")}
    )
    notes = preflight.check(a_run(kms_key=KEY, webhook_secret=SECRET), aws, FakeKube())
    assert [note.split(":")[0] for note in notes] == ["the KMS key was not looked at", "the secret was not looked at"]


def test_the_names_that_a_key_s_policy_must_allow_are_said():
    aws = good(kms={"describe_key": {"KeyMetadata": {"KeyState": "Enabled", "KeySpec": "SYMMETRIC_DEFAULT"}}})
    (note,) = preflight.check(a_run(kms_key=KEY), aws, FakeKube())
    assert "test-0abc12-leeward-*" in note


def test_another_account_whose_role_cannot_be_assumed_or_that_is_not_bootstrapped_is_named():
    with pytest.raises(PreflightError, match=r"cannot be assumed.*trust policy"):
        preflight.check(a_run(member=MEMBER), Assuming(refused("AccessDenied")), FakeKube())
    there = good(cloudformation={"describe_stacks": refused("ValidationError")})
    with pytest.raises(PreflightError, match=r"account 222233334444.*not bootstrapped.*aws://222233334444/eu-west-1"):
        preflight.check(a_run(member=MEMBER), Assuming(lambda: there), FakeKube())


class Assuming(FakeAws):
    """An account from which a role is assumed."""

    def __init__(self, answer):
        super().__init__(**good().answers)
        self.answer = answer

    def assumed(self, _role):
        return self.answer()


def routes(gateway):
    return {"RouteTables": [{"Routes": [{"DestinationCidrBlock": "0.0.0.0/0", **gateway}]}]}


@pytest.mark.parametrize(
    ("gateway", "said"),
    [({"NatGatewayId": "nat-1"}, False), ({"GatewayId": "igw-1"}, True), ({"TransitGatewayId": "tgw-1"}, False)],
)
def test_subnets_of_functions_without_a_way_out_are_named(gateway, said):
    ec2 = {"describe_subnets": {"Subnets": [{"AvailableIpAddressCount": 200, "VpcId": "vpc-1"}]}}
    aws = good(ec2={**ec2, "describe_route_tables": routes(gateway)})
    notes = preflight.check(a_run(security_groups=("sg-1",)), aws, FakeKube())
    assert [note.split(" ")[0] for note in notes] == (["subnet-1"] if said else [])


def test_subnets_are_those_named_else_the_clusters():
    assert preflight.subnets_of(CLUSTER, ()) == ("subnet-1",)
    assert preflight.subnets_of(CLUSTER, ("subnet-2",)) == ("subnet-2",)
    with pytest.raises(PreflightError, match="--subnets"):
        preflight.subnets_of({"name": "blue"}, ())
