"""The second deployment of Leeward: `cdk deploy` of the same app under a name of its own, for the test's
groups alone. A name that AWS still holds after a deletion is waited for."""

import json
import os
import subprocess
import time
from collections.abc import Collection, Mapping
from typing import Any

from account_test.aws import Aws
from account_test.cloudformation import failure_of
from account_test.context import Context
from account_test.errors import StepError
from account_test.run import ROOT, Extra, Run

CDK = ROOT / "node_modules" / ".bin" / "cdk"
LAST_WORDS = 3000
NAME_SECONDS = 65.0  # SQS makes no queue of the name of one that was deleted less than 60 s ago
TRIES = 2
WEBHOOK = "https://leeward-account-test.invalid/"  # a name that no resolver knows: nothing is ever delivered there
EXTERNAL_ID = "leeward-account-test"


def policy(context: Context) -> dict[str, Any]:
    """Return a policy that selects the run's own groups by their names. Its waits are short: a run has only an hour."""
    mine = context.run.deployment
    quiet = {"consolidationPolicy": "Never", "drift": False}
    thin = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "1s",
        "drift": False,
        "cooldown": "1s",
        "budgets": [{"nodes": "100%"}],
    }
    drain = {"timeout": "5m", "settle": "5s", "deregistrationTimeout": "0s"}
    return {
        "items": [
            _document("thin", [f"{mine}-thin"], drain, thin),
            _document("test", [f"{mine}-ours-*", f"eks-{mine}-ours-*"], drain, quiet),
        ]
    }


def _document(name: str, groups: list[str], drain: dict[str, str], disruption: dict[str, Any]) -> dict[str, Any]:
    spec = {"selector": {"groups": groups}, "drain": drain, "disruption": disruption}
    return {"apiVersion": "leeward.dev/v1", "kind": "NodePolicy", "metadata": {"name": name}, "spec": spec}


def settings(context: Context, sender: str | None, extras: Collection[Extra] = ()) -> dict[str, Any]:
    """Return the CDK's context. `sender`: the ARN of the caller's role, which may then send messages to the queue."""
    run = context.run
    folder = run.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "policy.yaml"
    documents = policy(context)["items"] + ([_webhook(run)] if Extra.WEBHOOK in extras else [])
    path.write_text("---\n".join(json.dumps(one, indent=1) + "\n" for one in documents), encoding="utf-8")
    cluster: dict[str, Any] = {
        "name": run.cluster,
        "policies": [str(path.relative_to(ROOT))],
        "account": run.account,
        "region": run.region,
    }
    if Extra.VPC in extras:
        cluster["vpc"] = {"subnetIds": list(run.subnets), "securityGroupIds": list(run.security_groups)}
    elsewhere = Extra.MEMBER in extras
    return {
        "deployment": run.deployment,
        "clusters": [cluster, *([_member_cluster(context)] if elsewhere else [])],
        "concurrency": {"interruption": 0, "drain": 0},  # nothing is reserved in the user's account
        **({"senders": {"roles": [sender]}} if sender else {}),
        **({"kmsKey": run.kms_key} if Extra.KMS_KEY in extras else {}),
        **({"accessEntries": False} if elsewhere else {}),  # the member account needs no cluster
        "nodeRoles": [context.base["nodeRole"], *([_member_role(context, "node")] if elsewhere else [])],
    }


def _webhook(run: Run) -> dict[str, Any]:
    spec = {"webhook": {"url": WEBHOOK, "secretArn": run.webhook_secret}}
    return {"apiVersion": "leeward.dev/v1", "kind": "ClusterSettings", "metadata": {"name": run.cluster}, "spec": spec}


def _member_cluster(context: Context) -> dict[str, Any]:
    """Return a cluster of the other account, which need not exist: no access entry is made for it."""
    return {
        "name": f"{context.run.deployment}-member",
        "account": context.run.member_account,
        "region": context.run.region,
        "roleArn": _member_role(context, "member"),
        "externalId": EXTERNAL_ID,
    }


