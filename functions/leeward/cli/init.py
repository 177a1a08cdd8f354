"""`leeward init`: write a first policy from what a cluster has, each line explained."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from leeward.cli.confirmation import check_can_ask, confirm
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.first_policy import FirstPolicyFacts, first_policy
from leeward.cli.live import UnknownGroupError
from leeward.cli.member import options_of
from leeward.cli.output import emit
from leeward.errors import InvalidInputError, LeewardError
from leeward.isolation import attempt
from leeward.model.counts import count_of
from leeward.model.group import Group, LifecycleHook

T = TypeVar("T")
DESCRIPTION = """Writes a first policy for the cluster: its Auto Scaling groups, what handles interruptions and how
pods leave a node, each line with its meaning. Voluntary disruption and repair are written as comments: nothing of
them happens before you switch it on. It needs no deployment."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file and --yes."""
    parser.add_argument("--to", metavar="FILE", type=Path, default=Path("policy.yaml"), help="default: policy.yaml")
    parser.add_argument("--yes", action="store_true", help="replace a file that is there without asking")


def run(arguments: argparse.Namespace) -> int:
    """Write the file and print what to do next. Raises InvalidInputError where the cluster has no group."""
    if arguments.to.exists():
        check_can_ask(arguments, "init", f"replaces {arguments.to}")
    facts = gather(context_of(arguments, "init"))
    text = first_policy(facts)
    if arguments.to.exists():
        confirm(arguments, [f"{arguments.to} will be replaced"])
    try:
        arguments.to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"--to: {arguments.to}: cannot be written: {error.strerror}") from error
    where = options_of(arguments) if arguments.snapshot is None else f"--snapshot {arguments.snapshot}"
    following = [f"leeward policy validate {arguments.to}", f"leeward plan {where} --what-if consolidation"]
    names = [group.name for group in facts.groups]
    document = {"file": str(arguments.to), "groups": sorted(names), "notRead": list(facts.unread), "next": following}
    lines = [
        f"wrote {arguments.to}: {count_of(len(names), 'Auto Scaling group')}",
        *(f"not read: {sentence}" for sentence in facts.unread),
        "next:",
        *(f"  {command}" for command in following),
    ]
    emit(document, arguments.view, lambda: lines)
    return 0


def gather(context: ClusterContext) -> FirstPolicyFacts:
    """Return what the cluster has. What cannot be read is named, except the groups: a policy selects at least one.
    Raises InvalidInputError where the cluster has none, LeewardError where they cannot be read.
    """
    groups = context.ports.groups.of_clusters([context.cluster])
    if not groups:
        raise UnknownGroupError(
            f"cluster {context.cluster}: found no Auto Scaling group with the tag kubernetes.io/cluster/"
            f"{context.cluster} or eks:cluster-name, expected one: tag the groups of its nodes"
        )
    unread: list[str] = []
    kubernetes = context.ports.clusters.kubernetes(context.cluster)
    members = [member.id for group in groups for member in group.instances]
    return FirstPolicyFacts(
        cluster=context.cluster,
        groups=groups,
        hooks=_read("lifecycle hooks", lambda: _hooks(context, groups), {}, unread),
        instances=_read("instances", lambda: context.ports.instances.describe(members), {}, unread),
        pods=_read("pods", kubernetes.pods, (), unread),
        budgets=_read("PodDisruptionBudgets", kubernetes.budgets, (), unread),
        unread=unread,
    )


def _hooks(context: ClusterContext, groups: Sequence[Group]) -> Mapping[str, Sequence[LifecycleHook]]:
    return {group.name: context.ports.groups.hooks(group.name) for group in groups}


def _read(what: str, read: Callable[[], T], otherwise: T, unread: list[str]) -> T:
    answer = attempt(read)
    if isinstance(answer, LeewardError):
        unread.append(f"{what}: {answer}")
        return otherwise
    return answer
