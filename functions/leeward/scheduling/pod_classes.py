"""Kinds of pods: pods with the same needs and the same labels share everything that placing them depends on.

A count is kept once for all kinds that have the same rule, and only the pods that the rule applies to change it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leeward.model.quantity import Amounts
from leeward.model.well_known import ZONE_ID_LABEL, ZONE_LABEL
from leeward.scheduling.fleet import UNLIMITED, Capacity, Fleet
from leeward.scheduling.node_sets import Admission, NodeSet, Preferred, Question, SpreadScope, VolumeReach, Welcoming
from leeward.scheduling.pod_affinity import PodGroup, PodTerm, SpreadConstraint
from leeward.scheduling.pods import Needs, PodIdentity, PodSpec
from leeward.scheduling.predicates import (
    Away,
    Barred,
    FreePorts,
    Near,
    Never,
    NodeResourcesFit,
    NodeVolumeLimits,
    OfNode,
    PortsInUse,
    Preference,
    Rule,
    Spread,
)
from leeward.scheduling.topology_counts import Deferred, DeferredPods, Presence, Tally

ATTACHED = "volumes of "  # + CSI driver: attach limits are kept like any other resource


class Profile:
    """Pods that other pods' rules cannot distinguish, and where they are (node -> pods). `bit`: the profile among those
    with deferred counters, 0 where it has none.
    """

    __slots__ = ("barred", "bit", "counted", "identity", "labels", "placed")

    def __init__(self, identity: PodIdentity) -> None:
        self.identity = identity
        self.labels = dict(identity.labels)
        self.placed: dict[int, int] = {}
        self.counted: list[Presence | Tally] = []
        self.barred: list[Presence] = []
        self.bit = 0

    def deferred_in(self, pods: DeferredPods) -> int:
        """Return the profile's bit among the pods with deferred counters, to which it belongs from now on."""
        if not self.bit:
            self.bit = pods.bit()
            for number, count in self.placed.items():
                for level in range(count):
                    pods.change(self.bit, number, level)
        return self.bit


class PodKind:
    """State for placing a pod of this kind. `rules` and `preferences` are made when one is first placed.

    `rough`: amounts whose mask lets too many nodes through, with the free amount by node; `hopeful`: placing other pods
    may open a node for it.
    """

    __slots__ = ("demands", "holds", "hopeful", "identity", "needs", "preferences", "profile", "rough", "rules")

    def __init__(
        self, needs: Needs, identity: PodIdentity, profile: Profile, demands: tuple[tuple[Capacity, int], ...]
    ) -> None:
        self.needs, self.identity, self.profile, self.demands = needs, identity, profile, demands
        self.holds: tuple[Presence, ...] = ()
        self.rules: tuple[Rule, ...] = ()
        self.preferences: tuple[Preference, ...] = ()
        self.rough: tuple[tuple[list[int], int], ...] = ()
        self.hopeful = not needs.gates and bool(needs.near or any(one.required for one in needs.spread))


class _Watch(NamedTuple):
    """Counter, and the pods that change it: those in every group, with `either` those in at least one. `bars`: it keeps
    these pods away instead.
    """

    groups: tuple[PodGroup, ...]
    counter: Presence | Tally
    bars: bool = False
    either: bool = False

    @property
    def pairs(self) -> list[tuple[str, str] | None]:
        """Labels of which each of the pods has one; None among them: any pod may be meant."""
        groups = self.groups if self.either else self.groups[:1]
        return list(dict.fromkeys(group.selector.pair for group in groups))

    def register(self, profile: Profile, deferred: DeferredPods) -> bool:
        """Register the counter with the profile if it applies to such pods; return whether they move it themselves."""
        identity, counter = profile.identity, self.counter
        if isinstance(counter, Tally) and identity.leaving:
            return False
        held = (group.holds(identity.namespace, profile.labels) for group in self.groups)
        if not (any(held) if self.either else all(held)):
            return False
        if self.bars and isinstance(counter, Presence):
            profile.barred.append(counter)
        elif deferred.room(len(profile.counted), wide=None in self.pairs):
            profile.counted.append(counter)
            return True
        else:
            counter.deferred = counter.deferred or Deferred(counter, deferred)
            counter.deferred.profiles |= profile.deferred_in(deferred)
        return False


