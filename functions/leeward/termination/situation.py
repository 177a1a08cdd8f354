"""Situation of an instance that a step reads before it decides: the record, the instance, its group, the hooks of ours
and the policy; and which facts of the record it may use instead of asking AWS.

`facts` decides alone when a fact is too old (docs/designs/aws-calls.md). A fact is an observation in the record
(`model.seen`), updated by later messages (causes that joined) and by the termination's own requests. Messages may be
late, lost, duplicated or out of order. Only EC2's report that an instance has ended is final: it was confirmed when the
message was handled."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from leeward.cluster.joins import nodes_by_instance
from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.group import TERMINATING as TERMINATE_TRANSITION
from leeward.model.group import Group, GroupFacts, LifecycleHook
from leeward.model.instance import ENDED, Instance
from leeward.model.lifecycle import (
    IN_POOL,
    IN_SERVICE,
    IN_WORK,
    REPLACE_WAIT,
    RETAINED,
    STANDBY,
    TERMINATE_PROCEED,
    TERMINATE_WAIT,
    TERMINATING,
    is_held,
    role_of,
)
from leeward.model.node import LONG_AGO, Node, disruption_taint
from leeward.model.seen import GONE, Seen, SeenGroup, SeenInstance
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.policy.document import DrainPolicy, GroupSelector, NodePolicy
from leeward.policy.hooks import is_ours, is_put_by_sync
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.records import Catalog, Claims
from leeward.termination import deadlines

SETTLED = frozenset({IN_SERVICE, STANDBY, TERMINATE_WAIT, REPLACE_WAIT})  # states that last until an actor changes them
RUNNING = "running"
MAX_AGE = timedelta(minutes=3)  # without a message for longer, one may have been lost
TRANSIENT_MAX_AGE = timedelta(seconds=10)  # for a state that does not last; a message about the next takes a second
LAUNCH_MAX_AGE = timedelta(seconds=15)  # before a launch: an instance that has ended needs no replacement
MAX_DISORDER = timedelta(seconds=30)  # clocks, events and observations may be out of order by as much
FROM_THE_GROUP = (CauseKind.ASG_TERMINATE, CauseKind.STATE_CHANGE)  # causes that a return to the warm pool produces
UNSELECTED = NodePolicy(name="(defaults)", selector=GroupSelector())


class Freshness(Enum):
    """Freshness of facts by the purpose for which the next step uses them."""

    WORK = auto()  # waits, evictions, heartbeats, and calls that AWS itself refuses if they are wrong
    GROUP = auto()  # decisions that depend on the group's sizes, members or lifecycle state
    # Actions that a stale fact must not cause: returning a node to service, releasing it, deleting pods, settling the
    # capacity ledger.
    ALL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshFacts:
    """Facts that a step may use; None: the step has to ask AWS."""

    instance: SeenInstance | None = None
    group: SeenGroup | None = None


def facts(record: TerminationRecord, now: datetime, need: Freshness) -> FreshFacts:
    """Return the facts that are fresh enough for the need at `now`."""
    if need is Freshness.ALL:
        return FreshFacts()
    instance = instance_fact(record, now)
    if need is Freshness.WORK:
        return FreshFacts(instance=instance, group=group_fact(record, now))
    if instance is not None and instance.state not in ENDED and now - instance.at >= LAUNCH_MAX_AGE:
        instance = None
    return FreshFacts(instance=instance)


def instance_fact(record: TerminationRecord, now: datetime) -> SeenInstance | None:
    """Return the state of the instance as EC2 last reported it; None: ask EC2.

    A report that the instance has ended is final. A report of a stop may be outdated by a start, so it makes the step
    ask.
    """
    seen = _last_seen_instance(record)
    announced = [cause for cause in record.causes if cause.state]
    ended = [cause for cause in announced if cause.state in ENDED]
    if ended:
        last = max(ended, key=lambda cause: (cause.state == "terminated", cause.at))
        known = seen or SeenInstance(at=last.at, state=last.state)
        return known if known.state in ENDED else replace(known, at=last.at, state=last.state)
    if seen is None or seen.state in ENDED:
        return seen
    if any(cause.at >= seen.at - MAX_DISORDER for cause in announced):
        return None
    lasts = MAX_AGE if seen.state == RUNNING else TRANSIENT_MAX_AGE
    return seen if now - seen.at < lasts else None


def group_fact(record: TerminationRecord, now: datetime) -> SeenGroup | None:
    """Return the lifecycle state of the instance in its group, with the properties of the group that rarely change;
    None: ask Auto Scaling.
    """
    seen = record.seen.group if record.seen else None
    if seen is None or now - seen.at >= MAX_AGE:
        return None
    lifecycle, since = seen.lifecycle, seen.at
    requested = record.times.get("terminating")
    if requested is not None and requested >= seen.at - MAX_DISORDER and _rank(lifecycle) < _rank(TERMINATING):
        lifecycle, since = TERMINATING, requested
    replaced = [cause.at for cause in record.causes if cause.kind is CauseKind.REPLACE_ROOT_VOLUME]
    if any(at >= seen.at - MAX_DISORDER for at in replaced) or (
        lifecycle == REPLACE_WAIT and "answered" in record.times
    ):
        return None  # the group moves on through states that no message announces
    by_hook = (cause for cause in record.causes if cause.kind is CauseKind.ASG_TERMINATE and cause.hook is not None)
    held = max((cause.at for cause in by_hook), default=None)
    is_held = held is not None and held >= seen.at - MAX_DISORDER and _rank(lifecycle) < _rank(TERMINATE_WAIT)
    if held is not None and is_held:
        lifecycle, since = TERMINATE_WAIT, held
    answered = record.times.get("answered")
    early = MAX_DISORDER if is_held else timedelta()
    if answered is not None and _rank(lifecycle) <= _rank(TERMINATE_WAIT) and answered >= since - early:
        lifecycle, since = TERMINATE_PROCEED, answered
    if lifecycle not in SETTLED and now - since >= TRANSIENT_MAX_AGE:
        return None
    return replace(seen, lifecycle=lifecycle)


def seconds_left(record: TerminationRecord, now: datetime) -> float:
    """Return the seconds until a fact of `Freshness.WORK` has to be read again, from 1 to `MAX_AGE`."""
    seconds = 1.0
    while seconds < MAX_AGE.total_seconds():
        later = facts(record, now + timedelta(seconds=seconds), Freshness.WORK)
        if later.instance is None or later.group is None:
            return seconds
        seconds += 1.0
    return seconds


def _last_seen_instance(record: TerminationRecord) -> SeenInstance | None:
    """Return the instance as a step has last observed it, else as it was when the termination was claimed."""
    if record.seen and record.seen.instance:
        return record.seen.instance
    subject, claimed = record.subject, record.times.get("claimed")
    if not subject.state or claimed is None:
        return None
    return SeenInstance(at=claimed, state=subject.state, networks=subject.networks)


def _rank(lifecycle: str | None) -> int:
    """Return the position of a lifecycle state on the way from InService to the end. Any other state ranks last, so
    that no message overrides it.
    """
    order = {IN_SERVICE: 0, STANDBY: 0, TERMINATING: 1, TERMINATE_WAIT: 2}
    return order.get(lifecycle or "", 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Situation of one instance: its record, and its state at AWS."""

    record: TerminationRecord
    instance: Instance | None
    group: GroupFacts | None
    lifecycle: str | None  # the group's lifecycle state, None if no group holds it
    our_hooks: tuple[LifecycleHook, ...]
    policy: NodePolicy
    listing: Group | None = None  # with sizes and members; None without a group, and on facts of earlier reads
    looked: bool = True  # EC2 and Auto Scaling were both read just now
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


