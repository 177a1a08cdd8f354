"""Identity of one run: its account and cluster, the names of its resources, and the summary printed before it
begins.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from infra.names import Names

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".local" / "account-test"
TAG = "leeward.dev/account-test"


class Extra(StrEnum):
    """Settings that a deployment is tried with where the run's options name what they need."""

    VPC = "vpc"
    KMS_KEY = "kmsKey"
    WEBHOOK = "webhook"
    MEMBER = "member"


SUMMARY = """This run {run} works in account {account}, Region {region}, cluster {cluster}.

It takes these steps:
{plan}

It creates, all tagged {tag}={run} where AWS has tags for it:
  * a second deployment of Leeward, stack {stack}: functions, queues, a table, state machines, alarms, roles,
    and its access entries in the cluster; policies that select the test's own groups alone{extras}
  * a node role with its access entry and instance profile, a namespace {namespace}, the ClusterRoles of
    manifests/cluster-role.yaml where the cluster does not have them, a queue and a rule that listen to the events of
    EC2 and Auto Scaling
{instances}
It touches nothing else in the account or the cluster, and removes everything that it made, also after Ctrl-C.
What AWS keeps for all stays: the code's asset in the CDK's bucket, service-linked roles of FIS and spot.
Each thing is written down before it is made in {journal}.
If it is killed:  make account-test REMOVE={run}
"""
INSTANCES = """  * one after the other: up to six Auto Scaling groups and one managed node group, of 1 or 2 instances
    ({type}), in {subnets}; a launch template for each; a few small pods, which run on the test's own
    nodes alone (they are tainted); a function that reports the runtime's SDK; an experiment template of AWS FIS and
    its role

All steps cost about $1: two small instances at a time for an hour, some cents of Lambda, Step Functions, FIS, alarms.
They take about an hour and a quarter.
"""
NO_INSTANCES = """
It starts no instance and costs less than a dime.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `endpoint`: the local stack's URL, None on AWS; `look`: seconds between two observations.

    `security_groups`: of functions in the run's subnets, empty: none is deployed there; `behind`: the cluster lets in
    no function from outside of them. `member`: ARN of a role that deploys in another account.
    """

    id: str
    cluster: str
    region: str
    account: str
    partition: str = "aws"
    endpoint: str | None = None
    subnets: tuple[str, ...] = ()
    instance_type: str = "t3.medium"
    image: str = ""
    look: float = 3.0
    security_groups: tuple[str, ...] = ()
    kms_key: str = ""
    webhook_secret: str = ""
    member: str = ""
    behind: bool = False

    @property
    def deployment(self) -> str:
        """Setting `deployment` of its stack; also the prefix of its groups' names."""
        return f"test-{self.id}"

    @property
    def names(self) -> Names:
        """Names of its deployment."""
        return Names(self.deployment)

    @property
    def function_subnets(self) -> tuple[str, ...]:
        """Subnets of the functions of deployments with `vpc`; empty where there is none."""
        return self.subnets if self.security_groups else ()

    @property
    def extras(self) -> tuple[Extra, ...]:
        """Extras for which the options name what they need."""
        given = {
            Extra.KMS_KEY: self.kms_key,
            Extra.WEBHOOK: self.webhook_secret,
            Extra.MEMBER: self.member,
            Extra.VPC: self.function_subnets,
        }
        return tuple(extra for extra, value in given.items() if value)

    @property
    def member_account(self) -> str:
        """Account of the role `member`."""
        return self.member.split(":")[4] if self.member else ""

    @property
    def namespace(self) -> str:
        """Namespace of its pods."""
        return f"leeward-test-{self.id}"

    @property
    def journal(self) -> Path:
        """File that records the resources it made."""
        return journal_of(self.id)

    @property
    def folder(self) -> Path:
        """Folder of its results."""
        return FOLDER / self.id

    @property
    def tags(self) -> dict[str, str]:
        """Tags of every resource that takes tags."""
        return {TAG: self.id}

    def name(self, part: str) -> str:
        """Return the name of a resource outside of its stack."""
        return f"{self.deployment}-{part}"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource in its account and Region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def machine(self, name: str) -> str:
        """Return the ARN of one of its state machines."""
        return self.arn("states", f"stateMachine:{self.names.machine(name)}")

    def summary(self, plan: Sequence[str], *, instances: bool) -> str:
        """Return a summary of what it creates, costs and removes. `plan`: a line for each step."""
        extras = f"; one after the other with {', '.join(self.extras)}" if self.extras else ""
        member = f",\n    and roles, rules and a queue in account {self.member_account}" if self.member else ""
        started = INSTANCES.format(type=self.instance_type, subnets=", ".join(self.subnets))
        return SUMMARY.format(
            run=self.id,
            account=self.account,
            region=self.region,
            cluster=self.cluster,
            tag=TAG,
            stack=self.names.stack,
            plan="\n".join(f"  * {line}" for line in plan),
            extras=extras + member,
            instances=started if instances else NO_INSTANCES,
            namespace=self.namespace,
            journal=self.journal,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the journal."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Self:
        """Read the run from the journal's JSON."""
        lists = {name: tuple(value) for name, value in raw.items() if isinstance(value, list)}
        return cls(**{**raw, **lists})


def journal_of(run: str) -> Path:
    """Return the journal file of a run."""
    return FOLDER / f"{run}.json"