class Kinds:
    """Factory of kinds that keeps one of each count, node set and profile."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.ports = PortsInUse(fleet)
        self.deferred = DeferredPods()
        self.capacities: dict[str, Capacity] = {}
        self._kinds: dict[tuple[int, int], PodKind] = {}
        self._profiles: dict[PodIdentity, Profile] = {}
        self._sets: dict[Question, NodeSet] = {}
        self._presences: dict[tuple[tuple[PodGroup, ...], str], Presence] = {}
        self._avoided: dict[tuple[tuple[PodGroup, ...], str], Presence] = {}
        self._holders: dict[tuple[tuple[PodGroup, ...], str], Presence] = {}
        self._tallies: dict[tuple[PodGroup, str, SpreadScope, Admission | None], Tally] = {}
        self._watches: dict[tuple[str, str] | None, list[_Watch]] = {}
        self._carriers: dict[tuple[str, str], list[Profile]] = {}

    def of(self, pod: PodSpec) -> PodKind:
        """Return the kind of a pod."""
        # by identity, because a reader returns one object for equal needs: hashing them again would cost more than
        # placing the pod. The kind keeps both alive, so an id is never given twice.
        key = id(pod.needs), id(pod.identity)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._made(pod.needs, pod.identity)
        return found

    def _made(self, needs: Needs, identity: PodIdentity) -> PodKind:
        demands = [(self.capacity(name), amount) for name, amount in needs.requests]
        demands += [(self.capacity(ATTACHED + driver), count) for driver, count in needs.volumes.attached]
        kind = PodKind(needs, identity, self._profile(identity), tuple(demands))
        kind.holds = tuple(self._holder(groups, key) for key, groups in _by_key(needs.away).items())
        return kind

    def prepared(self, kind: PodKind) -> PodKind:
        """Return the kind with its rules, in kube-scheduler's order, and its preferences, the most important first."""
        if not kind.rules:
            kind.rules = tuple(self._rules(kind))
            kind.preferences = tuple(self._preferences(kind))
            kind.rough = tuple(pair for rule in kind.rules if isinstance(rule, NodeResourcesFit) for pair in rule.rough)
        return kind

    def _rules(self, kind: PodKind) -> list[Rule]:
        needs, profile, volumes = kind.needs, kind.profile, kind.needs.volumes
        if needs.gates:
            return [Never(f"waiting for scheduling gates: {', '.join(needs.gates)}")]
        if needs.never_placed:
            return [Never(needs.never_placed)]
        if volumes.missing:
            return [Never(volumes.missing)]
        admitted = Admission(tolerations=needs.tolerations, nodes=needs.nodes, platform=needs.platform)
        rules: list[Rule] = [OfNode(self._set(admitted))]
        if needs.ports:
            rules.append(FreePorts(self.ports, needs.ports))
        rules.append(NodeResourcesFit([(name, self.capacity(name), amount) for name, amount in needs.requests]))
        if volumes.attached:
            rules.append(NodeVolumeLimits([(d, self.capacity(ATTACHED + d), count) for d, count in volumes.attached]))
        if volumes.reach or volumes.zones:
            rules.append(OfNode(self._set(VolumeReach(reach=volumes.reach, zones=volumes.zones))))
        hard = [one for one in needs.spread if one.required]
        keys = frozenset(one.key for one in hard)
        rules += [self._spread(one, needs, profile, keys) for one in hard]
        if needs.near:
            rules.append(self._near(needs.near, profile))
        if needs.away:
            rules.append(Away([self._avoid(groups, key) for key, groups in _by_key(needs.away).items()]))
        return [*rules, Barred(profile.barred)]

    def _preferences(self, kind: PodKind) -> list[Preference]:
        """Return the preferences: PreferNoSchedule taints, ScheduleAnyway, preferred nodes, pods to stay away from,
        pods to be near.

        The order is that of Karpenter's relaxing read backwards: the preference it drops last comes first. In each, the
        heaviest.
        """
        needs, profile = kind.needs, kind.profile
        preferences: list[Rule] = [OfNode(self._set(Welcoming(tolerations=needs.tolerations)))]
        soft = [one for one in needs.spread if not one.required]
        preferences += [self._spread(one, needs, profile, frozenset({one.key})) for one in soft]
        preferences += [OfNode(self._set(Preferred(term=one.term))) for one in needs.preferred_nodes]
        preferences += [Away([self._presence((term.group,), term.key)]) for term in needs.preferred_away]
        preferences += [self._near((term,), profile) for term in needs.preferred_near]
        return [Preference(preference) for preference in preferences]

    def capacity(self, resource: str) -> Capacity:
        """Return one resource on all nodes; a node that does not name it has none of it, except for attach limits."""
        found = self.capacities.get(resource)
        if found is None:
            found = self.capacities[resource] = Capacity()
            for node, bit in zip(self._fleet.nodes, self._fleet.bits, strict=True):
                found.add(offered(node.allocatable, node.attach_limits, resource), bit)
        return found

    def _set(self, question: Question) -> NodeSet:
        found = self._sets.get(question)
        if found is None:
            found = self._sets[question] = NodeSet(self._fleet, question)
        return found

    def _spread(self, one: SpreadConstraint, needs: Needs, profile: Profile, keys: frozenset[str]) -> Spread:
        scope = SpreadScope(
            required=keys,
            nodes=needs.nodes if one.honours_affinity else None,
            tolerations=needs.tolerations if one.honours_taints else None,
        )
        launchable = self._fleet.imagined and one.key in (ZONE_LABEL, ZONE_ID_LABEL)
        admission = Admission(tolerations=needs.tolerations, nodes=needs.nodes) if launchable else None
        tally = self._tallies.get((one.group, one.key, scope, admission))
        if tally is None:
            topology, admitted = self._fleet.topology(one.key), self._set(admission) if admission else None
            counting = self._set(scope)
            tally = Tally(self._fleet, topology, counting, draining=scope.counts_draining, admitted=admitted)
            self._tallies[one.group, one.key, scope, admission] = tally
            tally.start(profile.placed for profile in self._watch(_Watch((one.group,), tally)))
        own = one.group.holds(profile.identity.namespace, profile.labels)
        return Spread(tally, skew=one.skew, own=int(own), min_domains=one.min_domains)

    def _near(self, terms: Sequence[PodTerm], profile: Profile) -> Near:
        groups = tuple(term.group for term in terms)
        itself = all(group.holds(profile.identity.namespace, profile.labels) for group in groups)
        return Near([self._presence(groups, term.key) for term in terms], itself=itself)

    def _presence(self, groups: tuple[PodGroup, ...], key: str) -> Presence:
        found = self._presences.get((groups, key))
        if found is None:
            found = self._presences[groups, key] = Presence(self._fleet.topology(key))
            self._start(found, self._watch(_Watch(groups, found)))
        return found

    def _avoid(self, groups: tuple[PodGroup, ...], key: str) -> Presence:
        """Return the presence of the pods of any of the groups: one counter for all anti-affinity terms of a key."""
        found = self._avoided.get((groups, key))
        if found is None:
            found = self._avoided[groups, key] = Presence(self._fleet.topology(key))
            self._start(found, self._watch(_Watch(groups, found, either=True)))
        return found

    def _start(self, counter: Presence, profiles: Iterable[Profile]) -> None:
        for profile in profiles:
            for number, count in profile.placed.items():
                counter.change(number, count)

    def _holder(self, groups: tuple[PodGroup, ...], key: str) -> Presence:
        """Return the presence of the pods that carry these anti-affinity terms of one key."""
        found = self._holders.get((groups, key))
        if found is None:
            found = self._holders[groups, key] = Presence(self._fleet.topology(key))
            self._watch(_Watch(groups, found, bars=True, either=True))
        return found

    def _watch(self, watch: _Watch) -> list[Profile]:
        """Count the pods of the groups there from now on; return the known profiles whose pods move the counter."""
        known: dict[PodIdentity, Profile] = {}
        for pair in watch.pairs:
            self._watches.setdefault(pair, []).append(watch)
            among = self._carriers.get(pair, []) if pair else self._profiles.values()
            known.update((profile.identity, profile) for profile in among)
        return [profile for profile in known.values() if watch.register(profile, self.deferred)]

    def _profile(self, identity: PodIdentity) -> Profile:
        found = self._profiles.get(identity)
        if found is None:
            found = self._profiles[identity] = Profile(identity)
            for pair in identity.labels:
                self._carriers.setdefault(pair, []).append(found)
            watches = (watch for label in (None, *identity.labels) for watch in self._watches.get(label, ()))
            for watch in {id(watch): watch for watch in watches}.values():
                watch.register(found, self.deferred)
        return found


def _by_key(terms: Iterable[PodTerm]) -> dict[str, tuple[PodGroup, ...]]:
    """Return the groups of anti-affinity terms by topology key: a domain with a pod of any of them is refused."""
    groups: dict[str, dict[PodGroup, None]] = {}
    for term in terms:
        groups.setdefault(term.key, {})[term.group] = None
    return {key: tuple(mine) for key, mine in groups.items()}


def offered(allocatable: Amounts, limits: Amounts, resource: str) -> int:
    """Return the initial amount of a resource on a node."""
    if resource.startswith(ATTACHED):
        return limits.get(resource.removeprefix(ATTACHED), UNLIMITED)
    return allocatable.get(resource, 0)
