"""Step of node-termination that launches another instance, if one is called for, in the zone that placement names.

Killed anywhere, it launches once. The plan (which subnets, in which order) is written before the first launch. Each
launch carries a client token made of instance and subnet, and a refusal is written before the next subnet is tried. Run
again, the step tries the subnet at which the plan stands, and LaunchInstances answers with the instance that the token
launched.

Reading the inputs of a placement never raises: unavailable ones are omitted and listed in `doubts`, because a node that
EC2 takes in two minutes does not wait for a fact."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from leeward.errors import AccessDeniedError, LeewardError
from leeward.model import well_known
from leeward.model.facts import ClusterFacts, FactKind
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.launch_refusal import EVENT, sentence
from leeward.model.lifecycle import PRESENT, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.model.termination import LaunchOption, LaunchPlan, Replacement, TerminationRecord, is_abrupt
from leeward.model.zonal_shift import NOT_SHIFTED, ZonalShifts
from leeward.placement.replacement import LeavingInstance, PlacementFacts, leaving_pods, plan_launch, promise_of
from leeward.placement.scene import SeededChance
from leeward.placement.verdict import NO_SUBNET_WITH_IPS
from leeward.placement.zone_choice import even_zones
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Network
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog, Claims
from leeward.retry import retry
from leeward.termination import capacity_ledger, decisions, maximum_size
from leeward.termination.prompt_eviction import evict_promptly, or_evict, read_or_evict
from leeward.termination.run import Next, Notice, NoticeKind, Run, carrying, noted
from leeward.termination.situation import Freshness, Situation, find_node, read, survey

JOINS_WITHIN = timedelta(minutes=15)  # an instance that is not a Ready node by then never takes its addresses
NEEDED = (FactKind.SUBNETS, FactKind.INSTANCE_TYPES, FactKind.TEMPLATES, FactKind.NODES, FactKind.CNI)
T = TypeVar("T")
MOST_PODS_NAMED = 10
LONGEST_WHY = 500
RACES = 5  # of writing a reservation, before the replacement is placed without one
ELSEWHERE, NO_SUBNET_IPS, REFUSED = "ReplacementElsewhere", "NoSubnetIPs", "ReplacementRefused"  # reasons of Events
BY_ITSELF = "the desired size stays and the group replaces the node by itself"


@dataclass(slots=True, kw_only=True)
class PlacementInputs:
    """Inputs of a placement: the facts of fn sync, free addresses, the node's pods, newcomers."""

    leaving: LeavingInstance
    known: PlacementFacts
    node: Node | None = None  # None: it does not exist, or could not be read
    doubts: list[str] = field(default_factory=list)  # inputs that are old or missing, one sentence each
    silent: bool = False  # the cluster's API did not answer, and is not called again in this step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launching:
    """Launch of a replacement: for which instance, in which group, and by which inputs."""

    situation: Situation
    group: Group
    inputs: PlacementInputs
    ports: Ports

    @property
    def record(self) -> TerminationRecord:
        """Record of the termination, as this step knows it."""
        return self.situation.record

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self.situation.record.subject.cluster


def load_inputs(situation: Situation, group: Group, ports: Ports) -> PlacementInputs:
    """Read the inputs: one read of the table, one DescribeSubnets, two or three calls of the cluster's API, and one
    DescribeInstances if members have been launched that are not Ready yet.
    """
    subject = situation.record.subject
    leaving = LeavingInstance(
        instance=subject.instance, zone=subject.zone, subnet=subject.subnet, type=subject.instance_type
    )
    inputs = PlacementInputs(leaving=leaving, known=PlacementFacts(facts=ClusterFacts(), subnets=()))
    facts = _facts(subject.cluster, inputs, ports.clock, ports.catalog)
    inputs.known = PlacementFacts(
        facts=facts,
        cluster=subject.cluster,
        subnets=_subnets(group, facts, inputs, ports.network),
        newcomers=_newcomers(group, subject.instance, facts, inputs, ports),
        cni=situation.policy.cni,
        even=even_zones(group, subject.instance),
    )
    _ask_the_cluster(situation, inputs, ports.clusters)
    return inputs