def _member_role(context: Context, part: str) -> str:
    return f"arn:{context.run.partition}:iam::{context.run.member_account}:role/{context.run.name(part)}"


def deploy(context: Context, sender: str | None, extras: Collection[Extra] = ()) -> None:
    """Deploy, in the member account too where it is among the extras. Raises StepError with the resource that could
    not be made, its reason and the fix.
    """
    run = context.run
    given = json.dumps(settings(context, sender, extras))
    more = {"logs": f"/aws/lambda/{run.names.prefix}-"}
    if Extra.VPC in extras:
        more |= {"subnets": ",".join(run.subnets), "functions": f"{run.names.prefix}-"}
    context.journal.making("stack", run.names.stack, **more)
    _deployed(context, context.aws, run.names.stack, given)
    if Extra.MEMBER in extras:
        name = run.names.member_stack(run.member_account, run.region)
        context.journal.making("stack", name, role=run.member)
        _deployed(context, context.aws.assumed(run.member), name, given)


def _deployed(context: Context, aws: Aws, stack: str, given: str) -> None:
    """Deploy one stack. A cause that passes by itself is waited for once."""
    for attempt in range(TRIES):
        _wait_for_names(context)
        said = _cdk(context, aws.credentials, stack, given)
        if said is None:
            return
        failure = failure_of(aws, stack)
        if failure is None:
            raise StepError(f"cdk deploy of {stack} failed:\n{said[-LAST_WORDS:]}")
        if not failure.passes or attempt == TRIES - 1:
            raise StepError(failure.sentence)
        context.say(f"{failure.sentence}; it is deployed again in {NAME_SECONDS:.0f} s")
        context.base["deleted"] = str(time.monotonic())


def _wait_for_names(context: Context) -> None:
    """Wait until AWS has released the names of a deployment that this run has deleted; a local endpoint does so at
    once.
    """
    if "deleted" not in context.base or context.run.endpoint:
        return
    left = float(context.base["deleted"]) + NAME_SECONDS - time.monotonic()
    if left > 0:
        context.say(f"waiting {left:.0f} s: SQS keeps the names of deleted queues for a minute")
        time.sleep(left)


def _cdk(context: Context, credentials: Mapping[str, str], stack: str, given: str) -> str | None:
    """Run `cdk deploy` for one stack; return its output where it fails, None where it succeeds."""
    output = context.run.folder / "cdk.out"
    words = [
        *(str(CDK), "deploy", stack, "--exclusively", "--require-approval", "never", "--no-notices"),
        *("--output", str(output), "--context", f"leeward={given}"),
        *(word for key, value in context.run.tags.items() for word in ("--tags", f"{key}={value}")),
    ]
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env={**environment(context), **credentials},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as cdk:
        process = context.journal.making("process", str(cdk.pid), words=str(output))  # it outlives a run that is killed
        try:
            said, _ = cdk.communicate()
        except BaseException:
            cdk.kill()
            raise
    context.journal.removed(process)
    return said if cdk.returncode else None


def environment(context: Context) -> dict[str, str]:
    """Return the environment of the CDK's process."""
    run = context.run
    local = {"AWS_ENDPOINT_URL": run.endpoint} if run.endpoint else {}
    return {
        **os.environ,
        **local,
        "PATH": f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "AWS_REGION": run.region,
        "AWS_DEFAULT_REGION": run.region,
        "CDK_DEFAULT_ACCOUNT": run.account,
        "CDK_DEFAULT_REGION": run.region,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    }


def call(context: Context, function: str, event: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer of a function of the deployment; without `event` as its schedule calls it. Raises StepError."""
    asked = {"Payload": json.dumps(event)} if event else {}
    answer = context.aws("lambda").invoke(FunctionName=context.run.names.function(function), **asked)
    found = json.loads(answer["Payload"].read() or "{}")
    if "FunctionError" in answer:
        raise StepError(f"{context.run.names.function(function)}: {found.get('errorMessage', found)}")
    return dict(found)
