"""Verdicts on unhealthy nodes: those that are replaced, and one sentence for each that is not.

Doubtful evidence ends nothing: an API server that does not answer yields no verdicts at all, and a repair requires two
observations, the second past every cache (`leeward.reconcile.repair`). The API server judges the kubelet's silence
(`Ready` is Unknown or False), EC2 a failed status check, and the EKS node monitoring agent every other condition of the
Node that `repair.conditions` names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.disruption.do_not_disrupt import why_node_stays
from leeward.model.group import Group
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.node_condition import READY, NodeCondition, first_seen
from leeward.model.node_owners import disruption_taint_of, foreign
from leeward.policy.document import NodePolicy
from leeward.policy.repair import RepairAction, RepairPolicy, rule_for
from leeward.reconcile.circuit_breaker import CircuitBreaker
from leeward.reconcile.managed_repair import left_to_eks, rules_of

LEFT_BEHIND = timedelta(minutes=5)  # the cloud controller removes Nodes of dead instances, usually within a minute


class Act(StrEnum):
    """Actions on a node."""

    REPLACE = "replace"
    REBOOT = "reboot"
    WAIT = "wait"  # until `until`, or until the next observation
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on one node. `until`: when a wait is over, None if only another read can show; `gone`: nothing but the
    Node object is left; `condition`: the one of the Node that decides, None if that is `Ready`, or EC2's word.
    """

    act: Act
    reason: str
    until: datetime | None = None
    gone: bool = False
    condition: NodeCondition | None = None

    @property
    def acts(self) -> bool:
        """True if the node is repaired now."""
        return self.act in {Act.REPLACE, Act.REBOOT}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyCondition:
    """Unhealthy condition. `since` None if its begin is unknown; `due`: when a repair may begin, None for never as
    things stand; `sentence` begins a sentence about the node; `condition`: as in `Verdict`.
    `reboots`: the policy answers it with a reboot.
    """

    sentence: str
    since: datetime | None
    due: datetime | None
    condition: NodeCondition | None = None
    reboots: bool = False


def verdicts(state: ClusterState, now: datetime) -> Mapping[str, Verdict]:
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


def _verdict(node: Node, state: ClusterState, breaker: CircuitBreaker, now: datetime) -> Verdict:
    group = state.group_of(node)
    policy = state.policy_of(group)
    others = next(_reason_not_ours(node, group, policy), "")
    if others or group is None or policy is None:
        return Verdict(act=Act.LEFT, reason=others)
    left = next(_why_left(node, group, policy, state), "")
    if left:
        return Verdict(act=Act.LEFT, reason=left)
    if state.has_ended(node):
        return _without_instance(node, state, now)
    kept = next(_why_kept(node, group, state, now), "")
    if kept:
        return Verdict(act=Act.LEFT, reason=kept)
    rules = rules_of(policy, group, state)
    condition = _condition(node, rules, state, now)
    if condition is None:
        return Verdict(act=Act.LEFT, reason="it is Ready and passes EC2's status checks")
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


def _without_instance(node: Node, state: ClusterState, now: datetime) -> Verdict:
    instance = state.instance_of(node)
    ended = f"EC2 says its instance is {instance.state if instance else 'gone'}"
    if node.ready:
        return Verdict(act=Act.WAIT, reason=f"{ended}, its kubelet still reports", gone=True)
    due = (node.not_ready_since or node.created) + LEFT_BEHIND
    if now < due:
        reason = f"{ended}: the cloud controller is about to remove its Node"
        return Verdict(act=Act.WAIT, reason=reason, until=due, gone=True)
    return Verdict(act=Act.REPLACE, reason=f"{ended}: only its Node is left", gone=True)


def _condition(node: Node, rules: RepairPolicy, state: ClusterState, now: datetime) -> UnhealthyCondition | None:
    """Return the condition that counts, or None for a healthy node: one that is due for a replacement, then one that is
    due for a reboot, then the one that is due first. A node that is NotReady or impaired is not rebooted: its kubelet
    would have to confirm the end of its pods, so that one waits to be replaced.
    """
    known = (_not_ready(node, rules, now), _impaired(node, rules, state), *_monitored(node, rules, now))
    conditions = [one for one in known if one is not None]
    if any(one.condition is None for one in conditions):
        conditions = [one for one in conditions if not one.reboots]
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


def _waiting(condition: UnhealthyCondition, now: datetime) -> Verdict | None:
    """Return the verdict to wait, or None once the condition has lasted long enough."""
    if condition.due is None or condition.since is None:
        return Verdict(act=Act.WAIT, reason=f"{condition.sentence}, since an unknown time")
    if now < condition.due:
        lasted, required = duration_text(now - condition.since), duration_text(condition.due - condition.since)
        return Verdict(act=Act.WAIT, reason=f"{condition.sentence} for {lasted} of {required}", until=condition.due)
    return None


def _guarded(
    node: Node,
    rules: RepairPolicy,
    condition: UnhealthyCondition,
    state: ClusterState,
    breaker: CircuitBreaker,
    now: datetime,
) -> Verdict:
    lasted = duration_text(now - (condition.since or now))
    guard = breaker.reason_to_wait(node, rules, state)
    if guard:
        return Verdict(act=Act.LEFT, reason=f"{condition.sentence} for {lasted}, but {guard}")
    reason = f"{condition.sentence} for {lasted}"
    act = Act.REBOOT if condition.reboots else Act.REPLACE
    return Verdict(act=act, reason=reason, condition=condition.condition)
