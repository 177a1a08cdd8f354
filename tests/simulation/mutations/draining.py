"""Broken builds: evictions, deadlines, hooks and taints of one termination."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.ports.kubernetes import EvictionRefusedError
from leeward.termination.eviction import _Step
from leeward.termination.run import Next
from leeward.termination.situation import find_node, read
from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import CALM, Mutation, Workshop, with_features
from tests.simulation.mutations.editing import edit, edited

STEPS = "leeward.termination.steps"
DRAINING = "leeward.termination.drain"
EVICTING = "leeward.termination.eviction"
REMOVING = "leeward.termination.removals.RemovalRequest"
PARTING = "leeward.termination.node_removal"
VERDICT = "leeward.termination.decisions"
NODE = "leeward.model.node"
CODEC = "leeward.model.codec"


def _no_answer(shop: Workshop) -> None:
    shop.replace("leeward.termination.hook_completion._complete", lambda *_: True)


def _refused_is_evicted(shop: Workshop) -> None:
    sent = set()

    def send(self, kubernetes):
        try:
            kubernetes.evict(self.eviction.pod)
        except EvictionRefusedError:
            sent.add(self.eviction.pod.uid)

    original = _Step.look

    def look(self, **named):
        found = original(self, **named)
        return replace(found, evict=tuple(one for one in found.evict if one.pod.uid not in sent))

    shop.method(f"{REMOVING}.send", send)
    shop.method(f"{EVICTING}._Step.look", look)


def _no_deadline(shop: Workshop) -> None:
    shop.replace("leeward.termination.deadlines.release_at", lambda _: None)


def _sleeps_past_the_deadline(shop: Workshop) -> None:
    def work(original, node, drain, *arguments):
        causes = tuple(replace(cause, deadline=None) for cause in drain.record.causes)
        situation = replace(drain.situation, record=replace(drain.record, causes=causes))
        return original(node, replace(drain, situation=situation), *arguments)

    shop.wrap(f"{EVICTING}.work", work)


def _unreachable_is_empty(shop: Workshop) -> None:
    def drain_node(original, notes, *arguments):
        try:
            return original(notes, *arguments)
        except (ClusterUnreachableError, ThrottledError):
            return replace(notes.run, next=Next.DRAINED, pause=0, why="no pods were found")

    shop.wrap(f"{DRAINING}._drain_node", drain_node)


def _does_not_wait(shop: Workshop) -> None:
    def drain_node(original, run, *arguments):
        done = original(run, *arguments)
        return replace(done, next=Next.DRAINED, pause=0) if done.next is Next.WAIT else done

    shop.wrap(f"{DRAINING}._drain_node", drain_node)


def _removes_too_early(shop: Workshop) -> None:
    def answer(original, run, call, ports):
        done = original(run, call, ports)
        return replace(done, next=Next.REMOVE) if done.why.startswith("answered") else done

    def remove_node(run, _: Mapping, ports):
        record = read(run.instance, ports.claims)
        kubernetes = ports.clusters.kubernetes(record.subject.cluster)
        node = find_node(record, kubernetes)
        if node is not None:
            kubernetes.delete_node(node)
        return replace(run, version=record.version, next=Next.FINISH)

    shop.wrap(f"{STEPS}.answer_hooks", answer)
    shop.replace(f"{PARTING}.remove_node", remove_node)


def _no_heartbeat(shop: Workshop) -> None:
    shop.replace("leeward.termination.heartbeats.heartbeats_due", lambda *_: ())


def _every_hook_is_ours(shop: Workshop) -> None:
    shop.replace("leeward.policy.hooks.is_ours", lambda *_: True)


def _stays_cordoned(shop: Workshop) -> None:
    def untainted(original, node, taint):
        return replace(original(node, taint), unschedulable=node.unschedulable)

    shop.wrap(f"{NODE}.untainted", untainted)


def _uncordons_all(shop: Workshop) -> None:
    def untainted(original, node, taint):
        return replace(original(node, taint), unschedulable=False)

    shop.wrap(f"{NODE}.untainted", untainted)


def _asks_no_load_balancer(shop: Workshop) -> None:
    shop.replace("leeward.termination.settling.targets_before_eviction", lambda *_: None)


def _asks_for_no_volume(shop: Workshop) -> None:
    shop.replace("leeward.termination.settling.volumes_before_end", lambda *_: None)


def _stays_excluded(shop: Workshop) -> None:
    shop.replace(f"{NODE}._included", lambda node: node)


def _puts_nothing_back(shop: Workshop) -> None:
    shop.replace("leeward.termination.replica_surge._put_back", lambda *_: None)


OF_DRAINS = (
    Mutation(
        name="hooks are never completed",
        story="leaves the hook to its time-out: the group goes on by itself anyway",
        breaks=_no_answer,
        rules=frozenset({Rule.ANSWER, Rule.HOOK, Rule.DEADLINE, Rule.RECORD}),  # heartbeats hold it for two days
    ),
    Mutation(
        name="pods are deleted instead of evicted",
        story="uses the call that always works",
        breaks=edited(edit(f"{REMOVING}.send", "if not self.deletes:", "if False:")),
        rules=frozenset({Rule.DELETION}),
    ),
    Mutation(
        name="a refused eviction counts as evicted",
        story="catches the 429 where the eviction is sent and goes on",
        breaks=_refused_is_evicted,
        rules=frozenset({Rule.DRAINED}),
    ),
    Mutation(
        name="the deadline is ignored",
        story="waits for drain.timeout, as for any other drain",
        breaks=_no_deadline,
        rules=frozenset({Rule.DEADLINE}),
        scenario=CALM,
    ),
    Mutation(
        name="a step works past the deadline",
        story="looks at the deadline between two steps only",
        breaks=_sleeps_past_the_deadline,
        rules=frozenset({Rule.DEADLINE}),
        scenario=CALM,
    ),
    Mutation(
        name="an unreachable API server is an empty node",
        story="takes an error for an empty list of pods",
        breaks=_unreachable_is_empty,
        rules=frozenset({Rule.DRAINED}),
    ),
    Mutation(
        name="the instance ends before its drain has",
        story="sends the evictions and goes on to the next state",
        breaks=_does_not_wait,
        rules=frozenset({Rule.DRAINED}),
    ),
    Mutation(
        name="the Node is removed while its instance runs",
        story="believes that an answered hook is an ended instance",
        breaks=_removes_too_early,
        rules=frozenset({Rule.REMOVAL}),
    ),
    Mutation(
        name="heartbeats are never sent",
        story="trusts that drains are shorter than the hook's time-out",
        breaks=_no_heartbeat,
        rules=frozenset({Rule.ANSWER}),
    ),
    Mutation(
        name="a foreign hook is answered",
        story="answers whatever holds the instance",
        breaks=_every_hook_is_ours,
        rules=frozenset({Rule.FOREIGN_HOOK}),
    ),
    Mutation(
        name="a node that is returned to service stays cordoned",
        seed=7,
        story="takes the taint off and forgets the cordon",
        breaks=_stays_cordoned,
        rules=frozenset({Rule.CORDON}),
    ),
    Mutation(
        name="the cordon of another owner is removed",
        story="uncordons whatever it gives back",
        breaks=_uncordons_all,
        rules=frozenset({Rule.FOREIGN_CORDON}),
    ),
    Mutation(
        name="pods are evicted before load balancers have deregistered the node",
        story="labels the node and trusts that the controller is quick",
        breaks=_asks_no_load_balancer,
        rules=frozenset({Rule.IN_SERVICE}),
    ),
    Mutation(
        name="an instance ends with volumes attached",
        story="takes the end of the last pod for the end of its volumes",
        breaks=_asks_for_no_volume,
        rules=frozenset({Rule.VOLUMES}),
    ),
    Mutation(
        name="a node that is returned to service stays out of load balancers",
        story="takes the taint off and forgets the label",
        breaks=_stays_excluded,
        rules=frozenset({Rule.EXCLUDED}),
    ),
    Mutation(
        name="second replicas stay",
        seed=2,
        story="counts what was raised and never lowers it",
        breaks=_puts_nothing_back,
        rules=frozenset({Rule.REPLICAS}),
    ),
    Mutation(
        name="an instance is released at its hook's time-out although EC2 takes it later",
        story="takes the earliest of all deadlines for the moment when EC2 takes the instance",
        breaks=edited(
            edit(
                "leeward.termination.deadlines.release_at",
                "taken = taken_at(record, now)",
                "taken = min((cause.deadline for cause in record.causes if cause.deadline), default=None)",
            )
        ),
        rules=frozenset({Rule.NOTICE}),
        scenario=with_features(Feature.TWO_HOOKS),
    ),
    Mutation(
        name="a drain ends at its time-out although its grace period is longer",
        story="gives up at drain.timeout, whatever terminationGracePeriod says",
        breaks=edited(
            edit(
                "leeward.termination.deadlines.drain_end",
                "(started + policy.timeout, *_chosen(record, policy, started))",
                "(started + policy.timeout,)",
            )
        ),
        rules=frozenset({Rule.DRAINED}),
        scenario=with_features(Feature.LONG_GRACE),
    ),
    Mutation(
        name="an instance that returns to its warm pool is not drained",
        seed=43,
        story="takes whatever enters or leaves a warm pool for an instance without pods",
        breaks=edited(
            edit(
                "leeward.model.message.HookAction.without_pods",
                "self.destination == WARM_POOL if self.launching else self.origin == WARM_POOL",
                "WARM_POOL in {self.origin, self.destination}",
            )
        ),
        rules=frozenset({Rule.NOTICE}),
        scenario=with_features(Feature.WARM_POOL),
    ),
    Mutation(
        name="another team's hook that times out deletes pods while ours holds the instance",
        story="counts the time-out of every hook for the end of the instance",
        breaks=edited(
            edit(
                "leeward.termination.deadlines._foreign_hooks",
                "if not ours or cause.hook_default is HookResult.ABANDON",
                "if True",
            )
        ),
        rules=frozenset({Rule.DELETION}),
        scenario=with_features(Feature.NO_FAULTS, Feature.LONG_GRACE),
    ),
    Mutation(
        name="the taint of another deployment is removed",
        story="takes every taint of the key without a record for a stale one of its own",
        breaks=edited(
            edit(
                "leeward.reconcile.leftovers.remove_stale_taints",
                "[node for node in tainted if not node.is_foreign(ports.deployment)]",
                "tainted",
            ),
            edit(
                f"{NODE}.untainted",
                "if any(known.key == taint.key and known.value != taint.value for known in node.taints):",
                "if False:",
            ),
        ),
        rules=frozenset({Rule.FOREIGN_TAINT}),
        scenario=with_features(Feature.OTHER_DEPLOYMENT, hours=1),
    ),
    Mutation(
        name="the end of a Capacity Block is known from its warning alone",
        story="trusts EventBridge to deliver what it delivers with best effort",
        breaks=edited(edit("leeward.reconcile.scheduled_events.drain_capacity_blocks", "if not due:", "if True:")),
        rules=frozenset({Rule.BLOCK}),
        scenario=with_features(Feature.NO_FAULTS, Feature.BLOCKS, hours=2),
    ),
    Mutation(
        name="the warning of a capacity reservation is ignored",
        story="thinks that only spot instances are taken back",
        breaks=edited(
            edit(
                "leeward.interruption.parse._capacity_reservation",
                "return CapacityReservationInterruption(",
                'return event.noop("no spot instance", *common["instances"]) or CapacityReservationInterruption(',
            )
        ),
        rules=frozenset({Rule.CAUSE, Rule.DEADLINE}),
        scenario=with_features(Feature.NO_FAULTS, Feature.RESERVATIONS, hours=1),
    ),
    Mutation(
        name="a refused token is not renewed",
        story="trusts that a token lasts for as long as its function",
        breaks=edited(
            edit(
                "leeward.adapters.kubernetes.client.ClusterClient.send",
                "answer.status == 401 and not refreshed",
                "False",
            )
        ),
        rules=frozenset({Rule.DEADLINE, Rule.LIVENESS}),
        scenario=with_features(Feature.NO_FAULTS, Feature.TOKENS_REFUSED, hours=1),
    ),
    Mutation(
        name="the Node of a deleted cluster is asked for without an end",
        story="retries whatever fails",
        breaks=edited(
            edit(
                "leeward.termination.node_removal.remove_node",
                "except ClusterGoneError as error:",
                "except ZeroDivisionError as error:",
            )
        ),
        rules=frozenset({Rule.GONE, Rule.CLUSTER_GONE}),
        scenario=with_features(Feature.NO_FAULTS, Feature.CLUSTER_DELETED, hours=1),
    ),
    Mutation(
        name="critical pods wait for all others",
        story="lets a wave begin only when the one before it has left, even where EC2 takes the node",
        breaks=edited(
            edit("leeward.termination.drain_plan._latest_begins", "if begin is not None and wave > 0:", "if False:")
        ),
        rules=frozenset({Rule.DEADLINE}),
        scenario=with_features(Feature.NO_FAULTS, hours=1),
    ),
    Mutation(
        name="a field of a newer version fails the parse",
        story="reads every field that a record has, and knows them all",
        breaks=edited(
            edit(
                f"{CODEC}.decode",
                "_shape(kind).read(raw, **given)",
                "_shape(kind).read(raw, **given, **{name: raw[name] for name in raw if name == 'future'})",
            ),
        ),
        rules=frozenset({Rule.DEADLINE, Rule.LIVENESS}),
        scenario=with_features(
            Feature.NO_FAULTS, Feature.TWO_VERSIONS, hours=1, per_hour=30, upgrades=4, disruption=True
        ),
        seed=2,
    ),
)
