"""What a step looks up before it decides: the record, the instance, its group, the hooks of ours and the policy."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from leeward.errors import InvalidInputError
from leeward.model.group import TERMINATING, Group, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.policy.document import NodePolicy, Selector
from leeward.policy.selection import is_ours, policy_for
from leeward.ports import Kubernetes, Ports

WAITING = "Terminating:Wait"
UNSELECTED = NodePolicy(name="(defaults)", selector=Selector())


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One instance as AWS sees it now. `lifecycle` is the group's word, None when no group holds it."""

    record: TerminationRecord
    instance: Instance | None
    group: Group | None
    lifecycle: str | None
    our_hooks: tuple[LifecycleHook, ...]
    policy: NodePolicy

    @property
    def ended(self) -> bool:
        """EC2 has ended it, or no longer knows it."""
        return self.instance is None or self.instance.ended

    @property
    def state(self) -> str:
        """EC2's word."""
        return self.instance.state if self.instance else "terminated"

    @property
    def held(self) -> bool:
        """The group holds it in Terminating:Wait until its hooks are answered."""
        return self.lifecycle == WAITING

    @property
    def ours_hold(self) -> bool:
        """A hook of ours holds it, so that another team's hook that continues ends nothing."""
        return self.held and bool(self.our_hooks)


def survey(record: TerminationRecord, ports: Ports) -> Situation:
    """Look everything up: one DescribeInstances, one DescribeAutoScalingGroups, cached hooks and policies.

    A group that no policy selects any more keeps the defaults for the run that has begun. A cause of the present
    period that asks for force counts as `drain.force` of the policy.
    """
    instance = ports.instances.describe([record.instance]).get(record.instance)
    name = record.subject.group
    group = ports.groups.describe([name]).get(name) if name else None
    policies = ports.clusters.policies(record.subject.cluster).policies
    policy = policy_for(policies, group.name, group.tags) if group else None
    return Situation(
        record=record,
        instance=instance,
        group=group,
        lifecycle=group.lifecycle_of(record.instance) if group else None,
        our_hooks=of_ours(ports.groups.hooks(group.name) if group else (), record, policy, ports),
        policy=_forced(policy or UNSELECTED) if record.forced else policy or UNSELECTED,
    )


def of_ours(
    hooks: Iterable[LifecycleHook], record: TerminationRecord, policy: NodePolicy | None, ports: Ports
) -> tuple[LifecycleHook, ...]:
    """Terminate hooks of a group that are ours to answer for this record; also those that have come straight to our
    queue, by whatever topic.
    """
    announced = {cause.hook for cause in record.causes if cause.hook_ours}
    return tuple(
        hook
        for hook in hooks
        if hook.transition == TERMINATING and (hook.name in announced or is_ours(hook, policy, ports.queue_arns))
    )


def _forced(policy: NodePolicy) -> NodePolicy:
    return replace(policy, drain=replace(policy.drain, force=True))


def read(instance: str, ports: Ports) -> TerminationRecord:
    """The record. Raises InvalidInputError for an instance that nobody claimed."""
    record = ports.claims.read(instance)
    if record is None:
        raise InvalidInputError(f"{instance}: found no termination record, expected one: claim it first")
    return record


def find_node(record: TerminationRecord, kubernetes: Kubernetes) -> Node | None:
    """The Node of the record's instance: by the name noted earlier, checked against the provider id, else among all."""
    if record.subject.node:
        node = kubernetes.node(record.subject.node)
        if node is not None and node.instance_id == record.instance:
            return node
    return next((node for node in kubernetes.nodes() if node.instance_id == record.instance), None)