def survey(
    record: TerminationRecord, ports: Ports, need: Freshness = Freshness.ALL, *, written: bool = True
) -> Situation:
    """Return the known state, read from AWS where `need` requires it: DescribeInstances, DescribeAutoScalingGroups
    and hooks that are cached for a minute. A read is written into the record, for the steps that follow; `written`:
    False where the caller writes it with a note of its own.

    A group that no policy selects any more keeps the defaults for the run that has begun. A cause of the present period
    that asks for force counts as `drain.force` of the policy.
    """
    known = facts(record, ports.clock.now(), need)
    if known.instance:
        instance: Instance | None = _instance_of(record, known.instance)
    else:
        instance = ports.instances.describe([record.instance]).get(record.instance)
    listing = None
    policies = ports.clusters.policies(record.subject.cluster)
    seen = known.group
    if seen is None:
        name = record.subject.group
        listing = ports.groups.describe([name]).get(name) if name else None
        seen = _observed_group(record, instance, listing, policies.policies, ports.clock, ports.groups)
    seen_instance = known.instance or _observed_instance(instance, ports.clock.now())
    fresh = Seen(instance=seen_instance, group=seen)
    asked = known.instance is None or known.group is None
    if asked and written:
        ports.claims.saw(record.instance, fresh)
    policy = policies.policy_of(seen.facts) if seen.facts else None
    applied = policy or UNSELECTED
    if record.forced:
        applied = replace(applied, drain=replace(applied.drain, force=True))
    return Situation(
        record=replace(record, seen=fresh) if asked else record,  # a fact that was inferred is inferred again
        instance=instance,
        group=listing or seen.facts,
        lifecycle=seen.lifecycle,
        our_hooks=of_ours(seen.hooks, record, policy, ports),
        policy=applied,
        listing=listing,
        looked=known.instance is None and known.group is None,
        unwritten=asked and not written,
    )


