"""State that a step reads before it decides: the record, the instance, its group, the hooks of ours and the policy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.group import TERMINATING, Group, GroupFacts, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.instance_nodes import nodes_by_instance
from leeward.model.lifecycle import IN_POOL, IN_WORK, RETAINED, is_held, role_of
from leeward.model.node import Node
from leeward.model.seen import GONE, Seen, SeenGroup, SeenInstance
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.policy.document import NodePolicy, Selector
from leeward.policy.selection import is_ours, is_put_by_sync, policy_for
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.records import Claims
from leeward.termination.freshness import Need, facts

FROM_THE_GROUP = (CauseKind.ASG_TERMINATE, CauseKind.STATE_CHANGE)  # causes that a return to the warm pool produces
UNSELECTED = NodePolicy(name="(defaults)", selector=Selector())


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """State of one instance at AWS. `lifecycle` is the group's lifecycle state, None if no group holds it. `listing`:
    the group with its sizes and members, None if there is none or this step uses facts of earlier reads. `looked`: EC2
    and Auto Scaling were both read just now.
    """

    record: TerminationRecord
    instance: Instance | None
    group: GroupFacts | None
    lifecycle: str | None
    our_hooks: tuple[LifecycleHook, ...]
    policy: NodePolicy
    listing: Group | None = None
    looked: bool = True
    unwritten: bool = False  # what was read is in this record, and not in the table's yet

    @property
    def ended(self) -> bool:
        """True if EC2 has ended it, no longer knows it, or has stopped it in its warm pool: nothing runs there."""
        return self.instance is None or self.instance.ended or (self.pooled and self.instance.state == "stopped")

    @property
    def pooled(self) -> bool:
        """True if the group has returned it to its warm pool, where it is stopped, hibernated, or runs on."""
        return role_of(self.lifecycle) in IN_POOL

    @property
    def in_work(self) -> bool:
        """True if the group works on it and keeps it: it replaces its root volume, as far as the state is known."""
        return role_of(self.lifecycle) in IN_WORK

    @property
    def unusual(self) -> bool:
        """True if the group's lifecycle state is unusual for a termination: a fresh read then decides."""
        return self.lifecycle is None or self.lifecycle == RETAINED or self.pooled or self.in_work

    @property
    def state(self) -> str:
        """State that EC2 reports."""
        return self.instance.state if self.instance else GONE

    @property
    def held(self) -> bool:
        """True while the group holds it until its terminate hooks are answered."""
        return is_held(self.lifecycle)

    @property
    def has_new_hook(self) -> bool:
        """True if a message has named a hook of ours that is younger than the hooks that were read."""
        known = {hook.name for hook in self.our_hooks}
        return any(cause.hook_ours and cause.hook not in known for cause in self.record.causes)

    @property
    def ours_hold(self) -> bool:
        """True if a hook of ours holds it, so that another team's hook that continues ends nothing."""
        return self.held and bool(self.our_hooks)


def survey(record: TerminationRecord, ports: Ports, need: Need = Need.ALL, *, written: bool = True) -> InstanceState:
    """Return the known state, read from AWS where `freshness` requires it: DescribeInstances, DescribeAutoScalingGroups
    and hooks that are cached for a minute. A read is written into the record, for the steps that follow; `written`:
    False where the caller writes it with a note of its own.

    A group that no policy selects any more keeps the defaults for the run that has begun. A cause of the present period
    that asks for force counts as `drain.force` of the policy.
    """
    known = facts(record, ports.clock.now(), need)
    instance = _instance_of(record, known.instance) if known.instance else _ask_ec2(record, ports.instances)
    listing = None
    policies = ports.clusters.policies(record.subject.cluster).policies
    seen = known.group
    if seen is None:
        name = record.subject.group
        listing = ports.groups.describe([name]).get(name) if name else None
        seen = _seen_group(record, instance, listing, policies, ports.clock, ports.groups)
    seen_instance = known.instance or _seen_instance(instance, ports.clock.now())
    fresh = Seen(instance=seen_instance, group=seen)
    asked = known.instance is None or known.group is None
    if asked and written:
        ports.claims.saw(record.instance, fresh)
    policy = policy_for(policies, seen.facts.name, seen.facts.tags) if seen.facts else None
    return InstanceState(
        record=replace(record, seen=fresh) if asked else record,  # a fact that was inferred is inferred again
        instance=instance,
        group=listing or seen.facts,
        lifecycle=seen.lifecycle,
        our_hooks=of_ours(seen.hooks, record, policy, ports),
        policy=_forced(policy or UNSELECTED) if record.forced else policy or UNSELECTED,
        listing=listing,
        looked=known.instance is None and known.group is None,
        unwritten=asked and not written,
    )


def _ask_ec2(record: TerminationRecord, instances: Instances) -> Instance | None:
    return instances.describe([record.instance]).get(record.instance)


