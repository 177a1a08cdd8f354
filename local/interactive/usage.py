"""Text that `make local` prints: how to use the stack, and with which settings."""

from pathlib import Path

from local.interactive import playground, state
from local.stack import LocalStack

VARIABLES = (
    "AWS_ENDPOINT_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "KUBECONFIG",
)
FOREIGN = "AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE"
DEPLOYED = """
Leeward is deployed, and watches the groups web-spot (5 nodes) and web-on-demand (4 nodes). Try:

  .venv/bin/leeward doctor --cluster {cluster}
  .venv/bin/leeward plan --cluster {cluster} --what-if consolidation
  .venv/bin/leeward blockers --cluster {cluster}
  .venv/bin/leeward policy apply FILE.yaml --cluster {cluster}  # begin with a copy of local/interactive/policy.yaml
  .venv/bin/leeward drain NODE --cluster {cluster}            # NODE: a name from `kubectl get nodes`; asks first
  .venv/bin/leeward upgrade start web-on-demand --cluster {cluster} --ami al2023@{version} --watch

Play an event from there, and follow its node to the end:

  make spot           # a spot interruption warning: two minutes until the instance is gone
  make rebalance      # a rebalance recommendation for a spot instance
  make maintenance    # AWS Health announces the retirement of an instance
  make scale-in       # Auto Scaling terminates an instance and decrements the desired capacity
                      # each with NODE=name or GROUP=name; without, one is chosen

  make notifications  # what Leeward has notified of since the last call
"""
STACK_ONLY = """
Nothing of Leeward is there yet. The cluster has the groups web-spot (5 nodes) and web-on-demand (4 nodes), and no
workload. docs/getting-started-local.md begins here; or:

  kubectl apply -f manifests/ -f local/interactive/workloads.yaml
  make deploy                                     # with the settings in cdk.json
"""


def text(stack: LocalStack, directory: Path, *, deployed: bool) -> str:
    """Return everything that a person needs in another terminal."""
    version = playground.kubernetes_version(stack)
    lines = [
        f"ready: AWS on {stack.endpoint}, Kubernetes cluster {stack.cluster} on {stack.api}",
        "",
        "In another terminal, in this folder:",
        "",
        f"  . {_short(directory / state.ENVIRONMENT)}    # sets what follows",
        "",
        *(f"  {line}" for line in exports(stack)),
        "",
        "The user behind these credentials has an access entry with the groups leeward:read and leeward:taint, so the",
        "`leeward` command may read and cordon; KUBECONFIG is an administrator's. For another IAM user or role:",
        "",
        f"  aws eks create-access-entry --cluster-name {stack.cluster} --principal-arn ARN \\",
        "    --kubernetes-groups leeward:read leeward:taint",
        (DEPLOYED if deployed else STACK_ONLY).format(cluster=stack.cluster, version=version),
        "Ctrl-C (or `kill` of this process) stops everything.",
    ]
    return "\n".join(lines)


def exports(stack: LocalStack) -> list[str]:
    """Return the lines of a shell that point the AWS CLI, the CDK, kubectl and leeward at the stack."""
    environment = stack.environment()
    return [f"unset {FOREIGN}", *(f"export {name}={environment[name]}" for name in VARIABLES)]


def write_environment(stack: LocalStack, directory: Path) -> None:
    """Write these lines to the file `env`, for `. .local/env`."""
    (directory / state.ENVIRONMENT).write_text("\n".join(exports(stack)) + "\n", encoding="utf-8")


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