def _observed_instance(instance: Instance | None, now: datetime) -> SeenInstance:
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


def _observed_group(
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
    hooks = tuple(hook for hook in groups.hooks(listing.name) if hook.transition == TERMINATE_TRANSITION)
    return SeenGroup(
        at=now,
        facts=GroupFacts(
            name=listing.name,
            tags={key: listing.tags[key] for key in asked if key in listing.tags},
            capacity_rebalance=listing.capacity_rebalance,
            retains=listing.retains,
            capacity_units=listing.capacity_units,
            balancers=listing.balancers[:1],  # the record is small, and any is enough
        ),
        lifecycle=lifecycle,
        hooks=hooks,
    )


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
    ending = [hook for hook in hooks if hook.transition == TERMINATE_TRANSITION]
    ours = {hook.name for hook in ending if is_put_by_sync(hook) or is_ours(hook, policy, ports.queue_arns)} | begun
    if policy is None and any(hook.name not in ours for hook in ending):
        ours |= named_until_lately(ending, record.subject.cluster, ports.catalog)
    return tuple(hook for hook in ending if hook.name in ours)


def named_until_lately(hooks: Iterable[LifecycleHook], cluster: str, catalog: Catalog) -> set[str]:
    """Return the names that the policy of the hooks' group gave to Leeward until 48 hours ago. Raises the table's
    errors.
    """
    named = catalog.named_hooks(cluster)
    return {name for hook in hooks if hook.group in named for name in named[hook.group].names}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainContext:
    """Situation of a drain under way, and the ports of its step."""

    situation: Situation
    started: datetime  # when the present attempt began to drain
    ports: Ports

    @property
    def record(self) -> TerminationRecord:
        """Record of the termination, as this step knows it."""
        return self.situation.record

    @property
    def policy(self) -> DrainPolicy:
        """Part of the policy that bounds the drain."""
        return self.situation.policy.drain

    @property
    def kubernetes(self) -> Kubernetes:
        """API of the node's cluster."""
        return self.ports.clusters.kubernetes(self.record.subject.cluster)


def last_known(drain: DrainContext) -> Node | None:
    """Return the deleted Node of the instance by its noted name, for a drain whose time is not over. None: no Node was
    noted, or another instance has its name.

    Such an instance still has pods. Their kubelet stops them in their grace period, the Eviction API still takes
    requests for them, and the pod garbage collector deletes the rest within about a minute. The drain continues by the
    noted name, and the empty instance keeps its settle time (docs/designs/draining.md).
    """
    record, name = drain.record, drain.record.subject.node
    over = deadlines.out_of_time(record, replace(drain.policy, force=False), drain.started, drain.ports.clock.now())
    if not name or over is not None or drain.kubernetes.node(name) is not None:
        return None
    return _deleted(name, record)


def _deleted(name: str, record: TerminationRecord) -> Node:
    """Build the Node as far as a drain needs it. It is not Ready: no volume is waited for that no Node can release."""
    return Node(
        name=name,
        uid=name,  # tells its Events apart
        resource_version="",
        provider_id=f"aws:///{record.subject.zone}/{record.instance}",
        labels={},
        annotations={},
        taints=(disruption_taint(record.deployment),),
        unschedulable=True,
        ready=False,
        deleting=True,
        created=LONG_AGO,
    )