def _seen_instance(instance: Instance | None, now: datetime) -> SeenInstance:
    if instance is None:
        return SeenInstance(at=now, state=GONE)
    member = instance.group is not None
    return SeenInstance(at=now, state=instance.state, member=member, networks=instance.networks)


def _instance_of(record: TerminationRecord, seen: SeenInstance) -> Instance:
    """Build the instance as far as a step of a termination needs it."""
    subject = record.subject
    return Instance(
        id=subject.instance,
        state=seen.state,
        type=subject.instance_type,
        zone=subject.zone,
        subnet=subject.subnet,
        capacity_type=subject.capacity_type,
        tags={well_known.GROUP_TAG: subject.group} if seen.member and subject.group else {},
        launched=datetime.min.replace(tzinfo=UTC),
        networks=seen.networks,
    )


def _seen_group(
    record: TerminationRecord,
    instance: Instance | None,
    listing: Group | None,
    policies: Iterable[NodePolicy],
    clock: Clock,
    groups: Groups,
) -> SeenGroup:
    """Return the observation of the group, with only those tags that a policy may ask for: fifty long ones would make
    the document too large.
    """
    now = clock.now()
    lifecycle = _lifecycle(record, listing, instance, groups)
    if listing is None:
        return SeenGroup(at=now, facts=None, lifecycle=lifecycle)
    asked = {key for policy in policies for key in policy.selector.tags}
    hooks = tuple(hook for hook in groups.hooks(listing.name) if hook.transition == TERMINATING)
    return SeenGroup(
        at=now,
        facts=GroupFacts(
            name=listing.name,
            tags=_only(listing.tags, asked),
            capacity_rebalance=listing.capacity_rebalance,
            retains=listing.retains,
            capacity_units=listing.capacity_units,
            balancers=listing.balancers[:1],  # the record is small, and any is enough
        ),
        lifecycle=lifecycle,
        hooks=hooks,
    )


def _only(tags: Mapping[str, str], wanted: Iterable[str]) -> Mapping[str, str]:
    return {key: tags[key] for key in wanted if key in tags}


def _lifecycle(record: TerminationRecord, group: Group | None, instance: Instance | None, groups: Groups) -> str | None:
    """Return the group's lifecycle state of the instance. A group does not list the instances of its warm pool: one
    that has left the list, and still runs or stops, is read by its id, which costs a call.
    """
    listed = group.lifecycle_of(record.instance) if group else None
    left = group is not None and listed is None and instance is not None and not instance.ended
    if not left or not record.has(*FROM_THE_GROUP):
        return listed
    member = groups.lifecycle_of(record.instance)
    return member[1] if member else None


def of_ours(
    hooks: Iterable[LifecycleHook], record: TerminationRecord, policy: NodePolicy | None, ports: Ports
) -> tuple[LifecycleHook, ...]:
    """Return the terminate hooks of a group that are ours to answer for this record; also those that arrived directly
    at our queue, by whatever topic. A policy that was removed since takes none away: a hook with our mark, one that was
    heartbeaten for this record, or one that the policy named would hold the instance until its time-out.
    """
    begun = {cause.hook for cause in record.causes if cause.hook_ours} | record.heartbeats.keys()
    ending = [hook for hook in hooks if hook.transition == TERMINATING]
    ours = {hook.name for hook in ending if is_put_by_sync(hook) or is_ours(hook, policy, ports.queue_arns)} | begun
    if policy is None and any(hook.name not in ours for hook in ending):
        named = ports.catalog.named_hooks(record.subject.cluster)
        ours |= {name for hook in ending if hook.group in named for name in named[hook.group].names}
    return tuple(hook for hook in ending if hook.name in ours)


def _forced(policy: NodePolicy) -> NodePolicy:
    return replace(policy, drain=replace(policy.drain, force=True))


def read(instance: str, claims: Claims) -> TerminationRecord:
    """Read the record. Raises InvalidInputError for an instance without a claim."""
    record = claims.read(instance)
    if record is None:
        raise InvalidInputError(f"{instance}: found no termination record, expected one: claim it first")
    return record


def find_node(record: TerminationRecord, kubernetes: Kubernetes) -> Node | None:
    """Find the Node of the record's instance: by the noted name, checked against the provider id, else among all."""
    return find_node_or_uninitialized(record, kubernetes)[0]


def find_node_or_uninitialized(
    record: TerminationRecord, kubernetes: Kubernetes
) -> tuple[Node | None, tuple[Node, ...]]:
    """Find the Node of the record's instance, as `find_node`; without one, also the Nodes that no instance is known of
    yet: one of them may be the instance's.
    """
    if record.subject.node:
        node = kubernetes.node(record.subject.node)
        if node is not None and node.instance_id == record.instance:
            return node, ()
    nodes = kubernetes.nodes()
    found = nodes_by_instance(nodes).get(record.instance)
    return found, () if found else tuple(node for node in nodes if node.uninitialized)
