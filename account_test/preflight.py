"""Checks before anything is made that all requirements of the run are met. Each error names the requirement and the
fix.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from account_test import extras
from account_test.aws import Aws, code
from account_test.errors import PreflightError
from account_test.kubernetes import Kube
from account_test.run import Run
from infra.settings import LONGEST_NAMES
from leeward.errors import LeewardError

MODES = {"API", "API_AND_CONFIG_MAP"}
VCPUS = 8.0  # of four small instances
ON_DEMAND, SPOT = "L-1216C47A", "L-34B43A08"  # quotas of vCPUs of the standard families
OLDEST = (1, 27)
EVERYWHERE = ("0.0.0.0/0",)
WRITES = (
    ("create", "", "namespaces"),
    ("create", "apps", "deployments"),
    ("create", "policy", "poddisruptionbudgets"),
    ("list", "", "nodes"),
    ("list", "", "pods"),
)


def caller(aws: Aws) -> tuple[str, str, str]:
    """Return (account, partition, ARN) of the credentials. Raises PreflightError."""
    try:
        identity = aws("sts").get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        raise PreflightError(f"no AWS credentials that work: {error}. Fix: aws sso login, or AWS_PROFILE") from error
    return identity["Account"], identity["Arn"].split(":")[1], identity["Arn"]


def sender_of(arn: str) -> str | None:
    """Return the role behind a session's ARN, None for a user, who may not be a sender."""
    found = re.fullmatch(r"arn:([\w-]+):sts::(\d{12}):assumed-role/([^/]+)/.+", arn)
    if found and not found[3].startswith("AWSReservedSSO_"):  # its path is not in the session's ARN
        return f"arn:{found[1]}:iam::{found[2]}:role/{found[3]}"
    return None


def cluster_of(aws: Aws, name: str) -> Mapping[str, Any]:
    """Return the cluster, ACTIVE, with access entries. Raises PreflightError."""
    try:
        cluster: Mapping[str, Any] = aws("eks").describe_cluster(name=name)["cluster"]
    except ClientError as error:
        where = f"cluster {name} in {aws.region}"
        raise PreflightError(
            f"{where}: {code(error)}. Fix: name it as `aws eks list-clusters` does, set AWS_REGION"
        ) from error
    if cluster.get("status") != "ACTIVE":
        raise PreflightError(f"cluster {name} is {cluster.get('status')}, expected ACTIVE")
    mode = (cluster.get("accessConfig") or {}).get("authenticationMode", "API")
    if mode not in MODES:
        raise PreflightError(
            f"cluster {name} has authentication mode {mode}, expected API_AND_CONFIG_MAP. Fix: aws eks "
            f"update-cluster-config --name {name} --access-config authenticationMode=API_AND_CONFIG_MAP"
        )
    if (cluster.get("computeConfig") or {}).get("enabled"):
        raise PreflightError(f"cluster {name} runs in EKS Auto Mode, expected one that takes Auto Scaling groups")
    return cluster


def function_network(
    cluster: Mapping[str, Any], subnets: Sequence[str], groups: Sequence[str]
) -> tuple[tuple[str, ...], bool]:
    """Return the security groups of functions in the given subnets, and whether the cluster lets in no function from
    elsewhere. Without `groups` they are the cluster's own, which lets in its members; without subnets and groups no
    function is deployed there. Raises PreflightError where one has to be.
    """
    network = cluster.get("resourcesVpcConfig") or {}
    everyone = "0.0.0.0/0" in (network.get("publicAccessCidrs") or EVERYWHERE)
    behind = network.get("endpointPublicAccess") is False or not everyone
    own = network.get("clusterSecurityGroupId")
    found = tuple(groups) or ((str(own),) if subnets and own else ())
    if behind and not found:
        raise PreflightError(
            f"cluster {cluster['name']} has no endpoint that functions outside of its VPC reach (publicAccessCidrs, or "
            "no public endpoint). Fix: SUBNETS=subnet-...,subnet-... in its VPC with a NAT gateway, and where the "
            "cluster's own security group will not do SECURITY_GROUPS=sg-..."
        )
    return found, behind


