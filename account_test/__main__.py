"""`python -m account_test` (make account-test): list what will be made, ask, run, judge, remove.

Exit code 0: nothing is broken; 1: a promise is broken, or something could not be removed; 2: the run could not begin;
130: interrupted.
"""

import argparse
import signal
import sys
from contextlib import ExitStack
from types import FrameType
from uuid import uuid4

from account_test import preflight, table
from account_test.aws import Aws
from account_test.errors import AccountTestError, PreflightError
from account_test.journal import Journal
from account_test.kubernetes import Kube
from account_test.options import kms_key, listed, member, run_id, webhook_secret, words
from account_test.removal import RemovalInterruptedError, Remover, remove_all
from account_test.run import FOLDER, Run
from account_test.session import looked_after, perform, say
from account_test.steps import PLAY_NAMES, steps

DESCRIPTION = """Proves on your own AWS account what Leeward's local stack cannot prove, and removes what it made.

It deploys a second Leeward under a name of its own beside test groups in your cluster, deletes it and deploys it again,
plain and with the settings for which you name a key, a secret, another account or subnets. It asks IAM and Step
Functions for their own judgement of what is deployed, and plays on real instances: a manual termination, a scale-in, a
spot interruption by AWS FIS, a self-managed and a managed upgrade, a consolidation, another team's lifecycle hook. It
judges the promises of `make demo`, names what AWS did differently from our model, and writes a table, results.json, a
Markdown block for docs/account-results.md and an HTML report into .local/account-test/RUN-ID/.
`--only deploy` takes the first stage alone: minutes, no instance, less than a dime."""

COSTS = """about an hour, about $1: two small instances at a time, some cents of Lambda, Step Functions, FIS and alarms.
It creates one CloudFormation stack, seven groups with their launch templates, three IAM roles, a queue, a rule, a
function, an access entry, a namespace; it prints all of it, with account, Region and cluster, and asks first.
Each further setting is one more deployment of minutes; network interfaces of functions leave subnets in up to 40.
Everything is removed at the end, also after an error or Ctrl-C; after a kill: --remove RUN-ID.
Your credentials need administrator rights in the account, or those of the CDK's bootstrap roles and of the calls
that the plays make; in the cluster an access entry with AmazonEKSClusterAdminPolicy.
docs/account-results.md has more."""

NOT_LOCAL = ("cluster", "region", "subnets", "security_groups", "kms_key", "webhook_secret", "member", "image")


def main(arguments: list[str] | None = None) -> int:
    """Run everything from the command line to the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m account_test",
        description=DESCRIPTION,
        epilog=f"What it takes: {COSTS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cluster", help="the EKS cluster beside whose nodes the test groups are put")
    parser.add_argument("--region", help="else that of the environment or the profile")
    parser.add_argument(
        "--subnets", default="", help="where the test's instances run, and functions with `vpc`; else the cluster's"
    )
    parser.add_argument(
        "--security-groups", default="", help="of functions in the subnets, by commas; else the cluster's own"
    )
    parser.add_argument("--kms-key", default="", metavar="ARN", help="deploys with the setting `kmsKey`")
    parser.add_argument("--webhook-secret", default="", metavar="ARN", help="deploys with a webhook that has a secret")
    parser.add_argument(
        "--member", default="", metavar="ACCOUNT/ROLE", help="deploys in another account too, by this role there"
    )
    parser.add_argument("--instance-type", default="t3.medium", help="of the test's instances (%(default)s), x86")
    parser.add_argument("--image", default="", metavar="AMI", help="else what EKS recommends for the cluster (AL2023)")
    parser.add_argument("--only", default="", metavar="WORDS", help="steps whose names contain one of these, by commas")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--remove", metavar="RUN-ID", help="remove what an earlier run has left, and nothing else")
    parser.add_argument("--endpoint-url", help="a local stack (make local) instead of AWS; FIS becomes its event")
    parser.add_argument("--local", action="store_true", help="start a local stack for it")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if options.remove:
            return remove(run_id(options.remove))
        return run(options)
    except RemovalInterruptedError:
        return 130
    except AccountTestError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted before anything was made", file=sys.stderr)
        return 130


def run(options: argparse.Namespace) -> int:
    """Run the test. Raises PreflightError, and KeyboardInterrupt before anything is made."""
    with ExitStack() as stack:
        if options.local:
            if given := [name for name in NOT_LOCAL if getattr(options, name)]:
                raise PreflightError(f"found {', '.join(given)} beside --local, which makes a cluster of its own")
            from account_test import on_local_stack

            local = stack.enter_context(on_local_stack.prepared(member=True))
            vars(options).update(local.options(), yes=True)
        if not options.cluster:
            raise PreflightError("which cluster? --cluster NAME (make account-test CLUSTER=NAME)")
        test, aws, kube, sender = planned(options)
        wanted = steps(test, words(options.only, [step.name for step in steps(test)]))
        instances = any(step.name in PLAY_NAMES for step in wanted)
        say(test.summary(table.plan(wanted), instances=instances))
        for note in preflight.check(test, aws, kube, instances=instances):
            say(f"note: {note}")
        if not options.yes and not agreed():
            say("nothing was made")
            return 2
        return perform(test, aws, kube, sender, wanted)


def planned(options: argparse.Namespace) -> tuple[Run, Aws, Kube, str | None]:
    """Return the planned run: credentials, account, Region and subnets. Raises PreflightError."""
    aws = Aws(options.region or region(), options.endpoint_url)
    account, partition, arn = preflight.caller(aws)
    cluster = preflight.cluster_of(aws, options.cluster)
    given = listed("--subnets", options.subnets)
    groups, behind = preflight.function_network(cluster, given, listed("--security-groups", options.security_groups))
    test = Run(
        id=uuid4().hex[:6],
        cluster=options.cluster,
        region=aws.region,
        account=account,
        partition=partition,
        endpoint=options.endpoint_url,
        subnets=preflight.subnets_of(cluster, given),
        instance_type=options.instance_type,
        image=options.image,
        look=0.5 if options.endpoint_url else 3.0,
        security_groups=groups,
        kms_key=kms_key(options.kms_key, aws.region),
        webhook_secret=webhook_secret(options.webhook_secret, aws.region),
        member=member(options.member, account, partition),
        behind=behind,
    )
    sender = arn if options.endpoint_url else preflight.sender_of(arn)
    return test, aws, Kube(test.cluster, test.region), sender


def region() -> str:
    """Return the Region of the environment or the profile. Raises PreflightError."""
    import boto3

    found = boto3.Session().region_name
    if not found:
        raise PreflightError("no AWS Region is set. Fix: --region, or AWS_REGION")
    return str(found)


def agreed() -> bool:
    """Return True only for the answer `yes`. Raises PreflightError without a terminal, where no answer is possible."""
    if not sys.stdin.isatty():
        raise PreflightError("there is no terminal to ask on. Fix: --yes")
    return input("Go on? Type yes: ").strip().lower() == "yes"


def remove(run_id: str) -> int:
    """Remove what an earlier run has left. Idempotent."""
    journal = Journal.load(run_id)
    test = journal.run
    aws = Aws(test.region, test.endpoint)
    account, _, _ = preflight.caller(aws)
    if account != test.account:
        raise PreflightError(f"run {run_id} was in account {test.account}, these credentials are of {account}")
    say(f"run {run_id}: {len(journal.left)} things are to be removed ({FOLDER / run_id}.json)")
    left = remove_all(journal, Remover(aws=aws, kube=Kube(test.cluster, test.region), say=say), say)
    return 0 if looked_after(test, aws) and not left else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