def _facts(cluster: str, inputs: PlacementInputs, clock: Clock, catalog: Catalog) -> ClusterFacts:
    sheets = _try(lambda: catalog.read(cluster), "the facts of fn sync", inputs)
    facts = ClusterFacts.from_sheets(sheets or {})
    if sheets is None:
        facts = replace(facts, shifts=_shifts(cluster, inputs, clock, catalog))
    now = clock.now()
    for kind in facts.stale(now, NEEDED):
        minutes = int((now - facts.synced[kind]).total_seconds() // 60)
        inputs.doubts.append(f"{kind.value} were last synced {minutes} min ago")
    missing = facts.missing(NEEDED) if sheets is not None else ()
    if missing:
        inputs.doubts.append(f"never synced: {', '.join(kind.value for kind in missing)}")
    return facts


def _shifts(cluster: str, inputs: PlacementInputs, clock: Clock, catalog: Catalog) -> ZonalShifts:
    """Return the zonal shifts alone, in more than one try: a launch into a shifted zone is worse than a late one."""
    what = "the zonal shifts"
    return _try(lambda: retry(lambda: catalog.zonal_shifts(cluster), clock), what, inputs) or NOT_SHIFTED


def _subnets(group: Group, facts: ClusterFacts, inputs: PlacementInputs, network: Network) -> tuple[Subnet, ...]:
    """Return the group's subnets with the addresses that are free now, else as fn sync read them."""
    live = _try(lambda: network.subnets(group.subnets), "free addresses", inputs) if group.subnets else {}
    known = live or {subnet.id: subnet for subnet in facts.subnets}
    return tuple(known[name] for name in group.subnets if name in known)


def _newcomers(
    group: Group, leaving: str, facts: ClusterFacts, inputs: PlacementInputs, ports: Ports
) -> tuple[Instance, ...]:
    """Return the members that were launched and are no Ready nodes yet. Without counted nodes, return only those that
    still boot.
    """
    counted = FactKind.NODES in facts.synced
    names = [
        member.id
        for member in group.instances
        if member.id != leaving
        and member.id not in facts.ready
        and role_of(member.lifecycle) in (PRESENT if counted else {LifecycleRole.LAUNCHING})
    ]
    instances = (
        _try(lambda: ports.instances.describe(names), "instances that are not Ready yet", inputs) if names else {}
    )
    since = ports.clock.now() - JOINS_WITHIN
    fresh = (instance for instance in (instances or {}).values() if not instance.ended and instance.launched >= since)
    return tuple(sorted(fresh, key=lambda one: one.id))


def _ask_the_cluster(situation: Situation, inputs: PlacementInputs, clusters: Clusters) -> None:
    """Read the node and its pods; the volumes only if one of its pods has a claim."""
    kubernetes = clusters.kubernetes(situation.record.subject.cluster)
    try:
        node = find_node(situation.record, kubernetes)
        pods = tuple(kubernetes.pods_on(node.name)) if node else ()
    except LeewardError as error:
        inputs.silent = True
        inputs.doubts.append(f"the node is taken for a full one, its pods are not known: {error}")
        return
    claimed = any(pod.claims for pod in pods)
    volumes = _try(kubernetes.volumes, "the zones of the pods' volumes", inputs) if claimed else ()
    inputs.node = node
    millicores = node.cpu if node else 0
    inputs.leaving = replace(inputs.leaving, millicores=millicores, pods=pods, volumes=tuple(volumes or ()))


def _try(ask: Callable[[], T], what: str, inputs: PlacementInputs) -> T | None:
    try:
        return ask()
    except LeewardError as error:
        inputs.doubts.append(f"{what} could not be had: {error}")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Result of the request for a replacement, the record after it, and notices for an operator."""

    replacement: Replacement
    record: TerminationRecord
    written: bool = False  # the observation of AWS is in the table's record
    notices: tuple[Notice, ...] = ()


def ask_for_replacement(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Launch another instance first if that is called for. `terminate` offsets it (+1 desired).

    Idempotent: the outcome of a launch is written into the record once, and read from there from then on. A launch that
    may have been made already is always followed up, whatever has happened to the instance in between. The decision to
    launch nothing is not recorded, because a cause that joins later may call for a replacement.
    """
    run, record = read_or_evict(run, ports, unless=_may_have_launched)
    if record is None:
        return replace(run, next=Next.DRAIN, why="it has no open record of this attempt")
    try:
        return or_evict(lambda: _replace_ahead(run, record, ports), record, ports)
    except AccessDeniedError as error:
        if not is_abrupt(record, ports.clock.now()):
            raise
        with suppress(LeewardError):
            evict_promptly(record, ports)
        run = noted(run, ports, {"refused": ports.clock.now()})[0]
        return replace(run, version=record.version, next=Next.DRAIN, why=f"its pods leave first: {error}"[:LONGEST_WHY])


def _replace_ahead(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    situation = _surveyed(record, ports)
    record = situation.record
    if situation.unwritten:
        run = replace(run, unwritten=replace(run.unwritten, seen=record.seen))
    run = replace(run, version=record.version, pause=0)
    if (record.keeps or record.reboot is not None) and record.surge_settled:
        alone = replace(run, next=Next.DRAIN, why="it is drained alone: its instance is kept")
        return carrying(alone, record, ports.claims)
    asked = Asked(replacement=record.replacement, record=record) if record.replacement else _ask(situation, ports)
    if isinstance(asked, TerminationRecord):
        return _replace_ahead(replace(run, read_at=ports.clock.now()), asked, ports)
    if asked.written:
        run = replace(run, unwritten=replace(run.unwritten, seen=None), read_at=ports.clock.now())
    first = decisions.terminates_first(situation, ports.clock.now())
    why = outcome_sentence(record, asked.replacement)
    if decisions.asks_first(record, situation.policy) and not situation.our_hooks:
        why = f"no terminate hook of ours guards {record.subject.group}: it drains first; {why}"
    onward = Next.TERMINATE_FIRST if first else Next.DRAIN
    run = replace(run, next=onward, why=why[:LONGEST_WHY], notices=asked.notices)
    return carrying(run, asked.record, ports.claims)


def _may_have_launched(record: TerminationRecord) -> bool:
    """Return whether a launch may have been made whose outcome an earlier record does not have: the plan is written
    before the first, by a call that returns the record as it is then.
    """
    return record.plan is not None and record.replacement is None


def _surveyed(record: TerminationRecord, ports: Ports) -> Situation:
    """Return the state of the instance, with its group as it is now if a launch may follow. What was read is written
    with the plan of a launch, or with the first note of the drain.
    """
    situation = survey(record, ports, Freshness.WORK, written=False)
    if situation.record.replacement or situation.listing is not None or not _may_launch(situation, ports.clock):
        return situation
    latest = survey(situation.record, ports, Freshness.GROUP, written=False)
    return replace(latest, unwritten=latest.unwritten or situation.unwritten)


def _may_launch(situation: Situation, clock: Clock) -> bool:
    """Return whether a launch may follow. It depends on the group as it is now: its subnets, sizes and members."""
    return decisions.wants_replacement(situation, clock.now()).act or situation.record.launching


def outcome_sentence(record: TerminationRecord, replacement: Replacement) -> str:
    """Return the outcome in one sentence, for the log and the execution."""
    if not replacement.launched:
        return replacement.reason
    where = f" in {replacement.subnet}" if replacement.subnet and replacement.subnet != record.subject.subnet else ""
    why = f": {replacement.reason}" if replacement.reason else ""
    return f"launched {', '.join(replacement.launched)}{where}{why}"


def _ask(situation: Situation, ports: Ports) -> Asked | TerminationRecord:
    """Launch, and return the outcome; the record as it is now where a cause has joined before the first launch."""
    record, group = situation.record, situation.listing
    left = replace(situation, lifecycle=None) if situation.ended else situation  # no end would offset its launch
    wanted = decisions.wants_replacement(left, ports.clock.now())
    if group is None or not (wanted.act or record.launching):
        return Asked(replacement=Replacement(reason=wanted.why), record=record)
    inputs = load_inputs(situation, group, ports)
    launching = _Launching(situation=situation, group=group, inputs=inputs, ports=ports)
    plan = record.plan
    if plan is None:
        _compare_zones(inputs, record.subject.cluster, ports)
        plan = _plan(launching)
        begun = ports.claims.begin_plan(record.instance, plan, version=record.version, seen=record.seen)
        if begun.replacement is not None:
            return Asked(replacement=begun.replacement, record=begun)
        if begun.plan is None:
            return begun
        plan = begun.plan
    chosen, replacement = _launch(record, group, plan, inputs.known.facts.shifts, ports)
    if _is_reported(chosen, replacement, record):  # an Event about a launch that another step overtook would be wrong
        known = read(record.instance, ports.claims)
        if known.replacement is not None and _overtook(known.replacement, replacement):
            _give_up(record, replacement, chosen, ports.claims, ports.clock)
            return Asked(replacement=known.replacement, record=known)
    _keep_promise(launching, chosen, replacement)
    doubts = _doubts(inputs) if record.plan is None else ()
    notices = (*doubts, *_notify(launching, chosen, replacement))
    written = ports.claims.replaced(record.instance, replacement, ports.clock.now())
    if written.replacement is not None and _overtook(written.replacement, replacement):
        _give_up(record, replacement, chosen, ports.claims, ports.clock)
        return Asked(replacement=written.replacement, record=written)
    return Asked(replacement=replacement, record=written, written=record.plan is None, notices=notices)


def _overtook(other: Replacement, replacement: Replacement) -> bool:
    """Return whether another step has launched another instance meanwhile."""
    return bool(other.launched) and other.launched != replacement.launched


def _is_reported(chosen: LaunchOption | None, replacement: Replacement, record: TerminationRecord) -> bool:
    """Return whether the outcome is none that everyone expects: a launch in the zone of the instance."""
    return chosen is None or not replacement.launched or chosen.zone != record.subject.zone


def _compare_zones(inputs: PlacementInputs, cluster: str, ports: Ports) -> None:
    """Learn in which zones the pods that leave may run, where a rule of one compares zones, or one of other pods does
    whose namespaces the node names.
    """
    leaving = leaving_pods(inputs.leaving.pods or ())
    named = inputs.node.annotations.get(well_known.KEPT_APART_BY, "") if inputs.node is not None else ""
    others = frozenset(named.split(",")) - {""}
    moving = [pod for pod in leaving if not pod.beyond_limit and not pod.deletion]
    tied = frozenset(pod.key for pod in moving if pod.tied_to_zones or others)
    if tied:
        from leeward.termination.zone_refusals import learn_zone_refusals  # late: most launches ask no scheduler

        learn_zone_refusals(inputs, tied, others, cluster, ports)


def _plan(launching: _Launching) -> LaunchPlan:
    """Place the replacement against the current reservations of others, and reserve for it before the launch."""
    group, inputs, instance = launching.group, launching.inputs, launching.record.instance
    catalog, clock = launching.ports.catalog, launching.ports.clock
    try:
        for _ in range(RACES):
            promises, now = catalog.reservations(launching.cluster), clock.now()
            others, short = promises.others(instance, now), promises.short_at(now)
            inputs.known = replace(inputs.known, promises=others, short=short)
            plan = plan_launch(group, inputs.leaving, inputs.known, SeededChance(instance))
            if not plan.options:
                return plan
            promise = promise_of(plan.options[0], group, inputs.leaving, inputs.known, now)
            if catalog.reserve(launching.cluster, instance, promise, after=promises.version):
                return plan
        inputs.doubts.append(f"others placed replacements at the same moment, {RACES} times")
    except LeewardError as error:
        inputs.doubts.append(f"what others are promised could not be had: {error}")
    return plan_launch(group, inputs.leaving, inputs.known, SeededChance(instance))


def _keep_promise(launching: _Launching, chosen: LaunchOption | None, replacement: Replacement) -> None:
    """Record the outcome in the reservation: its subnet and instance, or that nothing is taken. Best effort; a
    reservation lasts two minutes.
    """
    inputs, subject, catalog = launching.inputs, launching.record.subject, launching.ports.catalog
    here = chosen if replacement.launched else None
    nothing = LaunchOption(subnet=subject.subnet, zone=subject.zone, why="")
    now = launching.ports.clock.now()
    promise = promise_of(here or nothing, launching.group, inputs.leaving, inputs.known, now)
    kept = replace(promise, launched=replacement.launched[0]) if here else replace(promise, ips=0, taken=0)
    try:
        for _ in range(RACES):
            version = catalog.reservations(launching.cluster).version
            if catalog.reserve(launching.cluster, subject.instance, kept, after=version):
                return
    except LeewardError as error:
        inputs.doubts.append(f"the promise could not be kept: {error}")


def _launch(
    record: TerminationRecord, group: Group, plan: LaunchPlan, shifts: ZonalShifts, ports: Ports
) -> tuple[LaunchOption | None, Replacement]:
    """Try the plan's options until one answers with anything but a lack of capacity. Return it and its answer. The
    first may have been launched by an earlier try, so it is followed up even if its zone has been shifted since.
    """
    while plan.options:
        option = plan.options[0]
        answer = _launch_in(record, group, option, ports)
        if not answer.no_capacity:
            refused = "".join(f"{refusal}; " for refusal in plan.refused)
            reason = f"{refused}{option.why}" if answer.launched else f"{refused}{answer.reason}"
            return option, replace(answer, subnet=option.subnet if answer.launched else "", reason=reason)
        plan = _without_first(plan, f"{option.zone} refused: {answer.reason}", shifts, ports.network)
        ports.claims.plan(record.instance, plan)
    return None, Replacement(reason="; ".join((*plan.refused, plan.nowhere) if plan.nowhere else plan.refused))


def _launch_in(record: TerminationRecord, group: Group, option: LaunchOption, ports: Ports) -> Replacement:
    """Launch in the option's subnet. The token is the same whenever this subnet is tried for this instance in this
    period: requested twice, the instance is launched once.
    """
    token = f"leeward-{record.launch_name}-{option.subnet.removeprefix('subnet-')}"
    return maximum_size.launch(record, group, option.subnet, token, ports)


def _give_up(
    record: TerminationRecord, replacement: Replacement, chosen: LaunchOption | None, claims: Claims, clock: Clock
) -> None:
    """Request the termination of what this step has launched, where another step has launched a replacement since the
    record was read: its execution was stopped while it ran on, and the next one found capacity in another subnet. The
    minute reconciler starts the execution.
    """
    if chosen is None:
        return
    for new in replacement.launched:
        subject = replace(record.subject, instance=new, zone=chosen.zone, subnet=chosen.subnet, node=None, state="")
        reason = f"{record.instance} has another replacement: the group is one too large"
        cause = capacity_ledger.surplus(capacity_ledger.ahead(new), clock.now(), reason)
        claims.claim(subject, cause, cause.at)


def _without_first(plan: LaunchPlan, refusal: str, shifts: ZonalShifts, network: Network) -> LaunchPlan:
    """Return the plan without its first option. Time has passed since the plan was made: the next option must still
    have its addresses, and be in a zone that is not shifted.
    """
    refused, left = [*plan.refused, refusal], list(plan.options[1:])
    while left and (lack := shifts.reason(left[0].zone) or _lack(left[0], network)):
        refused.append(lack)
        left.pop(0)
    return LaunchPlan(options=tuple(left), refused=tuple(refused), nowhere=plan.nowhere)


def _lack(option: LaunchOption, network: Network) -> str | None:
    """Return what the subnet lacks now; None if it has enough addresses, or if the API does not answer."""
    try:
        subnet = network.subnets([option.subnet]).get(option.subnet)
    except LeewardError:
        return None
    if subnet is None or subnet.free_ips >= option.ips:
        return None
    return f"{option.zone}: {option.subnet} has {subnet.free_ips} free by now, {option.ips} are needed"


def _doubts(inputs: PlacementInputs) -> tuple[Notice, ...]:
    if not inputs.doubts:
        return ()
    return (Notice(kind=NoticeKind.STALE_FACTS, text=f"placed on what is known: {'; '.join(inputs.doubts)}"),)


def _notify(launching: _Launching, chosen: LaunchOption | None, replacement: Replacement) -> tuple[Notice, ...]:
    """Write Events and return notices: another zone, no place, or a group that LaunchInstances does not serve."""
    inputs, subject = launching.inputs, launching.record.subject
    if chosen is not None and replacement.launched and chosen.zone != subject.zone:
        new = ", ".join(replacement.launched)
        text = (
            f"its replacement {new} is in {chosen.zone} ({chosen.subnet}), not in {subject.zone}: {replacement.reason}"
        )
        _write(launching, [inputs.node], ELSEWHERE, text, warning=False)
        return (Notice(kind=NoticeKind.ELSEWHERE, text=text),)
    if chosen is None:
        no_ips = NO_SUBNET_WITH_IPS in replacement.reason
        pods = leaving_pods(inputs.leaving.pods or ())[:MOST_PODS_NAMED] if no_ips else ()
        text = f"nothing is launched in place of {subject.instance}: {replacement.reason}"
        reason = NO_SUBNET_IPS if no_ips else REFUSED
        _write(launching, [inputs.node, *pods], reason, text, warning=True)
        return (Notice(kind=NoticeKind.NOWHERE, text=text),)
    if replacement.refused:
        text = sentence(subject.group or "", replacement.reason, BY_ITSELF)
        _write(launching, [inputs.node], EVENT, text, warning=True)
        return (Notice(kind=NoticeKind.REFUSED, text=text),)
    return ()


def _write(launching: _Launching, about: Sequence[Node | Pod | None], reason: str, text: str, *, warning: bool) -> None:
    """Write Events. Best effort: after one that fails the cluster's API is not called again."""
    if launching.inputs.silent:
        return
    kubernetes, clock = launching.ports.clusters.kubernetes(launching.cluster), launching.ports.clock
    try:
        for node_or_pod in about:
            if node_or_pod is not None:
                kubernetes.event(node_or_pod, reason=reason, message=text, warning=warning, now=clock.now())
    except LeewardError as error:
        launching.inputs.doubts.append(f"no Event could be written: {error}")