def subnets_of(cluster: Mapping[str, Any], given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the given subnets, else the cluster's own. Raises PreflightError."""
    found = given or tuple((cluster.get("resourcesVpcConfig") or {}).get("subnetIds") or ())
    if not found:
        raise PreflightError(f"cluster {cluster['name']} names no subnets. Fix: --subnets subnet-...,subnet-...")
    return found


def check(run: Run, aws: Aws, kube: Kube, *, instances: bool = True) -> list[str]:
    """Check everything but credentials and cluster. Return notes that do not stop the run. `instances`: the steps start
    some. Raises PreflightError.
    """
    _subnets(run, aws)
    _bootstrapped(run.account, run.region, aws)
    _kubernetes(run, kube)
    _not_selected(run, aws)
    notes = extras.check(run, aws)
    if run.member:
        _bootstrapped(run.member_account, run.region, extras.member_of(run, aws))
    return [*notes, *_quotas(aws), *_access(run, aws)] if instances else notes


def _subnets(run: Run, aws: Aws) -> None:
    try:
        found = aws("ec2").describe_subnets(SubnetIds=list(run.subnets))["Subnets"]
    except ClientError as error:
        raise PreflightError(f"subnets {', '.join(run.subnets)}: {error}. Fix: --subnets subnet-...") from error
    if sum(int(one["AvailableIpAddressCount"]) for one in found) < 40:
        raise PreflightError(
            f"subnets {', '.join(run.subnets)} have fewer than 40 free addresses. Fix: --subnets others"
        )


def _bootstrapped(account: str, region: str, aws: Aws) -> None:
    try:
        aws("cloudformation").describe_stacks(StackName="CDKToolkit")
    except ClientError as error:
        raise PreflightError(
            f"account {account}, Region {region} is not bootstrapped for the CDK ({code(error)}). "
            f"Fix: node_modules/.bin/cdk bootstrap aws://{account}/{region}"
        ) from error


def _kubernetes(run: Run, kube: Kube) -> None:
    try:
        version = kube.version()
        denied = [f"{verb} {resource}" for verb, group, resource in WRITES if not kube.may(verb, group, resource)]
    except LeewardError as error:
        raise PreflightError(
            f"cluster {run.cluster} does not let you in: {error}. Fix: an access entry for your role with the policy "
            "AmazonEKSClusterAdminPolicy (aws eks create-access-entry, aws eks associate-access-policy)"
        ) from error
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < OLDEST:
        raise PreflightError(f"cluster {run.cluster} has Kubernetes {version}, expected 1.27 or newer")
    if denied:
        raise PreflightError(
            f"in cluster {run.cluster} you may not {', '.join(denied)}. Fix: associate AmazonEKSClusterAdminPolicy"
        )


def _not_selected(run: Run, aws: Aws) -> None:
    """Check that an existing Leeward does not select the test's groups."""
    from leeward.adapters.aws.applied_policies import DynamoPolicies
    from leeward.adapters.aws.clients import AwsClients
    from leeward.adapters.aws.policies import ParameterStorePolicies
    from leeward.adapters.aws.table import DynamoTable
    from leeward.adapters.wiring import SystemClock

    try:
        clients = AwsClients(aws.region)
        applied = DynamoPolicies(DynamoTable(clients, "leeward"))
        policies = ParameterStorePolicies(clients, SystemClock(), "/leeward", applied).of_cluster(run.cluster)
    except LeewardError:
        return  # none is deployed for this cluster
    for part in ("ours-manual", "ours-in", "ours-spot", "ours-own", "thin", "foreign"):
        policy = policies.selecting(run.name(part), {f"kubernetes.io/cluster/{run.cluster}": "owned", **run.tags})
        if policy is not None:
            raise PreflightError(
                f"policy {policy.name} of the Leeward that is deployed here selects the test's group {run.name(part)}. "
                "Fix: narrow its selector by `groups` or `tags` for the time of the test"
            )


def _quotas(aws: Aws) -> list[str]:
    notes = []
    for name, quota in (("on-demand", ON_DEMAND), ("spot", SPOT)):
        try:
            value = float(aws("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=quota)["Quota"]["Value"])
        except (ClientError, BotoCoreError) as error:
            notes.append(f"the quota of {name} vCPUs was not looked at: {error}")
            continue
        if value < VCPUS:
            raise PreflightError(
                f"the quota of {name} vCPUs is {value:g}, expected at least {VCPUS:g}. Fix: aws service-quotas "
                f"request-service-quota-increase --service-code ec2 --quota-code {quota} --desired-value 32"
            )
    return notes


def _access(run: Run, aws: Aws) -> list[str]:
    """Return notes on access to AWS FIS. It has a service role of its own; whether that may be used shows only on
    use.
    """
    if len(run.cluster) > LONGEST_NAMES:
        raise PreflightError(f"cluster name {run.cluster} is too long")
    if run.endpoint:
        return ["AWS FIS is replaced by the event that it causes: this is a local endpoint"]
    try:
        aws("fis").get_action(id="aws:ec2:send-spot-instance-interruptions")
    except (ClientError, BotoCoreError) as error:
        return [f"AWS FIS cannot be used, the spot interruption will not be played: {error}"]
    return []
