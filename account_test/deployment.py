"""The second deployment of Leeward: `cdk deploy` of the same app under a name of its own, for the test's
groups alone."""

import json
import os
import subprocess
from typing import Any

from account_test.context import Context
from account_test.errors import StepError
from account_test.run import ROOT

CDK = ROOT / "node_modules" / ".bin" / "cdk"
LAST_WORDS = 3000


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


def settings(context: Context, sender: str | None) -> dict[str, Any]:
    """Return the CDK's context. `sender`: the ARN of the caller's role, which may then send messages to the queue."""
    run = context.run
    folder = run.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "policy.yaml"
    path.write_text(
        "---\n".join(json.dumps(one, indent=1) + "\n" for one in policy(context)["items"]), encoding="utf-8"
    )
    cluster: dict[str, Any] = {
        "name": run.cluster,
        "policies": [str(path.relative_to(ROOT))],
        "account": run.account,
        "region": run.region,
    }
    return {
        "deployment": run.deployment,
        "clusters": [cluster],
        "concurrency": {"interruption": 0, "drain": 0},  # nothing is reserved in the user's account
        **({"senders": {"roles": [sender]}} if sender else {}),
        "nodeRoles": [context.base["nodeRole"]],
    }


def deploy(context: Context, sender: str | None) -> None:
    """Deploy. Raises StepError with the CDK's last lines."""
    run = context.run
    context.journal.making("stack", run.names.stack, logs=f"/aws/lambda/{run.names.prefix}-")
    output = run.folder / "cdk.out"
    words = [
        *(str(CDK), "deploy", "--all", "--require-approval", "never", "--no-notices", "--output", str(output)),
        *("--context", f"leeward={json.dumps(settings(context, sender))}"),
        *(word for key, value in run.tags.items() for word in ("--tags", f"{key}={value}")),
    ]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment(context), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as cdk:
        process = context.journal.making("process", str(cdk.pid), words=str(output))  # it outlives a run that is killed
        try:
            said, _ = cdk.communicate()
        except BaseException:
            cdk.kill()
            raise
    context.journal.removed(process)
    if cdk.returncode:
        raise StepError(f"cdk deploy failed:\n{said[-LAST_WORDS:]}")


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


def call(context: Context, function: str) -> dict[str, Any]:
    """Return the answer of a function of the deployment that is otherwise called by a schedule. Raises StepError."""
    answer = context.aws("lambda").invoke(FunctionName=context.run.names.function(function))
    found = json.loads(answer["Payload"].read() or "{}")
    if "FunctionError" in answer:
        raise StepError(f"{context.run.names.function(function)}: {found.get('errorMessage', found)}")
    return dict(found)
