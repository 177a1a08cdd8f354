"""Verdicts on unhealthy nodes: those that are replaced, and one sentence for each that is not.

Doubtful evidence ends nothing: an API server that does not answer yields no verdicts at all, and a repair requires two
observations, the second past every cache (`leeward.reconcile.repair`). The API server judges the kubelet's silence
(`Ready` is Unknown or False), EC2 a failed status check, and the EKS node monitoring agent every other condition of the
Node that `repair.conditions` names.

Managed node groups: one that EKS repairs is left to EKS, because two controllers would replace a node twice. So is one
of which that is not known. Where EKS does not repair, the policy may import the group's overrides and threshold
(`repair.nodeRepairConfig: import`), so that both repair by one configuration; EKS' limits of parallel repairs are not
imported, because the circuit breaker counts the nodes under repair.

Circuit breaker: when many nodes fail at once, replacing them makes the outage worse. Sources: Karpenter (node repair
stops when more than 20 % of a NodePool are unhealthy) and Kubernetes' node lifecycle controller, which counts by zone
and evicts nothing while all nodes of all zones are NotReady."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from leeward.cluster.facets import Known, known_or
from leeward.cluster.state import ClusterState
from leeward.disruption.do_not_disrupt import why_node_stays
from leeward.model.counts import count_of
from leeward.model.group import Group
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.node_condition import READY, NodeCondition, first_seen
from leeward.model.node_owners import disruption_taint_of, foreign
from leeward.model.nodegroup import NodeRepair
from leeward.policy.document import NodePolicy
from leeward.policy.repair import DEFAULT_CONDITIONS, RepairAction, RepairCondition, RepairPolicy, rule_for

ACTIONS = {"Replace": RepairAction.REPLACE, "Reboot": RepairAction.REBOOT, "NoAction": RepairAction.NONE}
MIN_NODES_FOR_ZONE_OUTAGE = 2  # in a zone with one node, an outage cannot be distinguished from a broken node
LEFT_BEHIND = timedelta(minutes=5)  # the cloud controller removes Nodes of dead instances, usually within a minute


def left_to_eks(group: Group, state: ClusterState) -> str:
    """Return why the group's nodes are left to EKS, empty if they are not."""
    if group.nodegroup is None or not isinstance(state.node_repair, Known):
        return ""
    repair = state.node_repair.value.get(group.name)
    if repair is None:
        return f"whether EKS repairs its node group {group.nodegroup} is not known: fn sync has not read it"
    return f"EKS repairs its node group {group.nodegroup} (nodeRepairConfig)" if repair.enabled else ""


def rules_of(policy: NodePolicy, group: Group | None, state: ClusterState) -> RepairPolicy:
    """Return the rules of the policy for a node of the group, with what they import from EKS."""
    rules = policy.repair
    if group is None or not rules.imports_from_eks or not isinstance(state.node_repair, Known):
        return rules
    repair = state.node_repair.value.get(group.name)
    return rules if repair is None else imported(rules, repair)


def imported(rules: RepairPolicy, repair: NodeRepair) -> RepairPolicy:
    """Return the rules with EKS' overrides before their own conditions, and with EKS' threshold if it has one."""
    own = [
        RepairCondition(
            type=override.condition,
            reason=override.reason,
            after=timedelta(minutes=override.after),
            action=ACTIONS.get(override.action, RepairAction.NONE),
        )
        for override in repair.overrides
        if override.condition
    ]
    rules = replace(rules, conditions=(*own, *rules.conditions))
    if repair.most_unhealthy is None:
        return rules
    return replace(rules, max_unhealthy=repair.most_unhealthy, max_unhealthy_percent=repair.percent)


def conditions_of(group: Group | None, state: ClusterState) -> tuple[RepairCondition, ...]:
    """Return the conditions by which a node of the group counts as unhealthy; EKS' own for nodes of no policy."""
    policy = state.policy_of(group)
    return rules_of(policy, group, state).conditions if policy is not None else DEFAULT_CONDITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyShare:
    """Numbers of unhealthy nodes and of all nodes, in a zone or in the cluster."""

    unhealthy: int
    nodes: int

    @classmethod
    def of(cls, unhealthy: Iterable[bool]) -> "UnhealthyShare":
        """Count the nodes. `unhealthy`: for each node, whether it is unhealthy."""
        entries = tuple(unhealthy)
        return cls(unhealthy=sum(entries), nodes=len(entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Counts of unhealthy nodes, made once per pass over all nodes of the cluster, whether Leeward manages them or not.

    `zones`: counts by zone, without nodes whose zone is unknown; `all_not_ready`: no node of the cluster is Ready.
    """

    all_not_ready: bool
    zones: Mapping[str, UnhealthyShare]
    cluster: UnhealthyShare

    @classmethod
    def of(cls, state: ClusterState) -> "CircuitBreaker":
        """Count the nodes of a cluster. Nodes whose instance has ended or has a newer Node object are left out. Nodes
        under repair are counted: otherwise the limit would allow the next nodes as soon as a repair begins.
        """
        alive = [node for node in state.nodes if not (state.has_ended(node) or state.is_superseded(node))]
        zones: dict[str, list[bool]] = {}
        for node in alive:
            if zone := state.zone_of(node):
                zones.setdefault(zone, []).append(is_unhealthy(node, state))
        return cls(
            all_not_ready=bool(alive) and not any(node.ready for node in alive),
            zones={zone: UnhealthyShare.of(unhealthy) for zone, unhealthy in zones.items()},
            cluster=UnhealthyShare.of(is_unhealthy(node, state) for node in alive),
        )

    def reason_to_wait(self, node: Node, rules: RepairPolicy, state: ClusterState) -> str:
        """Return why the node's repair has to wait, empty if it need not."""
        zone = state.zone_of(node)
        if self.all_not_ready and node.instance_id not in known_or(state.impaired, {}):
            return "every node of the cluster is NotReady: the control plane or the network is in trouble, not the node"
        if zone in self.zones and _all_unhealthy(self.zones[zone]):
            return f"every node of zone {zone} is unhealthy: the zone is in trouble, not the node"
        for scope, share in self._scopes(zone):
            if share.unhealthy > most_unhealthy(rules, share.nodes):
                limit = f"{rules.max_unhealthy}{'%' if rules.max_unhealthy_percent else ''}"
                count = f"{share.unhealthy} of {count_of(share.nodes, 'node')} of {scope} are unhealthy"
                return f"{count}, more than repair.maxUnhealthy ({limit})"
        return ""

    def _scopes(self, zone: str) -> Iterator[tuple[str, UnhealthyShare]]:
        """Yield the scopes over which `maxUnhealthy` is counted: the node's zone, and the cluster."""
        if zone in self.zones:
            yield f"zone {zone}", self.zones[zone]
        yield "the cluster", self.cluster


def most_unhealthy(rules: RepairPolicy, nodes: int) -> int:
    """Return how many of `nodes` nodes may be unhealthy while nodes are still repaired.

    A percentage is rounded down and allows at least one node; a number is used as it is, so that 0 allows no repair.
    """
    if not rules.max_unhealthy_percent:
        return rules.max_unhealthy
    return max(nodes * rules.max_unhealthy // 100, 1)


def is_unhealthy(node: Node, state: ClusterState) -> bool:
    """Return whether the node is NotReady, its instance fails a status check, or it has a condition that its policy (or
    the default, for nodes of others) calls unhealthy, however short that has lasted.
    """
    rules = conditions_of(state.group_of(node), state)
    doubtful = not node.ready or node.instance_id in known_or(state.impaired, {})
    return doubtful or any(rule_for(condition, rules) for condition in node.monitored)


def _all_unhealthy(share: UnhealthyShare) -> bool:
    return share.nodes >= MIN_NODES_FOR_ZONE_OUTAGE and share.unhealthy == share.nodes


class Act(StrEnum):
    """Actions on a node."""

    REPLACE = "replace"
    REBOOT = "reboot"
    WAIT = "wait"  # until `until`, or until the next observation
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairVerdict:
    """Verdict on one node."""

    act: Act
    reason: str
    until: datetime | None = None  # when a wait is over, None if only another read can show
    gone: bool = False  # nothing but the Node object is left
    condition: NodeCondition | None = None  # the one of the Node that decides, None if that is `Ready`, or EC2's word

    @property
    def acts(self) -> bool:
        """True if the node is repaired now."""
        return self.act in {Act.REPLACE, Act.REBOOT}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyCondition:
    """Unhealthy condition of a node."""

    sentence: str  # begins a sentence about the node
    since: datetime | None  # None if its begin is unknown
    due: datetime | None  # when a repair may begin, None for never as things stand
    condition: NodeCondition | None = None  # as in `RepairVerdict`
    reboots: bool = False  # the policy answers it with a reboot


def verdicts(state: ClusterState, now: datetime) -> Mapping[str, RepairVerdict]:
    """Return one verdict for every node, by name. `state` has at least the instances of the nodes that are NotReady or
    impaired, as far as EC2 knows them.
    """
    breaker = CircuitBreaker.of(state)
    return {node.name: _verdict(node, state, breaker, now) for node in sorted(state.nodes, key=lambda node: node.name)}


def duration_text(span: timedelta) -> str:
    """Format a duration: `45 s`, `12 min`, `3 h 5 min`."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    hours, minutes = divmod(seconds // 60, 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)


def _verdict(node: Node, state: ClusterState, breaker: CircuitBreaker, now: datetime) -> RepairVerdict:
    group = state.group_of(node)
    policy = state.policy_of(group)
    others = next(_reason_not_ours(node, group, policy), "")
    if others or group is None or policy is None:
        return RepairVerdict(act=Act.LEFT, reason=others)
    left = next(_why_left(node, group, policy, state), "")
    if left:
        return RepairVerdict(act=Act.LEFT, reason=left)
    if state.has_ended(node):
        return _without_instance(node, state, now)
    kept = next(_why_kept(node, group, state, now), "")
    if kept:
        return RepairVerdict(act=Act.LEFT, reason=kept)
    rules = rules_of(policy, group, state)
    condition = _condition(node, rules, state, now)
    if condition is None:
        return RepairVerdict(act=Act.LEFT, reason="it is Ready and passes EC2's status checks")
    return _waiting(condition, now) or _guarded(node, rules, condition, state, breaker, now)


def _reason_not_ours(node: Node, group: Group | None, policy: NodePolicy | None) -> Iterator[str]:
    if others := foreign(node):
        yield others
    if group is None:
        yield "no Auto Scaling group of the cluster holds its instance"
    elif policy is None:
        yield f"no policy selects its group {group.name}"


def _why_left(node: Node, group: Group, policy: NodePolicy, state: ClusterState) -> Iterator[str]:
    if paused := state.policies.pauses.voluntary(group.name):
        yield paused
    if shifted := state.why_shifted(state.zone_of(node)):
        yield shifted
    if not policy.repair.enabled:
        yield f"policy {policy.name} says repair.enabled: false"
    if eks := left_to_eks(group, state):
        yield eks
    if node.instance_id in state.claimed:
        yield "a termination of it is under way"
    if node.deleting:
        yield "its Node object is being deleted"
    if state.is_superseded(node):
        yield "another Node stands for its instance"


def _why_kept(node: Node, group: Group, state: ClusterState, now: datetime) -> Iterator[str]:
    """Yield the reasons to keep the node: another controller is ending it, or its owner keeps it."""
    if taint := disruption_taint_of(node, now):
        yield f"it is terminating already (taint {taint})"
    lifecycle = group.lifecycle_of(node.instance_id) or "nothing of it"
    if lifecycle != IN_SERVICE:
        yield f"its group {group.name} says {lifecycle}"
    instance = state.instance_of(node)
    if instance is not None and instance.state != "running":
        yield f"EC2 says its instance is {instance.state}"
    if stays := why_node_stays(node):
        yield stays


def _without_instance(node: Node, state: ClusterState, now: datetime) -> RepairVerdict:
    instance = state.instance_of(node)
    ended = f"EC2 says its instance is {instance.state if instance else 'gone'}"
    if node.ready:
        return RepairVerdict(act=Act.WAIT, reason=f"{ended}, its kubelet still reports", gone=True)
    due = (node.not_ready_since or node.created) + LEFT_BEHIND
    if now < due:
        reason = f"{ended}: the cloud controller is about to remove its Node"
        return RepairVerdict(act=Act.WAIT, reason=reason, until=due, gone=True)
    return RepairVerdict(act=Act.REPLACE, reason=f"{ended}: only its Node is left", gone=True)


def _condition(node: Node, rules: RepairPolicy, state: ClusterState, now: datetime) -> UnhealthyCondition | None:
    """Return the condition that counts, or None for a healthy node: one that is due for a replacement, then one that is
    due for a reboot, then the one that is due first. A node that is NotReady or impaired is not rebooted: its kubelet
    would have to confirm the end of its pods, so that one waits to be replaced.
    """
    known = (_not_ready(node, rules, now), _impaired(node, rules, state), *_monitored(node, rules, now))
    conditions = [condition for condition in known if condition is not None]
    if any(condition.condition is None for condition in conditions):
        conditions = [condition for condition in conditions if not condition.reboots]
    return min(conditions, key=lambda one: _rank(one, now), default=None)


def _rank(condition: UnhealthyCondition, now: datetime) -> tuple[bool, bool, datetime]:
    due = condition.due
    waits = due is None or due > now
    return waits, condition.reboots and not waits, due or datetime.max.replace(tzinfo=UTC)


def _not_ready(node: Node, rules: RepairPolicy, now: datetime) -> UnhealthyCondition | None:
    if node.ready:
        return None
    since = _since(node, READY, node.not_ready_since or node.created, now)
    reason = f" ({node.not_ready_why})" if node.not_ready_why else ""
    return UnhealthyCondition(sentence=f"NotReady{reason}", since=since, due=since + rules.not_ready_after)


def _impaired(node: Node, rules: RepairPolicy, state: ClusterState) -> UnhealthyCondition | None:
    """Return the failed status checks; none while EC2's checks could not be read: no evidence ends no node."""
    impairment = known_or(state.impaired, {}).get(node.instance_id)
    if impairment is None:
        return None
    due = impairment.since + rules.impaired_after if impairment.since else None
    sentence = f"impaired (EC2's {' and '.join(impairment.checks)} status check fails)"
    return UnhealthyCondition(sentence=sentence, since=impairment.since, due=due)


def _monitored(node: Node, rules: RepairPolicy, now: datetime) -> Iterator[UnhealthyCondition]:
    """Yield the conditions of the Node that the policy calls unhealthy."""
    for condition in node.monitored:
        if rule := rule_for(condition, rules.conditions):
            reason = f" ({condition.reason})" if condition.reason else ""
            since = _since(node, condition.type, condition.since, now)
            yield UnhealthyCondition(
                sentence=f"{condition.type} is {condition.status}{reason}",
                since=since,
                due=since + rule.after,
                condition=condition,
                reboots=rule.action is RepairAction.REBOOT,
            )


def _since(node: Node, kind: str, transition: datetime, now: datetime) -> datetime:
    """Return since when the condition lasts: its last transition, or the reconciler's first sight where the writer has
    renewed that time since.
    """
    return min(transition, first_seen(node, now).get(kind, transition))


def _waiting(condition: UnhealthyCondition, now: datetime) -> RepairVerdict | None:
    """Return the verdict to wait, or None once the condition has lasted long enough."""
    if condition.due is None or condition.since is None:
        return RepairVerdict(act=Act.WAIT, reason=f"{condition.sentence}, since an unknown time")
    if now < condition.due:
        lasted, required = duration_text(now - condition.since), duration_text(condition.due - condition.since)
        return RepairVerdict(
            act=Act.WAIT, reason=f"{condition.sentence} for {lasted} of {required}", until=condition.due
        )
    return None


def _guarded(
    node: Node,
    rules: RepairPolicy,
    condition: UnhealthyCondition,
    state: ClusterState,
    breaker: CircuitBreaker,
    now: datetime,
) -> RepairVerdict:
    lasted = duration_text(now - (condition.since or now))
    guard = breaker.reason_to_wait(node, rules, state)
    if guard:
        return RepairVerdict(act=Act.LEFT, reason=f"{condition.sentence} for {lasted}, but {guard}")
    reason = f"{condition.sentence} for {lasted}"
    act = Act.REBOOT if condition.reboots else Act.REPLACE
    return RepairVerdict(act=act, reason=reason, condition=condition.condition)
